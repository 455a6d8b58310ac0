"""A tiny random model of every causal architecture of transformers, and what its modules do."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from pretrained_models import VOCABULARY, norm, perturb
from torch import Tensor, nn
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

LAYERS, WIDTH = 4, 32
TYPES = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)

# size by the names that configurations have for it
SIZES: dict[int, str] = {
    2: """moe_k moe_topk num_experts_per_tok num_key_value_heads num_kv_heads
    swa_num_key_value_heads index_n_heads linear_num_key_heads num_layers_per_stack
    split_ngram_parts zero_expert_num pad_token_id eos_token_id""",
    1: "n_group topk_group n_shared_experts bos_token_id num_mem_blocks",
    0: "num_kv_shared_layers",
    3: "conv_L_cache",
    LAYERS: """num_hidden_layers n_layer n_layers num_layers decoder_layers encoder_layers
    num_decoder_layers num_encoder_layers num_blocks num_attention_heads n_head n_heads num_heads
    decoder_attention_heads encoder_attention_heads attention_heads num_encoder_attention_heads
    num_decoder_attention_heads swa_num_attention_heads linear_num_value_heads linear_num_heads
    num_experts n_routed_experts num_local_experts moe_num_experts qk_rope_head_dim
    qk_nope_head_dim time_step_rank mamba_dt_rank laurel_rank rotary_dim adapter_rank d_rel
    prompt_length hc_lowrank""",
    8: """head_dim kv_channels sliding_window qk_head_dim v_head_dim kv_lora_rank q_lora_rank
    o_lora_rank index_head_dim index_topk linear_key_head_dim linear_value_head_dim linear_head_dim
    mamba_d_state state_size ssm_state_size mamba_n_heads mamba_d_head mamba_num_heads
    mamba_head_dim mamba_headdim chunk_size mamba_chunk_size hidden_size_per_layer_input
    attention_head_dim swa_head_dim dim_head pronunciation_embed_dim shape_embed_dim ple_embed_dim
    attention_head_size d_head""",
    16: """moe_intermediate_size shared_expert_intermediate_size router_hidden_size
    moe_shared_expert_intermediate_size shared_experts_intermediate_size shared_intermediate_size
    expert_ffn_hidden_size rel_extent prompt_mid_dim""",
    WIDTH: """hidden_size d_model n_embd dim_model emb_dim embedding_size word_embed_proj_dim
    attention_hidden_size lru_width embedding_dim input_embedding_size output_embedding_size""",
    64: """intermediate_size ffn_dim decoder_ffn_dim encoder_ffn_dim n_inner dff d_inner dim_ff
    inner_dim max_position_embeddings n_positions n_ctx max_seq_len block_size context_length
    ffn_hidden_size mamba_d_ssm intermediate_size_mlp dense_intermediate_size feed_forward_size
    max_target_positions""",
    VOCABULARY: "vocab_size vocab_size_per_layer_input decoder_vocab_size ngram_vocab_size_base",
}
LATENT = {"num_key_value_heads": 4}  # attention from latent vectors: no grouped queries
HYBRID = {
    "layers_block_type": ["linear_attention", "hybrid"] * 2,
    "attention_hidden_size": 2 * WIDTH,
    "attention_head_dim": 16,
    **LATENT,
}
DECODERS = """bert bert-generation big_bird camembert data2vec-text electra ernie megatron-bert
rembert roberta roberta-prelayernorm roc_bert roformer xlm-roberta xlm-roberta-xl""".split()
LATENTS = """axk1 axk2 deepseek_v2 deepseek_v3 deepseek_v32 dots3_note dots3_note_text glm4_moe_lite
glm_moe_dsa longcat_flash minicpm3 youtu""".split()
# what else a configuration needs, by the type of the model
ALSO: dict[str, dict[str, Any]] = {
    **{kind: {"is_decoder": True} for kind in DECODERS},
    **dict.fromkeys(LATENTS, LATENT),
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "rope_theta": 1e4, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": WIDTH},
    },
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "longcat_flash": LATENT | {"num_layers": LAYERS // 2, "head_dim": 4},
    "mamba2": {"num_heads": 8},
    "reformer": {
        "is_decoder": True,
        "axial_pos_embds": False,
        "attn_layers": ["local"] * LAYERS,
        "local_attn_chunk_length": 8,
    },
    "xmod": {"is_decoder": True, "default_language": "en_XX"},
    "zamba": HYBRID | {"n_mamba_heads": 2},
    "zamba2": HYBRID | {"hybrid_layer_ids": [1, 3]},
    "zaya": {"num_experts_per_tok": 1},
}
# types that this recipe does not make small, and why
UNBUILT = {
    "blt": "its byte patcher and hash embeddings have sizes of their own",
    "cohere_compass_text": "its default configuration lacks rotary embeddings",
    "dots3_note": "as dots3_note_text",
    "dots3_note_text": "its n-gram embeddings have sizes of their own",
    "fuyu": "its text model is persimmon",
    "gemma3": "its text model is gemma3_text",
    "gemma3n": "needs timm; its text model is gemma3n_text",
    "gemma4_assistant": "predicts from the states of another model",
    "gemma4_unified_assistant": "predicts from the states of another model",
    "git": "its vision model has sizes of its own",
    "got_ocr2": "its text model is qwen2",
    "moss_transcribe_diarize": "its text model is qwen3",
    "musicgen": "predicts tokens of audio from a text encoder's states",
    "musicgen_melody": "predicts tokens of audio from a text encoder's states",
    "phi4_multimodal": "its models of images and audio have sizes of their own",
    "qwen4_exp": "as qwen4_exp_text",
    "qwen4_exp_text": "its default configuration lacks the sizes of its indexer",
}
BUILT = [kind for kind in TYPES if kind not in UNBUILT]


def config_of(kind: str) -> Any:
    """A configuration of a few thousand parameters; of a composite, that of its text model."""
    whole: Any = CONFIG_MAPPING[kind]
    text: Any = getattr(whole, "sub_configs", {}).get("text_config")
    made: Any = text if hasattr(text, "__dataclass_fields__") else whole
    sizes = {name: size for size, names in SIZES.items() for name in names.split()}
    sizes = {name: size for name, size in sizes.items() if name in made.__dataclass_fields__}
    config = made(**sizes | ALSO.get(kind, {}))
    return config if made is whole else whole(text_config=config)


@functools.cache
def model_of(kind: str) -> Any:
    torch.manual_seed(0)
    config = config_of(kind)
    return perturb(AutoModelForCausalLM.from_config(config, attn_implementation="eager"))


def lists_of(model: nn.Module) -> list[str]:
    """Names of what may pass for the list of blocks, by its length."""
    return [
        name
        for name, module in model.named_modules()
        if isinstance(module, nn.ModuleList) and len(module) == LAYERS
    ]


@dataclass(frozen=True)
class Run:
    """One run of a module: when it began and ended, what it took and what it gave."""

    began: int
    ended: int
    taken: Tensor | None
    given: Tensor | None


@dataclass
class Trace:
    """What all modules of a model did in one pass over one prompt, without a batch or padding."""

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
