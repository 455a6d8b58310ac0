"""The registry: every normalization arm is one row of factors.

To add an arm, add a row to ``ARMS`` and name it in ``config.yaml``: it then trains, is measured and
appears in every figure and table. A run is handed the factors, never the name, so that a new row
retrains nothing. ``normscope.nn.norms`` turns factors into a module.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from normscope.errors import suggest
from normscope.nn.recipe import Norm, Placement


@dataclass(frozen=True)
class Arm:
    """One row: how figures call it, where it is from, and its factors."""

    label: str
    source: str
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
    "that starts at sqrt(d), and alpha = 1, which is theirs for their least width"
)
CH25_LLM = (
    "Chen et al. 2025, arXiv:2512.10938, as for GPT-2: a factor of the embedding; DyT's alpha"
)
UNIT = "x / max(||x||, 1e-9): an RMSNorm without its sqrt(d)"
SCALED = "s x / max(||x||, 1e-9), s learned from 1: NormFace, Wang et al. 2017, arXiv:1704.06369"
CENTERED = "u / max(||u||, 1e-9), u = x - mean(x): a LayerNorm without its sqrt(d)"
CROSSED = "g u / max(||u||, eps), u = x - mean(x): ScaleNorm's radius with LayerNorm's centering"


LOG_RATE = 10.0  # so that 100 steps at 1e-3 take a gain from 1 to e


def _token(**factors) -> Norm:
    return Norm(statistic="token", **factors)


def _unit(*, gain: bool = False, **factors) -> Norm:
    free = LOG_RATE if gain else None
    return Norm(statistic="token", radius="1", eps=1e-9, gain=gain, log_rate=free, **factors)


def _learned(**factors) -> Norm:
    return Norm(statistic="token", radius="learned", **factors)


def _batch(**factors) -> Norm:
    return Norm(statistic="batch", center=True, **factors)


def _pointwise(function: Literal["tanh", "erf"], **factors) -> Norm:
    return Norm(statistic="none", elementwise=function, gain=True, bias=True, **factors)


# for language models
TUNED = {"alpha": 1.0, "embedding_scale": True}


ARMS: dict[str, Arm] = {
    "layernorm": Arm("LayerNorm", BA16, _token(center=True, gain=True, bias=True)),
    "layernorm_gain": Arm("LayerNorm, gain only", BA16, _token(center=True, gain=True)),
    "layernorm_bias": Arm("LayerNorm, bias only", BA16, _token(center=True, bias=True)),
    "layernorm_plain": Arm("LayerNorm, no affine", XU19, _token(center=True)),
    "rmsnorm": Arm("RMSNorm", ZS19, _token(gain=True)),
    "rmsnorm_affine": Arm("RMSNorm, affine", ZS19, _token(gain=True, bias=True)),
    "rmsnorm_bias": Arm("RMSNorm, bias only", ZS19, _token(bias=True)),
    "rmsnorm_plain": Arm("RMSNorm, no gain", ZS19, _token()),
    "manual_l2": Arm("Unit L2", UNIT, _unit()),
    "manual_l2_gain": Arm("Unit L2, gain only", UNIT, _unit(gain=True)),
    "manual_l2_bias": Arm("Unit L2, bias only", UNIT, _unit(bias=True)),
    "manual_l2_affine": Arm("Unit L2, affine", UNIT, _unit(gain=True, bias=True)),
    "manual_l2_scaled": Arm(
        "Unit L2, learned scale", SCALED, _learned(eps=1e-9, log_rate=LOG_RATE)
    ),
    "manual_l2_logits": Arm("Unit L2, scaled logits", NF17, _unit(logit_scale=True)),
    "centered_l2": Arm("Centered L2", CENTERED, _unit(center=True)),
    "centered_l2_gain": Arm("Centered L2, gain only", CENTERED, _unit(center=True, gain=True)),
    "centered_l2_bias": Arm("Centered L2, bias only", CENTERED, _unit(center=True, bias=True)),
    "centered_l2_affine": Arm(
        "Centered L2, affine", CENTERED, _unit(center=True, gain=True, bias=True)
    ),
    "scalenorm": Arm("ScaleNorm", NS19, _learned()),
    "scalenorm_gain": Arm("ScaleNorm, gain only", NS19, _learned(gain=True)),
    "scalenorm_bias": Arm("ScaleNorm, bias only", NS19, _learned(bias=True)),
    "scalenorm_affine": Arm("ScaleNorm, affine", NS19, _learned(gain=True, bias=True)),
    "centered_scalenorm": Arm("Centered ScaleNorm", CROSSED, _learned(center=True)),
    "centered_scalenorm_gain": Arm(
        "Centered ScaleNorm, gain only", CROSSED, _learned(center=True, gain=True)
    ),
    "centered_scalenorm_bias": Arm(
        "Centered ScaleNorm, bias only", CROSSED, _learned(center=True, bias=True)
    ),
    "centered_scalenorm_affine": Arm(
        "Centered ScaleNorm, affine", CROSSED, _learned(center=True, gain=True, bias=True)
    ),
    "batchnorm": Arm("BatchNorm", IS15, _batch(gain=True, bias=True)),
    "batchnorm_plain": Arm("BatchNorm, no affine", IS15, _batch()),
    "dyt": Arm("DyT", ZH25, _pointwise("tanh")),
    "dyt_scaled": Arm("DyT, scaled embedding", ZH25_LLM, _pointwise("tanh", **TUNED)),
    "derf": Arm("Derf", CH25, _pointwise("erf")),
    "derf_scaled": Arm("Derf, scaled embedding", CH25_LLM, _pointwise("erf", **TUNED)),
    "none": Arm("No norm", "identity", Norm(statistic="none")),
}
LABELS = {name: arm.label for name, arm in ARMS.items()}


def _known(name: str) -> str:
    if name not in ARMS:
        raise ValueError(f"unknown arm {name!r}; {suggest(name, ARMS)}")
    return name


ArmName = Annotated[
    str, AfterValidator(_known), Field(description="a row of src/normscope/nn/arms.py")
]


def check_placement(arm: str, placement: Placement) -> None:
    """Whether an arm can stand there: an identity has no place, any other norm has one.

    Raises:
        ValueError: it cannot.
    """
    if ARMS[arm].norm.is_identity != (placement == "none"):
        raise ValueError(
            f"arm {arm} with placement {placement}: an arm that normalizes goes with pre, post or "
            "peri; an identity such as none with placement none"
        )
