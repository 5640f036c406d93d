"""A handbook speaks of its own clocks: `timezone` in pack.yaml says whose, in audit, live and cases alike."""

import json
from datetime import datetime
from typing import Any

import pytest

from bylaw import Conversation, Pack, Shield, verdicts
from bylaw.errors import PackError
from bylaw.review.check import check
from bylaw.trace.event import Call, Message, Result, Trajectory

FILES = {
    "pack.yaml": "format: 1\nname: desk\ndocument: policy.md\n",
    "policy.md": "A rule.\n",
    "tools.yaml": """\
tools:
  get_order: {effect: read, parameters: {order_id: string}}
  act: {effect: write, parameters: {order_id: string}, changes: []}
""",
    "entities.yaml": "entities: {Order: {key: order_id, read: get_order, fields: {at: datetime, day: date}}}\n",
}
BERLIN = "timezone: Europe/Berlin\n"


def desk(test: str, zone: str = BERLIN, **files: str) -> Pack:
    """A pack whose one guard permits where a test holds."""
    guard = 'def rule(call: act, facts):\n    """A rule."""\n    order = facts.Order(call.order_id)\n'
    guard += f'    return permit() if {test} else deny(f"it is {{now()}}")\n'
    return Pack.from_files({**FILES, "pack.yaml": FILES["pack.yaml"] + zone, "guards/g.py": guard, **files})


def moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def judged(pack: Pack, now: str, **order: Any) -> tuple[str, str]:
    """What an audit says of a call at a time, and why."""
    shown = json.dumps({"order_id": "7", **order})
    events = (
        Message("user", "Go on with 7."),
        Call("get_order", {"order_id": "7"}, turn=1),
        Result(1, shown),
        Call("act", {"order_id": "7"}, turn=2, time=moment(now)),
    )
    (call,) = [each for each in verdicts(pack, Trajectory("t", events)).calls if each.made.call.tool == "act"]
    return call.determined, call.policies[0].because


UNTIL_SIX = "now().hour < 18"
SAME_DAY = "date(order.at) == date(now())"


@pytest.mark.parametrize(
    ("test", "now", "at", "want"),
    [
        (UNTIL_SIX, "2026-01-15T16:30:00+00:00", "2026-01-01", "compliant"),
        (UNTIL_SIX, "2026-07-15T16:30:00+00:00", "2026-01-01", "violation"),
        (UNTIL_SIX, "2026-07-15T15:30:00+00:00", "2026-01-01", "compliant"),
        (SAME_DAY, "2026-06-01T13:30:00+00:00", "2026-05-31T22:30:00Z", "compliant"),
        (SAME_DAY, "2026-06-01T13:30:00+00:00", "2026-05-31T21:30:00Z", "violation"),
        (SAME_DAY, "2026-06-01T22:30:00+00:00", "2026-06-01T10:00:00Z", "violation"),
        # Without an offset it is what the handbook's clocks showed.
        (SAME_DAY, "2026-06-01T13:30:00+00:00", "2026-06-01T00:30:00", "compliant"),
        ("order.at == now()", "2026-06-01T13:30:00+00:00", "2026-06-01T15:30:00", "compliant"),
        # A day was cut short by an hour: what went by counts, not what the clocks show.
        ("now() - order.at < hours(24)", "2026-03-29T10:00:00+00:00", "2026-03-28T11:00:00Z", "compliant"),
        ("order.at + hours(23) == now()", "2026-03-29T10:00:00+00:00", "2026-03-28T11:00:00Z", "compliant"),
        ("now() - hours(23) == order.at", "2026-03-29T10:00:00+00:00", "2026-03-28T11:00:00Z", "compliant"),
        ("date(now()) - date(order.at) == days(1)", "2026-03-29T10:00:00+00:00", "2026-03-28T11:00:00Z", "compliant"),
        # Clocks show half past two twice: what is later is later, although they show less.
        ("now() <= order.at", "2026-10-25T01:15:00+00:00", "2026-10-25T00:30:00Z", "violation"),
        ("now() > order.at", "2026-10-25T01:15:00+00:00", "2026-10-25T00:30:00Z", "compliant"),
        ("now() == order.at", "2026-10-25T01:30:00+00:00", "2026-10-25T00:30:00Z", "violation"),
        ("now() - order.at == hours(1)", "2026-10-25T01:30:00+00:00", "2026-10-25T00:30:00Z", "compliant"),
        # A date is the start of its day there.
        ('order.at < date("2026-06-01")', "2026-07-01T00:00:00+00:00", "2026-05-31T21:59:00Z", "compliant"),
        ('order.at < date("2026-06-01")', "2026-07-01T00:00:00+00:00", "2026-05-31T22:00:00Z", "violation"),
        ('order.at == time("2026-06-01T12:00:00+02:00")', "2026-07-01T00:00:00Z", "2026-06-01T10:00:00Z", "compliant"),
    ],
)
def test_times_are_those_of_the_packs_clocks(test: str, now: str, at: str, want: str) -> None:
    assert judged(desk(test), now, at=at)[0] == want


def test_without_a_zone_it_is_utc_as_ever() -> None:
    assert judged(desk(UNTIL_SIX, ""), "2026-07-15T16:30:00+00:00", at="2026-01-01")[0] == "compliant"
    assert judged(desk(SAME_DAY, ""), "2026-06-01T13:30:00+00:00", at="2026-05-31T22:30:00Z")[0] == "violation"
    utc = judged(desk(UNTIL_SIX, "timezone: UTC\n"), "2026-07-15T18:30:00+00:00", at="2026-01-01")
    assert utc == ("violation", "it is 2026-07-15 18:30:00")


