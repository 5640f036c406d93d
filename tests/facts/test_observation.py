"""How a result becomes facts: each, keys, fields, only, when, text, absent."""

from typing import Any

import pytest

from bylaw.facts.entity import ABSENT, UNSEEN
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Schema
from bylaw.facts.schema_reader import SchemaReader
from bylaw.facts.seen import SeenFacts
from bylaw.pack.statements import read_tools
from bylaw.policy.yaml import read_yaml
from bylaw.trace.event import Call, Result

TOOLS = """\
tools:
  find: {effect: read, parameters: {flight: string, day: string}}
  act: {effect: write, parameters: {flight: string, day: string}, changes: [Flight.seats]}
"""
ENTITIES = """\
entities:
  Flight:
    key: [flight, day]
    read: find
    fields:
      status: string
      seats: {type: integer, default: 0}
      prices: object
      note: string
  Crew:
    key: crew_id
    fields: {name: string, flight: string}
observations:
  find: %s
"""


def read_schema(observations: str) -> Schema:
    entities = read_yaml(ENTITIES % observations, file="entities.yaml")
    tools, _ = read_tools(read_yaml(TOOLS, file="tools.yaml"))
    reader = SchemaReader(entities, tools, None)
    found = reader.read()
    assert not reader.faults, [str(fault) for fault in reader.faults]
    return found


def seen(observations: str, content: str, *, error: bool | None = None, arguments: dict[str, Any] | None = None) -> Any:
    """Asks for `Kind[key].field` after one look."""
    schema = read_schema(observations)
    ledger = Ledger(schema)
    ledger.observe(0, Call("find", arguments or {"flight": "F1", "day": "2024-05-15"}, turn=1))
    ledger.observe(1, Result(0, content, error=error))
    judged = Call("act", {}, turn=2)
    ledger.observe(2, judged)

    def ask(kind: str, key: tuple[Any, ...], field: str) -> Any:
        entity = schema.entities[kind]
        from bylaw.facts.entity import EXISTS

        return SeenFacts(ledger, ledger.calls[2], {}).read(entity, key, entity.fields.get(field, EXISTS))

    return ask


def test_key_and_fields_default_to_what_bears_their_name() -> None:
    ask = seen("[{as: Flight}]", '{"flight": "F2", "status": "late", "colour": "red"}')
    assert ask("Flight", ("F2", "2024-05-15"), "status") == "late"
    assert ask("Flight", ("F2", "2024-05-15"), "exists") is True
    assert ask("Flight", ("F1", "2024-05-15"), "status") is UNSEEN
    assert ask("Flight", ("F2", "2024-05-15"), "note") is UNSEEN


def test_a_key_is_the_same_whatever_type_it_is_written_in() -> None:
    ask = seen("[{as: Flight}]", '{"flight": 7, "day": 20240515, "status": "late"}')
    assert ask("Flight", (7, "20240515"), "status") == "late"
    assert ask("Flight", ("7", 20240515), "status") == "late"


def test_a_record_without_its_key_shows_nothing() -> None:
    ask = seen("[{as: Flight}]", '{"status": "late"}', arguments={"flight": "F1"})
    assert ask("Flight", ("F1", "2024-05-15"), "status") is UNSEEN
    ask = seen("[{as: Crew}]", '{"crew_id": null, "name": "Ann"}')
    assert ask("Crew", ("None",), "name") is UNSEEN
    assert ask("Crew", ("null",), "name") is UNSEEN


@pytest.mark.parametrize("content", ['""', "[]", "{}"])
def test_an_empty_text_and_a_list_are_the_name_of_nothing(content: str) -> None:
    """A search that found nobody did not find somebody who is called so."""
    ask = seen("[{as: Crew, key: $}]", content)
    assert ask("Crew", ("" if content == '""' else content,), "exists") is UNSEEN


def test_each_shows_every_item() -> None:
    ask = seen(
        '[{each: "$.flights[*]", as: Flight, fields: {status: =available}}]',
        '{"flights": [{"flight": "F1", "seats": 3}, {"flight": "F2"}, 5, {"seats": 9}]}',
        arguments={"day": "2024-05-15"},
    )
    assert ask("Flight", ("F1", "2024-05-15"), "seats") == 3
    assert ask("Flight", ("F2", "2024-05-15"), "status") == "available"


