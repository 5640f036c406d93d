"""Stage 3 on whole conversations: the model plays training tasks, several times each, and learns from what came of it.

GRPO with a conversation as the answer. Conversations are played side by side with scripted callers; every turn of the
model has its own advantage (`align_marks`), and what users and tools said is read and not learned. Tasks are drawn in
twins, first of all those that the model failed before: of two twins one is mostly to be refused, so to draw both keeps
a model from leaning to either side.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import torch
from align_marks import TURN, Marks, advantages, is_telling, mark
from msgspec import Struct
from torch.utils.checkpoint import checkpoint

from bylaw.align.episode import ChatMessage, Episode
from bylaw.align.training.dialect import IGNORED, Dialect
from bylaw_lab.clinic.tasks import Scenario
from bylaw_lab.training.checkpoint import Checkpoint
from bylaw_lab.training.optimizer import RoundedAdamW

Messages = list[ChatMessage]
CHUNK = 4096
"""Tokens whose chances are worked out at once: a vocabulary is large."""


class Episodes(Struct, frozen=True):
    """Settings of practice on whole conversations."""

    learning_rate: float = 5e-6
    rollouts: int = 6
    pairs: int = 40
    """Twins that are played in one rollout."""
    failed: float = 0.75
    """Share of them that are drawn from twins of which the model has failed one."""
    samples: int = 8
    """Conversations about one task."""
    steps: int = 4
    """Steps that are taken from one rollout."""
    at_once: int = 16
    """Conversations that are computed at once."""
    temperature: float = 1.0
    clip: float = 0.2
    turn: float = TURN
    """How much a turn by itself counts beside the whole conversation."""
    warmup: int = 2
    gradient_norm: float = 1.0


class Talk(Struct, frozen=True):
    """One conversation to learn from."""

    ids: list[int]
    weights: list[float]
    """Of every token the advantage of its turn; 0 where it is not the model's own."""
    is_own: list[bool]


def drawn(
    tasks: Sequence[Scenario], failures: Mapping[str, float], settings: Episodes, seed: int
) -> Iterator[list[Scenario]]:
    """The tasks of one rollout after the other. `failures` is the share of a task's tries that came out badly."""
    twins: dict[str, list[Scenario]] = {}
    for task in tasks:
        twins.setdefault(task.id.rpartition("-")[0], []).append(task)
    hard = [name for name, pair in twins.items() if any(failures.get(task.id, 0.0) > 0 for task in pair)]
    known = set(hard)
    queues = {True: hard, False: [name for name in twins if name not in known]}
    rng = random.Random(f"episodes/{seed}")
    left: dict[bool, list[str]] = {True: [], False: []}
    while True:
        wanted = round(settings.failed * settings.pairs)
        names: list[str] = []
        for is_hard, count in ((True, wanted), (False, settings.pairs - wanted)):
            side = is_hard if queues[is_hard] else not is_hard
            for _ in range(min(count, len(queues[side]))):
                if not left[side]:
                    left[side] = rng.sample(queues[side], len(queues[side]))
                names.append(left[side].pop())
        yield [task for name in dict.fromkeys(names) for task in twins[name]]


def roll_out(player: Checkpoint, tasks: Sequence[Scenario], settings: Episodes, seed: int) -> list[list[Messages]]:
    """Several conversations about each task, as the model leads them."""
    player.temperature, player.seed = settings.temperature, seed
    episodes = [Episode(task, policy="none") for task in tasks for _ in range(settings.samples)]
    try:
        player.converse(episodes)
    finally:
        player.temperature, player.seed = 0.0, 0
    for episode in episodes:
        episode.outcome()
    found = [episode.messages for episode in episodes]
    return [found[start : start + settings.samples] for start in range(0, len(found), settings.samples)]


