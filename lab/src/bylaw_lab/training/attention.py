"""Attention over packed rows of which many begin alike: each stretch of tokens sees itself and what comes before it.

A pack is one long row: the opening that all rows share, then what groups of rows share, then the rows' own ends. Every
stretch attends to itself causally and to its forerunners whole, with flash kernels and no mask. The parts are put
together by their log-sums of exponents, and gradients go through all of them exactly.

There is no mask on purpose: with one, PyTorch 2.11 and later choose cuDNN's kernel on Hopper GPUs, whose backward pass
gives NaN where a length is 64 more than a multiple of 128 and a head's scores are all very low, as in some heads of
Qwen2.5 (pytorch/pytorch#196678).
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

FLASH = True
"""On a GPU use its flash kernels; otherwise, and on a CPU, plain products, stretch by stretch."""


class Stretches(NamedTuple):
    """Where stretches of tokens begin and end, as flash kernels want it."""

    ends: Tensor
    """0, and where each stretch ends."""
    longest: int


class Reading(NamedTuple):
    """Tokens that see others, stretch by stretch: `queries` and `keys` are where both lie in the pack."""

    queries: slice
    keys: slice
    of: Stretches
    to: Stretches


class Plan(NamedTuple):
    """Who sees whom in a pack."""

    own: Stretches
    """All stretches; each sees itself causally."""
    before: tuple[Reading, ...]
    """What stretches see beside themselves."""


def stretches(lengths: Sequence[int], device: Any) -> Stretches:
    """Stretches of these lengths, one after the other."""
    ends = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)
    return Stretches(ends.to(device), max(lengths))


def attend(query: Tensor, key: Tensor, value: Tensor, plan: Plan, scale: float) -> Tensor:
    """What each token takes from those it sees; (tokens, heads, size), with as many or fewer heads for keys."""
    return _Attend.apply(query.contiguous(), key.contiguous(), value.contiguous(), plan, scale)  # type: ignore[return-value]


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, plan: Plan, scale: float) -> Tensor:
        mixed, logs = part(query, key, value, plan.own, plan.own, True, scale)
        for one in plan.before:
            other = part(query[one.queries], key[one.keys], value[one.keys], one.of, one.to, False, scale)
            mixed[one.queries], logs[:, one.queries] = joined((mixed[one.queries], logs[:, one.queries]), other)
        ctx.save_for_backward(query, key, value, mixed, logs)
        ctx.plan, ctx.scale = plan, scale
        return mixed

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        query, key, value, mixed, logs = ctx.saved_tensors
        plan, gradient = ctx.plan, gradients[0].contiguous()
        # A part's gradients follow from the whole's output and log-sums: they say how much the part counted for.
        found = _back(gradient, query, key, value, mixed, logs, plan.own, plan.own, True, ctx.scale)
        for one in plan.before:
            a, b = one.queries, one.keys
            more = _back(
                gradient[a],
                query[a],
                key[b],
                value[b],
                mixed[a],
                logs[:, a].contiguous(),
                one.of,
                one.to,
                False,
                ctx.scale,
            )
            found[0][a] += more[0]
            found[1][b] += more[1]
            found[2][b] += more[2]
        return (*found, None, None)


def joined(one: tuple[Tensor, Tensor], other: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Two parts over different keys as one: what came out, and the log-sum of exponents."""
    whole = torch.logaddexp(one[1], other[1])
    share = (one[1] - whole).exp().t()[:, :, None]
    both = one[0].float() * share + other[0].float() * (1 - share)
    return both.to(one[0].dtype), whole


def part(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    of: Stretches,
    to: Stretches,
    causal: bool,
    scale: float,
    used: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The output of one part, and the log-sum of its exponents: (heads, tokens).

    `used` says how many keys of each stretch count, from its first on; all of them without it.
    """
    if query.is_cuda and FLASH:
        found = torch.ops.aten._flash_attention_forward(
            query,
            key,
            value,
            of.ends,
            to.ends,
            of.longest,
            to.longest,
            0.0,
            causal,
            False,
            scale=scale,
            **({} if used is None else {"seqused_k": used}),
        )
        return found[0], found[1]
    mixed = torch.empty_like(query)
    logs = torch.empty((query.shape[1], len(query)), device=query.device)
    for place, (rows, columns) in enumerate(_pairs(of, to)):
        if used is not None:
            columns = slice(columns.start, columns.start + int(used[place]))
        scores = _scores(query[rows], key[columns], causal, scale)
        logs[:, rows] = scores.logsumexp(-1)
        mixed[rows] = (scores.softmax(-1).to(value.dtype) @ _widen(value[columns], query)).transpose(0, 1)
    return mixed, logs


def _back(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mixed: Tensor,
    logs: Tensor,
    of: Stretches,
    to: Stretches,
    causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of one part's queries, keys and values."""
    if query.is_cuda and FLASH:
        # Nothing is dropped at random, so there is no state of a generator to go back to.
        state = torch.zeros(2, dtype=torch.uint64, device=query.device)
        unused = torch.empty(0, dtype=torch.uint64, device=query.device)
        lengths = (of.ends, to.ends, of.longest, to.longest)
        return torch.ops.aten._flash_attention_backward(
            gradient, query, key, value, mixed, logs, *lengths, 0.0, causal, state, unused, scale=scale
        )
    for_query, for_key, for_value = (torch.zeros_like(each) for each in (query, key, value))
    for rows, columns in _pairs(of, to):
        chances = (_scores(query[rows], key[columns], causal, scale) - logs[:, rows, None]).exp()
        outer, inner = gradient[rows].transpose(0, 1), mixed[rows].transpose(0, 1)
        slope = outer @ _widen(value[columns], query).transpose(1, 2) - (outer * inner).sum(-1, keepdim=True)
        slope = (chances * slope * scale).to(query.dtype)
        chances = chances.to(query.dtype)
        for_query[rows] = (slope @ _widen(key[columns], query)).transpose(0, 1)
        for_key[columns] += _narrow(slope.transpose(1, 2) @ query[rows].transpose(0, 1), key)
        for_value[columns] += _narrow(chances.transpose(1, 2) @ outer, value)
    return for_query, for_key, for_value


def _pairs(of: Stretches, to: Stretches) -> list[tuple[slice, slice]]:
    ends, others = of.ends.tolist(), to.ends.tolist()
    return [
        (slice(ends[place], ends[place + 1]), slice(others[place], others[place + 1])) for place in range(len(ends) - 1)
    ]


def _scores(query: Tensor, key: Tensor, causal: bool, scale: float) -> Tensor:
    scores = (query.transpose(0, 1) @ _widen(key, query).transpose(1, 2)).float() * scale
    if not causal:
        return scores
    later = torch.ones(scores.shape[1:], dtype=torch.bool, device=scores.device).triu(1)
    return scores.masked_fill(later, float("-inf"))


def _widen(keys: Tensor, query: Tensor) -> Tensor:
    """Keys or values as (heads, tokens, size), repeated for the query heads that share them."""
    return keys.transpose(0, 1).repeat_interleave(query.shape[1] // keys.shape[1], 0)


def _narrow(gradient: Tensor, keys: Tensor) -> Tensor:
    """The gradient of `_widen`."""
    heads = keys.shape[1]
    return gradient.view(heads, -1, *gradient.shape[1:]).sum(1).transpose(0, 1)
