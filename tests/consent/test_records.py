"""What results have shown: at any step the same, whatever came after it and whatever was read ahead."""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest

from bylaw.consent.passage import Passage
from bylaw.consent.records import Records
from bylaw.facts.value import loose
from bylaw.packs.clinic.simulator.generate import simulate
from bylaw.trace import Call, Event, Result

RECORDS = [
    {"id": "AB 12", "note": "caf\u00e9 \u00d6l", "price": 1e22, "kind": "Gold"},
    {"id": 'a"b\\c', "no.": 7.0, "codes": ["X-1", "x2", 7], "Full Name": "Ann  Lee"},
    {"id": "#77", "total": 250.50, "nested": {"id": "AB12", "of": [{"id": "z\tz"}]}},
]
TEXTS = [
    *(json.dumps(each) for each in (*RECORDS, RECORDS)),
    *(json.dumps(each, ensure_ascii=False, indent=2) for each in RECORDS),
    '{"id": "N1", "price": 12E2, "seats": -0.0}',
    '{"id": "\uff21\uff22\uff11\uff12", "kind": "N2"}',
    repr(RECORDS[1]),
    "Order(id='AB12', day='2030-01-02')",
    "no record at all: AB12",
]


def _events(texts: Sequence[str]) -> list[Event]:
    events: list[Event] = []
    for text in texts:
        events.append(Call("look_up", {"id": "AB12", "page": 3, "tags": ["new", "Gold"]}, turn=len(events)))
        events.append(Result(len(events) - 1, text))
    return events


def _told(records: Records, key: str, before: int) -> object:
    """All that records tell of a value before a step."""
    records.read(before)
    names = frozenset(records.names_of(key)) | {"id", "Full Name", "codes"}
    beside = records.beside(names, key)
    marks = records.marks_of(key)
    return (
        [(name, record.step, record.fields) for name, record in records.of(key)],
        names,
        beside,
        marks,
        [records.marks_of(other, names) for other in beside],
        records.marks_beside(names, marks | {"gold", "n:7"}),
        [records.is_shared({mark}, names, key) for mark in sorted(marks)],
        [records.fields_with(mark) for mark in sorted(marks)],
    )


@pytest.mark.parametrize("ahead", [0, 1, 5])
def test_what_is_shown_later_changes_nothing(ahead: int) -> None:
    talks = [_events(TEXTS), *([*talk.events] for talk, _ in simulate(7, 8))]
    for events in talks:
        whole = Records(events)
        whole.read(len(events))
        whole.read_marks()
        shown = [event.value() for event in events if isinstance(event, Result)]
        keys = sorted({loose(str(value)) for each in shown for value in _values(each)} | {"ab12", "3", "nobody"})
        for before in (len(events), max(1, len(events) // 2)):
            prefix = Records(events[:before])
            prefix.read(min(ahead, before))
            prefix.read_marks()
            for key in keys:
                want = _told(prefix, key, before)
                assert _told(whole, key, before) == want, (key, before)


def test_a_value_is_found_however_its_result_is_written() -> None:
    records = Records(_events(TEXTS))
    records.read(10**6)
    steps = {record.step for _, record in records.of("ab12") if record.is_shown}
    assert steps == {1, 5, 7, 9, 13, 17, 21}


def _values(value: Any) -> list[Any]:
    if isinstance(value, dict | list):
        parts = cast("dict[str, Any] | list[Any]", value)
        return [part for each in (parts.values() if isinstance(parts, dict) else parts) for part in _values(each)]
    return [value]


def test_a_value_is_found_in_words_however_many_stand_beside_it() -> None:
    rooms = [{"room": f"Suite of the {name} lake"} for name in _names(200)]
    records = Records(_events([json.dumps(rooms)]))
    records.read(2)
    told = Passage(["shall i book the suite of the", f"{loose(rooms[190]['room'])} for you?"])
    assert list(records.standing_in(told)) == [loose(rooms[190]["room"])]


def _names(count: int) -> list[str]:
    return [chr(97 + at // 26) + chr(97 + at % 26) + "an" for at in range(count)]
