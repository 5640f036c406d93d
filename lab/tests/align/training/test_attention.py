"""Attention over packed rows against plain attention with a mask, and finite where cuDNN's is not."""

import math
from itertools import pairwise

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from bylaw_lab.training.attention import Plan, Reading, attend, stretches  # noqa: E402

pytestmark = pytest.mark.train
HEADS, SHARED, SIZE = 6, 2, 16


def plan(opening, heads, tails, device="cpu"):
    """An opening, a stretch for each group, and for each group some ends; and the same as a mask."""
    lengths = [opening, *heads, *(tail for group in tails for tail in group)]
    ends = [0, *torch.tensor(lengths).cumsum(0).tolist()]
    seen = torch.zeros((ends[-1], ends[-1]), dtype=torch.bool)
    for start, end in pairwise(ends):
        seen[start:end, start:end] = torch.ones((end - start, end - start), dtype=torch.bool).tril()
    seen[opening:, :opening] = True
    place = len(heads) + 1
    for group, tail in enumerate(tails):
        seen[ends[place] : ends[place + len(tail)], ends[group + 1] : ends[group + 2]] = True
        place += len(tail)
    first = ends[len(heads) + 1]
    whole = [
        Reading(
            slice(opening, ends[-1]),
            slice(0, opening),
            *(stretches([n], device) for n in (ends[-1] - opening, opening)),
        )
    ]
    whole.append(
        Reading(
            slice(first, ends[-1]),
            slice(opening, first),
            stretches([*map(sum, tails)], device),
            stretches(heads, device),
        )
    )
    return Plan(stretches(lengths, device), tuple(whole)), seen.to(device)


def compared(size, low, device="cpu", dtype=torch.float32):
    """Outputs and gradients of both ways."""
    made, seen = plan(64 + 9, [40, 7], [[5, 30], [64, 1, 12]], device)
    torch.manual_seed(0)
    query, key, value = (
        torch.randn(len(seen), heads, size, device=device, dtype=dtype) for heads in (HEADS, SHARED, SHARED)
    )
    query[..., 0], key[..., 0] = 1.0, low * math.sqrt(size)
    wanted = torch.randn_like(query)
    found = []
    for way in ("packed", "masked"):
        parts = [part.clone().requires_grad_() for part in (query, key, value)]
        if way == "packed":
            mixed = attend(*parts, made, size**-0.5)
        else:
            wide = [part.double() if device == "cpu" else part.float() for part in parts]
            wide = [wide[0], *(part.repeat_interleave(HEADS // SHARED, 1) for part in wide[1:])]
            scores = torch.einsum("qhd,khd->hqk", wide[0], wide[1]) * size**-0.5
            mixed = torch.einsum("hqk,khd->qhd", scores.masked_fill(~seen, -math.inf).softmax(-1), wide[2]).to(dtype)
        mixed.backward(wanted)
        found.append([mixed.detach(), *(part.grad for part in parts)])
    return found


@pytest.mark.parametrize("low", [0.0, -120.0])
def test_packed_rows_are_attended_to_as_with_a_mask(low):
    for ours, plain in zip(*compared(SIZE, low), strict=True):
        assert torch.isfinite(ours).all()
        assert (ours - plain).abs().max() < 5e-3 * plain.abs().max()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("low", [0.0, -120.0])
def test_the_same_with_flash_kernels(low):
    for ours, plain in zip(*compared(64, low, "cuda", torch.bfloat16), strict=True):
        assert torch.isfinite(ours).all()
        assert (ours - plain).abs().max() < 0.02 * plain.abs().max()


def test_training_passes_no_mask_to_attention(monkeypatch):
    """cuDNN's kernel, chosen on Hopper GPUs where there is a mask, gives gradients that are not finite."""
    transformers = pytest.importorskip("transformers")
    from bylaw_lab.training.shared_prefix import share_prefix

    sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(vocab_size=50, **sizes, **heads))
    share_prefix(model)

    def refuse(*_, **__):
        raise AssertionError("masked attention was called")

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", refuse)
    ids = torch.randint(0, 50, (3, 40))
    ids[:, :20] = ids[0, :20]
    mask = torch.ones_like(ids)
    mask[1, 30:] = 0
    assert model.base_model(input_ids=ids, attention_mask=mask).last_hidden_state.shape == (3, 40, 32)
