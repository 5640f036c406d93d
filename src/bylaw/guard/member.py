"""Whether any thing of a kind answers yes: its members are asked one by one, before anything open is decided."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bylaw.facts.entity import Entity, Fact, Key
from bylaw.facts.unknown import Unknown, expression_text, opaque_bool
from bylaw.guard.reading import Spec
from bylaw.guard.run import Run
from bylaw.guard.trial import NOT_SURE, Trial, Tried


def any_seen(
    run: Run,
    entity: Entity,
    match: Mapping[str, Any],
    specs: tuple[Spec, ...],
    body: Callable[[Key], Any],
    weight: int,
    text: str,
    free: tuple[Any, ...],
) -> Any:
    """`any(body for x in facts.X.seen(match))`: one member that surely answers yes is enough, and then only what
    was read of that member counts; in the world run a member all of which was seen comes first."""
    run.is_open = True
    run.spend(weight)
    field = next(iter(match), "exists")
    question = f"any({text}) over {expression_text(list(match.values()))} {expression_text(free)}"
    for value in match.values():
        if isinstance(value, Unknown):
            return opaque_bool(run, question, value.needs)
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
    run: Run, question: str, keys: Sequence[Key], specs: tuple[Spec, ...], body: Callable[[Key], Any], weight: int
) -> bool | None:
    """Yes where some member surely answers yes, no where all surely answer no; the reads that count are noted."""
    tried = run.tried.get(question)
    if tried is None or run.has_decided_existence or not run.path.keys().isdisjoint(tried.open):
        tried = Tried(keys)
        _find_sure(run, tried, specs, body, weight)
        if not run.has_decided_existence:
            run.tried[question] = tried
    best, is_no = tried.best, tried.is_no
    for trial in [best] if best else tried.trials if is_no else ():
        if run.is_noting:
            run.reads.extend(fact for fact in trial.reads if fact not in run.memo)
            run.is_noting = trial.is_noting
        run.memo.update(trial.memo)
        run.asked.update(trial.asked)
        run.doubtful.update(trial.doubtful)
    return True if best else False if is_no else None


def _find_sure(run: Run, tried: Tried, specs: tuple[Spec, ...], body: Callable[[Key], Any], weight: int) -> None:
    """Asks member after member until one surely answers yes."""
    run.open = tried.open
    for trial in tried.trials:
        run.spend(weight)
        _try_member(run, trial, specs, body)
        tried.is_no = tried.is_no and trial.answer is False
        if trial.answer:
            tried.best = tried.best or trial
            if run.seen is None or all(map(run.seen, trial.reads)):
                tried.best = trial
                break


def _try_member(run: Run, trial: Trial, specs: tuple[Spec, ...], body: Callable[[Key], Any]) -> None:
    """Asks one member without deciding anything; what it reads is kept apart."""
    before = (run.memo, run.reads, run.is_noting, run.looking, run.touched, run.asked, run.doubtful)
    run.memo, run.reads, run.looking = dict(run.memo), trial.reads, True
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
        run.memo, run.reads, run.is_noting, run.looking, run.touched, run.asked, run.doubtful = before
