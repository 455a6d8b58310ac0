"""Attention sinks and massive activations, against transformers' own outputs and closed forms."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from pretrained_models import WIDTH, load, outcomes, random_model, save, stock
from torch import Tensor

from normscope.hub.inside import MEASURES, attention_measures, stream_measures
from normscope.hub.loading import LoadedModel
from normscope.hub.measurement import rows


def close(expected: dict[str, float]) -> Any:
    """These values, up to rounding in fp32."""
    return pytest.approx(expected, rel=1e-4, abs=1e-6)


def inside(loaded: LoadedModel) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The rows of blocks, in order, by prompt and BOS."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows(outcomes(loaded), loaded.body, loaded.tokenizer).inside:
        found.setdefault((row["prompt"], row["bos"]), []).append(row)
    return found


def sequences(loaded: LoadedModel) -> dict[tuple[str, str], tuple[int, ...]]:
    """The tokens of every prompt, of which some are padded in their batch."""
    batches = [outcome.batch for outcome in outcomes(loaded)]
    assert any((batch.mask == 0).any() for batch in batches)
    return {(s.prompt.name, s.bos): s.tokens for batch in batches for s in batch.sequences}


def alone(model: Any, tokens: tuple[int, ...]) -> list[dict[str, float]]:
    """The measures of every block from the outputs that transformers gives for one prompt."""
    last: list[Tensor] = []
    body = model.base_model
    blocks = getattr(body, "h", None) or getattr(body, "layers", None) or body.decoder.layers
    handle = blocks[-1].register_forward_hook(lambda _, args, output: last.append(output))
    with torch.inference_mode():
        out = model(torch.tensor([tokens]), output_attentions=True, output_hidden_states=True)
    handle.remove()
    final = last[0] if isinstance(last[0], Tensor) else last[0][0]
    # the last hidden state comes after the final norm
    streams = [h[0].double().numpy() for h in (*out.hidden_states[1:-1], final)]
    found = []
    for weights, x in zip(out.attentions, streams, strict=True):
        norms, sizes = np.linalg.norm(x, axis=1), abs(x)
        ordered = np.sort(sizes.ravel())
        found.append(
            {
                "sink": weights[0, :, 1:, 0].double().mean().item(),
                "largest_activation": sizes.max() / ordered[(len(ordered) - 1) // 2],
                "largest_is_first": float(np.unravel_index(sizes.argmax(), x.shape)[0] == 0),
                "first_norm": norms[0] / np.exp(np.log(norms[1:]).mean()),
                "uniform_cosine": (x.sum(1) / norms).mean() / math.sqrt(WIDTH),
                "sigma": x[-1].std(),
            }
        )
    return found


@pytest.mark.parametrize("kind", ["gpt2", "llama", "mistral", "gpt_neox", "gptj", "opt"])
def test_blocks_have_what_transformers_gives_for_each_prompt_alone(kind, tmp_path):
    """With and without BOS; the sliding window of Mistral hides position 0 from later ones."""
    loaded = load(save(random_model(kind), tmp_path))
    reference = stock(tmp_path)
    reference.set_attn_implementation("eager")
    found, prompts = inside(loaded), sequences(loaded)
    assert found.keys() == prompts.keys()
    assert {bos for _, bos in found} == {"on", "off"}
    for key, tokens in prompts.items():
        for k, expected in enumerate(alone(reference, tokens)):
            row = found[key][k]
            assert (row["depth"], row["site"]) == (k + 1, f"block_{k}")
            assert {name: row[name] for name in expected} == close(expected)


def test_even_attention_and_a_planted_activation_have_their_closed_forms(tmp_path):
    """Queries of 0 spread attention evenly; blocks add nothing to ones, and to a 10 at position 0.

    The mean of 1/(t + 1) over positions t from 1 is (H - 1)/(T - 1), with the harmonic number H.
    """
    model = random_model("gpt2", tie_word_embeddings=False)
    for name, p in model.named_parameters():
        if ".c_" in name:
            p.zero_()
    model.transformer.wte.weight.fill_(1)
    model.transformer.wpe.weight.zero_()[0, 3] = 9
    loaded = load(save(model, tmp_path))
    found = inside(loaded)
    norm = math.sqrt((WIDTH - 1 + 100) / WIDTH)  # over that of ones
    for key, tokens in sequences(loaded).items():
        T = len(tokens)
        expected = {
            "sink": (sum(1 / t for t in range(1, T + 1)) - 1) / (T - 1),
            "largest_activation": 10,
            "largest_is_first": 1,
            "first_norm": norm,
            "uniform_cosine": (T - 1 + (WIDTH + 9) / WIDTH / norm) / T,
            "sigma": 0 if T > 1 else 9 * math.sqrt(WIDTH - 1) / WIDTH,
        }
        for row in found[key]:
            assert {name: row[name] for name in expected} == close(expected)


def test_what_is_padded_does_not_count_and_other_outputs_have_no_measure():
    mask = torch.tensor([[1, 1, 1], [1, 1, 0], [1, 0, 0]])
    weights, stream = torch.rand(3, 4, 3, 3), torch.randn(3, 3, 8)
    measured = attention_measures((stream, weights), mask) | stream_measures((stream,), mask)
    assert set(measured) == set(MEASURES)
    assert measured["sink"].isnan().tolist() == [False, False, True]  # the third has one token
    padded = mask == 0
    stream[padded] = math.inf
    weights.transpose(1, 2)[padded] = math.nan
    again = attention_measures((stream, weights), mask) | stream_measures(stream, mask)
    torch.testing.assert_close(again, measured, rtol=0, atol=0, equal_nan=True)
    for other in (stream, (stream,), (stream, None), (stream, -weights), (stream, stream)):
        assert attention_measures(other, mask) == {}
    assert stream_measures(stream[0], mask) == {}
