"""What a card measures of the models of a norm, on models that the test writes."""

from pathlib import Path

import pytest
import stored_models
import torch
from recipes import recipe

from normscope.studies.card.probe import probe
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
