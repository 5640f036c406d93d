"""Writes the next turn of many conversations at once, none waiting for the longest answer.

All conversations of an evaluation or a rollout begin with the same tools and policy, and each grows turn by turn. So
the opening is read once for all, and what was read of a conversation stays in its slot from turn to turn.
"""
# pyright: basic, reportMissingImports=false

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from bylaw_lab.training.decoder import Decoder
from bylaw_lab.training.floor import Floor

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
        self.decoder = Decoder(model, slots, room, graphs)
        self.ends, self.slots, self.room = list(ends), slots, room
        self.device = self.decoder.device
        self.kept: dict[int, list[int]] = {}
        """By slot the tokens whose keys and values it holds."""
        self.slot_of: dict[Hashable, int] = {}

    def load(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Take over weights by name, and forget what was read with the old ones."""
        self.decoder.load(weights)
        self.forget()

    def forget(self) -> None:
        self.decoder.opening, self.kept, self.slot_of = [], {}, {}

    def generate(self, prompts: Sequence[Sequence[int]], **settings: Any) -> list[list[int]]:
        """What the model writes after each prompt, its end token included where it wrote one; settings as of `sample`.

        A prompt that leaves no room for an answer gets an empty one.
        """
        return self.sample(prompts, **settings)[0]

    def sample(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        longest: int,
        temperature: float = 0.0,
        seed: int = 0,
        names: Sequence[Hashable] | None = None,
    ) -> tuple[list[list[int]], list[list[float]]]:
        """The same, and the log-probability of each token as it was drawn.

        `names` says which conversation each prompt goes on with; without it, every prompt is a new one.
        """
        answers: list[list[int]] = [[] for _ in prompts]
        chances: list[list[float]] = [[] for _ in prompts]

        def reply(place: int, answer: list[int], likely: list[float]) -> None:
            answers[place], chances[place] = answer, likely

        if names is not None and len(prompts) > self.slots:
            raise ValueError(f"there is room for {self.slots} conversations, not for {len(prompts)}")
        self._write(prompts, reply, longest, temperature, seed, names)
        return answers, chances

    def converse(
        self,
        prompts: Sequence[Sequence[int]],
        reply: Reply,
        *,
        longest: int,
        temperature: float = 0.0,
        seed: int = 0,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        """Go on with conversations until `reply` ends them all; greedily, unless a temperature is given.

        As many are on as there are slots, and the next begins where one has ended. `watch` hears now and then how many
        are on.
        """
        self._write(prompts, lambda place, answer, _: reply(place, answer), longest, temperature, seed, watch=watch)

    @torch.no_grad()
    def _write(
        self,
        prompts: Sequence[Sequence[int]],
        reply: Callable[[int, list[int], list[float]], Sequence[int] | None],
        longest: int,
        temperature: float = 0.0,
        seed: int = 0,
        names: Sequence[Hashable] | None = None,
        watch: Callable[[int], None] | None = None,
    ) -> None:
        if not prompts:
            return
        self._open(prompts)
        shared = len(self.decoder.opening)
        if names is None:
            self.kept, self.slot_of = {}, {}
            names = range(len(prompts))
        named: Sequence[Any] = names
        # The longest first, so that those of one length are on together and short answers fill the gaps at the end.
        queue = deque(sorted(range(len(prompts)), key=lambda place: -len(prompts[place])))
        said: dict[int, list[int]] = {}
        """Of every conversation that is on, its own tokens, those of the answer in the making included."""
        begun: dict[int, int] = {}
        likely: dict[int, list[float]] = {}
        waiting: set[int] = set()
        """Those that are on and whose prompt is still to be read."""
        floor = Floor(self.decoder, self.ends, longest, temperature, seed)
        while said or queue:
            while queue and len(said) < self.slots:
                place = queue.popleft()
                said[place] = list(prompts[place][shared:])
                waiting.add(place)
            count = len(floor.tokens)
            if not count or (not queue and 2 * len(said) <= count > LEAST):
                for place in said:
                    if place not in waiting:
                        self.kept[self.slot_of[named[place]]] = said[place][:-1]
                self._seat([named[place] for place in said])
                floor.resize(self._count(1 + max(self.slot_of[named[place]] for place in said)))
                on = [place for place in said if place not in waiting]
                floor.join({self.slot_of[named[place]]: (said[place], begun[place]) for place in on})
            else:
                self._seat_more([named[place] for place in said])
            fitting = {place for place in waiting if len(said[place]) + longest < self.room}
            ready = {self.slot_of[named[place]]: said[place] for place in fitting}
            self._read_alike(ready)
            floor.join({slot: (tokens, len(tokens)) for slot, tokens in ready.items()})
            begun |= {place: len(said[place]) for place in fitting}
            likely |= {place: [] for place in fitting}
            finished: list[tuple[int, list[int], list[float]]] = [
                (place, [], []) for place in waiting if place not in fitting
            ]
            live = [place for place in said if place not in waiting or place in fitting]
            if live:
                written = floor.steps(max(len(said[place]) for place in live))
                for place in live:
                    slot = self.slot_of[named[place]]
                    said[place] += written[slot].tokens
                    likely[place] += written[slot].chances
                    if written[slot].is_over:
                        # The last token written has not been read.
                        self.kept[slot] = said[place][:-1]
                        finished.append((place, said[place][begun[place] :], likely[place]))
            waiting = set()
            for place, answer, chances in finished:
                further = reply(place, answer, chances)
                if further is None:
                    del said[place]
                else:
                    said[place] = list(further[shared:])
                    waiting.add(place)
            if watch is not None:
                watch(len(said) + len(queue))

    @torch.no_grad()
    def chances(self, prompts: Sequence[Sequence[int]], choices: Sequence[int]) -> torch.Tensor:
        """The log-probability of each of `choices` as the next token of each prompt."""
        self.kept, self.slot_of = {}, {}
        found: list[torch.Tensor] = []
        self._open(prompts)
        wanted = torch.tensor(list(choices), device=self.device)
        for start in range(0, len(prompts), self.slots):
            own = [list(prompt[len(self.decoder.opening) :]) for prompt in prompts[start : start + self.slots]]
            if max(map(len, own)) >= self.room:
                raise ValueError(f"a prompt has more than the {self.room} tokens there is room for")
            last = self.decoder.read([(slot, 0, tokens) for slot, tokens in enumerate(own)], whole=True)
            hidden = torch.stack([last[slot] for slot in range(len(own))])
            found.append(self.decoder.logits(hidden).float().log_softmax(-1)[:, wanted])
        return torch.cat(found).cpu()

    def _open(self, prompts: Sequence[Sequence[int]]) -> None:
        """Read what all prompts begin with, unless it is read already. Every prompt keeps a token of its own."""
        known = self.decoder.opening
        if known and all(len(prompt) > len(known) and list(prompt[: len(known)]) == known for prompt in prompts):
            return
        shared = min(shared_length(prompts), min(map(len, prompts)) - 1)
        self.kept, self.slot_of = {}, {}
        self.decoder.open(list(prompts[0][:shared]))

    def _seat(self, names: Sequence[Hashable]) -> None:
        """Give every conversation a slot. Those that are over make room, so that a step computes few rows in vain."""
        known = [self.slot_of[name] for name in names if name in self.slot_of]
        if len(known) == len(names) and max(known) < 1 << max(6, (len(names) - 1).bit_length()):
            return
        old = {self.slot_of[name]: place for place, name in enumerate(names) if name in self.slot_of}
        span = max((len(self.kept.get(slot, [])) for slot in old), default=0)
        if span:
            self.decoder.copy(list(old), list(old.values()), span)
        self.kept = {place: self.kept[slot] for slot, place in old.items() if slot in self.kept}
        self.slot_of = {name: place for place, name in enumerate(names)}

    def _seat_more(self, names: Sequence[Hashable]) -> None:
        """Give those that have no slot yet the slots of conversations that are over."""
        new = [name for name in names if name not in self.slot_of]
        if not new:
            return
        over = [name for name in self.slot_of if name not in set(names)]
        for name, gone in zip(new, over, strict=False):
            slot = self.slot_of.pop(gone)
            self.slot_of[name] = slot
            self.kept.pop(slot, None)

    def _count(self, rows: int) -> int:
        """How many slots a step computes so that `rows` are among them: with graphs one of few numbers."""
        return min(self.slots, 1 << max(6, (rows - 1).bit_length())) if self.decoder.graphs else rows

    def _read_alike(self, own: dict[int, list[int]]) -> None:
        """`_read`, where several slots may hold the same tokens: these are read once."""
        if not own:
            return
        first: dict[tuple[int, ...], int] = {}
        for slot, tokens in own.items():
            first.setdefault(tuple(tokens), slot)
        self._read({slot: own[slot] for slot in first.values()})
        copies = [slot for slot, tokens in own.items() if first[tuple(tokens)] != slot]
        if not copies:
            return
        sources = [first[tuple(own[slot])] for slot in copies]
        self.decoder.copy(sources, copies, max(len(self.kept[slot]) for slot in sources))
        self.kept |= {slot: self.kept[source] for slot, source in zip(copies, sources, strict=True)}

    def _read(self, own: dict[int, list[int]]) -> None:
        """Bring every slot's keys and values up to all but the last of its tokens."""
        todo: list[tuple[int, int, list[int]]] = []
        for slot, tokens in own.items():
            known, end = self.kept.get(slot, []), len(tokens) - 1
            same = next((i for i, pair in enumerate(zip(known, tokens, strict=False)) if pair[0] != pair[1]), None)
            start = min(len(known), end) if same is None else min(same, end)
            if end > start:
                todo.append((slot, start, tokens[start:end]))
            self.kept[slot] = tokens[:end]
        self.decoder.read(todo)


def shared_length(prompts: Sequence[Sequence[int]]) -> int:
    """How many tokens all prompts begin with."""
    lists = [list(prompt) for prompt in prompts]
    first, last = min(lists), max(lists)
    return next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
