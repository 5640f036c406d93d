"""Whether a GPU may read only the keys that each slot holds while it writes answers, and what that saves.

    python benchmarks/align_decoding.py MODEL

Takes the model's shape with random weights. Prints a line of JSON: how far the logits of a step with flash kernels are
from those of plain products, and the milliseconds of a step each way. Fails where they are too far apart.
"""

import json
import random
import sys
import time
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from bylaw.align.training import layers
from bylaw.align.training.decoder import Decoder

MOST = 0.05
"""How far the logits may be apart, over their size: both ways round to bfloat16 in every layer."""


def check(folder: str, slots: int = 256, room: int = 3072, repeats: int = 20) -> dict[str, Any]:
    """Both ways, with slots as full as in conversations, the last of them empty."""
    layers.COMPILED = False
    torch.manual_seed(0)
    rng = random.Random(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder), dtype=torch.bfloat16)
    words = model.config.vocab_size
    found: dict[str, Any] = {"slots": slots, "room": room}
    decoder = Decoder(model, slots, room)
    decoder.open([rng.randrange(words) for _ in range(room // 4)])
    lengths = [rng.randrange(room // 16, room // 2) for _ in range(slots - 2)]
    rows = [(slot, 0, [rng.randrange(words) for _ in range(length)]) for slot, length in enumerate(lengths)]
    decoder.read(rows)
    tokens = torch.tensor([rng.randrange(words) for _ in range(slots)], device=device)
    places = torch.tensor([*lengths, room - 1, room - 1], device=device)
    logits: list[torch.Tensor] = []
    for name, is_packed in (("plain", False), ("packed", True)):
        decoder.is_packed = is_packed
        decoder.recorded.clear()
        span = decoder.span(max(lengths) + 1)
        logits.append(decoder.step(tokens, places, span)[: slots - 2].float().clone())
        began = _now()
        for _ in range(repeats):
            decoder.step(tokens, places, span)
        found[f"{name}_ms"] = round(1000 * (_now() - began) / repeats, 2)
    found["off"] = round(float((logits[0] - logits[1]).norm() / logits[0].norm()), 5)
    found["keys"] = sum(lengths)
    return found


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.monotonic()


if __name__ == "__main__":
    said = check(sys.argv[1], *map(int, sys.argv[2:]))
    print(json.dumps(said))
    # Not a number is not near.
    sys.exit(0 if said["off"] < MOST else 1)
