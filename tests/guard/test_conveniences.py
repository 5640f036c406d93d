"""What keeps guards short: functions that they share, pairs, tables, `done`, an answer in one line."""

from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from bylaw.facts.entity import Entity, Fact, Field
from bylaw.guard import Vocabulary, evaluate, parse_guards

from .asking import EXISTS, names, outcome, said, wrapped
from .shop import ARGUMENTS, ENTITIES, VOCABULARY, faults, guard, order
from .twin import Table


def test_done_asks_for_a_tool_and_for_its_arguments() -> None:
    declared = {"refund": frozenset({"order_id"}), "look": frozenset({"order_id"})}
    strict = Vocabulary(VOCABULARY.entities, VOCABULARY.arguments, VOCABULARY.tools | {"look"}, declared)

    def wrong(call: str) -> list[str]:
        text = f'def g(call, facts):\n    if {call} > 0:\n        return permit()\n    return deny("no")\n'
        return [fault.message for fault in parse_guards(text, file="g.py", vocabulary=strict)[1]]

    assert wrong('done("refund", order_id="A")') == []
    assert wrong('done("look", order_id="A")') == []
    assert wrong('done("look", order="A")') == ["`look` has no argument `order`"]
    assert wrong('done("refund", order="A")') == ["`refund` has no argument `order`"]


