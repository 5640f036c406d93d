"""Past conversations under an edited check: the calls with another verdict than under the saved check."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.redaction import Redaction
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
"""Time limit of a trial; the page says how many conversations it covered."""
KEPT = 8
"""Cached conversations and results, the latest ones."""
T = TypeVar("T")


Past = tuple[Trajectory, World | None]
"""A conversation that a policy applies to, and its world."""


class CheckVerdict(Struct, frozen=True):
    """The verdict of a check on one call or act."""

    tool: str
    verdict: str
    because: str


CheckVerdicts = dict[tuple[str, int], CheckVerdict]
"""Verdicts by conversation and step; a call that no rule objects to is absent."""


class Change(Struct, frozen=True):
    """A call with a different verdict."""

    conversation: str
    step: int
    tool: str
    before: str
    after: str
    because: str
    is_past: bool = False
    """Whether the reason is from the saved check, because the edited one has none."""


class Backtest(Struct, frozen=True):
    """The effect of a change on past conversations."""

    tried: int
    of: int
    judged: int
    changes: list[Change]

    @property
    def kinds(self) -> list[tuple[tuple[str, str], int]]:
        """Pairs of old and new verdict with their number, the most frequent first."""
        return Counter((each.before, each.after) for each in self.changes).most_common()


class Backtests:
    """Caches past conversations, with the verdicts of the saved check on them."""

    def __init__(self, read: Callable[[str, tuple[str, ...]], list[Past]], *, keeps: float = float("inf")) -> None:
        """`read` returns a tenant's past conversations that call given tools; they are cached for `keeps` seconds."""
        self._read = read
        self._keeps = keeps
        self._turn = threading.Lock()
        self._running = threading.Lock()
        self._kept: dict[tuple[str, ...], tuple[float, Any]] = {}

    def run(self, saved: Pack, edited: Pack, policy: str, whose: str = "") -> Backtest:
        """Compare an edited check with the saved one on a tenant's past conversations."""
        past, before = self._before(saved, policy, whose)
        # One at a time: a service needs the processor for its decisions.
        with self._running:
            tried, after = _verdicts_of(edited, policy, past, CONVERSATIONS, until=time.monotonic() + SECONDS)
        names = {each.id for each, _ in past[:tried]}
        changes = list(_changes({k: v for k, v in before.items() if k[0] in names}, after))
        return Backtest(tried, len(past), len(after), changes)

    def prepare(self, saved: Pack, policy: str, whose: str = "") -> None:
        """Start to read the past conversations; raises an error that occurs at once."""
        try:
            Prepared("", lambda: self._before(saved, policy, whose)).get()
        except Preparing:
            return

    def _before(self, saved: Pack, policy: str, whose: str) -> tuple[list[Past], CheckVerdicts]:
        """Past conversations, and the verdicts of the saved check."""
        tools = tuple(saved.policies[policy].tools)
        with self._turn:
            read_at, past = self._once(("past", whose, *tools), lambda: self._read(whose, tools))
            key = ("said", saved.digest, policy, whose, str(read_at))
            return past, self._once(key, lambda: _verdicts_of(saved, policy, past, len(past))[1])[1]

    def _once(self, key: tuple[str, ...], make: Callable[[], T]) -> tuple[float, T]:
        now = time.monotonic()
        if key not in self._kept or now - self._kept[key][0] > self._keeps:
            self._kept[key] = (now, make())
            while len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return self._kept[key]


def _changes(before: CheckVerdicts, after: CheckVerdicts) -> Iterator[Change]:
    for key in sorted(before.keys() | after.keys()):
        then, now = before.get(key), after.get(key)
        was, is_now = (each.verdict if each is not None else "compliant" for each in (then, now))
        if was != is_now:
            told = now if now is not None else then
            assert told is not None
            # A permit has no reason: use the reason of the saved check.
            because = now.because if now is not None else ""
            before_it = then.because if then is not None and not because else ""
            yield Change(key[0], key[1], told.tool, was, is_now, because or before_it, is_past=bool(before_it))


def _verdicts_of(
    pack: Pack, policy: str, past: list[Past], most: int, *, until: float = float("inf")
) -> tuple[int, CheckVerdicts]:
    """The number of conversations tried in time, and the verdicts of one policy's check on them."""
    own = _with_only(pack, policy)
    redaction = Redaction(pack)
    words: CheckVerdicts = {}
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


def _of_calls(verdicts: list[CallVerdict], criterion: Criterion) -> Iterator[tuple[int, CheckVerdict]]:
    for verdict in verdicts:
        tool = verdict.made.call.tool
        for each in verdict.policies:
            yield verdict.made.step, CheckVerdict(tool, getattr(each, criterion), each.because)
        for rule in verdict.open_rules:
            yield verdict.made.step, CheckVerdict(tool, "inconclusive", rule.because)


def _of_rules(session: Session, trajectory: Trajectory) -> Iterator[tuple[int, CheckVerdict]]:
    for broken in session.findings(ended=True):
        made = trajectory.events[broken.step] if broken.step < len(trajectory.events) else None
        yield broken.step, CheckVerdict(made.tool if isinstance(made, Call) else "a message", "broken", broken.because)


def _with_only(pack: Pack, policy: str) -> Pack:
    """The pack with the check of one policy only; checks are independent of each other."""
    bound = {tool: tuple(pair for pair in pairs if pair[0].id == policy) for tool, pairs in pack.by_tool.items()}
    rules = tuple(rule for rule in pack.book.rules if rule.policy == policy)
    book = replace(pack.book, rules=rules)
    return replace(pack, by_tool={tool: pairs for tool, pairs in bound.items() if pairs}, book=book)
