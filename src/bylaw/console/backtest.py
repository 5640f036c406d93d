"""Past conversations under a check that is being edited: which calls it would judge otherwise than the saved one."""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.cover import Redaction
from bylaw.console.app import Prepared, Preparing
from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.facts.world import World
from bylaw.pack import Criterion, Pack
from bylaw.trace import Trajectory
from bylaw.trace.event import Call

CONVERSATIONS = 300
"""Past conversations that a check is tried on."""
SECONDS = 2.0
"""A check that takes longer on all of them is tried on the first ones only, and the page says so."""
KEPT = 4


Past = tuple[Trajectory, World | None]
"""A conversation in which a policy had a say, and the world that it met."""


class Word(Struct, frozen=True):
    """What a check says of one call, or of one act."""

    tool: str
    verdict: str
    because: str


Words = dict[tuple[str, int], Word]
"""By conversation and step; of a call that a rule says nothing against there is no word."""


class Change(Struct, frozen=True):
    """A call that would be judged otherwise."""

    conversation: str
    step: int
    tool: str
    before: str
    after: str
    because: str
    is_past: bool = False
    """Whether the reason is that of the saved check, since the edited one has none."""


class Backtest(Struct, frozen=True):
    """What a change would do to past conversations."""

    tried: int
    of: int
    judged: int
    changes: list[Change]

    @property
    def kinds(self) -> list[tuple[tuple[str, str], int]]:
        """From which verdict to which, and how often, the most frequent first."""
        return Counter((each.before, each.after) for each in self.changes).most_common()


class Backtests:
    """Keeps past conversations ready, and what the saved check says of them."""

    def __init__(self, read: Callable[[str, tuple[str, ...]], list[Past]], *, keeps: float = float("inf")) -> None:
        """`read` finds the past conversations of somebody in which any of some tools was called; kept for so long."""
        self._read = read
        self._keeps = keeps
        self._turn = threading.Lock()
        self._running = threading.Lock()
        self._past: OrderedDict[tuple[str, ...], tuple[float, list[Past]]] = OrderedDict()
        self._said: OrderedDict[tuple[object, ...], Words] = OrderedDict()

    def run(self, saved: Pack, edited: Pack, policy: str, whose: str = "") -> Backtest:
        """Try an edited check on the past conversations of somebody, against the saved one."""
        past, before = self._before(saved, policy, whose)
        # One at a time: a second one would only make both slower, and a service has calls to decide.
        with self._running:
            tried, after = _said(edited, policy, past, CONVERSATIONS, until=time.monotonic() + SECONDS)
        names = {each.id for each, _ in past[:tried]}
        changes = list(_changes({k: v for k, v in before.items() if k[0] in names}, after))
        return Backtest(tried, len(past), len(after), changes)

    def prepare(self, saved: Pack, policy: str, whose: str = "") -> None:
        """Begin to read what a check will be tried on; an error of it that comes at once is raised."""
        try:
            Prepared("", lambda: self._before(saved, policy, whose)).get()
        except Preparing:
            return

    def _before(self, saved: Pack, policy: str, whose: str) -> tuple[list[Past], Words]:
        """Past conversations, and what the saved check says of them."""
        read_at, past = self._at_hand(saved, policy, whose)
        with self._turn:
            key = (saved.digest, policy, whose, read_at)
            if key not in self._said:
                self._said[key] = _said(saved, policy, past, len(past))[1]
                _bound(self._said)
            return past, self._said[key]

    def _at_hand(self, pack: Pack, policy: str, whose: str) -> tuple[float, list[Past]]:
        """Conversations that a policy had a say in, and when they were read."""
        tools = tuple(pack.policies[policy].tools)
        with self._turn:
            key, now = (whose, *tools), time.monotonic()
            if key not in self._past or now - self._past[key][0] > self._keeps:
                self._past[key] = (now, self._read(whose, tools))
                _bound(self._past)
            return self._past[key]


def _bound(kept: OrderedDict[Any, Any]) -> None:
    while len(kept) > KEPT:
        kept.popitem(last=False)


def _changes(before: Words, after: Words) -> Iterator[Change]:
    for key in sorted(before.keys() | after.keys()):
        then, now = before.get(key), after.get(key)
        was, is_now = (each.verdict if each is not None else "compliant" for each in (then, now))
        if was != is_now:
            told = now if now is not None else then
            assert told is not None
            # What the edited check permits has no reason of its own: then it is what the saved one said.
            because = now.because if now is not None else ""
            before_it = then.because if then is not None and not because else ""
            yield Change(key[0], key[1], told.tool, was, is_now, because or before_it, is_past=bool(before_it))


def _said(pack: Pack, policy: str, past: list[Past], most: int, *, until: float = float("inf")) -> tuple[int, Words]:
    """What the check of one policy says of past conversations, and of how many there was time for."""
    own = _alone(pack, policy)
    redaction = Redaction(pack)
    words: Words = {}
    tried = 0
    for trajectory, world in past[:most]:
        if time.monotonic() > until:
            break
        tried += 1
        session = Session(own, world=redaction.watch(world), mode="hindsight", context=trajectory.context)
        calls = ((step, call) for step, call in enumerate(trajectory.events) if type(call) is Call)
        bound = (step for step, call in calls if call.tool in own.by_tool or own.book.rules)
        for _ in session.follow(trajectory.events, bound):
            pass
        verdicts = session.settle()
        said = dict(_of_calls(verdicts, pack.criterion)) | dict(_of_rules(session, trajectory))
        if redaction and any(word.because for word in said.values()):
            cover = redaction.cover(trajectory.events, session.judged_world, verdicts)
            said = {step: replace(word, because=cover.scrubbed(word.because)) for step, word in said.items()}
        words.update({(trajectory.id, step): word for step, word in said.items()})
    return tried, words


def _of_calls(verdicts: list[CallVerdict], criterion: Criterion) -> Iterator[tuple[int, Word]]:
    for verdict in verdicts:
        tool = verdict.made.call.tool
        for each in verdict.policies:
            yield verdict.made.step, Word(tool, getattr(each, criterion), each.because)
        for rule in verdict.open_rules:
            yield verdict.made.step, Word(tool, "inconclusive", rule.because)


def _of_rules(session: Session, trajectory: Trajectory) -> Iterator[tuple[int, Word]]:
    for broken in session.findings(ended=True):
        made = trajectory.events[broken.step] if broken.step < len(trajectory.events) else None
        yield broken.step, Word(made.tool if isinstance(made, Call) else "a message", "broken", broken.because)


def _alone(pack: Pack, policy: str) -> Pack:
    """The pack with the check of one policy only: what the others say does not hang on it."""
    bound = {tool: tuple(pair for pair in pairs if pair[0].id == policy) for tool, pairs in pack.by_tool.items()}
    rules = tuple(rule for rule in pack.book.rules if rule.policy == policy)
    book = replace(pack.book, rules=rules)
    return replace(pack, by_tool={tool: pairs for tool, pairs in bound.items() if pairs}, book=book)