def marked(
    tasks: Sequence[Scenario], talks: Sequence[Sequence[Messages]], pool: Executor | None = None
) -> list[list[Marks]]:
    """What each of the conversations is worth, on several cores where there is a pool."""
    jobs = [
        (task, [message["content"] for message in messages if message["role"] == "assistant"])
        for task, group in zip(tasks, talks, strict=True)
        for messages in group
    ]
    found = iter(pool.map(mark, *zip(*jobs, strict=True), chunksize=8) if pool else [mark(*job) for job in jobs])
    return [[next(found) for _ in group] for group in talks]


def talk(dialect: Dialect, messages: Messages, worth: Sequence[float]) -> Talk:
    """A conversation as tokens up to the model's last word, those of each turn with its advantage.

    All conversations count alike, however long: one that ends in a change has several times the words of one that ends
    in a refusal, and would teach a model to go on.
    """
    ids: list[int] = []
    weights: list[float] = []
    is_own: list[bool] = []
    turns = iter(worth)
    for message in messages:
        mine, labels = dialect.example([message])
        each = next(turns) if message["role"] == "assistant" else 0.0
        ids += mine
        weights += [0.0 if label == IGNORED else each for label in labels]
        is_own += [label != IGNORED for label in labels]
    end, words = len(is_own) - is_own[::-1].index(True), sum(is_own)
    return Talk(ids[:end], [weight / words for weight in weights[:end]], is_own[:end])


class Batch:
    """Conversations side by side, padded at their ends."""

    def __init__(self, talks: Sequence[Talk], device: Any) -> None:
        width = max(len(each.ids) for each in talks)
        ids = torch.zeros((len(talks), width), dtype=torch.long)
        mask = torch.zeros((len(talks), width), dtype=torch.long)
        weights = torch.zeros((len(talks), width))
        is_own = torch.zeros((len(talks), width), dtype=torch.bool)
        for row, each in enumerate(talks):
            size = len(each.ids)
            ids[row, :size], mask[row, :size] = torch.tensor(each.ids), 1
            weights[row, :size], is_own[row, :size] = torch.tensor(each.weights), torch.tensor(each.is_own)
        self.ids, self.mask, self.is_own = ids.to(device), mask.to(device), is_own.to(device)
        self.weights = weights.to(device)[:, 1:][self.is_own[:, 1:]]

    def chances(self, model: Any) -> torch.Tensor:
        """The log-probabilities that a model gives its own words in them."""
        states = model.base_model(input_ids=self.ids, attention_mask=self.mask).last_hidden_state
        states, words = states[:, :-1][self.is_own[:, 1:]], self.ids[:, 1:][self.is_own[:, 1:]]
        head = model.get_output_embeddings()

        def part(state: torch.Tensor, word: torch.Tensor) -> torch.Tensor:
            logits = head(state).float()
            return logits.gather(1, word[:, None])[:, 0] - logits.logsumexp(1)

        pairs = zip(states.split(CHUNK), words.split(CHUNK), strict=True)
        return torch.cat([checkpoint(part, *pair, use_reentrant=False) for pair in pairs])


def loss_of(now: torch.Tensor, then: torch.Tensor, weights: torch.Tensor, clip: float) -> torch.Tensor:
    """What is to be made small: the clipped gain of every word, weighed and summed."""
    ratio = (now - then).exp()
    return -torch.minimum(ratio * weights, ratio.clamp(1 - clip, 1 + clip) * weights).sum()


