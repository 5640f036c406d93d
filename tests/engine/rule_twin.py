"""What rules say of a conversation, slowly and from the whole of it: `engine.conduct` is tested against this."""

from collections.abc import Sequence

from bylaw.facts.call_record import record_of
from bylaw.facts.ledger import Ledger
from bylaw.pack import Pack
from bylaw.rule.monitor import Act, Monitor, says_something
from bylaw.trace import Call, Event, Message, Result

Found = tuple[int, str, bool | None]
"""Step, rule, and whether it is broken there; None where that hangs on what is not known."""


def is_agents(event: Event) -> bool:
    return not isinstance(event, Result) and event.by == "agent"


def is_done(event: Event) -> bool:
    return is_agents(event) and not (isinstance(event, Call) and event.refused)


def turn_of(events: Sequence[Event], step: int) -> range:
    """The steps of the turn that the act at `step` belongs to."""

    def is_same(other: int) -> bool:
        event, act = events[other], events[step]
        return is_agents(event) and event.turn == act.turn  # type: ignore[union-attr]

    first = last = step
    while first > 0 and is_same(first - 1):
        first -= 1
    while last + 1 < len(events) and is_same(last + 1):
        last += 1
    return range(first, last + 1)


def act_at(pack: Pack, events: Sequence[Event], step: int) -> Act:
    """The act at a step: its turn up to it, and what was heard since the last turn that did something."""
    turn = turn_of(events, step)
    event = events[step]
    so_far = [events[each] for each in turn if each <= step]
    before = turn.start
    while before > 0 and not is_done(events[before - 1]):
        before -= 1
    heard = [each for each in events[before : turn.start] if not is_agents(each)]
    calls = [each for each in so_far if isinstance(each, Call) and not each.refused]
    effects = [tool.effect if (tool := pack.schema.tools.get(call.tool)) else "unknown" for call in calls]
    return Act(
        step=step,
        tool=event.tool if isinstance(event, Call) else None,
        arguments=event.arguments if isinstance(event, Call) else {},
        text=event.text if isinstance(event, Message) else "",
        sayings=tuple(each for each in heard if isinstance(each, Message)),
        results=tuple(each for each in heard if isinstance(each, Result)),
        calls_in_turn=len(calls),
        writes_in_turn=effects.count("write"),
        text_in_turn=any(isinstance(each, Message) and says_something(each) for each in so_far),
        effect=effects[-1] if isinstance(event, Call) else "",
        captured=not isinstance(event, Message) or event.captured,
        without_call=not any(isinstance(events[each], Call) for each in turn),
    )


def values_at(pack: Pack, events: Sequence[Event], act: Act) -> dict[str, bool | None]:
    """The predicates at an act; a witness is shown the whole conversation before it."""
    values: dict[str, bool | None] = {}
    for name, predicate in pack.book.predicates.items():
        if predicate.find is not None:
            values[name] = predicate.find(act)
        elif predicate.witness is not None:
            call, before = events[act.step], events[: act.step]
            ledger = Ledger(pack.schema)
            ledger.observe_all(0, before)
            witness = predicate.witness(ledger)
            for step, event in enumerate(before):
                witness.observe(step, event)
            made = call if isinstance(call, Call) else Call("", {})
            start = turn_of(events, act.step).start
            values[name] = witness.ask(act, record_of(made, act.step, start, pack.schema.tools.get(made.tool)))
    return values


def followed(pack: Pack, events: Sequence[Event]) -> list[Found]:
    """Every rule that an act or the end breaks or may break, in the order of the acts and of the pack."""
    steps = [step for step, event in enumerate(events) if is_done(event)]
    values = {step: values_at(pack, events, act_at(pack, events, step)) for step in steps}
    found: list[tuple[int, int, Found]] = []
    for place, rule in enumerate(pack.book.rules):
        monitor = Monitor(rule)
        for step in steps:
            broke = monitor.step(values[step]).broke
            if broke is not False:
                found.append((step, place, (step, rule.name, broke)))
        if (broke := monitor.finish().broke) is not False:
            found.append((1 << 30, place, (steps[-1] if steps else 0, rule.name, broke)))
    return [each for _, _, each in sorted(found, key=lambda each: each[:2])]
