"""A result is opened only where its text may hold what is asked for; that changes nothing of what is found there."""

import json
from collections.abc import Sequence
from typing import Any, cast

import pytest

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
    names = frozenset(records.names_of(key, before)) | {"id", "Full Name", "codes"}
    beside = records.beside(names, key, before)
    return (
        [(name, record.step, record.fields) for name, record in records.of(key, before)],
        names,
        beside,
        records.marks_of(key, before),
        records.marks_of_each(beside, before, names),
    )


@pytest.mark.parametrize("ahead", [0, 1, 5])
def test_what_is_searched_by_its_text_tells_what_is_listed_tells(ahead: int) -> None:
    talks = [_events(TEXTS), *([*talk.events] for talk, _ in simulate(7, 8))]
    for events in talks:
        listed = Records(events)
        listed.read_ahead(len(events))
        shown = [event.value() for event in events if isinstance(event, Result)]
        keys = sorted({loose(str(value)) for each in shown for value in _values(each)} | {"ab12", "3", "nobody"})
        for before in (len(events), max(1, len(events) // 2)):
            for key in keys:
                searched = Records(events)
                # Some of it may have been listed before, and the rest is searched.
                searched.read_ahead(min(ahead, before))
                want = _told(listed, key, before)
                assert _told(searched, key, before) == want, (key, before)
                assert _told(searched, key, before) == want, "asked again, when all is listed"


def test_a_result_without_the_value_stays_closed() -> None:
    events = _events([json.dumps({"id": f"R{place}", "of": "Ann"}) for place in range(5)])
    records = Records(events)
    assert [record.step for _, record in records.of("r3", len(events))] == [7]
    opened = [event for event in events if isinstance(event, Result) and "data" in event.__dict__]
    assert opened == [events[7]]


def _values(value: Any) -> list[Any]:
    if isinstance(value, dict | list):
        parts = cast("dict[str, Any] | list[Any]", value)
        return [part for each in (parts.values() if isinstance(parts, dict) else parts) for part in _values(each)]
    return [value]
