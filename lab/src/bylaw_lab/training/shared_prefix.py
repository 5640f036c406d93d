"""Computes what rows of a batch begin with only once, and no padding, with the same loss and the same gradients.

Every conversation of a data set opens with the same tools and the same policy: thousands of tokens before the first
that differs. `share_prefix(model)` makes the model's backbone lay a batch out as one pack (see `attention`): the
opening of all rows, what neighbouring rows share beyond it (answers to one prompt), and the rows' own ends. Gradients
flow back through all of it, so nothing is approximated.
"""
# pyright: basic, reportMissingImports=false

from itertools import pairwise
from typing import Any

import torch
from transformers import AttentionInterface, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast

from bylaw_lab.training import layers
from bylaw_lab.training.attention import Plan, Reading, attend, stretches

NAME = "bylaw_shared_prefix"
LEAST = 32
"""Tokens; what fewer rows share beyond the opening is not worth a stretch of its own."""


def share_prefix(model: PreTrainedModel) -> None:
    """From now on, batches of `model` are packed. Leaves calls with a cache or with places of their own as they are."""
    backbone: Any = model.base_model
    plain = backbone.forward
    AttentionInterface.register(NAME, _attention)

    def forward(
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Any = None,
        position_ids: torch.Tensor | None = None,
        **others: Any,
    ) -> Any:
        if input_ids is None or past_key_values is not None or position_ids is not None:
            return plain(
                input_ids=input_ids,
                attention_mask=attention_mask,
                past_key_values=past_key_values,
                position_ids=position_ids,
                **others,
            )
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        pack = PackedBatch(input_ids.cpu(), mask.bool().cpu(), input_ids.device)
        if all(layers.is_plain(layer) for layer in backbone.layers):
            return BaseModelOutputWithPast(last_hidden_state=_states(backbone, pack)[pack.back])
        usual = backbone.config._attn_implementation
        backbone.config._attn_implementation = NAME
        try:
            found = plain(input_ids=pack.ids, position_ids=pack.places, use_cache=False, plan=pack.plan)
        finally:
            backbone.config._attn_implementation = usual
        return BaseModelOutputWithPast(last_hidden_state=found.last_hidden_state[0][pack.back])

    backbone.forward = forward


def _states(backbone: Any, pack: "PackedBatch") -> torch.Tensor:
    """The last states of a pack's tokens, with the layers' own work in fused kernels."""
    hidden = backbone.embed_tokens(pack.ids)
    cos, sin = (each[0] for each in backbone.rotary_emb(hidden, pack.places))
    hidden = hidden[0]
    for layer in backbone.layers:
        size, scale = layer.self_attn.head_dim, layer.self_attn.scaling
        query, key, value = layers.before(layer, hidden, cos, sin, size)
        mixed = attend(query, key, value, pack.plan, scale)
        hidden = layers.after(layer, hidden, mixed.reshape(len(hidden), -1))
    return backbone.norm(hidden)


def _attention(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, *, plan: Plan, **others: Any
) -> tuple[torch.Tensor, None]:
    query, key, value = (states[0].transpose(0, 1) for states in (query, key, value))
    return attend(query, key, value, plan, others["scaling"])[None], None


class PackedBatch:
    """A padded batch as one row: the opening, what groups of rows share, the rows' own ends."""

    def __init__(self, input_ids: torch.Tensor, mask: torch.Tensor, device: Any) -> None:
        order = torch.argsort((~mask).int(), dim=1, stable=True)
        ids = input_ids.gather(1, order)
        lengths = mask.sum(1)
        same = (ids == ids[:1]).all(0).long().cumprod(0).sum()
        # Every row keeps a token of its own.
        self.opening = int(torch.minimum(same, lengths.min() - 1)) if len(ids) > 1 else 0
        self.groups = self._groups(ids, lengths)
        """First row, row after the last, and how many tokens they share; those that share most come first."""
        tokens, places = [ids[0, : self.opening]], [torch.arange(self.opening)]
        # Where the padding stands, anything may stand, since nobody looks at it. It points to many places in turn: many
        # rows that point to one place make the gather's backward pass slow.
        back = torch.arange(ids.numel()).view_as(ids) % int(lengths.max())
        back[:, : self.opening] = torch.arange(self.opening)
        shared = [(first, last, size) for first, last, size in self.groups if size > self.opening]
        reach = self.opening
        for first, last, size in shared:
            tokens.append(ids[first, self.opening : size])
            places.append(torch.arange(self.opening, size))
            back[first:last, self.opening : size] = torch.arange(reach, reach + size - self.opening)
            reach += size - self.opening
        heads_end, ends = reach, []
        for first, last, size in self.groups:
            for row in range(first, last):
                length = int(lengths[row])
                tokens.append(ids[row, size:length])
                places.append(torch.arange(size, length))
                back[row, size:length] = torch.arange(reach, reach + length - size)
                reach += length - size
            ends.append(reach)
        self.ids = torch.cat(tokens)[None].to(device)
        self.places = torch.cat(places)[None].to(device)
        self.back = back.gather(1, torch.argsort(order, dim=1)).to(device)
        own = stretches([len(part) for part in tokens if len(part)], device)
        before: list[Reading] = []
        if self.opening:
            of, to = stretches([reach - self.opening], device), stretches([self.opening], device)
            before.append(Reading(slice(self.opening, reach), slice(0, self.opening), of, to))
        if shared:
            starts = [heads_end, *ends[: len(shared)]]
            of = stretches([end - start for start, end in pairwise(starts)], device)
            to = stretches([size - self.opening for _, _, size in shared], device)
            before.append(Reading(slice(heads_end, starts[-1]), slice(self.opening, heads_end), of, to))
        self.plan = Plan(own, tuple(before))

    def _groups(self, ids: torch.Tensor, lengths: torch.Tensor) -> list[tuple[int, int, int]]:
        """Neighbouring rows that share more than the opening."""
        equal = (ids[1:] == ids[:-1]).long().cumprod(1).sum(1)
        alike = torch.minimum(equal, torch.minimum(lengths[1:], lengths[:-1]) - 1).tolist()
        groups: list[tuple[int, int, int]] = []
        first, size = 0, None
        for row in range(1, len(ids) + 1):
            next_size = min(alike[row - 1], size or alike[row - 1]) if row < len(ids) else 0
            # A row joins if that leaves the group most of what it shares.
            if next_size >= self.opening + LEAST and 2 * (next_size - self.opening) > (size or 0) - self.opening:
                size = next_size
                continue
            groups.append((first, row, size or self.opening))
            first, size = row, None
        return sorted(groups, key=lambda group: group[2] <= self.opening)
