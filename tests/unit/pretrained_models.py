"""Small random causal language models of transformers, with a tokenizer, saved to disk."""

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from processes import ROOT
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PretrainedConfig, PreTrainedTokenizerFast

from normscope.hub.batching import Batch, batches, tokenize
from normscope.hub.loading import LoadedModel, load_model
from normscope.hub.measurement import Outcome, run_batches
from normscope.hub.prompts import Prompt, read_prompts
from normscope.hub.recipe import Measured

PROMPTS = ROOT / "data" / "prompts.yaml"
LAYERS, WIDTH, HEADS = 4, 24, 4
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


GPT2 = {"n_embd": WIDTH, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 64}
LLAMA = {
    "hidden_size": WIDTH,
    "intermediate_size": 2 * WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "max_position_embeddings": 64,
}
GROUPED = LLAMA | {"num_key_value_heads": 2}
OPT = {
    "hidden_size": WIDTH,
    "ffn_dim": 2 * WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "max_position_embeddings": 64,
    "word_embed_proj_dim": WIDTH,
}
POST = {"do_layer_norm_before": False, "word_embed_proj_dim": 16}
TIED, UNTIED = {"tie_word_embeddings": True}, {"tie_word_embeddings": False}

# configuration class and sizes; the sliding window is shorter than most prompts
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2": ("GPT2Config", GPT2),
    "gpt2_untied": ("GPT2Config", GPT2 | UNTIED),
    "gpt_neox": ("GPTNeoXConfig", LLAMA),
    "gptj": ("GPTJConfig", GPT2 | {"rotary_dim": 4}),
    "llama": ("LlamaConfig", GROUPED),
    "llama_tied": ("LlamaConfig", GROUPED | TIED),
    "mistral": ("MistralConfig", GROUPED | {"sliding_window": 5}),
    "gemma": ("GemmaConfig", GROUPED | {"head_dim": 10, "num_key_value_heads": 1}),
    "opt": ("OPTConfig", OPT),
    "opt_post": ("OPTConfig", OPT | POST),
    "qwen2": ("Qwen2Config", GROUPED | TIED),
}


def config_of(kind: str, **changes) -> PretrainedConfig:
    name, sizes = KINDS[kind]
    ids = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
    return getattr(transformers, name)(**(ids | sizes | changes))


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
    return perturb(AutoModelForCausalLM.from_config(config_of(kind, **changes)))


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
