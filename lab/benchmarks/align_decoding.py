"""Whether a GPU may read only the keys that each slot holds while it writes answers, and what that saves.

    python lab/benchmarks/align_decoding.py MODEL

Takes the model's shape with random numbers. Prints a line of JSON: how far what attention gives with flash kernels is
from what it gives with plain products, and the milliseconds of a step each way. Fails where they are too far apart.
"""

import json
import random
import sys
import time
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from bylaw_lab.training import layers
from bylaw_lab.training.decoder import Decoder

MOST = 0.05
"""How far both may be apart, over their size: both round to bfloat16."""


def check(folder: str, slots: int = 256, room: int = 3072, repeats: int = 20) -> dict[str, Any]:
    """Both ways, with slots as full as in conversations, the last two of them empty, and random keys and values."""
    layers.COMPILED = False
    torch.manual_seed(0)
    rng = random.Random(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.bfloat16)
    words = model.config.vocab_size
    decoder = Decoder(model, slots, room)
    decoder.open([rng.randrange(words) for _ in range(room // 4)])
    for held in (decoder.keys, decoder.values, decoder.opening_keys, decoder.opening_values):
        held.normal_()
    lengths = [rng.randrange(room // 16, room // 2) for _ in range(slots - 2)]
    tokens = torch.tensor([rng.randrange(words) for _ in range(slots)], device=device)
    places = torch.tensor([*lengths, room - 1, room - 1], device=device)
    span = decoder.span(max(lengths) + 1)
    group = decoder.heads // decoder.shared_heads
    query = torch.randn(slots, decoder.shared_heads, group, decoder.size, device=device, dtype=model.dtype)
    found: dict[str, Any] = {"slots": slots, "room": room, "keys": sum(lengths), "off": 0.0}
    for index in (0, len(decoder.layers) - 1):
        ways = decoder._plain(places, span), decoder._packed(places)
        plain, packed = (way(index, query)[: slots - 2].float() for way in ways)
        # Not a number is not near.
        off = float((plain - packed).norm() / plain.norm())
        found["off"] = max(found["off"], round(off, 5)) if off == off else 1.0
    for name, is_packed in (("plain", False), ("packed", True)):
        decoder.is_packed = is_packed
        decoder.recorded.clear()
        decoder.pool = torch.cuda.graph_pool_handle() if decoder.graphs else None
        span = decoder.span(max(lengths) + 1)
        decoder.step(tokens, places, span)
        began = _now()
        for _ in range(repeats):
            decoder.step(tokens, places, span)
        found[f"{name}_ms"] = round(1000 * (_now() - began) / repeats, 2)
    return found


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.monotonic()


if __name__ == "__main__":
    said = check(sys.argv[1], *map(int, sys.argv[2:]))
    print(json.dumps(said))
    sys.exit(0 if said["off"] < MOST else 1)
