"""Past conversations under a check that is being edited: which calls it would judge otherwise than the saved one."""

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.audited import Audited, read_audited
from bylaw.audit.redaction import Redaction
from bylaw.audit.shelf import Shelf
from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.errors import BylawError, UsageError
from bylaw.facts.world import World
from bylaw.pack import Criterion, Pack
from bylaw.trace import Identities, Trajectory, read
from bylaw.trace.event import Call
from bylaw.trace.log_file import log_file

CONVERSATIONS = 300
"""Past conversations that a check is tried on."""
SECONDS = 2.0
"""A check that takes longer on all of them is tried on the first ones only, and the page says so."""
LOOKED_AT = 200_000
"""Conversations of the logs that are looked through for such as it applies to."""
KEPT = 4


class Past(Struct, frozen=True):
    """Conversations out of the logs in which a policy had a say."""

    conversations: list[tuple[Trajectory, World | None]]


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

    def __init__(self, out: Path) -> None:
        self._out = out
        self._turn = threading.Lock()
        self._past: OrderedDict[tuple[str, ...], Past] = OrderedDict()
        self._said: OrderedDict[tuple[str, str], Words] = OrderedDict()

    def past(self, pack: Pack, policy: str) -> Past:
        """Conversations that a policy had a say in; `UsageError` where the logs are not at hand."""
        tools = tuple(pack.policies[policy].tools)
        with self._turn:
            if tools not in self._past:
                self._past[tools] = _read_past(self._out, tools)
                _bound(self._past)
            return self._past[tools]

    def run(self, saved: Pack, edited: Pack, policy: str) -> Backtest:
        """Try an edited check, against the saved one."""
        past = self.past(saved, policy)
        with self._turn:
            key = (saved.digest, policy)
            if key not in self._said:
                self._said[key] = _said(saved, policy, past, len(past.conversations))[1]
                _bound(self._said)
            before = self._said[key]
        tried, after = _said(edited, policy, past, CONVERSATIONS, until=time.monotonic() + SECONDS)
        names = {each.id for each, _ in past.conversations[:tried]}
        changes = list(_changes({k: v for k, v in before.items() if k[0] in names}, after))
        return Backtest(tried, len(past.conversations), len(after), changes)


def _bound(kept: OrderedDict[tuple[str, ...], Past] | OrderedDict[tuple[str, str], Words]) -> None:
    while len(kept) > KEPT:
        kept.popitem(last=False)


def _changes(before: Words, after: Words) -> Iterator[Change]:
    for key in sorted(before.keys() | after.keys()):
        then, now = before.get(key), after.get(key)
        was, is_now = (each.verdict if each is not None else "compliant" for each in (then, now))
        if was != is_now:
            told = now if now is not None else then
            assert told is not None
            because = told.because if now is not None else ""
            yield Change(key[0], key[1], told.tool, was, is_now, because)


def _said(pack: Pack, policy: str, past: Past, most: int, *, until: float = float("inf")) -> tuple[int, Words]:
    """What the check of one policy says of past conversations, and of how many there was time for."""
    own = _alone(pack, policy)
    redaction = Redaction(pack)
    words: Words = {}
    tried = 0
    for trajectory, world in past.conversations[:most]:
        if time.monotonic() > until:
            break
        tried += 1
        session = Session(own, world=redaction.watch(world), mode="hindsight", context=trajectory.context)
        seen = 0
        for step, call in enumerate(trajectory.events):
            if type(call) is Call and call.by == "agent" and (call.tool in own.by_tool or own.book.rules):
                session.observe_all(trajectory.events[seen:step])
                session.judge(call)
                seen = step
        session.observe_all(trajectory.events[seen:])
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


def _read_past(out: Path, tools: tuple[str, ...]) -> Past:
    audited = read_audited(out)
    if audited is None:
        raise UsageError("this audit does not tell which logs it read, so nothing can be tried on them")
    try:
        world = Path(audited.world) if audited.world else None
        shelf = Shelf(audited.pack, world=world, document=Path(audited.document) if audited.document else None)
        return _gathered(audited, shelf, tools)
    except (BylawError, OSError) as error:
        raise UsageError(f"the logs of this audit cannot be read again: {error}") from None


def _gathered(audited: Audited, shelf: Shelf, tools: tuple[str, ...]) -> Past:
    identities, found, looked_at = Identities(), list[tuple[Trajectory, World | None]](), 0
    for name in audited.logs:
        for each in read(name, agent=audited.agent):
            looked_at += 1
            if isinstance(each, Trajectory):
                own = identities.own(each)
                calls = (event.tool for event in own.events if type(event) is Call)
                if any(not tools or tool in tools for tool in calls):
                    found.append((own, shelf.world_for(shelf.pack_for(own), log_file(name))[1]))
            if len(found) >= CONVERSATIONS or looked_at >= LOOKED_AT:
                return Past(found)
    return Past(found)
