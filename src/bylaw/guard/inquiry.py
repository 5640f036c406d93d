"""One call put to several guards: each fact is asked for once, and a path on which all is known is simply run.

Most guards meet only known facts. Then nothing forks, and the answer is that of one run with plain values. Where a
fact is unknown, or anything goes wrong, the guard is evaluated in full, which alone decides what that means.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from bylaw.facts.entity import NOT_KNOWN, Entity, Fact, FactSource, Key, NoValue
from bylaw.guard.answers import UNASKED, Answers
from bylaw.guard.assumption import NOTHING, Assumptions
from bylaw.guard.evaluate import Completion, evaluate
from bylaw.guard.frame import ODD_KEYS, Frame, new_fact
from bylaw.guard.language import TICKS
from bylaw.guard.operation import admit
from bylaw.guard.parse import Guard
from bylaw.guard.reading import Spec
from bylaw.guard.trial import NOT_SURE

_NO_KEYS = ODD_KEYS | {type(None), list, dict, tuple}

FEW = TICKS // 10
"""Steps of a guard that is simply run; one that needs more is evaluated in full, which then costs little more."""


class Inquiry:
    """A call, and a source of facts about it."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        source: FactSource,
        *,
        tool: str = "",
        now: datetime | None = None,
        seen: Callable[[Fact], bool] | None = None,
    ) -> None:
        self.answers = Answers(source)
        """What the guards have asked so far."""
        self._run = KnownRun(arguments, self.answers, tool, now, seen)

    def ask(self, guard: Guard, assume: Assumptions = NOTHING) -> tuple[Completion, ...]:
        """What `evaluate` says of the guard."""
        run = self._run
        run.ticks = FEW
        run.is_hushed = run.has_listed = False
        reads: dict[Fact, None] = {}
        run.reads = reads
        try:
            outcome, because = guard.function(run)
        except Exception:
            return evaluate(
                guard,
                run.arguments,
                self.answers.source,
                tool=run.tool,
                now=run.time,
                assume=assume,
                seen=run.seen,
                answers=self.answers,
            )
        return (Completion(assume, outcome, because, tuple(reads), (), (), 1, not (run.is_hushed or run.has_listed)),)


class _Open(Exception):
    """Something is not known, or out of the ordinary."""


class KnownRun(Frame):
    """What the compiled code of a guard talks to, as `_`, as long as it meets nothing but known facts."""

    __slots__ = ("given", "has_listed", "is_hushed", "reads")

    def __init__(
        self,
        arguments: Mapping[str, Any],
        answers: Answers,
        tool: str,
        now: datetime | None,
        seen: Callable[[Fact], bool] | None,
    ) -> None:
        super().__init__(arguments, answers, tool, now, seen)
        self.given = answers.given
        self.reads: dict[Fact, None] = {}
        """System facts read by the guard that runs, in order."""
        self.is_hushed = False
        """The guard has decided, and reads only for what it has to tell."""
        self.has_listed = False
        """It has asked for more than single facts: the things of a kind, or what was done."""

    def read(self, spec: Spec, key: Any) -> Any:
        fact = new_fact(Fact, (spec.entity_name, key, spec.field_name))
        value = self.given.get(fact, UNASKED)
        if value is UNASKED:
            value = self.answers.read(fact, spec.entity, key, spec.field)
        if value.__class__ in NOT_KNOWN:
            raise _Open
        if spec.is_system:
            self.reads[fact] = None
        return admit(value)

    def key_of(self, _entity: str, parts: tuple[Any, ...]) -> Any:
        for part in parts:
            if part.__class__ in _NO_KEYS:
                raise _Open
        return parts

    def key_part(self, key: Any, index: int, _is_composite: bool) -> Any:
        return key[index]

    def do_now(self) -> Any:
        if self.time is None:
            raise _Open
        return admit(self.time)

    def do_done(self, tool: str, match: Mapping[str, Any]) -> Any:
        self.spend(1)
        self.has_listed = True
        count = self.answers.done(tool, match)
        if isinstance(count, NoValue):
            raise _Open
        return count

    def any_seen(
        self,
        entity: Entity,
        match: Mapping[str, Any],
        specs: tuple[Spec, ...],
        body: Callable[[Key], Any],
        weight: int,
        *_: Any,
    ) -> bool:
        """One member that surely answers yes is enough; no is sure only where all members are known and say so."""
        self.spend(weight)
        self.has_listed = True
        keys, is_complete = self.answers.members(entity, match)
        before = self.reads
        yes: dict[Fact, None] | None = None
        noes: list[dict[Fact, None]] = []
        for key in keys:
            self.spend(weight)
            reads: dict[Fact, None] = {}
            answer = self._try(tuple(key), reads, specs, body)
            if answer is False:
                noes.append(reads)
            elif answer:
                if self.seen is None or all(self.seen(fact) for fact in reads if fact not in before):
                    yes = reads
                    break
                yes = reads if yes is None else yes
        self.reads = before
        if yes is None and (len(noes) < len(keys) or not is_complete):
            raise _Open
        for reads in noes if yes is None else [yes]:
            before.update(reads)
        return yes is not None

    def _try(
        self, key: Key, reads: dict[Fact, None], specs: tuple[Spec, ...], body: Callable[[Key], Any]
    ) -> bool | None:
        self.reads = reads
        try:
            for spec in specs:
                self.read(spec, key)
            return bool(body(key))
        except (_Open, *NOT_SURE):
            return None

    def hush(self, fallback: str) -> str:
        self.is_hushed = True
        self.reads = {}
        return fallback
