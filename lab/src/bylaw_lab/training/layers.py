"""A layer's work around its attention, as two functions that a GPU runs in a few fused kernels.

What a layer does beside its products (normalising, turning, gating, adding) moves many times the memory that it needs
to when every operation is a kernel of its own. Models built like Llama or Qwen2 have such layers; others, and layers
with adapters, go their own way.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear, silu

COMPILED = True
"""On a GPU compile both functions."""


def is_plain(layer: Any) -> bool:
    """Whether a layer is one that these functions compute."""
    attention, mlp = getattr(layer, "self_attn", None), getattr(layer, "mlp", None)
    parts = [getattr(attention, f"{name}_proj", None) for name in "qkvo"]
    parts += [getattr(mlp, f"{name}_proj", None) for name in ("gate", "up", "down")]
    return all(type(part) is torch.nn.Linear for part in parts) and not hasattr(attention, "q_norm")


def before(layer: Any, hidden: Tensor, cos: Tensor, sin: Tensor, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of tokens, (tokens, heads, size), from their states (tokens, width)."""
    attention, norm = layer.self_attn, layer.input_layernorm
    parts = (attention.q_proj, attention.k_proj, attention.v_proj)
    weights = [given for part in parts for given in (part.weight, part.bias)]
    return _of(_before, hidden)(hidden, norm.weight, _least(norm), *weights, cos, sin, size)


def after(layer: Any, hidden: Tensor, mixed: Tensor) -> Tensor:
    """The states of tokens after the layer, from those before it and what attention made, (tokens, width) each."""
    attention, mlp, norm = layer.self_attn, layer.mlp, layer.post_attention_layernorm
    weights = (mlp.gate_proj.weight, mlp.up_proj.weight, mlp.down_proj.weight)
    return _of(_after, hidden)(hidden, mixed, attention.o_proj.weight, norm.weight, _least(norm), *weights)


def _before(
    hidden: Tensor,
    norm: Tensor,
    least: float,
    q: Tensor,
    q_bias: Tensor | None,
    k: Tensor,
    k_bias: Tensor | None,
    v: Tensor,
    v_bias: Tensor | None,
    cos: Tensor,
    sin: Tensor,
    size: int,
) -> tuple[Tensor, Tensor, Tensor]:
    normal = _normal(hidden, norm, least)
    query = linear(normal, q, q_bias).view(len(hidden), -1, size)
    key = linear(normal, k, k_bias).view(len(hidden), -1, size)
    value = linear(normal, v, v_bias).view(len(hidden), -1, size)
    return _turn(query, cos, sin), _turn(key, cos, sin), value


def _after(
    hidden: Tensor, mixed: Tensor, o: Tensor, norm: Tensor, least: float, gate: Tensor, up: Tensor, down: Tensor
) -> Tensor:
    hidden = hidden + linear(mixed, o)
    normal = _normal(hidden, norm, least)
    return hidden + linear(silu(linear(normal, gate)) * linear(normal, up), down)


def _normal(hidden: Tensor, weight: Tensor, least: float) -> Tensor:
    exact = hidden.float()
    exact = exact * torch.rsqrt(exact.pow(2).mean(-1, keepdim=True) + least)
    return weight * exact.to(hidden.dtype)


def _turn(states: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = states.shape[-1] // 2
    turned = torch.cat([-states[..., half:], states[..., :half]], dim=-1)
    return states * cos[:, None] + turned * sin[:, None]


def _least(norm: Any) -> float:
    return norm.variance_epsilon


def _of(work: Callable[..., Any], hidden: Tensor) -> Callable[..., Any]:
    return _compiled(work) if COMPILED and hidden.is_cuda else work


@cache
def _compiled(work: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(work, dynamic=True)
