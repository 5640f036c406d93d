"""A GPU made ready for the alignment experiment: which kernels may be used, gradients checked, layers compiled."""

import time
from pathlib import Path
from typing import Any

LAYERS = 4
"""Of the model that compiles and checks: enough for both, and soon there."""


def kernels(share: float, is_compiled: bool, is_packed: bool) -> dict[str, Any]:
    """Use the GPU's flash kernels only where they are right."""
    import torch

    from bylaw_lab.training import attention, decoder, layers

    if not torch.cuda.is_available():
        return {}
    torch.cuda.set_per_process_memory_fraction(share)
    attention.FLASH = False
    from align_kernels import packed

    try:
        found = packed(0.0)
    except Exception:
        attention.FLASH = False
        raise
    attention.FLASH = max(found.values()) < 0.05
    layers.COMPILED, decoder.PACKED = is_compiled, is_packed
    return {"kernels": found, "flash": attention.FLASH, "compiled": is_compiled, "packed": is_packed}


def warm(base: Path) -> dict[str, Any]:
    """Compile what a GPU needs compiled before the weights are there, and check its gradients with random ones."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    from bylaw_lab.training import shared_prefix
    from bylaw_lab.training.generator import Generator

    if not torch.cuda.is_available():
        return {}
    began = time.monotonic()
    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(base)
    config.num_hidden_layers = LAYERS
    config.layer_types = config.layer_types[:LAYERS]
    with torch.device("cuda"):
        model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        exact: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    exact.load_state_dict(model.state_dict())
    shared_prefix.share_prefix(model)
    usual, off = shared_prefix.LEAST, dict[int, float]()
    for least in (10**9, usual):
        # Without and with what answers to one prompt share.
        shared_prefix.LEAST = least
        off[least] = max(gradient_off(model, exact, width) for width in (120, 96))
    if off[usual] > 1.5 * off[10**9] + 0.005:
        shared_prefix.LEAST = 10**9
    del exact
    generator = Generator(model, ends=[-1], slots=64, room=512)
    generator.generate([[5, 6, place] for place in range(64)], longest=17, temperature=1.0)
    del generator, model
    said = {"alone": off[10**9], "sharing": off[usual]}
    return {"gradient_off": said, "least": shared_prefix.LEAST, "warm": round(time.monotonic() - began, 1)}


def gradient_off(model: Any, exact: Any, width: int) -> float:
    """How far gradients of packed answers that share prompts are from those of plain rows in float32."""
    import torch

    random = torch.Generator().manual_seed(width)
    ids = torch.randint(5, 100_000, (12, 400 + width), generator=random)
    ids[:, :200] = ids[0, :200]
    for first in range(0, 12, 4):
        ids[first : first + 4, :400] = ids[first, :400]
    ids = ids.cuda()
    slope = torch.randn(12, width, model.config.hidden_size, generator=random).cuda()
    found: list[Any] = []
    for one in (model, exact):
        one.zero_grad()
        states = one.base_model(input_ids=ids).last_hidden_state[:, -width:]
        (states.float() * slope).mean().backward()
        found.append(torch.cat([weight.grad.float().flatten() for weight in one.base_model.layers[1:].parameters()]))
    model.zero_grad()
    return round(float((found[0] - found[1]).norm() / found[1].norm()), 4)
