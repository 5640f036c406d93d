"""The ledger against its slow twin, on random histories."""

from typing import Any

from hypothesis import given

from bylaw.facts.entity import EXISTS, Field
from bylaw.facts.seen import SeenFacts, TrueFacts
from bylaw.trace.event import Call, Event
from tests.facts import twin
from tests.facts.boxes import CHANGED, histories, ledger_of, schema

BOX = schema().entities["Box"]
FIELDS: tuple[Field, ...] = (BOX.fields["a"], BOX.fields["b"], EXISTS)


def calls(events: list[Event]) -> list[int]:
    """Steps of the last few calls: before the first there is little to see."""
    return [step for step, event in enumerate(events) if isinstance(event, Call)][-4:]


def asked(source: Any) -> dict[tuple[str, str], Any]:
    return {(box, field.name): source.read(BOX, (box,), field) for box in ("1", "2", "3") for field in FIELDS}


@given(histories())
def test_the_ledger_says_what_its_twin_says(events: list[Event]) -> None:
    """Making a history takes longer than any of these: each is asked all of them."""
    sees_what_was_seen(events)
    hindsight_tells_all(events)
    later_events_change_nothing_seen(events)
    asking_on_the_way_changes_no_later_answer(events)
    knows_what_was_done(events)
    finds_the_boxes_that_match(events)


def sees_what_was_seen(events: list[Event]) -> None:
    ledger = ledger_of(events)
    for step in calls(events):
        wanted = {
            (box, field.name): twin.seen(events, box, field.name, step) for box in ("1", "2", "3") for field in FIELDS
        }
        assert asked(SeenFacts(ledger, ledger.calls[step], {})) == wanted, f"at step {step}"


def hindsight_tells_all(events: list[Event]) -> None:
    ledger = ledger_of(events)
    for step in calls(events):
        wanted = {
            (box, field.name): twin.hindsight(events, box, field.name, step)
            for box in ("1", "2", "3")
            for field in FIELDS
        }
        assert asked(TrueFacts(ledger, ledger.calls[step], {})) == wanted, f"at step {step}"


def later_events_change_nothing_seen(events: list[Event]) -> None:
    whole = ledger_of(events)
    for step in calls(events):
        prefix = ledger_of(events[: step + 1])
        assert asked(SeenFacts(whole, whole.calls[step], {})) == asked(SeenFacts(prefix, prefix.calls[step], {}))


def asking_on_the_way_changes_no_later_answer(events: list[Event]) -> None:
    whole, asking = ledger_of(events), ledger_of([])
    for step, event in enumerate(events):
        asking.observe(step, event)
        if isinstance(event, Call):
            asked(SeenFacts(asking, asking.calls[step], {}))
    for step in calls(events):
        assert asked(SeenFacts(whole, whole.calls[step], {})) == asked(SeenFacts(asking, asking.calls[step], {}))
        assert asked(TrueFacts(whole, whole.calls[step], {})) == asked(TrueFacts(asking, asking.calls[step], {}))


def knows_what_was_done(events: list[Event]) -> None:
    ledger = ledger_of(events)
    matches: list[dict[str, Any]] = [{}, {"box_id": "1"}, {"to": 2}, {"box_id": "2", "to": 1}]
    for step in calls(events):
        made = ledger.calls[step]
        for tool in CHANGED:
            for match in matches:
                then, later = twin.done(events, tool, match, step, step), twin.done(events, tool, match, step, None)
                assert SeenFacts(ledger, made, {}).done(tool, match) == then
                assert TrueFacts(ledger, made, {}).done(tool, match) == later


def finds_the_boxes_that_match(events: list[Event]) -> None:
    ledger = ledger_of(events)
    for step in calls(events):
        found, whole = SeenFacts(ledger, ledger.calls[step], {}).members(BOX, {"a": 1})
        assert not whole
        wanted = {box for box in ("1", "2") if twin.seen(events, box, "a", step) == 1}
        assert {key[0] for key in found} & {"1", "2"} == wanted
