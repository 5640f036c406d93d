"""A model's copy that reads and writes in many slots at once: what all slots begin with is kept once for all of them.

Works with models built like Llama, Qwen2 or Qwen3; on a GPU a step is recorded once as a graph and then replayed.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import PreTrainedModel

from bylaw_lab.training import attention, layers
from bylaw_lab.training.attention import Stretches, joined, part

PACKED = True
"""On a GPU read only the keys that a slot holds, with flash kernels; otherwise as many as the fullest slot has."""
CHUNK = 32768
"""At most this many tokens are read at once."""
WIDTH = 512
"""The room that a step looks at grows in steps of this many tokens, so that few graphs are recorded."""


Look = Callable[[int, torch.Tensor], torch.Tensor]
"""What queries of one token a slot, (slots, key heads, queries of each, size), take from what they see in a layer."""


class Decoder:
    """Holds the weights, and the keys and values of the opening and of every slot."""

    def __init__(self, model: PreTrainedModel, slots: int, room: int, graphs: bool | None = None) -> None:
        self.model = deepcopy(model).eval().requires_grad_(False)
        self.device = model.device
        self.graphs = self.device.type == "cuda" if graphs is None else graphs
        config = model.config.get_text_config()
        self.heads: int = config.num_attention_heads
        self.shared_heads: int = config.num_key_value_heads
        self.size: int = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.layers: list[Any] = list(self.model.base_model.layers)
        self.is_plain = all(layers.is_plain(layer) for layer in self.layers)
        self.slots, self.room = slots, room
        self.is_packed = PACKED and attention.FLASH and self.device.type == "cuda"
        shape = (len(self.layers), slots, self.shared_heads, room, self.size)
        self.keys = torch.zeros(shape, device=self.device, dtype=model.dtype)
        self.values = torch.zeros(shape, device=self.device, dtype=model.dtype)
        self.pool = torch.cuda.graph_pool_handle() if self.graphs else None
        self.opening: list[int] = []
        self.opening_keys = self.keys.new_zeros((len(self.layers), self.shared_heads, 0, self.size))
        self.opening_values = self.opening_keys
        self.openings: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.recorded: dict[tuple[int, int, int], Recording] = {}

    @torch.no_grad()
    def load(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Take over weights by name. What was read with the old ones must be read again."""
        for name, weight in self.model.named_parameters():
            weight.copy_(weights[name])

    def open(self, opening: Sequence[int]) -> None:
        """Read what every slot begins with from now on."""
        self.opening = list(opening)
        empty = self.opening_keys[:, :, :0]
        self.opening_keys, self.opening_values = empty, empty
        if not self.opening:
            return
        tokens = torch.tensor([self.opening], device=self.device)
        keys: list[torch.Tensor] = []
        values: list[torch.Tensor] = []
        start = torch.zeros(1, dtype=torch.long, device=self.device)
        self._pass(tokens, start, None, keys, values)
        # Recorded graphs look for it in one piece of memory for each length it can have.
        read = torch.stack(keys)[:, 0], torch.stack(values)[:, 0]
        place = self.openings.setdefault(len(self.opening), (torch.empty_like(read[0]), torch.empty_like(read[1])))
        for kept, new in zip(place, read, strict=True):
            kept.copy_(new)
        self.opening_keys, self.opening_values = place

    def read(self, rows: Sequence[tuple[int, int, list[int]]], *, whole: bool = False) -> dict[int, torch.Tensor]:
        """Read tokens into slots: (slot, place of the first token among the slot's own, tokens).

        With `whole`, gives the last state of each.
        """
        last: dict[int, torch.Tensor] = {}
        todo = sorted(rows, key=lambda row: len(row[2]))
        while todo:
            # From the longest down: a chunk is as wide as its first row.
            width = len(todo[-1][2])
            part = [todo.pop() for _ in range(min(len(todo), max(1, CHUNK // width)))]
            tokens = torch.zeros((len(part), width), dtype=torch.long)
            for row, (_, _, new) in enumerate(part):
                tokens[row, : len(new)] = torch.tensor(new)
            starts = torch.tensor([start for _, start, _ in part], device=self.device)
            where = torch.tensor([slot for slot, _, _ in part], device=self.device)
            hidden = self._pass(tokens.to(self.device), starts, where)
            if whole:
                last |= {slot: hidden[row, len(new) - 1] for row, (slot, _, new) in enumerate(part)}
        return last

    def copy(self, sources: Sequence[int], targets: Sequence[int], span: int) -> None:
        """Copy the first `span` keys and values of slots to others."""
        a, b = (torch.tensor(list(slots), device=self.device) for slots in (sources, targets))
        for held in (self.keys, self.values):
            held[:, b, :, :span] = held[:, a, :, :span]

    def span(self, reach: int) -> int:
        """How much of the room a step looks at that reaches this far."""
        return self.room if self.is_packed else min(self.room, -(-reach // WIDTH) * WIDTH)

    def step(self, tokens: torch.Tensor, places: torch.Tensor, span: int) -> torch.Tensor:
        """The logits after one more token in each of the first slots, at `places` among the slot's own tokens."""
        if not self.graphs:
            return self._step(tokens, places, span)
        key = (len(self.opening), span, len(tokens))
        recording = self.recorded.get(key)
        if recording is None:
            recording = self.recorded[key] = Recording(self, len(tokens), span)
        recording.tokens.copy_(tokens)
        recording.places.copy_(places)
        recording.graph.replay()
        return recording.logits

    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.model.get_output_embeddings()(self.model.base_model.norm(hidden))

    def _pass(
        self,
        tokens: torch.Tensor,
        starts: torch.Tensor,
        where: torch.Tensor | None,
        keys: list[torch.Tensor] | None = None,
        values: list[torch.Tensor] | None = None,
    ) -> torch.Tensor:
        """Run the model over new tokens of some slots, or of the opening (`where` None); their last hidden states."""
        count, width = tokens.shape
        places = starts[:, None] + torch.arange(width, device=self.device)
        hidden = self.model.base_model.embed_tokens(tokens)
        turns = self._turns(hidden, places + (0 if where is None else len(self.opening)))
        span = min(int(starts.max()) + width, self.room)
        mask = None
        if where is not None:
            own = torch.arange(span, device=self.device) <= places[:, :, None]
            seen = own.new_ones((count, width, self.opening_keys.shape[2]))
            mask = torch.cat([seen, own], dim=2)[:, None]
            # Padding past the end of the room is written over the last place, which no answer ever reaches.
            slot, place = where[:, None], places.clamp(max=self.room - 1)
        for index, layer in enumerate(self.layers):
            query, key, value = self._project(layer, hidden, turns)
            if where is None:
                assert keys is not None
                assert values is not None
                keys.append(key)
                values.append(value)
            else:
                self.keys[index, slot, :, place] = key.transpose(1, 2)
                self.values[index, slot, :, place] = value.transpose(1, 2)
                key = torch.cat(
                    [self.opening_keys[index].expand(count, -1, -1, -1), self.keys[index, where, :, :span]], 2
                )
                value = torch.cat(
                    [self.opening_values[index].expand(count, -1, -1, -1), self.values[index, where, :, :span]], 2
                )
            times = self.heads // self.shared_heads
            mixed = scaled_dot_product_attention(
                query, key.repeat_interleave(times, 1), value.repeat_interleave(times, 1), mask, is_causal=mask is None
            )
            hidden = self._finish(layer, hidden, mixed.transpose(1, 2).reshape(count, width, -1))
        return hidden

    def _step(self, tokens: torch.Tensor, places: torch.Tensor, span: int) -> torch.Tensor:
        count = len(tokens)
        hidden = self.model.base_model.embed_tokens(tokens[:, None])
        turns = self._turns(hidden, places[:, None] + len(self.opening))
        slot = torch.arange(count, device=self.device)
        look = self._packed(places) if self.is_packed else self._plain(places, span)
        for index, layer in enumerate(self.layers):
            query, key, value = self._project(layer, hidden, turns)
            self.keys[index, slot, :, places] = key[:, :, 0]
            self.values[index, slot, :, places] = value[:, :, 0]
            # The query heads that share a key head are rows of one product; so are all slots, over the opening.
            mixed = look(index, query.view(count, self.shared_heads, -1, self.size))
            hidden = self._finish(layer, hidden, mixed.reshape(count, 1, -1))
        return self.logits(hidden[:, 0])

    def _plain(self, places: torch.Tensor, span: int) -> Look:
        """Attention of one more token in each slot, over the first `span` tokens of all."""
        count, shared, scale = len(places), self.opening_keys.shape[2], self.size**-0.5
        far = (torch.arange(span, device=self.device) > places[:, None])[:, None, None]

        def look(index: int, query: torch.Tensor) -> torch.Tensor:
            query = query * scale
            own = (query @ self.keys[index, :count, :, :span].transpose(2, 3)).float().masked_fill(far, float("-inf"))
            first = (_by_head(query) @ self.opening_keys[index].transpose(1, 2)).float()
            first = first.view(self.shared_heads, count, -1, shared).transpose(0, 1)
            weights = torch.cat([first, own], dim=3).softmax(-1).to(query.dtype)
            mixed = weights[..., shared:] @ self.values[index, :count, :, :span]
            over = _by_head(weights[..., :shared]) @ self.opening_values[index]
            return mixed + over.view(self.shared_heads, count, -1, self.size).transpose(0, 1)

        return look

    def _packed(self, places: torch.Tensor) -> Look:
        """The same, over what each slot holds: the query heads that share a key head are a stretch of queries."""
        count, group, scale = len(places), self.heads // self.shared_heads, self.size**-0.5
        shared = self.opening_keys.shape[2]
        # All of it is made on the device: a step that is being recorded may copy nothing there.
        ends = torch.arange(count + 1, dtype=torch.int32, device=self.device)
        slots = Stretches(ends * group, group), Stretches(ends * (self.shared_heads * self.room), self.room)
        opening = Stretches(ends[:2] * (count * group), count * group), Stretches(ends[:2] * shared, shared)
        # Slots that take no part stand at the last place.
        used = (places + 1).masked_fill(places == self.room - 1, 1).to(torch.int32)

        def look(index: int, query: torch.Tensor) -> torch.Tensor:
            query = query.transpose(1, 2).reshape(count * group, self.shared_heads, self.size)
            keys, values = (self._in_a_row(held[index]) for held in (self.keys, self.values))
            found = part(query, keys, values, *slots, False, scale, used)
            if shared:
                keys, values = (held[index].transpose(0, 1) for held in (self.opening_keys, self.opening_values))
                found = joined(found, part(query, keys, values, *opening, False, scale))
            return found[0].view(count, group, self.shared_heads, self.size).transpose(1, 2)

        return look

    def _in_a_row(self, held: torch.Tensor) -> torch.Tensor:
        """Keys or values of all slots as (tokens, heads, size); a slot's begin at its number times heads and room."""
        rows = self.slots * self.shared_heads * self.room - (self.shared_heads - 1) * self.room
        return held.as_strided(
            (rows, self.shared_heads, self.size), (self.size, self.room * self.size, 1), held.storage_offset()
        )

    def _turns(self, hidden: torch.Tensor, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        cos, sin = self.model.base_model.rotary_emb(hidden, places)
        return cos[:, None], sin[:, None]

    def _project(self, layer: Any, hidden: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor]) -> Any:
        """Queries, keys and values of some tokens: (rows, heads, tokens, size)."""
        if self.is_plain:
            rows, width = hidden.shape[:2]
            cos, sin = (each.reshape(rows * width, -1) for each in turns)
            found = layers.before(layer, hidden.reshape(rows * width, -1), cos, sin, self.size)
            return [each.view(rows, width, -1, self.size).transpose(1, 2) for each in found]
        mixer = layer.self_attn
        normal = layer.input_layernorm(hidden)
        shape = (*normal.shape[:2], -1, self.size)
        query, key = mixer.q_proj(normal).view(shape), mixer.k_proj(normal).view(shape)
        if hasattr(mixer, "q_norm"):
            query, key = mixer.q_norm(query), mixer.k_norm(key)
        value = mixer.v_proj(normal).view(shape).transpose(1, 2)
        return _turn(query.transpose(1, 2), *turns), _turn(key.transpose(1, 2), *turns), value

    def _finish(self, layer: Any, hidden: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        if self.is_plain:
            flat = (each.reshape(-1, each.shape[-1]) for each in (hidden, mixed))
            return layers.after(layer, *flat).view(hidden.shape)
        hidden = hidden + layer.self_attn.o_proj(mixed)
        return hidden + layer.mlp(layer.post_attention_layernorm(hidden))


class Recording:
    """One recorded step of a decoder, with the memory it reads from and writes to."""

    def __init__(self, decoder: Decoder, count: int, span: int) -> None:
        self.tokens = torch.zeros(count, dtype=torch.long, device=decoder.device)
        # Warming up writes keys: to the last place, which no answer ever reaches.
        self.places = torch.full_like(self.tokens, decoder.room - 1)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                decoder._step(self.tokens, self.places, span)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=decoder.pool):
            self.logits = decoder._step(self.tokens, self.places, span)


def _by_head(rows: torch.Tensor) -> torch.Tensor:
    """(rows, heads, queries, size) as (heads, rows x queries, size)."""
    return rows.transpose(0, 1).reshape(rows.shape[1], -1, rows.shape[3])


def _turn(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary places."""
    half = states.shape[-1] // 2
    turned = torch.cat([-states[..., half:], states[..., :half]], dim=-1)
    return states * cos + turned * sin
