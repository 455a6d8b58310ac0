"""The registry: each normalization arm is one row of factors.

To add an arm, add a row to ``BUILT_IN`` and name it in ``config.yaml``: it then trains, is measured
and appears in every figure and table. A run is handed the factors, never the name, so that a new
row retrains nothing. ``normscope.nn.norms`` turns factors into a module.

Arms whose norms have code of their own travel in the configuration and in the parameters of
scripts, and are added when these are validated (``normscope.custom_arms``).
"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from normscope.errors import Explained, explain, suggest
from normscope.io.corpus import one_line
from normscope.io.names import Key
from normscope.nn.recipe import Norm, Placement
from normscope.schema import distinct

Factors = dict[str, Any]


class Row(NamedTuple):
    """A row of the registry; ``registry`` checks it."""

    name: str
    label: str
    source: str
    factors: Factors


def _label(label: str) -> str:
    if not one_line(label).strip() or label.startswith("_") or "$" in label:
        raise ValueError(
            f"{label!r} cannot be shown: figures hide a label that is empty or begins with _, and "
            "read $ as mathematics; choose another label"
        )
    return label


def _source(source: str) -> str:
    if not one_line(source).strip():
        raise ValueError("say where the norm is from")
    return source


@dataclass(frozen=True, config=ConfigDict(strict=True))
class Arm:
    """The label that figures show, the norm's source, and its factors."""

    label: Annotated[str, AfterValidator(_label)]
    source: Annotated[str, AfterValidator(_source)]
    norm: Norm


BA16 = "Ba et al. 2016, arXiv:1607.06450, eq. 4"
ZS19 = "Zhang & Sennrich 2019, arXiv:1910.07467, eq. 4"
IS15 = "Ioffe & Szegedy 2015, arXiv:1502.03167, algorithm 1"
XU19 = "Xu et al. 2019, arXiv:1911.07013"
NS19 = "Nguyen & Salazar 2019, arXiv:1910.05895, eq. 3"
ZH25 = "Zhu et al. 2025, arXiv:2503.10622, eq. 1"
CH25 = "Chen et al. 2025, arXiv:2512.10938"
NF17 = "Wang et al. 2017, arXiv:1704.06369, section 3: normalized features need a learned scale"
ZH25_LLM = (
    "Zhu et al. 2025, arXiv:2503.10622, as for language models: a learned factor of the embedding "
    "that starts at sqrt(d), and alpha = 1, which they use at their smallest width"
)
CH25_LLM = (
    "Chen et al. 2025, arXiv:2512.10938, as for GPT-2: a factor of the embedding; DyT's alpha"
)
ZH25_ALPHA = (
    "Zhu et al. 2025, arXiv:2503.10622, as for language models, which depend on alpha (section 7): "
    "a learned factor of the embedding, and an alpha that differs from 1"
)
ZH25_ATTENTION = (
    "Zhu et al. 2025, arXiv:2503.10622, as for language models: a learned factor of the embedding, "
    "and an alpha before attention that is four times that of the other norms, as in their four "
    "LLaMA models (0.8 and 0.2 at 7B, 0.2 and 0.05 at 70B)"
)
CH25_HALF = "Chen et al. 2025, arXiv:2512.10938, as for GPT-2: a factor of the embedding"
AB26 = f"{CH25_HALF}; alpha = 0.3, to which Abouzeid 2026, arXiv:2604.01563, reduces it for Muon"
UNIT = "x / max(||x||, 1e-9): an RMSNorm without its sqrt(d)"
SCALED = "s x / max(||x||, 1e-9), s learned from 1: NormFace, Wang et al. 2017, arXiv:1704.06369"
CENTERED = "u / max(||u||, 1e-9), u = x - mean(x): a LayerNorm without its sqrt(d)"
CROSSED = "g u / max(||u||, eps), u = x - mean(x): ScaleNorm's radius with LayerNorm's centering"


LOG_RATE = 10.0  # so that 100 steps at 1e-3 take a gain from 1 to e


def _token(**factors) -> Factors:
    """LayerNorm, RMSNorm and their relatives, at radius sqrt(d)."""
    return {"statistic": "token", **factors}


def _unit(*, gain: bool = False, **factors) -> Factors:
    """A projection onto the unit sphere; a gain is learned by its logarithm."""
    rate = LOG_RATE if gain else None
    return _token(radius="1", eps=1e-9, gain=gain, log_rate=rate) | factors


def _learned_radius(**factors) -> Factors:
    """A projection onto a sphere of learned radius."""
    return _token(radius="learned") | factors


def _batch(**factors) -> Factors:
    """BatchNorm."""
    return {"statistic": "batch", "center": True, **factors}


def _pointwise(function: Literal["tanh", "erf"], **factors) -> Factors:
    """An elementwise map with gain and bias, without a statistic."""
    return {"statistic": "none", "elementwise": function, "gain": True, "bias": True, **factors}


_NAME: TypeAdapter[str] = TypeAdapter(Key)


def registry(*rows: Row, place: str = "BUILT_IN of src/normscope/nn/arms.py") -> dict[str, Arm]:
    """The arms by name.

    Args:
        place: where the rows are, for messages.

    Raises:
        Explained: rows are wrong; one line per fault, with the row's name and the reason.
    """
    arms: dict[str, Arm] = {}
    faults: list[str] = []
    for name, label, source, factors in rows:
        try:
            _NAME.validate_python(name)
            arm = Arm(label=label, source=source, norm=Norm.model_validate(factors))
        except ValidationError as e:
            faults += [f"{name!r}: {line}" for line in explain(e.errors(), Norm.model_json_schema)]
            continue
        if twin := next((n for n, a in arms.items() if a.norm == arm.norm), None):
            faults.append(
                f"{name!r}: has the factors of {twin!r}, and models are told apart by their "
                "factors: change a factor or remove one of the rows"
            )
        arms[name] = arm
    for values in ([row.name for row in rows], [row.label for row in rows]):
        try:
            distinct(values)
        except ValueError as e:
            faults.append(str(e))
    if faults:
        raise Explained("\n".join(f"{place}: {f}" for f in faults))
    return arms


