"""`any(...)` over the members of an entity: asks each member before deciding anything unknown."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bylaw.facts.entity import Entity, Fact, Key
from bylaw.facts.unknown import Stuck, Unknown, expression_text, kind_of, opaque_bool
from bylaw.facts.variable import ValueKind, unlike
from bylaw.guard.operation import Absent, Failure, fail
from bylaw.guard.run import GuardRun, Unsure
from bylaw.guard.scope import Spec

_KINDS: Mapping[str, ValueKind] = {
    **dict.fromkeys(("string", "enum"), "text"),
    **dict.fromkeys(("integer", "number", "money"), "number"),
    **dict.fromkeys(("date", "datetime"), "time"),
}


class Trial:
    """The trial of one member: its answer (None if unsure) and what the answer used."""

    __slots__ = ("answer", "asked", "doubtful", "is_noting", "key", "memo", "open", "reads")

    def __init__(self, key: Key) -> None:
        self.key = key
        self.answer: bool | None = None
        self.memo: dict[Fact, Any] = {}
        """Facts first read for this member."""
        self.reads: list[Fact] = []
        self.asked: dict[Fact, None] = {}
        self.doubtful: dict[Fact, tuple[str, Any]] = {}
        self.is_noting = True
        self.open: set[str] = set()
        """Variables the answer depends on."""


NOT_SURE = (Unsure, Stuck, Absent, Failure, ArithmeticError, TypeError, ValueError, LookupError)
"""Exceptions that leave a member without a yes or no."""


def any_seen(
    run: GuardRun,
    entity: Entity,
    match: Mapping[str, Any],
    specs: tuple[Spec, ...],
    body: Callable[[Key], Any],
    weight: int,
    text: str,
    free: tuple[Any, ...],
) -> Any:
    """Evaluate `any(body for x in facts.X.seen(match))`.

    One certain yes is enough; then only the facts read of that member count. In a run over the world, fully seen
    members come first.
    """
    run.is_open = True
    run.spend(weight)
    field = next(iter(match), "exists")
    question = f"any({text}) over {expression_text(list(match.values()))} {expression_text(free)}"
    for value in match.values():
        if isinstance(value, Unknown):
            return opaque_bool(run, question, value.needs)
    for name, value in match.items():
        if name not in entity.key and (why := unlike(_KINDS.get(entity.fields[name].type, "any"), kind_of(value))):
            fail(why)
    keys, is_complete = run.once("members", entity.name, match, lambda: run.source.members(entity, match))
    answer = _try_members(run, question, keys, specs, body, weight)
    if answer is None:
        for key in keys:
            run.spend(weight)
            for spec in specs:
                run.read(spec, tuple(key))
            if body(tuple(key)):
                return True
    if answer or is_complete:
        return bool(answer)
    missing = Fact(entity.name, None, field)
    if run.is_noting:
        run.reads.append(missing)
        run.is_noting = False
    return opaque_bool(run, question, {missing: "system"})


def _try_members(
    run: GuardRun, question: str, keys: Sequence[Key], specs: tuple[Spec, ...], body: Callable[[Key], Any], weight: int
) -> bool | None:
    """True if some member certainly answers yes, False if all certainly answer no; records the reads that count."""
    trials, best = _find_sure(run, question, keys, specs, body, weight)
    is_no = all(trial.answer is False for trial in trials)
    for trial in [best] if best else trials if is_no else ():
        if run.is_noting:
            run.reads.extend(fact for fact in trial.reads if fact not in run.memo)
            run.is_noting = trial.is_noting
        run.memo.update(trial.memo)
        run.asked.update(trial.asked)
        run.doubtful.update(trial.doubtful)
    return True if best else False if is_no else None


def _find_sure(
    run: GuardRun, question: str, keys: Sequence[Key], specs: tuple[Spec, ...], body: Callable[[Key], Any], weight: int
) -> tuple[list[Trial], Trial | None]:
    """Ask members in turn until one certainly answers yes; returns it and every member asked.

    A member's answer is the same on every path that has decided none of the variables it depends on.
    """
    kept: dict[Key, Trial] = run.tried.setdefault(question, {}) if not run.has_decided_existence else {}
    trials: list[Trial] = []
    best: Trial | None = None
    for key in keys:
        key = tuple(key)
        trial = kept.get(key)
        if trial is None or not run.path.keys().isdisjoint(trial.open):
            run.spend(weight)
            trial = Trial(key)
            _try_member(run, trial, specs, body)
            if run.path.keys().isdisjoint(trial.open):
                kept[key] = trial
        run.open.update(trial.open)
        trials.append(trial)
        if trial.answer:
            best = best or trial
            if run.seen is None or all(map(run.seen, trial.reads)):
                return trials, trial
    return trials, best


def _try_member(run: GuardRun, trial: Trial, specs: tuple[Spec, ...], body: Callable[[Key], Any]) -> None:
    """Ask one member without deciding anything, keeping its reads separate."""
    before = (run.memo, run.reads, run.is_noting, run.looking, run.touched, run.asked, run.doubtful, run.open)
    run.memo, run.reads, run.looking, run.open = dict(run.memo), trial.reads, True, trial.open
    run.is_noting = run.hushed is None
    run.touched, run.asked, run.doubtful = set(run.touched), trial.asked, trial.doubtful
    try:
        for spec in specs:
            run.read(spec, trial.key)
        trial.answer = bool(body(trial.key))
    except NOT_SURE:
        trial.answer = None
    finally:
        trial.memo = {fact: value for fact, value in run.memo.items() if fact not in before[0]}
        trial.is_noting = run.is_noting or run.hushed is not None
        run.memo, run.reads, run.is_noting, run.looking, run.touched, run.asked, run.doubtful, run.open = before
