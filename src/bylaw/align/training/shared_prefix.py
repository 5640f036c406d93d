"""Computes what all rows of a batch begin with only once, with the same loss and the same gradients.

Every conversation of a data set opens with the same tools and the same policy: thousands of tokens before the first
that differs. `share_prefix(model)` makes the model's backbone run that opening once per batch, in a batch of one, and
lets every row attend to its keys and values. Rows that stand next to each other and answer the same prompt share that
too. Gradients flow back through all of it, so nothing is approximated.
"""
# pyright: basic, reportMissingImports=false

from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutputWithPast

LEAST = 64
"""Tokens; a shorter opening is not worth a second pass."""
SIZES = (2, 4, 8)
"""How many rows in a row may be looked at as answers to one prompt."""
WORTH = 0.8
"""A pass over what groups share is only made where it leaves no more than this share of the tokens."""


def share_prefix(model: PreTrainedModel) -> None:
    """From now on, batches of `model` compute their common opening once. Leaves calls with a cache as they are."""
    backbone = model.base_model
    plain = backbone.forward

    def forward(
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Any = None,
        position_ids: torch.Tensor | None = None,
        **others: Any,
    ) -> Any:
        plain_call = dict(
            others,
            input_ids=input_ids,
            attention_mask=attention_mask,
            past_key_values=past_key_values,
            position_ids=position_ids,
        )
        if input_ids is None or past_key_values is not None or position_ids is not None or len(input_ids) < 2:
            return plain(**plain_call)
        rows = Rows(input_ids, (torch.ones_like(input_ids) if attention_mask is None else attention_mask).bool())
        if rows.shared < LEAST:
            return plain(**plain_call)
        return BaseModelOutputWithPast(last_hidden_state=_hidden(plain, rows))

    backbone.forward = forward


class Rows:
    """A padded batch with its padding moved to the right: `ids[row, i]` is token i of that row."""

    def __init__(self, input_ids: torch.Tensor, mask: torch.Tensor) -> None:
        self.mask = mask
        self.order = torch.argsort((~mask).int(), dim=1, stable=True)
        self.lengths = mask.sum(1)
        self.ids = input_ids.gather(1, self.order)[:, : int(self.lengths.max())]
        same = (self.ids == self.ids[:1]).all(0).long().cumprod(0).sum()
        # The last token of the shortest row is left out, so that every row has one of its own to compute.
        self.shared = int(torch.minimum(same, self.lengths.min() - 1))

    def group(self) -> tuple[int, torch.Tensor]:
        """In groups of how many rows there is least to compute, and how many tokens each group shares."""
        count = len(self.ids)
        equal = (self.ids[1:] == self.ids[:-1]).long().cumprod(1).sum(1)
        equal = torch.minimum(equal, torch.minimum(self.lengths[1:], self.lengths[:-1]) - 1).cpu()
        lengths = self.lengths.cpu()
        best = 1, torch.full((count,), self.shared)
        least = whole = int((lengths - self.shared).sum())
        for size in (size for size in SIZES if count % size == 0):
            # The last of each group has no neighbour in it.
            inside = torch.nn.functional.pad(equal, (0, 1)).view(-1, size)[:, :-1].min(1).values
            cost = int((inside - self.shared).sum() + (lengths.view(-1, size) - inside[:, None]).sum())
            if cost < least and cost < WORTH * whole:
                best, least = (size, inside), cost
        return best[0], best[1].to(self.ids.device)


def _hidden(plain: Any, rows: Rows) -> torch.Tensor:
    """The last hidden states of a batch, at the places its tokens stand."""
    count, first = len(rows.ids), rows.shared
    device = rows.ids.device
    opening = plain(input_ids=rows.ids[:1, :first], use_cache=True)
    cache, states = opening.past_key_values, [opening.last_hidden_state.expand(count, -1, -1)]
    seen = torch.ones((1, first), dtype=torch.bool, device=device)
    size, shared = rows.group()
    if size > 1:
        width = int(shared.max()) - first
        heads = rows.ids[::size, first : first + width]
        places = first + torch.arange(width, device=device)[None].expand(len(heads), -1)
        prompts = plain(
            input_ids=heads,
            past_key_values=_expand(cache, len(heads)),
            position_ids=places,
            attention_mask=_mask(seen.expand(len(heads), -1), width),
            use_cache=True,
        )
        cache = prompts.past_key_values
        states.append(prompts.last_hidden_state.repeat_interleave(size, 0))
        seen = torch.cat([seen.expand(len(heads), -1), places < shared[:, None]], dim=1)
        shared = shared.repeat_interleave(size)
    # From here on every row computes what is its own, which begins at a place of its own.
    most = rows.ids.shape[1] - int(shared.min())
    places = shared[:, None] + torch.arange(most, device=device)
    rest = rows.ids.gather(1, places.clamp(max=rows.ids.shape[1] - 1))
    before = seen.repeat_interleave(count // len(seen), 0)
    own = plain(
        input_ids=rest,
        past_key_values=_expand(cache, count),
        position_ids=places,
        attention_mask=_mask(before, most),
        use_cache=True,
    )
    whole = torch.cat([*states, own.last_hidden_state], dim=1)
    # Token i of a row stands at i while it is shared, and after the widest shared part once it is not.
    moved = torch.arange(rows.mask.shape[1], device=device)[None].expand(count, -1)
    moved = torch.where(moved < shared[:, None], moved, moved - shared[:, None] + before.shape[1])
    back = moved.clamp(max=whole.shape[1] - 1).gather(1, torch.argsort(rows.order, dim=1))
    return whole.gather(1, back[:, :, None].expand(-1, -1, whole.shape[2]))


def _mask(before: torch.Tensor, width: int) -> torch.Tensor:
    """What each of `width` new tokens of a row sees: what came before and is real, and the new ones up to itself.

    Padding stands on the right, where no real token sees it.
    """
    own = torch.ones((width, width), dtype=torch.bool, device=before.device).tril()
    seen = [before[:, None].expand(-1, width, -1), own[None].expand(len(before), -1, -1)]
    return torch.cat(seen, dim=2)[:, None]


def _expand(cache: Any, count: int) -> DynamicCache:
    """A cache for `count` rows, from one for fewer."""
    wide = DynamicCache()
    for index, layer in enumerate(cache.layers):
        times = count // len(layer.keys)
        wide.update(layer.keys.repeat_interleave(times, 0), layer.values.repeat_interleave(times, 0), index)
    return wide
