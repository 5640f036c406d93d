"""Calls that were under way at once: what a look-up beside a write shows, and what is shown in two ways."""

from typing import Any

from bylaw.facts.entity import ABSENT, EXISTS, UNSEEN, OneOf
from bylaw.facts.seen import TrueFacts
from bylaw.trace.event import Call, Event, Message, Result
from tests.facts.boxes import BOX, LOOK, SEEN, A, B, judged, ledger_of, sees

WRITE = Call("set_a", {"box_id": "1"}, turn=2)
AGAIN = Call("look", {"box_id": "1"}, turn=2)
ANEW = '{"a": 8, "b": 9}'


def test_a_look_beside_a_write_of_its_turn_does_not_show_what_the_write_left() -> None:
    for beside in ([WRITE, AGAIN], [AGAIN, WRITE]):
        asked, written = 2 + beside.index(AGAIN), 2 + beside.index(WRITE)
        for answers in ([Result(written, "ok"), Result(asked, ANEW)], [Result(asked, ANEW), Result(written, "ok")]):
            events: list[Event] = [LOOK, SEEN, *beside, *answers]
            seen, hindsight = judged(events)
            assert (seen.read(BOX, ("1",), A), seen.read(BOX, ("1",), B)) == (UNSEEN, 9)
            assert (hindsight.read(BOX, ("1",), A), hindsight.read(BOX, ("1",), B)) == (UNSEEN, 9)
    refused: list[Event] = [LOOK, SEEN, WRITE, AGAIN, Result(3, ANEW), Result(2, "Error: no")]
    assert sees(refused) == (8, 9)
    unanswered: list[Event] = [LOOK, SEEN, WRITE, AGAIN, Result(3, ANEW)]
    assert sees(unanswered) == (UNSEEN, 9)


def test_a_look_asked_before_the_answer_of_an_earlier_write_came_tells_only_where_that_never_comes() -> None:
    later = Call("look", {"box_id": "1"}, turn=4)
    events: list[Event] = [LOOK, SEEN, WRITE, Message("user", "done?", 3), later, Result(4, ANEW)]
    assert sees(events) == (8, 9)
    assert sees([*events, Result(2, "ok")]) == (UNSEEN, 9)
    assert sees([*events, Result(2, "", captured=False)]) == (UNSEEN, 9)
    assert sees([*events, Result(2, "Error: no")]) == (8, 9)
    again = Call("look", {"box_id": "1"}, turn=6)
    assert sees([*events, Result(2, "ok"), again, Result(7, '{"a": 4, "b": 4}')]) == (4, 4)


def test_a_look_beside_a_tool_that_nobody_declared_does_not_show_what_it_left() -> None:
    stranger = Call("unheard_of", {"box": "1"}, turn=2)
    assert sees([stranger, AGAIN, Result(1, ANEW), Result(0, "done")]) == (UNSEEN, UNSEEN)
    assert sees([stranger, Result(0, "done"), AGAIN, Result(2, ANEW)]) == (8, 9)


def test_two_writes_of_one_turn_do_not_show_what_the_other_left() -> None:
    other = Call("set_both", {"box_id": "1"}, turn=2)
    events: list[Event] = [LOOK, SEEN, other, WRITE, Result(2, "ok"), Result(3, '{"a": 7, "b": 7}')]
    assert sees(events) == (UNSEEN, UNSEEN)


def test_hindsight_does_not_trust_a_later_look_beside_an_earlier_write() -> None:
    judgeable, later = Call("wipe", {}, turn=3), Call("look", {"box_id": "1"}, turn=4)
    events: list[Event] = [WRITE, judgeable, Result(1, "ok"), later, Result(3, ANEW), Result(0, "ok")]
    ledger = ledger_of(events)
    assert TrueFacts(ledger, ledger.calls[1], {}).read(BOX, ("1",), A) is UNSEEN
    ledger = ledger_of(events[:-1])
    assert TrueFacts(ledger, ledger.calls[1], {}).read(BOX, ("1",), A) == 8


def both(events: list[Event]) -> list[Any]:
    """Field `a` as it was seen, and as hindsight has it."""
    return [source.read(BOX, ("1",), A) for source in judged(events)]


def test_what_was_found_by_a_later_look_outweighs_an_earlier_one_that_found_nothing() -> None:
    second = Call("look", {"box_id": "1"}, turn=2)
    assert both([LOOK, Result(0, "Error: no box"), second, Result(2, '{"a": 5}')]) == [5, 5]


def test_what_was_shown_and_then_was_not_there_is_not_known_unless_a_write_took_it_away() -> None:
    second = Call("look", {"box_id": "1"}, turn=3)
    assert both([LOOK, SEEN, second, Result(2, "Error: no box")]) == [UNSEEN, UNSEEN]
    smash = Call("smash", {"box_id": "1"}, turn=2)
    assert both([LOOK, SEEN, smash, Result(2, "ok"), second, Result(4, "Error: no box")]) == [ABSENT, ABSENT]


def test_what_was_shown_and_was_not_there_in_one_turn_is_not_known() -> None:
    first, second = Call("look", {"box_id": "1"}, turn=1), Call("look", {"box_id": "1"}, turn=1)
    orders: list[list[Event]] = [
        [first, second, Result(1, '{"a": 5}'), Result(0, "Error: no box")],
        [first, second, Result(0, '{"a": 5}'), Result(1, "Error: no box")],
    ]
    for events in orders:
        assert both(events) == [UNSEEN, UNSEEN]
        assert judged(events)[0].read(BOX, ("1",), EXISTS) is UNSEEN


def test_what_was_shown_twice_at_once_is_one_of_the_two() -> None:
    listed = Result(0, '[{"box_id": "1", "a": 3}, {"box_id": "1", "a": 4}]')
    assert both([Call("list", {}, turn=1), listed]) == [OneOf((3, 4))] * 2
    first, second = Call("look", {"box_id": "1"}, turn=1), Call("peek", {"box_id": "1"}, turn=1)
    assert both([first, second, Result(1, '{"top": 3}'), Result(0, '{"a": 4}')]) == [OneOf((3, 4))] * 2
    assert both([first, second, Result(1, '{"top": 4}'), Result(0, '{"a": 4}')]) == [4, 4]
    slow: list[Event] = [first, Message("user", "well?", 2), Call("look", {"box_id": "1"}, turn=3)]
    assert both([*slow, Result(2, '{"a": 3}'), Result(0, '{"a": 4}')]) == [OneOf((3, 4))] * 2
    again = Call("look", {"box_id": "1"}, turn=2)
    assert both([first, second, Result(1, '{"top": 3}'), Result(0, '{"a": 4}'), again, Result(4, '{"a": 4}')]) == [4, 4]
