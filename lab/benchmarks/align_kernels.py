"""Attention kernels on a GPU: where gradients are not finite, and whether packed attention is exact.

    python lab/benchmarks/align_kernels.py

Prints a line of JSON for each: PyTorch's own choice with a mask, its kernels one by one, and ours (flash, no mask).
Scores are very low, as in some heads of Qwen2.5, and lengths are those that batches of conversations have.
"""

import json
import math
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from bylaw_lab.training import attention
from bylaw_lab.training.attention import Plan, Reading, attend, stretches

SIZE = 64
KERNELS = {
    "PyTorch's choice": None,
    "cuDNN": SDPBackend.CUDNN_ATTENTION,
    "memory-efficient": SDPBackend.EFFICIENT_ATTENTION,
}


def parts(length: int, heads: int, shared: int, low: float) -> list[torch.Tensor]:
    query, key, value = (
        torch.randn(length, count, SIZE, device="cuda", dtype=torch.bfloat16) for count in (heads, shared, shared)
    )
    query, key = query * 0.1, key * 0.1
    query[..., 0], key[..., 0] = 1.0, low * math.sqrt(SIZE)
    return [part.requires_grad_() for part in (query, key, value)]


def masked(length: int, kernel: SDPBackend | None, low: float) -> int:
    """How many numbers of the gradients are not finite, with a causal mask."""
    mine = parts(length, 2, 2, low)
    rows = [part.transpose(0, 1)[None] for part in mine]
    mask = torch.ones(length, length, dtype=torch.bool, device="cuda").tril()[None, None]
    if kernel is None:
        mixed = scaled_dot_product_attention(*rows, attn_mask=mask)
    else:
        with sdpa_kernel(kernel):
            mixed = scaled_dot_product_attention(*rows, attn_mask=mask)
    mixed.backward(torch.randn_like(mixed))
    return sum(int((~torch.isfinite(part.grad)).sum()) for part in mine)


def packed(low: float, opening: int = 777, count: int = 6) -> dict[str, float]:
    """Our attention against plain products in float32: the largest difference over the largest value, for each part."""
    tails = [64 * (place + 1) + place for place in range(count)]
    rest = sum(tails)
    plan = Plan(
        stretches([opening, *tails], "cuda"),
        (
            Reading(
                slice(opening, opening + rest),
                slice(0, opening),
                stretches([rest], "cuda"),
                stretches([opening], "cuda"),
            ),
        ),
    )
    length = opening + rest
    mine = parts(length, 14, 2, low)
    wanted = torch.randn_like(mine[0])
    attention.FLASH = True
    mixed = attend(*mine, plan, SIZE**-0.5)
    mixed.backward(wanted)
    ours = [mixed.detach(), *(part.grad for part in mine)]
    exact = [part.detach().float().requires_grad_() for part in mine]
    attention.FLASH = False
    whole = attend(*exact, plan, SIZE**-0.5)
    whole.backward(wanted.float())
    attention.FLASH = True
    theirs = [whole.detach(), *(part.grad for part in exact)]
    names = ("output", "query", "key", "value")
    return {
        name: round(float((one - other).abs().max() / other.abs().max()), 5)
        for name, one, other in zip(names, ours, theirs, strict=True)
    }


def main() -> None:
    torch.manual_seed(0)
    print(json.dumps({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}))
    for low in (0.0, -120.0):
        for name, kernel in KERNELS.items():
            found = {length: masked(length, kernel, low) for length in (640, 704, 768, 832, 1000)}
            print(json.dumps({"kernel": name, "lowest_score": low, "not_finite_by_length": found}), flush=True)
        print(json.dumps({"kernel": "packed", "lowest_score": low, "difference": packed(low)}), flush=True)
    torch.cuda.synchronize()
    began = time.monotonic()
    for _ in range(20):
        packed(0.0, 777, 24)
    torch.cuda.synchronize()
    print(json.dumps({"kernel": "packed", "seconds_for_20_with_check": round(time.monotonic() - began, 2)}))


if __name__ == "__main__":
    main()
