"""Writes the next turn of many conversations at once: lock-step decoding with a shared opening and replayed GPU graphs.

All conversations of an evaluation or a rollout begin with the same tools and policy, and each grows turn by turn. So
the opening's keys and values are kept once for all, and those of a conversation stay in its slot from turn to turn.
Works with models built like Llama, Qwen2 or Qwen3, on a CPU too (without graphs).
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import PreTrainedModel

from bylaw.align.training import layers

WIDTH = 512
"""Room for a conversation's own tokens grows in steps of this many, so that few graphs are recorded."""
CHUNK = 32768
"""At most this many tokens are read at once."""
BLOCK = 16
"""Conversations that go on each at its own pace are looked at after this many steps."""
LEAST = 64
"""Fewer slots than this are not worth a smaller step."""
Reply = Callable[[int, list[int]], Sequence[int] | None]
"""Hears a conversation's place among the prompts, and its answer; says its next prompt, or None at its end."""


class Generator:
    """Holds a copy of a model's weights; `load` takes over those of a model that has learned meanwhile."""

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        ends: Sequence[int],
        slots: int = 512,
        room: int = 4096,
        graphs: bool | None = None,
    ) -> None:
        self.model = deepcopy(model).eval().requires_grad_(False)
        self.ends = torch.tensor(list(ends), device=model.device)
        self.device = model.device
        self.graphs = self.device.type == "cuda" if graphs is None else graphs
        config = model.config.get_text_config()
        self.heads: int = config.num_attention_heads
        self.shared_heads: int = config.num_key_value_heads
        self.size: int = getattr(config, "head_dim", None) or config.hidden_size // self.heads
        self.layers: list[Any] = list(self.model.base_model.layers)
        self.is_plain = all(layers.is_plain(layer) for layer in self.layers)
        self.slots, self.room = slots, room
        shape = (len(self.layers), slots, self.shared_heads, room, self.size)
        self.keys = torch.zeros(shape, device=self.device, dtype=model.dtype)
        self.values = torch.zeros(shape, device=self.device, dtype=model.dtype)
        self.pool = torch.cuda.graph_pool_handle() if self.graphs else None
        self.opening: list[int] = []
        self.opening_keys = self.keys.new_zeros((len(self.layers), self.shared_heads, 0, self.size))
        self.opening_values = self.opening_keys
        self.openings: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self.kept: dict[int, list[int]] = {}
        """By slot the tokens whose keys and values it holds."""
        self.slot_of: dict[Hashable, int] = {}
        self.recorded: dict[tuple[int, int, int], _Recording] = {}

    @torch.no_grad()
    def load(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Take over weights by name, and forget what was read with the old ones."""
        for name, weight in self.model.named_parameters():
            weight.copy_(weights[name])
        self.forget()

    def forget(self) -> None:
        """Forget every conversation and the opening."""
        self.opening, self.kept, self.slot_of = [], {}, {}

    @torch.no_grad()
    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        longest: int,
        temperature: float = 0.0,
        seed: int = 0,
        names: Sequence[Hashable] | None = None,
    ) -> list[list[int]]:
        """What the model writes after each prompt, its end token included where it wrote one.

        `names` says which conversation each prompt goes on with; without it, every prompt is a new one. A prompt that
        leaves no room for an answer gets an empty one.
        """
        if not prompts:
            return []
        if len(prompts) > self.slots:
            if names is not None:
                raise ValueError(f"there is room for {self.slots} conversations, not for {len(prompts)}")
            return [
                answer
                for start in range(0, len(prompts), self.slots)
                for answer in self.generate(
                    prompts[start : start + self.slots], longest=longest, temperature=temperature, seed=seed + start
                )
            ]
        self._open(prompts)
        if names is None:
            self.kept, self.slot_of = {}, {}
            names = range(len(prompts))
        self._seat(names)
        own = {
            self.slot_of[name]: list(prompt[len(self.opening) :]) for name, prompt in zip(names, prompts, strict=True)
        }
        fitting = {slot: tokens for slot, tokens in own.items() if len(tokens) + longest < self.room}
        written: dict[int, list[int]] = {}
        if fitting:
            self._read_alike(fitting)
            written = self._write(fitting, longest, temperature, seed)
        return [written.get(self.slot_of[name], []) for name in names]

    def _seat(self, names: Sequence[Hashable]) -> None:
        """Give every conversation a slot. Those that are over make room, so that a step computes few rows in vain."""
        known = [self.slot_of[name] for name in names if name in self.slot_of]
        if len(known) == len(names) and max(known) < 1 << max(6, (len(names) - 1).bit_length()):
            return
        old = {self.slot_of[name]: place for place, name in enumerate(names) if name in self.slot_of}
        span = max((len(self.kept.get(slot, [])) for slot in old), default=0)
        if span:
            sources, places = (
                torch.tensor(list(old), device=self.device),
                torch.tensor(list(old.values()), device=self.device),
            )
            for held in (self.keys, self.values):
                held[:, places, :, :span] = held[:, sources, :, :span]
        self.kept = {place: self.kept[slot] for slot, place in old.items() if slot in self.kept}
        self.slot_of = {name: place for place, name in enumerate(names)}

    @torch.no_grad()
    def converse(
        self,
        prompts: Sequence[Sequence[int]],
        reply: Reply,
        *,
        longest: int,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        """Go on with conversations side by side, greedily and each at its own pace, until `reply` ends them all.

        A conversation that has got its answer goes on while others are still being answered, so nobody waits for the
        longest answer. `watch` hears now and then how many conversations are on.
        """
        if len(prompts) > self.slots:
            raise ValueError(f"there is room for {self.slots} conversations, not for {len(prompts)}")
        if not prompts:
            return
        self._open(prompts)
        self._seat(range(len(prompts)))
        shared = len(self.opening)
        said = {name: list(prompt[shared:]) for name, prompt in enumerate(prompts)}
        """Of every conversation that is on, its own tokens, those of the answer in the making included."""
        waiting, begun = set(said), dict.fromkeys(said, 0)
        floor: _Floor | None = None
        while said:
            if floor is None or 2 * len(said) <= len(floor.tokens) > LEAST:
                for name in said:
                    if name not in waiting:
                        self.kept[self.slot_of[name]] = said[name][:-1]
                self._seat(list(said))
                floor = _Floor(self, longest, self._count(max(self.slot_of[name] for name in said) + 1))
                floor.join({self.slot_of[name]: (said[name], begun[name]) for name in said if name not in waiting})
            fitting = {name for name in waiting if len(said[name]) + longest < self.room}
            ready = {self.slot_of[name]: said[name] for name in fitting}
            self._read(ready)
            floor.join({slot: (tokens, len(tokens)) for slot, tokens in ready.items()})
            begun |= {name: len(said[name]) for name in fitting}
            finished = [(name, []) for name in waiting if name not in fitting]
            live = [name for name in said if name not in waiting or name in fitting]
            if live:
                reach = max(len(said[name]) for name in live)
                written, over = floor.steps(reach)
                for name in live:
                    slot = self.slot_of[name]
                    said[name] += [token for token in written[slot] if token >= 0]
                    if over[slot]:
                        # The last token written has not been read.
                        self.kept[slot] = said[name][:-1]
                        finished.append((name, said[name][begun[name] :]))
            waiting = set()
            for name, answer in finished:
                further = reply(name, answer)
                if further is None:
                    del said[name]
                else:
                    said[name] = list(further[shared:])
                    waiting.add(name)
            if watch is not None:
                watch(len(said))

    def _count(self, rows: int) -> int:
        """How many slots a step computes so that `rows` are among them: with graphs one of few numbers."""
        return min(self.slots, 1 << max(6, (rows - 1).bit_length())) if self.graphs else rows

    @torch.no_grad()
    def chances(self, prompts: Sequence[Sequence[int]], choices: Sequence[int]) -> torch.Tensor:
        """The log-probability of each of `choices` as the next token of each prompt."""
        self.kept, self.slot_of = {}, {}
        found: list[torch.Tensor] = []
        self._open(prompts)
        wanted = torch.tensor(list(choices), device=self.device)
        for start in range(0, len(prompts), self.slots):
            part = prompts[start : start + self.slots]
            self.kept = {}
            own = {slot: list(prompt[len(self.opening) :]) for slot, prompt in enumerate(part)}
            if max(map(len, own.values())) >= self.room:
                raise ValueError(f"a prompt has more than the {self.room} tokens there is room for")
            self._read(own, whole=True)
            hidden = torch.stack([self.last[slot] for slot in own])
            found.append(self._logits(hidden).float().log_softmax(-1)[:, wanted])
        return torch.cat(found).cpu()

    def _open(self, prompts: Sequence[Sequence[int]]) -> None:
        """Read what all prompts begin with, unless it is read already. Every prompt keeps a token of its own."""
        known = self.opening
        if known and all(len(prompt) > len(known) and list(prompt[: len(known)]) == known for prompt in prompts):
            return
        shared = min(shared_length(prompts), min(map(len, prompts)) - 1)
        self.kept, self.slot_of = {}, {}
        self.opening = list(prompts[0][:shared])
        empty = self.opening_keys[:, :, :0]
        self.opening_keys, self.opening_values = empty, empty
        if shared:
            tokens = torch.tensor([self.opening], device=self.device)
            keys: list[torch.Tensor] = []
            values: list[torch.Tensor] = []
            start = torch.zeros(1, dtype=torch.long, device=self.device)
            self._pass(tokens, start, None, keys, values)
            self._keep_opening(torch.stack(keys)[:, 0], torch.stack(values)[:, 0])

    def _keep_opening(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Put the opening where recorded graphs look for it: one piece of memory for each length it can have."""
        place = self.openings.setdefault(keys.shape[2], (torch.empty_like(keys), torch.empty_like(values)))
        place[0].copy_(keys)
        place[1].copy_(values)
        self.opening_keys, self.opening_values = place

    def _read_alike(self, own: dict[int, list[int]]) -> None:
        """`_read`, where several slots may hold the same tokens: these are read once."""
        first: dict[tuple[int, ...], int] = {}
        for slot, tokens in own.items():
            first.setdefault(tuple(tokens), slot)
        self._read({slot: own[slot] for slot in first.values()})
        copies = [slot for slot, tokens in own.items() if first[tuple(tokens)] != slot]
        if not copies:
            return
        sources = [first[tuple(own[slot])] for slot in copies]
        span = max(len(self.kept[slot]) for slot in sources)
        for held in (self.keys, self.values):
            held[:, copies, :, :span] = held[:, sources, :, :span]
        self.kept |= {slot: self.kept[source] for slot, source in zip(copies, sources, strict=True)}

    def _read(self, own: dict[int, list[int]], *, whole: bool = False) -> None:
        """Bring every slot's keys and values up to all but the last of its tokens (to all of them, if `whole`)."""
        self.last: dict[int, torch.Tensor] = {}
        todo: list[tuple[int, int, list[int]]] = []
        for slot, tokens in own.items():
            known = self.kept.get(slot, [])
            same = next((i for i, pair in enumerate(zip(known, tokens, strict=False)) if pair[0] != pair[1]), None)
            start = min(len(known), len(tokens)) if same is None else same
            end = len(tokens) if whole else len(tokens) - 1
            start = min(start, max(end - 1, 0)) if whole else min(start, end)
            if end > start:
                todo.append((slot, start, tokens[start:end]))
            self.kept[slot] = tokens[:end]
        todo.sort(key=lambda one: len(one[2]))
        while todo:
            # From the longest down: a chunk is as wide as its first row.
            width = len(todo[-1][2])
            rows = [todo.pop() for _ in range(min(len(todo), max(1, CHUNK // width)))]
            tokens = torch.zeros((len(rows), width), dtype=torch.long)
            for row, (_, _, new) in enumerate(rows):
                tokens[row, : len(new)] = torch.tensor(new)
            starts = torch.tensor([start for _, start, _ in rows], device=self.device)
            where = torch.tensor([slot for slot, _, _ in rows], device=self.device)
            hidden = self._pass(tokens.to(self.device), starts, where)
            if whole:
                for row, (slot, _, new) in enumerate(rows):
                    self.last[slot] = hidden[row, len(new) - 1]

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
        attention = layer.self_attn
        normal = layer.input_layernorm(hidden)
        shape = (*normal.shape[:2], -1, self.size)
        query, key = attention.q_proj(normal).view(shape), attention.k_proj(normal).view(shape)
        if hasattr(attention, "q_norm"):
            query, key = attention.q_norm(query), attention.k_norm(key)
        value = attention.v_proj(normal).view(shape).transpose(1, 2)
        return _turn(query.transpose(1, 2), *turns), _turn(key.transpose(1, 2), *turns), value

    def _finish(self, layer: Any, hidden: torch.Tensor, mixed: torch.Tensor) -> torch.Tensor:
        if self.is_plain:
            flat = (each.reshape(-1, each.shape[-1]) for each in (hidden, mixed))
            return layers.after(layer, *flat).view(hidden.shape)
        hidden = hidden + layer.self_attn.o_proj(mixed)
        return hidden + layer.mlp(layer.post_attention_layernorm(hidden))

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.model.get_output_embeddings()(self.model.base_model.norm(hidden))

    def _step(self, tokens: torch.Tensor, places: torch.Tensor, span: int) -> torch.Tensor:
        """The logits after one more token in every slot, which stands at `places` among the slot's own tokens."""
        count = len(tokens)
        hidden = self.model.base_model.embed_tokens(tokens[:, None])
        turns = self._turns(hidden, places[:, None] + len(self.opening))
        slot = torch.arange(count, device=self.device)
        far = (torch.arange(span, device=self.device) > places[:, None])[:, None, None]
        scale = self.size**-0.5
        shared = self.opening_keys.shape[2]
        for index, layer in enumerate(self.layers):
            query, key, value = self._project(layer, hidden, turns)
            self.keys[index, slot, :, places] = key[:, :, 0]
            self.values[index, slot, :, places] = value[:, :, 0]
            # The query heads that share a key head are rows of one product; so are all slots, over the opening.
            query = (query * scale).view(count, self.shared_heads, -1, self.size)
            own = (query @ self.keys[index, :count, :, :span].transpose(2, 3)).float().masked_fill(far, float("-inf"))
            first = (_by_head(query) @ self.opening_keys[index].transpose(1, 2)).float()
            first = first.view(self.shared_heads, count, -1, shared).transpose(0, 1)
            weights = torch.cat([first, own], dim=3).softmax(-1).to(query.dtype)
            mixed = weights[..., shared:] @ self.values[index, :count, :, :span]
            over = _by_head(weights[..., :shared]) @ self.opening_values[index]
            mixed = mixed + over.view(self.shared_heads, count, -1, self.size).transpose(0, 1)
            hidden = self._finish(layer, hidden, mixed.reshape(count, 1, -1))
        return self._logits(hidden[:, 0])

    def _write(self, own: dict[int, list[int]], longest: int, temperature: float, seed: int) -> dict[int, list[int]]:
        count = self._count(max(own) + 1)
        tokens = torch.zeros(count, dtype=torch.long, device=self.device)
        places = torch.zeros(count, dtype=torch.long, device=self.device)
        over = torch.ones(count, dtype=torch.bool, device=self.device)
        for slot, mine in own.items():
            tokens[slot], places[slot], over[slot] = mine[-1], len(mine) - 1, False
        # Slots that take no part write where nothing of theirs stands: just past what they keep.
        for slot in range(count):
            if slot not in own:
                places[slot] = min(len(self.kept.get(slot, [])), self.room - 1)
        written = torch.full((count, longest), -1, dtype=torch.long, device=self.device)
        random = torch.Generator(device=self.device).manual_seed(seed)
        reach = max(map(len, own.values()))
        for step in range(longest):
            span = min(self.room, -(-(reach + step) // WIDTH) * WIDTH)
            logits = self._replay(tokens, places, span) if self.graphs else self._step(tokens, places, span)
            following = _draw(logits, temperature, random)
            written[:, step] = torch.where(over, -1, following)
            over = over | torch.isin(following, self.ends)
            places = torch.where(over, places, places + 1)
            tokens = torch.where(over, tokens, following)
            if step % 8 == 7 and bool(over.all()):
                break
        answers: dict[int, list[int]] = {}
        for slot, row in enumerate(written.tolist()):
            if slot in own:
                answers[slot] = [token for token in row if token >= 0]
                # The last token written has not been read; what a slot keeps are the tokens whose keys it holds.
                self.kept[slot] = (own[slot] + answers[slot])[:-1]
        return answers

    def _replay(self, tokens: torch.Tensor, places: torch.Tensor, span: int) -> torch.Tensor:
        """`_step`, recorded once for each length of the opening and each span, then replayed."""
        key = (len(self.opening), span, len(tokens))
        recording = self.recorded.get(key)
        if recording is None:
            recording = self.recorded[key] = _Recording(self, len(tokens), span)
        recording.tokens.copy_(tokens)
        recording.places.copy_(places)
        recording.graph.replay()
        return recording.logits


class _Floor:
    """The slots of conversations that are being answered, each at its own pace."""

    def __init__(self, generator: Generator, longest: int, count: int) -> None:
        self.generator, self.longest = generator, longest
        device = generator.device
        self.tokens = torch.zeros(count, dtype=torch.long, device=device)
        # Slots that take no part write where no answer ever reaches.
        self.places = torch.full_like(self.tokens, generator.room - 1)
        self.left = torch.zeros_like(self.tokens)
        self.over = torch.ones(count, dtype=torch.bool, device=device)

    def join(self, own: Mapping[int, tuple[Sequence[int], int]]) -> None:
        """Slots take part, by slot with their tokens and where in these the answer begins."""
        if not own:
            return
        slots = torch.tensor(list(own), device=self.tokens.device)
        given = [(tokens[-1], len(tokens) - 1, self.longest - (len(tokens) - begun)) for tokens, begun in own.values()]
        self.tokens[slots], self.places[slots], self.left[slots] = torch.tensor(given, device=slots.device).unbind(1)
        self.over[slots] = False

    def steps(self, reach: int) -> tuple[list[list[int]], list[bool]]:
        """Some steps: what every slot wrote (-1 for nothing), and whether its answer is at its end."""
        written: list[torch.Tensor] = []
        generator = self.generator
        span = min(generator.room, -(-(reach + BLOCK) // WIDTH) * WIDTH)
        step = generator._replay if generator.graphs else generator._step
        for _ in range(BLOCK):
            following = step(self.tokens, self.places, span).argmax(-1)
            written.append(torch.where(self.over, -1, following))
            self.left = torch.where(self.over, self.left, self.left - 1)
            self.tokens = torch.where(self.over, self.tokens, following)
            self.places = torch.where(self.over, self.places, self.places + 1)
            self.over = self.over | torch.isin(following, generator.ends) | (self.left <= 0)
        found = torch.cat([torch.stack(written, 1), self.over[:, None].long()], 1).tolist()
        return [row[:-1] for row in found], [bool(row[-1]) for row in found]


class _Recording:
    """One recorded step of a generator, with the memory it reads from and writes to."""

    def __init__(self, generator: Generator, count: int, span: int) -> None:
        self.tokens = torch.zeros(count, dtype=torch.long, device=generator.device)
        # Warming up writes keys: to the last place, which no answer ever reaches.
        self.places = torch.full_like(self.tokens, generator.room - 1)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                generator._step(self.tokens, self.places, span)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=generator.pool):
            self.logits = generator._step(self.tokens, self.places, span)


def shared_length(prompts: Sequence[Sequence[int]]) -> int:
    """How many tokens all prompts begin with."""
    lists = [list(prompt) for prompt in prompts]
    first, last = min(lists), max(lists)
    return next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))


def _by_head(rows: torch.Tensor) -> torch.Tensor:
    """(rows, heads, queries, size) as (heads, rows x queries, size)."""
    return rows.transpose(0, 1).reshape(rows.shape[1], -1, rows.shape[3])


def _turn(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary places."""
    half = states.shape[-1] // 2
    turned = torch.cat([-states[..., half:], states[..., :half]], dim=-1)
    return states * cos + turned * sin


def _draw(logits: torch.Tensor, temperature: float, random: torch.Generator) -> torch.Tensor:
    if temperature == 0:
        return logits.argmax(-1)
    noise = torch.empty_like(logits, dtype=torch.float32).exponential_(generator=random)
    return (logits.float() / temperature).softmax(-1).div_(noise).argmax(-1)
