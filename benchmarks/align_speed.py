"""How fast a GPU trains and writes with layers compiled and not, on random weights and tokens.

    python benchmarks/align_speed.py CONFIG_FOLDER

Prints a line of JSON for each. Exits with 1 where compiled layers are wrong, or slower than plain ones.
"""

import json
import sys
import time
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from bylaw.align.training import layers
from bylaw.align.training.generator import Generator
from bylaw.align.training.shared_prefix import share_prefix

ROWS, OPENING, OWN = 32, 777, 1050


def batch(seed: int) -> torch.Tensor:
    """Conversations of one length that begin alike."""
    random = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, 100_000, (ROWS, OPENING + OWN - 13 * seed), generator=random)
    ids[:, :OPENING] = ids[0, :OPENING]
    return ids.cuda()


def training(model: Any, compiled: bool) -> tuple[float, float, torch.Tensor]:
    """Seconds of the first pass forward and backward, of later ones, and a gradient."""
    layers.COMPILED = compiled
    times: list[float] = []
    for step in range(4):
        model.zero_grad()
        torch.cuda.synchronize()
        began = time.monotonic()
        states = model.base_model(input_ids=batch(step)).last_hidden_state
        # The states are of one length: a loss of their squares alone would have no slope.
        slope = torch.randn(states.shape[-1], generator=torch.Generator().manual_seed(step)).to(states)
        (states * slope).float().mean().backward()
        torch.cuda.synchronize()
        times.append(time.monotonic() - began)
    weight = model.base_model.layers[0].mlp.gate_proj.weight
    return times[0], min(times[1:]), weight.grad.float().clone()


def writing(model: Any, compiled: bool, count: int) -> dict[str, float]:
    """Seconds of a step with `count` answers in the making, and of reading their prompts."""
    layers.COMPILED = compiled
    generator = Generator(model, ends=[-1], slots=count, room=1536)
    random = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 100_000, (count, OPENING + 400), generator=random)
    ids[:, :OPENING] = ids[0, :OPENING]
    prompts = ids.tolist()
    generator.generate(prompts, longest=40)
    found: dict[str, float] = {}
    for longest in (1, 65):
        generator.forget()
        torch.cuda.synchronize()
        began = time.monotonic()
        generator.generate(prompts, longest=longest)
        torch.cuda.synchronize()
        found[str(longest)] = time.monotonic() - began
    return {"step": (found["65"] - found["1"]) / 64, "read": found["1"]}


def main(folder: str) -> int:
    """Compare."""
    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).cuda()
    share_prefix(model)
    plain_first, plain, expected = training(model, compiled=False)
    memory = torch.cuda.max_memory_allocated() / 2**30
    print(json.dumps({"training": "plain", "first": plain_first, "seconds": plain, "GiB": memory}), flush=True)
    torch.cuda.reset_peak_memory_stats()
    first, seconds, found = training(model, compiled=True)
    off = float((found - expected).norm() / expected.norm())
    memory = torch.cuda.max_memory_allocated() / 2**30
    said = {"training": "compiled", "first": first, "seconds": seconds, "GiB": memory, "gradient_off": off}
    print(json.dumps(said), flush=True)
    for count in (64, 256):
        for compiled in (False, True):
            name = {"writing": "compiled" if compiled else "plain", "answers": count}
            print(json.dumps(name | writing(model, compiled, count)), flush=True)
    return 0 if off < 0.05 and seconds < plain else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