@pytest.mark.parametrize(
    ("observation", "content", "wanted"),
    [
        ("{as: Flight}", '{"flight": "F1"}', 0),
        ("{as: Flight}", '{"status": "late"}', 0),
        ("{as: Flight}", '{"status": "late", "seats": 4}', 4),
        ("{as: Flight, each: $.data}", '{"data": {"flight": "F1"}}', 0),
        ("{as: Flight, fields: {note: $.remark}}", '{"remark": "fog"}', 0),
        ('{as: Flight, each: "$[*]"}', '[{"flight": "F1", "status": "late"}]', UNSEEN),
        ("{as: Flight}", "{}", UNSEEN),
        ("{as: Flight}", '{"flight": null}', UNSEEN),
        ("{as: Flight}", '{"message": "try again later"}', UNSEEN),
        ("{as: Flight}", '{"data": {"flight": "F1", "seats": 4}}', UNSEEN),
        ("{as: Flight}", '{"statusCode": 503, "body": null}', UNSEEN),
        ("{as: Flight}", '{"error": "busy", "flight": "F1"}', UNSEEN),
        ("{as: Flight}", "none", UNSEEN),
        ("{as: Flight, fields: {note: =fine, status: $args.day}}", '{"message": "try again later"}', UNSEEN),
        ("{as: Flight, fields: {note: $.remark}, only: true}", '{"remark": "fog"}', UNSEEN),
    ],
)
def test_a_default_is_what_the_things_own_record_shows_where_it_lacks_the_field(
    observation: str, content: str, wanted: Any
) -> None:
    assert seen(f"[{observation}]", content)("Flight", ("F1", "2024-05-15"), "seats") == wanted


@pytest.mark.parametrize(
    ("answers", "wanted"),
    [
        (['{"status": "late", "seats": 4}', '{"status": "late"}'], 4),
        (['{"status": "late"}', '{"status": "late", "seats": 4}'], 4),
        (['{"status": "late"}', '{"status": "on time"}'], 0),
        (['{"seats": 4, "status": "late"}', '{"seats": 3}', '{"status": "late"}'], 3),
        (['{"seats": 4, "status": "late"}', "act", '{"status": "late"}'], UNSEEN),
        (['{"status": "late"}', "act", '{"status": "late"}'], 0),
    ],
)
def test_what_was_seen_does_not_become_the_default_because_an_answer_leaves_it_out(
    answers: list[str], wanted: Any
) -> None:
    schema = read_schema("[{as: Flight}]")
    ledger = Ledger(schema)
    given = {"flight": "F1", "day": "2024-05-15"}
    step = 0
    for turn, answer in enumerate(answers):
        tool = "act" if answer == "act" else "find"
        ledger.observe(step, Call(tool, given, turn=turn))
        ledger.observe(step + 1, Result(step, answer))
        step += 2
    ledger.observe(step, Call("act", given, turn=99))
    flight = schema.entities["Flight"]
    found = SeenFacts(ledger, ledger.calls[step], {}).read(flight, ("F1", "2024-05-15"), flight.fields["seats"])
    assert found == wanted


def test_an_object_is_iterated_with_its_names_as_keys() -> None:
    ask = seen(
        '[{each: "$.crews.*", as: Crew, key: $key}]', '{"crews": {"C1": {"name": "Ann"}, "C2": {"name": "Bob"}}}'
    )
    assert ask("Crew", ("C2",), "name") == "Bob"


def test_an_item_inside_an_item_keeps_sight_of_the_whole() -> None:
    ask = seen(
        '[{each: "$.legs[*].crew[*]", as: Crew, fields: {flight: $result.number}}]',
        '{"number": "F7", "legs": [{"crew": [{"crew_id": "C1"}]}, {"crew": [{"crew_id": "C2"}]}]}',
    )
    assert ask("Crew", ("C1",), "flight") == "F7"
    assert ask("Crew", ("C2",), "flight") == "F7"


def test_only_shows_nothing_but_what_it_names() -> None:
    ask = seen("[{as: Flight, fields: {note: $.remark}, only: true}]", '{"status": "late", "remark": "fog"}')
    assert ask("Flight", ("F1", "2024-05-15"), "note") == "fog"
    assert ask("Flight", ("F1", "2024-05-15"), "status") is UNSEEN
    assert ask("Flight", ("F1", "2024-05-15"), "exists") is True


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("{path: $.kind, is: flight}", "late"),
        ("{path: $.kind, is: train}", UNSEEN),
        ("{path: $.kind, in: [bus, flight]}", "late"),
        ("{path: $.nothing, is: flight}", UNSEEN),
        ("{path: $args.flight, is: F1}", "late"),
    ],
)
def test_when_says_which_records_count(condition: str, wanted: Any) -> None:
    ask = seen(f"[{{as: Flight, when: {condition}}}]", '{"kind": "flight", "status": "late"}')
    assert ask("Flight", ("F1", "2024-05-15"), "status") == wanted


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("flight F1 is late by 20 minutes", "late"),
        ("Error: flight F1 is cancelled", "cancelled"),
        ("nothing to say", UNSEEN),
        ('{"status": "late"}', UNSEEN),
    ],
)
def test_text_is_read_by_its_named_groups(content: str, wanted: Any) -> None:
    ask = seen('[{as: Flight, text: "flight (?P<flight>\\\\S+) is (?P<status>\\\\w+)"}]', content)
    assert ask("Flight", ("F1", "2024-05-15"), "status") == wanted


