"""Random models of real classes on disk, a hub that offers them, and jobs that measure them."""

import contextlib
import functools
import hashlib
import json
import os
import runpy
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from processes import ROOT, SCRIPTS
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from normscope.hub.batching import batches, tokenize
from normscope.hub.loading import LoadedModel, load_model
from normscope.hub.measurement import Outcome, run_batches
from normscope.hub.prompts import Prompt, read_prompts
from normscope.hub.recipe import Measurement

PROMPTS = ROOT / "data" / "prompts.yaml"
LAYERS, WIDTH, HEADS = 4, 32, 4
SPECIAL, VOCABULARY = ["<unk>", "<s>", "</s>"], 400


@functools.cache
def tokenizer_json() -> str:
    """A byte-level BPE trained on English prompts, as JSON, with the special tokens first."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)  # pyright: ignore
    made.decoder = decoders.ByteLevel()  # pyright: ignore
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(
        [p.text for p in read_prompts(PROMPTS) if p.set != "antibodies"], trainer
    )
    return made.to_str()


def tokenizer(bos: bool = True, adds: str = "$A") -> PreTrainedTokenizerFast:
    """A tokenizer with the template ``adds`` for special tokens, such as ``<s> $A``."""
    made = Tokenizer.from_str(tokenizer_json())
    made.post_processor = processors.TemplateProcessing(  # pyright: ignore
        single=adds, special_tokens=[(s, i) for i, s in enumerate(SPECIAL)]
    )
    named = {"bos_token": "<s>"} if bos else {}
    return PreTrainedTokenizerFast(tokenizer_object=made, eos_token="</s>", **named)


SIZES: dict[str, int] = {
    **dict.fromkeys("num_hidden_layers n_layer num_layers".split(), LAYERS),
    **dict.fromkeys("num_attention_heads n_head attention_heads rotary_dim".split(), HEADS),
    **dict.fromkeys("hidden_size d_model n_embd attention_hidden_size".split(), WIDTH),
    **dict.fromkeys("intermediate_size n_inner ffn_dim feed_forward_size d_inner".split(), 64),
    **dict.fromkeys("max_position_embeddings n_positions context_length".split(), 64),
    **dict.fromkeys("head_dim attention_head_size d_head state_size sliding_window".split(), 8),
    **{"num_key_value_heads": 2, "num_experts_per_tok": 2, "num_local_experts": 4},
    **{"word_embed_proj_dim": WIDTH, "time_step_rank": 4, "vocab_size": VOCABULARY},
    **{"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2},
}
DECODER = {"is_decoder": True}
# further keys that a configuration needs, by model type
ALSO: dict[str, dict[str, Any]] = {
    "bart": {
        **{"decoder_layers": LAYERS, "encoder_layers": 2},
        **{"decoder_attention_heads": HEADS, "encoder_attention_heads": 2},
        **{"decoder_start_token_id": 2, "forced_eos_token_id": None},
    },
    "bert": DECODER,
    "deepseek_v4": {
        **{"q_lora_rank": 8, "o_lora_rank": 8, "moe_intermediate_size": 16, "index_n_heads": 2},
        **{"index_head_dim": 8, "index_topk": 8, "n_routed_experts": 4, "n_shared_experts": 1},
    },
    "reformer": DECODER
    | {"axial_pos_embds": False, "attn_layers": ["local"] * LAYERS, "local_attn_chunk_length": 8},
    "roberta": DECODER,
    "rwkv": {"rescale_every": 2},  # halves the stream after every second block
}


def config_of(kind: str, **changes: Any) -> Any:
    """A configuration of a few thousand parameters."""
    made: Any = CONFIG_MAPPING[kind]
    sizes = {name: size for name, size in SIZES.items() if name in made.__dataclass_fields__}
    return made(**sizes | ALSO.get(kind, {}) | changes)


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
    """A model of ``KINDS``, or of another model type."""
    name, sizes = KINDS.get(kind, (kind, {}))
    return perturb(AutoModelForCausalLM.from_config(config_of(name, **sizes | changes)))


def shallow_model(kind: str, **changes) -> Any:
    """A model of two blocks; changes that its configuration has no key for are left out."""
    known = config_of(KINDS.get(kind, (kind,))[0]).__dataclass_fields__
    depths = dict.fromkeys("num_hidden_layers n_layer num_layers n_layers".split(), 2)
    return random_model(kind, **{k: v for k, v in (depths | changes).items() if k in known})


def save(model: Any, directory: Path, shard: str = "20KB") -> Path:
    """Save the model in several files, with the tokenizer."""
    model.save_pretrained(directory, max_shard_size=shard)
    tokenizer().save_pretrained(directory)
    return directory


def prompts() -> list[Prompt]:
    return [p for p in read_prompts(PROMPTS) if p.set == "benchmark"]


def from_directory(directory: Path, **keys: str) -> Measurement:
    return Measurement.model_validate(
        {"source": {"kind": "directory", "path": str(directory)}, **keys}
    )


def load(directory: Path, memory_gb: float = 1.0, **keys: str) -> LoadedModel:
    measured = from_directory(directory, **keys)
    return load_model(directory, measured, memory_gb, "cpu", directory / "offload")


def half_of_memory(directory: Path) -> float:
    """GB of half the weights of a saved model in fp32."""
    index = json.loads((directory / "model.safetensors.index.json").read_text())
    return 2 * index["metadata"]["total_parameters"] / 1e9


def outcomes(loaded: LoadedModel) -> list[Outcome]:
    made = batches(tokenize(loaded.tokenizer, prompts())[0], "cpu")
    return list(run_batches(loaded.model, loaded.body, made))


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


COMMITS = ["a" * 40, "b" * 40]


class Hub(ThreadingHTTPServer):
    """Serves models from folders, and repositories that fail in the way that their name says.

    The branch of org/moves points to another commit from the second request on. ``tokens`` are the
    tokens that clients sent.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, folders: Mapping[str, Path]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folders = folders
        self.asked: Counter[str] = Counter()
        self.tokens: set[str | None] = set()
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients may disconnect."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> Hub:
        assert isinstance(self.server, Hub)
        return self.server

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def answer(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for key, value in ({"Content-Length": str(len(content))} | dict(headers)).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def refuse(self, status: int, code: str | None = None, message: str = "no") -> None:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self.answer(status, json.dumps({"error": message}).encode(), headers)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        authorization = self.headers.get("Authorization")
        self.hub.tokens.add(authorization)
        path = self.path.partition("?")[0].removeprefix("/").removeprefix("api/models/")
        repo = "/".join(path.split("/")[:2])
        kind, _, rest = path.removeprefix(repo).removeprefix("/").partition("/")
        echo = f"who is {authorization}?"
        if repo == "org/gated":
            self.refuse(403, "GatedRepo", f"Access is restricted. {echo}")
        elif repo == "org/echo":
            self.refuse(401, "Other", echo)
        elif repo == "org/warns" and kind == "revision":
            self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound", "X-HF-Warning": f"t;{echo}"})
        elif repo == "org/breaks" and kind == "resolve":
            self.close_connection = True
        elif repo not in self.hub.folders:
            self.refuse(404, "RepoNotFound", "Repository not found")
        else:
            self.serve(repo, kind, rest)

    def serve(self, repo: str, kind: str, rest: str) -> None:
        folder = self.hub.folders[repo]
        files = {p.name: p.read_bytes() for p in folder.iterdir()}
        if kind == "revision":
            if rest not in ("main", *COMMITS):
                self.refuse(404, "RevisionNotFound", "Invalid rev id")
                return
            self.hub.asked[repo] += 1
            moved = repo == "org/moves" and self.hub.asked[repo] > 1
            commit = rest if rest in COMMITS else COMMITS[moved]
            siblings = [{"rfilename": name} for name in files]
            info = {"_id": "0", "id": repo, "modelId": repo, "sha": commit, "siblings": siblings}
            self.answer(200, json.dumps(info).encode(), {"Content-Type": "application/json"})
        elif kind == "tree":
            tree = [
                {"type": "file", "path": n, "size": len(c), "oid": hashlib.sha1(c).hexdigest()}
                for n, c in files.items()
            ]
            self.answer(200, json.dumps(tree).encode(), {"Content-Type": "application/json"})
        else:
            commit, _, name = rest.partition("/")
            content = files[name]
            etag = f'"{hashlib.sha1(content).hexdigest()}"'
            self.answer(200, content, {"X-Repo-Commit": commit, "ETag": etag})


@dataclass(frozen=True)
class Job:
    """A model to measure; ``place`` is the directory of the job."""

    place: Path
    model: Mapping[str, Any]
    revisions: Path
    memory_mb: int = 1000

    @property
    def out(self) -> Path:
        return self.place / "out"

    @property
    def log(self) -> str:
        return (self.place / "log").read_text()

    @property
    def facts(self) -> dict[str, Any]:
        return json.loads((self.out / "model.json").read_text())

    def command(self, *more: str) -> list[str]:
        flags = {
            "recipe": json.dumps(self.model),
            "prompts": PROMPTS,
            "memory-mb": self.memory_mb,
            "weights": self.place / "weights",
            "revisions": self.revisions,
            "out": self.out,
        }
        words = [str(word) for key, value in flags.items() for word in (f"--{key}", value)]
        return [str(SCRIPTS / "pretrained_probe.py"), *words, *more]


def measure(job: Job, home: Path, *more: str, **environment: str) -> None:
    """Run the script in this process; ``home`` holds the cache of the hub's client."""
    job.out.mkdir(parents=True)
    command, precision = job.command(*more), torch.get_float32_matmul_precision()
    environment |= {"HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch("sys.argv", command),
        (job.place / "log").open("w") as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        runpy.run_path(command[0], run_name="__main__")
    torch.set_float32_matmul_precision(precision)