def _affine_variants(
    name: str, label: str, source: str, factors: Callable[..., Factors]
) -> list[Row]:
    """Four rows: without an affine part, with a gain, with a bias, and with both."""
    ends = [
        ("", "", {}),
        ("_gain", ", gain only", {"gain": True}),
        ("_bias", ", bias only", {"bias": True}),
        ("_affine", ", affine", {"gain": True, "bias": True}),
    ]
    return [Row(name + end, label + words, source, factors(**part)) for end, words, part in ends]


def _embedding_scale(alpha: float, **factors) -> Factors:
    """A learned factor of the embedding, as DyT and Derf have in language models."""
    return {"alpha": alpha, "embedding_scale": True, **factors}


BUILT_IN = (
    Row("layernorm", "LayerNorm", BA16, _token(center=True, gain=True, bias=True)),
    Row("layernorm_gain", "LayerNorm, gain only", BA16, _token(center=True, gain=True)),
    Row("layernorm_bias", "LayerNorm, bias only", BA16, _token(center=True, bias=True)),
    Row("layernorm_plain", "LayerNorm, no affine", XU19, _token(center=True)),
    Row("rmsnorm", "RMSNorm", ZS19, _token(gain=True)),
    Row("rmsnorm_affine", "RMSNorm, affine", ZS19, _token(gain=True, bias=True)),
    Row("rmsnorm_bias", "RMSNorm, bias only", ZS19, _token(bias=True)),
    Row("rmsnorm_plain", "RMSNorm, no gain", ZS19, _token()),
    *_affine_variants("manual_l2", "Unit L2", UNIT, _unit),
    Row(
        "manual_l2_scaled",
        "Unit L2, learned scale",
        SCALED,
        _learned_radius(eps=1e-9, log_rate=LOG_RATE),
    ),
    Row("manual_l2_logits", "Unit L2, scaled logits", NF17, _unit(logit_scale=True)),
    *_affine_variants("centered_l2", "Centered L2", CENTERED, partial(_unit, center=True)),
    *_affine_variants("scalenorm", "ScaleNorm", NS19, _learned_radius),
    *_affine_variants(
        "centered_scalenorm", "Centered ScaleNorm", CROSSED, partial(_learned_radius, center=True)
    ),
    Row("batchnorm", "BatchNorm", IS15, _batch(gain=True, bias=True)),
    Row("batchnorm_plain", "BatchNorm, no affine", IS15, _batch()),
    Row("dyt", "DyT", ZH25, _pointwise("tanh")),
    Row(
        "dyt_scaled", "DyT, scaled embedding", ZH25_LLM, _pointwise("tanh", **_embedding_scale(1.0))
    ),
    Row("derf", "Derf", CH25, _pointwise("erf")),
    Row(
        "derf_scaled",
        "Derf, scaled embedding",
        CH25_LLM,
        _pointwise("erf", **_embedding_scale(1.0)),
    ),
    Row(
        "dyt_half",
        "DyT, scaled embedding, alpha 0.5",
        ZH25_ALPHA,
        _pointwise("tanh", **_embedding_scale(0.5)),
    ),
    Row(
        "dyt_two",
        "DyT, scaled embedding, alpha 2",
        ZH25_ALPHA,
        _pointwise("tanh", **_embedding_scale(2.0)),
    ),
    Row(
        "dyt_attention",
        "DyT, scaled embedding, alpha 4 in attention",
        ZH25_ATTENTION,
        _pointwise("tanh", **_embedding_scale(1.0, alpha_at={"before_attention": 4.0})),
    ),
    Row(
        "derf_half",
        "Derf, scaled embedding, alpha 0.5",
        CH25_HALF,
        _pointwise("erf", **_embedding_scale(0.5)),
    ),
    Row(
        "derf_third",
        "Derf, scaled embedding, alpha 0.3",
        AB26,
        _pointwise("erf", **_embedding_scale(0.3)),
    ),
    Row("none", "No norm", "identity", {"statistic": "none"}),
)
ARMS = registry(*BUILT_IN)
LABELS = {name: arm.label for name, arm in ARMS.items()}


def add(*rows: Row) -> None:
    """Set the arms that are added to the built-in ones.

    Raises:
        Explained: A name, a label or a norm is that of another arm, or a row is wrong.
    """
    arms = registry(*BUILT_IN, *rows, place="arms")
    ARMS.clear()
    ARMS.update(arms)
    LABELS.clear()
    LABELS.update({name: arm.label for name, arm in arms.items()})


def _check_name(name: str) -> str:
    if name not in ARMS:
        raise ValueError(f"unknown arm {name!r}; {suggest(name, ARMS)}")
    return name


ArmName = Annotated[
    str, AfterValidator(_check_name), Field(description="a row of src/normscope/nn/arms.py")
]


def check_placement(arm: str, placement: Placement) -> None:
    """Check that an arm fits a placement: only an identity goes with placement none."""
    if ARMS[arm].norm.is_identity != (placement == "none"):
        raise ValueError(
            f"arm {arm} with placement {placement}: an arm that normalizes goes with any placement "
            "but none; an identity such as none with placement none"
        )