@pytest.mark.parametrize(
    ("content", "error", "wanted"),
    [
        ('{"error": "flight F1 not found"}', None, ABSENT),
        ("Error: flight F1 not found", None, ABSENT),
        ("flight F1 not found", True, ABSENT),
        ("Flight F1 NOT FOUND", None, ABSENT),
        ('{"error": "the system is busy"}', None, UNSEEN),
        ('{"status": "not found"}', None, "not found"),
    ],
)
def test_what_is_not_found_does_not_exist(content: str, error: bool | None, wanted: Any) -> None:
    ask = seen("[{as: Flight, absent: not found}]", content, error=error)
    assert ask("Flight", ("F1", "2024-05-15"), "status") == wanted
    if wanted is ABSENT:
        assert ask("Flight", ("F1", "2024-05-15"), "exists") is False
        assert ask("Flight", ("F2", "2024-05-15"), "exists") is UNSEEN


def test_absence_may_name_its_key_in_the_text() -> None:
    ask = seen('[{as: Flight, absent: "no flight (?P<flight>\\\\S+)"}]', "Error: no flight F8")
    assert ask("Flight", ("F8", "2024-05-15"), "status") is ABSENT
    assert ask("Flight", ("F1", "2024-05-15"), "status") is UNSEEN


@pytest.mark.parametrize(
    "content", ['{"error": "busy", "status": "late"}', "Error: late", '{"isError": true, "status": "late"}']
)
def test_an_error_shows_nothing(content: str) -> None:
    assert seen("[{as: Flight}]", content)("Flight", ("F1", "2024-05-15"), "status") is UNSEEN


def test_an_error_flag_shows_nothing_either() -> None:
    ask = seen("[{as: Flight}]", '{"status": "late"}', error=True)
    assert ask("Flight", ("F1", "2024-05-15"), "status") is UNSEEN


def test_one_result_may_show_things_of_several_kinds() -> None:
    ask = seen(
        '[{as: Flight}, {each: "$.crew[*]", as: Crew, fields: {flight: $args.flight}}]',
        '{"status": "late", "crew": [{"crew_id": "C1", "name": "Ann"}]}',
    )
    assert ask("Flight", ("F1", "2024-05-15"), "status") == "late"
    assert ask("Crew", ("C1",), "flight") == "F1"


@pytest.mark.parametrize(
    "content", ["", "null", "3", '"text"', "[]", "[[[]]]", "{}", '{"flight": {"a": 1}}', "\x00", "[1, 2"]
)
def test_no_content_is_too_odd(content: str) -> None:
    ask = seen('[{as: Flight}, {each: "$[*]", as: Crew}, {each: "$.*", as: Crew, key: $key}]', content)
    assert ask("Crew", ("C1",), "name") is UNSEEN
    ask("Flight", ("F1", "2024-05-15"), "status")


def test_a_value_of_the_wrong_type_raises_where_it_is_read() -> None:
    ask = seen("[{as: Flight}]", '{"seats": "plenty"}')
    with pytest.raises(ValueError, match="plenty"):
        ask("Flight", ("F1", "2024-05-15"), "seats")


def test_a_look_up_with_an_argument_that_nobody_declared_shows_nothing() -> None:
    shown = '{"status": "late", "seats": 4}'
    given = {"flight": "F1", "day": "2024-05-15"}
    key = ("F1", "2024-05-15")
    assert seen("[{as: Flight}]", shown, arguments=given)("Flight", key, "seats") == 4
    for extra in ({"sandbox": True}, {"as_of": "2001-01-01"}):
        ask = seen("[{as: Flight}]", shown, arguments={**given, **extra})
        assert ask("Flight", key, "seats") is UNSEEN
        assert ask("Flight", key, "exists") is UNSEEN