class TestShared:
    """Functions that the guards of a file share."""

    TEXT = """
def g(call, facts):
    r = facts.Order(call.order_id)
    if is_large(r) or owner(facts, r).vip:
        return permit()
    return deny("no")

def is_large(order):
    limit = bound(order.gift)
    return order.size > limit

def bound(gift):
    return 5 if gift else 3

def owner(facts, order):
    return facts.Owner(order.owner)
"""

    def test_a_guard_and_what_it_calls_are_one(self) -> None:
        facts = order(size=4, gift=False, owner="o")
        assert said(self.TEXT, facts).outcome == "permit"
        assert names(said(self.TEXT, facts | order(gift=True)).lacking) == ["Owner[o].vip"]
        unknown = said(self.TEXT, order(size=4, owner="o") | {Fact("Owner", ("o",), "vip"): False})
        assert (unknown.outcome, names(unknown.lacking)) == ("undetermined", ["Order[A].gift"])
        # Whatever the order is, more than five is large.
        assert said(self.TEXT, order(size=6)).outcome == "permit"

    def test_things_of_different_kinds_do_not_answer_for_each_other(self) -> None:
        text = """
def g(call, facts):
    if some(facts.Order("A"), facts.Order("B").items):
        if not some(facts.Owner("A"), facts.Order("B").items):
            return permit()
    return deny("no")

def some(x, rows):
    return any(x.exists and row.ok for row in rows)
"""
        known = {Fact("Order", ("B",), "exists"): True, Fact("Owner", ("A",), "exists"): False}
        assert said(text, known).outcome == "undetermined"

    def test_faults_of_a_shared_function_have_their_place_and_stand_once(self) -> None:
        text = "def g(call, facts):\n    if f(call.amount):\n        return permit()\n    return deny('no')\n\n"
        twice = text + text.replace("def g", "def h")
        assert faults(twice + "def f(x):\n    return x.total +\n")[0].startswith("guards/shop.py:12: not Python")
        (only,) = faults(twice + "def f(x):\n    return x > limit\n")
        assert only.startswith("guards/shop.py:12: there is no name `limit`")
        assert "`f` can end without a `return`" in faults(text + "def f(x):\n    if x:\n        return 1\n")[0]
        assert "`f` permits or denies and returns no value" in faults(text + "def f(x):\n    return deny('no')\n")[0]
        assert "there is no name `facts`" in faults(text + "def f(x):\n    return facts.Order(x).paid\n")[0]
        assert "takes 2 positional arguments" in faults(text + "def f(x, y):\n    return x\n")[0]
        assert "takes `facts` here" in faults(text + "def f(facts):\n    return facts.Request.sure\n")[0]
        assert "calls itself" in faults(text + "def f(x):\n    return g2(x)\n\ndef g2(x):\n    return f(x)\n")[0]

    def test_a_function_nobody_calls_and_one_that_is_called_as_a_guard_are_told(self) -> None:
        text = "def g(call, facts):\n    return permit()\n\ndef a(x):\n    return b(x)\n\ndef b(x):\n    return a(x)\n"
        assert ["no guard calls `a`" in faults(text)[0], "no guard calls `b`" in faults(text)[1]] == [True, True]
        text = "def g(call, facts):\n    return h(call, facts)\n\ndef h(call, facts):\n    return permit()\n"
        _, wrong = parse_guards(text, file="g.py", vocabulary=VOCABULARY, policies=("g", "h"))
        assert [fault.message for fault in wrong] == ["this function must return permit(...) or deny(...)"]

    @pytest.mark.parametrize(
        ("known", "outcome", "because"),
        [
            (order(gift=True), "permit", ""),
            (order(gift=False, size=7), "deny", "7 is not paid"),
            (order(gift=False), "deny", "... is not paid"),
            ({}, "undetermined", None),
        ],
    )
    def test_guards_may_share_an_answer(self, known: dict[Fact, Any], outcome: str, because: str | None) -> None:
        shared = """
def g(call, facts):
    return paid(facts.Order("A")) if call.amount > 0 else deny("nothing to do")

def paid(order):
    return permit() if order.gift else unpaid(order)

def unpaid(order):
    return deny(f"{order.size} is not paid")
"""
        alone = """
def g(call, facts):
    if call.amount > 0:
        order = facts.Order("A")
        return permit() if order.gift else deny(f"{order.size} is not paid")
    return deny("nothing to do")
"""
        one, other = said(shared, known), said(alone, known)
        assert one.outcome == other.outcome == outcome
        assert one.because == other.because
        assert because is None or one.because == because

    def test_an_answer_and_a_value_are_not_mixed(self) -> None:
        text = "def g(call, facts):\n    return f(call.amount)\n\n"
        (only,) = faults(text + "def f(x):\n    return x > 1\n")
        assert only.startswith("guards/shop.py:2: `f` returns a value, but a guard must permit or deny")
        assert "write return permit() if f(...) else deny(...)" in only
        mixed = faults(text + "def f(x):\n    if x > 1:\n        return permit()\n    return x\n")
        assert mixed[0].startswith("guards/shop.py:7: this function must return permit(...) or deny(...)")
        assert "f` can end without" in faults(text + "def f(x):\n    if x > 1:\n        return permit()\n")[0]
        round_about = "def f(x):\n    return h(x) if x > 1 else permit()\n\ndef h(x):\n    return f(x)\n"
        assert "calls itself" in faults(text + round_about)[0]

    def test_the_texts_of_a_shared_answer_are_the_guards_own(self) -> None:
        text = "def g(call, facts):\n    return f(call.amount)\n\ndef f(x):\n    return deny(f'{x} is too much')\n"
        guards, wrong = parse_guards(text, file="g.py", vocabulary=VOCABULARY, policies=("g",))
        assert not wrong
        assert guards["g"].denials == ["... is too much"]
        assert [branch.kind for branch in guards["g"].branches] == ["return", "return"]

    def test_calls_are_paid_for(self) -> None:
        chain = "".join(f"def f{n}(x):\n    return f{n + 1}(x) + f{n + 1}(x)\n\n" for n in range(20))
        text = wrapped("f0(call.amount) > 1") + "\n" + chain + "def f20(x):\n    return x\n"
        assert (said(text).outcome, "steps" in said(text).because) == ("failed", True)


