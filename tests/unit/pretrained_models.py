"""Small random causal language models of transformers, with a tokenizer, saved to disk."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from processes import ROOT
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from normscope.hub.batching import Batch, batches, tokenize
from normscope.hub.loading import LoadedModel, load_model
from normscope.hub.measurement import Outcome, run_batches
from normscope.hub.prompts import Prompt, read_prompts
from normscope.hub.recipe import Measured

PROMPTS = ROOT / "data" / "prompts.yaml"
LAYERS, WIDTH, HEADS = 4, 32, 4
SPECIAL, VOCABULARY = ["<unk>", "<s>", "</s>"], 400


@functools.cache
def trained() -> str:
    """A byte-level BPE trained on the prompts, as JSON, with the special tokens first."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # pyright: ignore
    made.decoder = decoders.ByteLevel()  # pyright: ignore
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([p.text for p in read_prompts(PROMPTS)], trainer)
    return made.to_str()


def tokenizer(bos: bool = True, adds: str = "$A") -> PreTrainedTokenizerFast:
    """A tokenizer with the template ``adds`` for special tokens, such as ``<s> $A``."""
    made = Tokenizer.from_str(trained())
    made.post_processor = processors.TemplateProcessing(  # pyright: ignore
        single=adds, special_tokens=[(s, i) for i, s in enumerate(SPECIAL)]
    )
    named = {"bos_token": "<s>"} if bos else {}
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", **named)


# values of the configuration keys that determine the size of a model
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
# further keys that a configuration needs, by model type
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


def config_of(kind: str, **changes: Any) -> Any:
    """A configuration of a few thousand parameters; only the text model of a composite is small."""
    whole: Any = CONFIG_MAPPING[kind]
    text: Any = getattr(whole, "sub_configs", {}).get("text_config")
    made: Any = text if hasattr(text, "__dataclass_fields__") else whole
    sizes = {name: size for size, names in SIZES.items() for name in names.split()}
    sizes = {name: size for name, size in sizes.items() if name in made.__dataclass_fields__}
    config = made(**sizes | ALSO.get(kind, {}) | changes)
    return config if made is whole else whole(text_config=config)


TIED, UNTIED = {"tie_word_embeddings": True}, {"tie_word_embeddings": False}
# model type and changes of its configuration; the sliding window is shorter than most prompts
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("gpt2", {}),
    "gpt2_untied": ("gpt2", UNTIED),
    "gpt_neox": ("gpt_neox", {}),
    "gptj": ("gptj", {}),
    "llama": ("llama", {}),
    "llama_tied": ("llama", TIED),
    "mistral": ("mistral", {"sliding_window": 5}),
    "gemma": ("gemma", {"head_dim": 10, "num_key_value_heads": 1}),
    "opt": ("opt", {}),
    "opt_post": ("opt", {"do_layer_norm_before": False, "word_embed_proj_dim": 16}),
    "qwen2": ("qwen2", TIED),
}


def perturb(model: nn.Module, seed: int = 0) -> nn.Module:
    """Random weights: gains between 0.5 and 1.5, and no zeros."""
    g = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        if p.ndim == 1 and name.endswith("weight"):
            nn.init.uniform_(p, 0.5, 1.5, generator=g)
        else:
            nn.init.normal_(p, std=0.2, generator=g)
    return model.eval().requires_grad_(False)


def random_model(kind: str, **changes) -> Any:
    name, sizes = KINDS[kind]
    return perturb(AutoModelForCausalLM.from_config(config_of(name, **sizes | changes)))


def save(model: Any, directory: Path, shard: str = "20KB") -> Path:
    """Save the model in several files, with the tokenizer."""
    model.save_pretrained(directory, max_shard_size=shard)
    tokenizer().save_pretrained(directory)
    return directory


def prompts() -> list[Prompt]:
    return [p for p in read_prompts(PROMPTS) if p.set == "benchmark"]


def from_directory(directory: Path, **keys: str) -> Measured:
    return Measured.model_validate(
        {"source": {"kind": "directory", "path": str(directory)}, **keys}
    )


def load(directory: Path, memory_gb: float = 1.0, **keys: str) -> LoadedModel:
    measured = from_directory(directory, **keys)
    return load_model(directory, measured, memory_gb, "cpu", directory / "offload")


def half_of_memory(directory: Path) -> float:
    """GB of half the weights of a saved model in fp32."""
    index = json.loads((directory / "model.safetensors.index.json").read_text())
    return 2 * index["metadata"]["total_parameters"] / 1e9


def all_batches(loaded: LoadedModel) -> list[Batch]:
    return batches(tokenize(loaded.tokenizer, prompts())[0], "cpu")


def outcomes(loaded: LoadedModel) -> list[Outcome]:
    return list(run_batches(loaded.model, loaded.body, all_batches(loaded)))


def norm(x: Tensor) -> Tensor:
    return x.double().square().sum(-1).sqrt()


def stock(directory: Path) -> Any:
    """The model as transformers loads it by default."""
    return AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()


def rewrite(directory: Path, ending: str, change: Callable[[Tensor], Tensor | None]) -> list[str]:
    """Change or remove the weight whose name has this ending; returns its file and its name."""
    for path in directory.glob("model-*.safetensors"):
        content = load_file(path)
        if names := [name for name in content if name.endswith(ending)]:
            (name,) = names
            changed = change(content.pop(name))
            save_file(
                content | ({} if changed is None else {name: changed}), path, {"format": "pt"}
            )
            return [str(path), name]
    raise LookupError(ending)
