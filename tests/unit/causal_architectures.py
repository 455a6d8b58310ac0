"""A tiny random model of every causal architecture of transformers, and traces of its modules."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from pretrained_models import LAYERS, config_of, norm, perturb
from torch import Tensor, nn
from transformers import AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

TYPES = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)

# types that ``config_of`` cannot make small, and the reason
UNBUILT = {
    "blt": "its byte patcher and hash embeddings have further sizes",
    "cohere_compass_text": "its default configuration lacks rotary embeddings",
    "dots3_note": "as dots3_note_text",
    "dots3_note_text": "its n-gram embeddings have further sizes",
    "fuyu": "its text model is persimmon",
    "gemma3": "its text model is gemma3_text",
    "gemma3n": "needs timm; its text model is gemma3n_text",
    "gemma4_assistant": "predicts from the states of another model",
    "gemma4_unified_assistant": "predicts from the states of another model",
    "git": "its vision model has further sizes",
    "got_ocr2": "its text model is qwen2",
    "moss_transcribe_diarize": "its text model is qwen3",
    "musicgen": "predicts tokens of audio from a text encoder's states",
    "musicgen_melody": "predicts tokens of audio from a text encoder's states",
    "phi4_multimodal": "its models of images and audio have further sizes",
    "qwen4_exp": "as qwen4_exp_text",
    "qwen4_exp_text": "its default configuration lacks the sizes of its indexer",
}
BUILT = [kind for kind in TYPES if kind not in UNBUILT]


@functools.cache
def model_of(kind: str) -> Any:
    torch.manual_seed(0)
    config = config_of(kind)
    return perturb(AutoModelForCausalLM.from_config(config, attn_implementation="eager"))


def lists_of(model: nn.Module) -> list[str]:
    """Names of the lists that may be the list of blocks, by their length."""
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList) and len(module) == LAYERS
    ]


@dataclass(frozen=True)
class Run:
    """One call of a module: its start and end on a counter, its input and its output."""

    began: int
    ended: int
    taken: Tensor | None
    given: Tensor | None


@dataclass
class Trace:
    """The calls of all modules in one pass over one prompt, without padding."""

    model: nn.Module
    tokens: Sequence[int]
    runs: dict[str, list[Run]] = field(default_factory=dict)
    hidden_states: tuple[Tensor, ...] | None = None

    def __post_init__(self) -> None:
        clock, begun, handles = [0], {}, []

        def tick() -> int:
            clock[0] += 1
            return clock[0]

        def begin(name: str) -> Any:
            def hook(_: nn.Module, args: Any, kwargs: Any) -> None:
                taken = args[0] if args else kwargs.get("hidden_states")
                begun.setdefault(name, []).append((tick(), _vectors(taken)))

            return hook

        def end(name: str) -> Any:
            def hook(_: nn.Module, args: Any, output: Any) -> None:
                began, taken = begun[name].pop()
                given = _vectors(output)
                self.runs.setdefault(name, []).append(Run(began, tick(), taken, given))

            return hook

        for name, module in self.model.named_modules():
            handles.append(module.register_forward_pre_hook(begin(name), with_kwargs=True))
            handles.append(module.register_forward_hook(end(name)))
        try:
            with torch.inference_mode():
                output = self.model(
                    input_ids=torch.tensor([self.tokens]),
                    output_hidden_states=True,
                    logits_to_keep=torch.tensor([len(self.tokens) - 1]),  # as for the prediction
                    use_cache=False,
                )
        finally:
            for handle in handles:
                handle.remove()
        self.hidden_states = getattr(output, "hidden_states", None)

    def stream(self, blocks: str, final_norm: str) -> list[Tensor] | None:
        """The stream (positions, width) at every site, or None if the names do not give one.

        Each block runs once and takes what the one before gave. The final norm takes what the last
        block gave, once after it.
        """
        chain, shape = [], None
        for i in range(LAYERS):
            runs = self.runs.get(f"{blocks}.{i}", [])
            if len(runs) != 1:
                return None
            chain.append(runs[0])
        last = chain[-1].ended
        if final_norm != "none":
            runs = [run for run in self.runs.get(final_norm, []) if run.began > last]
            between = [r for r in self.runs.get(final_norm, []) if chain[0].began < r.began < last]
            if len(runs) != 1 or (between and final_norm.startswith(blocks)):
                return None
            chain.append(runs[0])
        entered = chain[0].taken
        if entered is None or entered.ndim != 3 or entered.shape[:2] != (1, len(self.tokens)):
            return None
        sites, shape = [entered], entered.shape
        for run in chain:
            taken, given = run.taken, run.given
            if taken is None or given is None or taken.shape != shape or given.shape != shape:
                return None
            if not torch.allclose(taken, sites[-1]):
                return None
            sites.append(given)
        return [site[0] for site in sites]


def _vectors(value: Any) -> Tensor | None:
    if isinstance(value, tuple | list) and value:
        value = value[0]
    value = getattr(value, "last_hidden_state", value)
    return value.clone() if isinstance(value, Tensor) and value.is_floating_point() else None


def expected_norms(sites: Sequence[Tensor], positions: str) -> Tensor:
    """Norms (sites,) at the first or the last position, or their geometric mean over the later."""
    norms = torch.stack([norm(site) for site in sites])
    if positions == "later":
        return norms[:, 1:].log().mean(1).exp()
    return norms[:, 0 if positions == "first" else -1]


def sees_later_tokens(model: nn.Module) -> bool:
    """Whether the logits at a position change with the token after it."""
    one, other = torch.tensor([[5, 6, 7, 8]]), torch.tensor([[5, 6, 7, 300]])
    with torch.inference_mode():
        first, second = (model(input_ids=t, use_cache=False).logits[:, :3] for t in (one, other))
    return not torch.allclose(first, second, rtol=1e-3, atol=1e-3 * float(first.abs().max()))