class TestPairs:
    """`zip` and `enumerate`."""

    def test_they_loop_as_in_python(self) -> None:
        assert outcome("any(i == 2 and code == 4 for i, code in enumerate(call.codes))") == "permit"
        assert outcome("sum(code * row.n for code, row in zip(call.codes, call.rows)) == 7") == "permit"
        loop = "last = 0\nfor i, code in enumerate(call.codes):\n    last = i\n"
        loop += "for pair in zip(call.codes, call.codes):\n    last += pair[0]"
        assert outcome("last == 9", before=loop) == "permit"

    def test_a_list_that_is_not_known_leaves_it_open(self) -> None:
        assert outcome("all(a == b for a, b in zip(r.items, call.codes))") == "undetermined"
        assert said(wrapped("True", "for i, x in enumerate(r.items):\n    y = i")).outcome == "undetermined"

    def test_they_stand_only_in_a_loop_with_names_for_each(self) -> None:
        assert "`zip` can only be used in" in faults(wrapped("len(zip(call.codes, call.codes)) == 1"))[0]
        assert "each iteration yields 2 values" in faults(wrapped("any(a for a, b, c in enumerate(call.codes))"))[0]
        assert "a loop has a single variable" in faults(wrapped("any(a for a, b in call.rows)"))[0]
        assert "`enumerate` takes one list" in faults(wrapped("any(a for a, b in enumerate(call.rows, 1))"))[0]


def test_done_may_ask_for_the_tool_that_is_called() -> None:
    source = Table(EXISTS, done=1)
    text = wrapped("done(call.tool, order_id=call.order_id) == 1")
    assert said(text, source=source, tool="ship").outcome == "permit"
    assert ("ship", {"order_id": "A"}) in source.asked


def test_an_answer_may_hang_on_a_condition_in_one_line() -> None:
    text = 'def g(call, facts):\n    return permit() if facts.Order(call.order_id).size > 2 else deny("too small")\n'
    assert said(text, order(size=3)).outcome == "permit"
    assert (said(text, order(size=2)).outcome, said(text, order(size=2)).because) == ("deny", "too small")
    assert said(text).outcome == "undetermined"
    assert len(guard(text).branches) == 4
    assert "this function must return" in faults("def g(call, facts):\n    return permit() if call.amount else 3\n")[0]


class TestTables:
    def test_a_word_that_is_not_known_is_looked_at_word_by_word(self) -> None:
        fee = '{"open": 1, "sent": 2, "done": 3}[r.state]'
        assert outcome(f"{fee} == 4") == "deny"
        assert outcome(f"{fee} <= 3") == "permit"
        assert outcome(f"{fee} == 2") == "undetermined"
        assert outcome(f'r.state == "open" or {fee} > 1') == "permit"
        assert outcome('get({"open": 1}, r.state, 2) in (1, 2)') == "permit"

    def test_a_table_that_lacks_a_word_leaves_it_open(self) -> None:
        assert outcome('{"open": 1}[r.state] == 1') == "undetermined"
        assert outcome('{"o1": 1}[r.owner] == 1') == "undetermined"


@pytest.mark.parametrize(
    ("condition", "said_so"),
    [
        ("call.note <= 5", "write `money(call.note)`"),
        ("5.5 > call.note", "write `money(call.note)`"),
        ('call.note < money("5.00")', "write `money(call.note)`"),
        ('call.note >= date("2025-01-01")', "write `date(call.note)`"),
        ("call.amount <= 5", ""),  # a number in one tool
        ('call.note <= "25.00"', "write `money(call.note)` and `money('25.00')`"),
        ("call.note > facts.Order(call.note).price", "write `money(call.note)`"),
        ("facts.Order(call.note).price == call.note", "write `money(call.note)`"),
        ('call.note <= "b"', ""),
        ("call.note == 5", "put the constant in quotes, or write `money(call.note)`"),
        ("call.note in [5, 6]", "put the constants in quotes, or write `money(call.note)`"),
        ('date("2025-01-01") != call.note', "write `date(call.note)`"),
        ('call.note in ["5", "6"]', ""),
        ("call.note == True", ""),
        ('money(call.note) <= money("5.00")', ""),
    ],
)
def test_an_argument_that_is_text_is_compared_with_no_number(condition: str, said_so: str) -> None:
    vocabulary = Vocabulary(VOCABULARY.entities, frozenset({"note", "amount"}), texts=frozenset({"note"}))
    text = f"def g(call, facts):\n    return permit() if {condition} else deny('no')\n"
    found = [str(fault) for fault in parse_guards(text, file="g.py", vocabulary=vocabulary)[1]]
    assert found == ([f"g.py:2: the argument `note` is text; {said_so}"] if said_so else [])


