"""Every public function: wrong types are named, and settings of torch do not change its results."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import stored_models
import torch
from pretrained_models import random_model, tokenizer
from recipes import recipe

import normscope

TOKENS = torch.randint(3, 300, (3, 9), generator=torch.Generator().manual_seed(0))
X = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
TEXTS = ["To be, or not to be", "a"]
JOB = "main.tiny-rmsnorm-peri-0.01-7"
# arguments of the right type, by name
RIGHT: dict[str, Any] = {
    **{"model": random_model("gpt2"), "tokens": TOKENS, "names": None, "first_apart": False},
    **{"tokenizer": tokenizer(), "prompts": TEXTS, "blocks": None, "final_norm": None},
    **{"norm": "layernorm", "x": X, "budget": "demo", "folder": "", "cores": 1},
    **{"name": "main.chosen", "seed": np.int64(1), "results": Path("nowhere")},
}
MESSAGES = [{"role": "user", "content": "What is a norm?"}]


PARAMETERS = [
    (function, name)
    for function in normscope.__all__
    if function != "Explained"
    for name in inspect.signature(getattr(normscope, function)).parameters
]


@pytest.mark.parametrize(("function", "name"), PARAMETERS)
def test_an_argument_of_another_type_is_named(function, name):
    call = getattr(normscope, function)
    others = {n: RIGHT[n] for n in inspect.signature(call).parameters}
    if function == "load":
        others["norm"] = None
    for wrong in (object(), MESSAGES, [3], {"a": "b"}):
        with pytest.raises(normscope.Explained, match=f"^{name} is of type .*: give ") as e:
            call(**others | {name: wrong})
        assert "\n" not in str(e.value)


@contextmanager
def during(change: Callable[[Any], object], value: Any, before: Any) -> Iterator[None]:
    """A setting of torch in the body."""
    change(value)
    try:
        yield
    finally:
        change(before)


SETTINGS: dict[str, Callable[[], AbstractContextManager]] = {
    "bfloat16": partial(during, torch.set_default_dtype, torch.bfloat16, torch.float32),
    "another device": partial(during, torch.set_default_device, "meta", None),
    "inference mode": torch.inference_mode,
    "autocast": partial(torch.autocast, "cpu", torch.bfloat16),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A run with a trained model."""
    folder = tmp_path_factory.mktemp("run")
    stored_models.write(folder / JOB.replace(".", "/models/", 1), recipe("rmsnorm", "peri"), [2.0])
    return folder


def results(folder: Path, setting: AbstractContextManager) -> list[Any]:
    """What the public functions return in a setting: tables, and the tensors of models."""
    model = random_model("gpt2_untied")
    with setting:
        loaded = normscope.load(JOB, results=folder)
        removed = normscope.remove(model, TOKENS)
        folded = normscope.fold(removed)
        default = normscope.fold(model)
        tables = [
            normscope.removable(model, TOKENS),
            normscope.gain(model, tokenizer(), TEXTS),
            normscope.models(folder),
            folded.table,
            default.table,
        ]
        factors = normscope.factors("layernorm", X)
    models = (loaded, removed, folded.model, default.model)
    return [*tables, *(t for m in models for t in m.state_dict().values()), *factors]


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_torch_do_not_change_results(setting, stored):
    ours, usual = results(stored, SETTINGS[setting]()), results(stored, nullcontext())
    for result, expected in zip(ours, usual, strict=True):
        if isinstance(result, pd.DataFrame):
            pd.testing.assert_frame_equal(result, expected)
        else:
            torch.testing.assert_close(result, expected, rtol=0, atol=0)
    assert torch.get_default_dtype() == torch.float32
