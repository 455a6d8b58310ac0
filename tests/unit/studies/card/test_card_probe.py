"""What a card measures of the models of a norm, on models that the test writes."""

import math
from pathlib import Path

import pytest
import stored_models
import torch
from recipes import recipe

from normscope.nn.recipe import Custom, Norm
from normscope.studies.card.probe import alone, probe
from normscope.studies.card.recipe import NormProbe
from normscope.studies.stage import ProbeInputs


@pytest.mark.parametrize(("losses", "sound"), [([1.5, None], [1]), ([None, None], [])])
def test_models_that_diverged_count_at_their_start_alone(losses, sound, tmp_path: Path, data: Path):
    stack = recipe("dyt", "pre", seeds=[1, 2])
    stored_models.write(tmp_path / "models", stack, losses)
    measured = NormProbe(
        norm=stack.norm, placement="pre", windows=2, depths=[3], inits=["gpt2"], seeds=[3]
    )
    inputs = ProbeInputs(models=tmp_path, name="models", data=data)
    tables = probe(measured, inputs, torch.device("cpu"))
    layers = tables["layers"].groupby("state")["seed"].unique().map(sorted).to_dict()
    assert layers == {"start": [1, 2]} | ({"trained": sound} if sound else {})
    assert tables["outputs"]["seed"].tolist() == sound
    assert tables["outputs"].notna().all(axis=None)


@pytest.mark.parametrize(("factor", "scale"), [("self.gain", 0), ("0", math.nan)])
def test_a_norm_whose_output_is_zero_at_the_start_is_measured_with_other_gains(
    factor, scale, tmp_path: Path
):
    (tmp_path / "n.py").write_text(
        "import torch\nfrom torch import nn\n"
        "class N(nn.Module):\n"
        "    def __init__(self, d):\n"
        "        super().__init__()\n"
        "        self.gain = nn.Parameter(torch.zeros(d))\n"
        "    def forward(self, x):\n"
        f"        return {factor} * x / x.square().mean(-1, keepdim=True).sqrt()\n"
    )
    custom = Custom(name="n.py:N", folder=str(tmp_path), code="0")
    measured = NormProbe(
        norm=Norm(statistic="custom", custom=custom),
        **{"placement": "pre", "windows": 2, "depths": [3], "inits": ["gpt2"], "seeds": [3]},
    )
    row = alone(measured, 32)
    assert row["scale"] == pytest.approx(scale, abs=1e-9, nan_ok=True)
    assert row["nearest"] == ("" if math.isnan(scale) else "rmsnorm")