class TestTimeOfDay:
    """A day and a time of day in separate values make one time."""

    @pytest.mark.parametrize("day", ['"2024-05-16"', 'date("2024-05-16")', 'time("2024-05-16T23:00:00")', "r.due"])
    @pytest.mark.parametrize(("clock", "want"), [("15:00", "permit"), ("15:01", "deny"), ("9:30", "permit")])
    def test_it_is_the_time_on_that_day(self, day: str, clock: str, want: str) -> None:
        condition = f'time({day}, "{clock}") - now() <= hours(24)'
        assert outcome(condition, order(due=date(2024, 5, 16))) == want

    def test_it_may_come_from_arguments(self) -> None:
        given = {**ARGUMENTS, "day": "2024-05-15", "note": "15:30"}
        assert outcome("time(call.day, call.note) > now()", arguments=given) == "permit"
        assert outcome("time(call.day, call.note) > now()", arguments={**given, "note": "14:30"}) == "deny"

    @pytest.mark.parametrize("clock", ["24:00", "10", "10:00:00", "10:00Z", "gold", "10:60", "\u0661\u0660:00"])
    def test_another_text_is_no_time_of_day(self, clock: str) -> None:
        told = said(wrapped(f'time("2024-05-16", "{clock}") > now()'))
        assert told.outcome == "failed"
        assert "is not a time of day; write HH:MM" in told.because

    def test_an_unknown_day_is_asked_for(self) -> None:
        told = said(wrapped('time(r.due, "10:00") > now()'))
        assert (told.outcome, names(told.lacking)) == ("undetermined", ["Order[A].due"])
        assert outcome('time(r.due, "10:00") > now() or not time(r.due, "10:00") > now()') == "permit"

    def test_it_is_local_time_in_the_zone_of_the_pack(self) -> None:
        """At a quarter to eleven in Athens it is a quarter to eight in UTC."""
        athens = Vocabulary(ENTITIES, VOCABULARY.arguments, zone=ZoneInfo("Europe/Athens"))
        late = guard(wrapped('now() > time(date(now()), "10:30")'), athens)
        for hour, want in ((7, "permit"), (6, "deny")):
            now = datetime(2024, 5, 15, hour, 45, tzinfo=UTC)
            assert evaluate(late, ARGUMENTS, Table(EXISTS), now=now)[0].outcome == want

    @pytest.mark.parametrize("sum_", ['call.day + "T10:00"', 'call.day + " " + call.note'])
    def test_the_message_for_a_sum_of_texts_names_it(self, sum_: str) -> None:
        (told,) = faults(wrapped(f"time({sum_}) > now()"))
        assert "write time(day, clock)" in told

    def test_the_failure_of_a_sum_of_texts_names_it(self) -> None:
        given = {**ARGUMENTS, "day": "2024-05-15", "note": "15:30"}
        assert "write time(day, clock)" in said(wrapped("time(call.day + call.note) > now()"), arguments=given).because


def test_a_name_that_is_a_python_keyword_is_written_with_an_underscore() -> None:
    ticket = Entity("Ticket", ("order_id",), {"class": Field("class", "enum", ("first", "second"))})
    words = Vocabulary({"Ticket": ticket}, frozenset(("order_id", "from")), frozenset(("refund",)))
    text = (
        "def g(call, facts):\n"
        '    if facts.Ticket(call.order_id).class_ == "first" and call.from_ == "web":\n'
        '        return permit()\n    return deny("no")\n'
    )
    made = guard(text, words)
    seen = {Fact("Ticket", ("A",), "class"): "first"}
    assert evaluate(made, {"order_id": "A", "from": "web"}, Table(seen))[0].outcome == "permit"
    assert evaluate(made, {"order_id": "A", "from": "app"}, Table(seen))[0].outcome == "deny"
    wrong = parse_guards(text.replace("from_", "from"), file="g.py", vocabulary=words)[1]
    assert [each.hint for each in wrong] == ["write `.from_` for a field or argument named `from`"]