class Practice:
    """Practises on whole conversations, rollout by rollout."""

    def __init__(
        self,
        model: Any,
        player: Checkpoint,
        settings: Episodes,
        *,
        seed: int = 1,
        pool: Executor | None = None,
        log: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.model, self.player, self.settings, self.seed, self.pool = model, player, settings, seed, pool
        self.optimizer = RoundedAdamW(model.parameters(), lr=settings.learning_rate)
        self.log = log or (lambda line: None)
        self.steps = self.rollouts = 0

    def run(self, tasks: Sequence[Scenario], failures: Mapping[str, float], until: float | None = None) -> int:
        """Practise; how many rollouts were learned from. `until` is where `time.monotonic()` begins no other."""
        longest = 0.0
        for some in drawn(tasks, failures, self.settings, self.seed):
            if self.rollouts == self.settings.rollouts:
                break
            began = time.monotonic()
            if until is not None and began + longest > until:
                break
            self.once(some)
            longest = max(longest, time.monotonic() - began)
        return self.rollouts

    def once(self, tasks: Sequence[Scenario]) -> None:
        """One rollout, and the steps that are taken from it."""
        began = time.monotonic()
        self.player.generator.load(dict(self.model.named_parameters()))
        talks = roll_out(self.player, tasks, self.settings, self.seed * 1_000_003 + self.rollouts)
        played = time.monotonic()
        marks = marked(tasks, talks, self.pool)
        judged = time.monotonic()
        line = report(marks)
        gains = advantages(marks, turn=self.settings.turn)
        kept = [place for place, group in enumerate(marks) if is_telling(group)]
        groups = [
            [talk(self.player.dialect, *pair) for pair in zip(talks[place], gains[place], strict=True)]
            for place in kept
        ]
        random.Random(f"deal/{self.seed}/{self.rollouts}").shuffle(groups)
        pieces = [groups[start :: self.settings.steps] for start in range(self.settings.steps)]
        line |= self._learn([[each for group in piece for each in group] for piece in pieces if piece])
        self.rollouts += 1
        spans = {"play": played - began, "mark": judged - played, "learn": time.monotonic() - judged}
        line |= {
            "seconds": {name: round(span, 2) for name, span in spans.items()},
            "learned_from": len(kept) / len(marks),
        }
        self.log({"rollout": self.rollouts, "step": self.steps, **line})

    def _learn(self, pieces: Sequence[Sequence[Talk]]) -> dict[str, float]:
        device, size = self.model.device, self.settings.at_once
        batches = [
            [Batch(piece[start : start + size], device) for start in range(0, len(piece), size)] for piece in pieces
        ]
        with torch.no_grad():
            before = [[batch.chances(self.model) for batch in piece] for piece in batches]
        moved: list[float] = []
        norms: list[float] = []
        for piece, then in zip(batches, before, strict=True):
            words, count = sum(len(each) for each in then), sum(len(batch.ids) for batch in piece)
            drift = 0.0
            for batch, old in zip(piece, then, strict=True):
                now = batch.chances(self.model)
                (loss_of(now, old, batch.weights, self.settings.clip) / count).backward()
                gap = (now - old).detach()
                drift += float((gap.exp() - 1 - gap).sum())
            self.steps += 1
            for group in self.optimizer.param_groups:
                group["lr"] = self.settings.learning_rate * min(1.0, self.steps / max(1, self.settings.warmup))
            norms.append(float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.gradient_norm)))
            self.optimizer.step()
            self.optimizer.zero_grad()
            moved.append(drift / words)
        return {"kl": max(moved, default=0.0), "grad_norm": max(norms, default=0.0), "skipped": self.optimizer.skipped}


def report(marks: Sequence[Sequence[Marks]]) -> dict[str, float]:
    """What conversations of a rollout came to."""
    flat = [each for group in marks for each in group]
    turns = [mark for each in flat for mark in each.turns]
    writes = [mark.verdict for mark in turns if mark.verdict is not None]
    return {
        "conversations": len(flat),
        "passed": sum(each.success for each in flat) / len(flat),
        "clean": sum(each.is_clean for each in flat) / len(flat),
        "whole": sum(each.whole for each in flat) / len(flat),
        "turn": sum(mark.worth for mark in turns) / len(turns),
        "wrong_turns": sum(mark.is_wrong for mark in turns) / len(turns),
        "made_up": sum(bool(mark.made_up) for mark in turns) / len(turns),
        "writes": len(writes),
        "violations": writes.count("violation") / len(writes) if writes else 0.0,
        "near_misses": writes.count("near_miss") / len(writes) if writes else 0.0,
        "differing": sum(len({each.success for each in group}) > 1 for group in marks) / len(marks),
    }