def test_what_is_said_is_what_the_clocks_show() -> None:
    assert judged(desk(UNTIL_SIX), "2026-07-15T16:30:00+00:00", at="2026-01-01")[1] == "it is 2026-07-15 18:30:00"


def test_a_day_that_is_written_stays_that_day() -> None:
    pack = desk('order.day == date("2026-05-31")')
    assert judged(pack, "2026-06-01T13:30:00+00:00", day="2026-05-31T22:30:00Z")[0] == "compliant"


def test_a_live_shield_reads_the_same_clocks() -> None:
    now = moment("2026-07-15T16:30:00+00:00")
    for zone, allowed in ((BERLIN, False), ("", True)):
        with Shield(desk(UNTIL_SIX, zone)).session("t") as session:
            session.user("Go on with 7.")
            session.decide("get_order", {"order_id": "7"})
            session.result({"order_id": "7", "at": "2026-01-01"})
            assert session.decide("act", {"order_id": "7"}, time=now).allowed is allowed


def test_the_time_of_a_case_and_of_a_pack_is_that_of_its_clocks() -> None:
    late = "- {policy: rule, call: {act: {order_id: '7'}}, facts: {'Order[7]': {at: 2026-01-01T10:00:00}}"
    cases = f"{late}, note: late, now: '2026-07-15T18:30:00', want: deny}}\n"
    cases += f"{late}, note: in time, now: '2026-07-15T15:30:00+00:00', want: permit}}\n"
    pack = desk(UNTIL_SIX, **{"cases/c.yaml": cases})
    assert [each.passed for each in check(pack).cases] == [True, True]
    fixed = desk(UNTIL_SIX, BERLIN + "now: 2026-07-15T18:30:00\n")
    assert judged(fixed, "2026-01-01T00:00:00+00:00", at="2026-01-01")[0] == "violation"
    assert pack.pin != desk(UNTIL_SIX, "", **{"cases/c.yaml": cases}).pin


SPANS = [
    "order.at < time('2026-10-24T12:00:00')",
    "order.at >= date('2026-10-25')",
    "now() - order.at > hours(24)",
    "order.at + hours(24) >= now()",
    "order.at + days(1) <= time('2026-10-25T12:00:00')",
    "order.at in [time('2026-10-24T12:00:00'), date('2026-10-25')]",
    "date(order.at) < date('2026-10-25')",
    "order.day < date('2026-10-25')",
    "now() - order.day > hours(24)",
    "order.day + days(1) <= now()",
    "order.day + hours(36) < now()",
    "time(order.day) + days(1) < time('2026-10-25T23:30:00')",
    "order.day < order.at",
    "order.at - order.day < hours(24)",
    "order.day + days(1) < order.at",
]
AUTUMN = "now: 2026-10-25T12:00:00+01:00\n"
"""On this day the clocks of Berlin are put back by an hour."""
MOMENTS = [
    *("2026-10-24T09:59:00Z", "2026-10-24T10:30:00Z", "2026-10-24T11:00:00Z", "2026-10-24T12:30:00Z"),
    *("2026-10-24T22:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T11:00:00Z"),
    *("2026-10-25T22:30:00Z", "2026-10-25T23:00:00Z"),
]


@pytest.mark.parametrize("one", SPANS)
def test_what_is_decided_unseen_is_decided_alike_for_every_time_of_a_day_of_25_hours(one: str) -> None:
    def outcome(pack: Pack, **order: str) -> str:
        conversation = Conversation(pack)
        for fields in ({}, order):
            conversation.call("get_order", {"order_id": "7"})
            conversation.result({"order_id": "7", **fields})
        return conversation.call("act", {"order_id": "7"}).outcome

    for other in SPANS:
        pack = desk(f"{one} or not {other}", BERLIN + AUTUMN)
        unseen = outcome(pack)
        if unseen != "undetermined":
            days = ("2026-10-24", "2026-10-25", "2026-10-26")
            seen = {outcome(pack, at=at, day=day) for at in MOMENTS for day in days}
            assert seen == {unseen}, other


def test_what_follows_from_a_time_follows_for_one_that_nobody_saw() -> None:
    for known, follows in (("2026-10-24T13:00:00", True), ("2026-10-24T12:30:00", False)):
        pack = desk(f"order.at < time('{known}') or now() - order.at <= hours(24)", BERLIN + AUTUMN)
        with Shield(pack).session("t") as session:
            session.user("Go on with 7.")
            session.decide("get_order", {"order_id": "7"})
            session.result({"order_id": "7"})
            assert session.decide("act", {"order_id": "7"}).allowed is follows


def test_an_unknown_zone_is_a_fault_at_its_line() -> None:
    with pytest.raises(PackError) as caught:
        desk(UNTIL_SIX, "timezone: Europe/Berlim\n")
    told = str(caught.value.faults[0])
    assert "pack.yaml:4" in told
    assert "there is no time zone `Europe/Berlim`" in told
    assert "Europe/Berlin" in told


def test_an_effect_reads_times_by_the_same_clocks() -> None:
    tools = FILES["tools.yaml"].replace(
        "changes: []", "effects: [{as: Order, key: $args.order_id, set: {at: {to: 'old.at + hours(1)'}}}]"
    )
    schema = desk(UNTIL_SIX, **{"tools.yaml": tools}).schema
    (effect,) = schema.effects["act"]
    old = {"at": datetime.fromisoformat("2026-06-01T10:00:00+00:00")}
    made = effect.to["at"]({"args": {}, "result": {}, "item": {}, "old": old})
    assert made == datetime(2026, 6, 1, 13, 0)
