"""The fourteen rules of the guard language, one section each."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from bylaw.facts.entity import Fact
from bylaw.guard import NO_ASSUMPTIONS, Completion, Vocabulary, parse_guards

from .asking import EXISTS, names, outcome, said, wrapped
from .shop import ARGUMENTS, VOCABULARY, faults, guard, order
from .twin import Table


class TestRule1Shape:
    def test_a_denial_carries_its_text(self) -> None:
        text = 'def g(call, facts):\n    if call.amount > 2:\n        return deny("too much")\n    return permit()\n'
        assert said(text) == Completion(NO_ASSUMPTIONS, "deny", "too much", plain=True)
        assert said(text, arguments={"amount": 1}) == Completion(NO_ASSUMPTIONS, "permit", plain=True)

    def test_elif_else_and_loops_work_as_in_python(self) -> None:
        text = """def g(call, facts):
    total = 0
    for code in call.codes:
        if code == 2:
            continue
        elif code > 3:
            total += 10
        else:
            total = total + code
    if total == 11:
        return permit()
    return deny("no")
"""
        assert said(text).outcome == "permit"

    def test_falling_off_the_end_is_a_load_error(self) -> None:
        (fault,) = faults("def g(call, facts):\n    if call.amount:\n        return permit()\n")
        assert fault == (
            "guards/shop.py:2: `g` can end without an answer; end every path with return permit(...) or deny(...)"
        )

    def test_all_faults_of_a_file_are_reported_together(self) -> None:
        text = "def g(call, facts):\n    x = call.nothing\n    y = facts.Nothing.x\n    return 1\n\nimport os\n"
        assert [fault.split(": ")[0] for fault in faults(text)] == [f"guards/shop.py:{n}" for n in (2, 3, 4, 6)]

    def test_a_name_that_may_have_no_value_is_a_load_error(self) -> None:
        text = (
            "def g(call, facts):\n"
            "    if call.amount:\n"
            "        x = 1\n"
            "    if x == 1:\n"
            "        return permit()\n"
            "    return permit()\n"
        )
        assert "may have no value here" in faults(text)[0]

    def test_a_name_set_in_both_branches_has_a_value(self) -> None:
        text = (
            "def g(call, facts):\n"
            "    if call.amount:\n"
            "        x = 1\n"
            "    else:\n"
            "        x = 2\n"
            "    if x == 1:\n"
            "        return permit()\n"
            "    return permit()\n"
        )
        assert faults(text) == []


class TestRule2Refusals:
    def test_comprehensions_stand_inside_the_listed_built_ins(self) -> None:
        for name in ("any", "all", "sum", "min", "max", "len", "sorted", "count"):
            assert (
                faults(f"def g(call, facts):\n    x = {name}(c for c in call.codes if c > 1)\n    return permit()\n")
                == []
            )
        assert outcome("len([c for c in call.codes if c > 1]) == 2") == "permit"
        assert outcome("len({c % 2 for c in call.codes}) == 2") == "permit"
        assert outcome("sorted(-c for c in call.codes)[0] == -4") == "permit"
        assert outcome("max(row.n for row in call.rows) == 3") == "permit"

    def test_the_variable_of_a_comprehension_ends_with_it(self) -> None:
        assert (
            "no name `c`"
            in faults(
                "def g(call, facts):\n"
                "    x = any(c for c in call.codes)\n"
                "    if c:\n"
                "        return permit()\n"
                "    return permit()\n"
            )[0]
        )


class TestRule3Attributes:
    def test_only_declared_fields_and_arguments_are_read(self) -> None:
        assert "`Order` has no field `piad`; did you mean `paid`?" in faults(wrapped("r.piad"))[0]
        assert "no tool in scope has the argument `amuont`; did you mean `amount`?" in faults(wrapped("call.amuont"))[0]
        assert "there is no entity `Oder`; did you mean `Order`?" in faults(wrapped("facts.Oder('A').paid"))[0]

    def test_a_word_an_enumeration_never_takes_is_a_load_error(self) -> None:
        assert "`state` is never `opne`; did you mean `open`?" in faults(wrapped('r.state == "opne"'))[0]
        assert "`state` is never `x`" in faults(wrapped('r.state in ("open", "x")'))[0]
        assert (
            "`due` is a date, not text; write the constant with date(...)" in faults(wrapped('r.due > "2024-01-01"'))[0]
        )

    def test_the_parts_of_records_are_read_either_way(self) -> None:
        assert outcome('call.rows[1].n == call.rows[1]["n"] == get(call.rows[1], "n", 0) == 3') == "permit"

    def test_parts_of_the_key_need_no_look_up(self) -> None:
        completion = said(wrapped('r.order_id == "A" and facts.Line("B", 2).number == 2'))
        assert (completion.outcome, completion.reads) == ("permit", ())

    def test_keys_are_given_in_order_or_by_name(self) -> None:
        values = {Fact("Line", ("A", 1), "amount"): 5, Fact("Line", ("A", 1), "exists"): True}
        assert (
            outcome("facts.Line(call.order_id, 1).amount == facts.Line(number=1, order_id='A').amount == 5", values)
            == "permit"
        )
        assert "needs its key" in faults(wrapped("facts.Line('A').amount == 1"))[0]

    def test_text_and_date_methods(self) -> None:
        assert outcome('call.order_id.lower() == "a" and "ab".startswith("a") and " a ".strip() == "a"') == "permit"
        assert outcome('date("2024-05-15").weekday() == 2 and date("2024-05-15").year == 2024') == "permit"
        assert outcome('now().hour == 15 and (now() - time("2024-05-13")).days == 2') == "permit"


class TestRule4Arithmetic:
    def test_money_is_decimal_whatever_stands_beside_it(self) -> None:
        price = order(price=Decimal("19.99"))
        assert outcome("r.price * 3 == money('59.97')", price) == "permit"
        assert outcome("r.price == 19.99 and r.price + 0.01 == 20 and 19.99 == r.price", price) == "permit"
        assert outcome("money(19.99) == r.price and money('19.99') in [19.99]", price) == "permit"
        assert outcome("sum([r.price, r.price, 1]) == money('40.98')", price) == "permit"
        assert (
            outcome("round(r.price / 3, 2) == money('6.66') and -r.price < 0 and abs(-r.price) == r.price", price)
            == "permit"
        )

    def test_money_does_not_depend_on_the_hosts_context(self) -> None:
        import decimal

        with decimal.localcontext() as context:
            context.prec = 2
            assert outcome("r.price * 3 == money('370.35')", order(price=Decimal("123.45"))) == "permit"

    def test_dates_and_times(self) -> None:
        due = order(due=date(2024, 5, 20), made=datetime(2024, 5, 14, 16, 0))
        assert outcome("r.due - date(now()) == days(5) and r.due + days(1) == date('2024-05-21')", due) == "permit"
        assert outcome("now() - r.made < hours(24) and now() - r.made == hours(23)", due) == "permit"
        assert outcome("r.due > now() and now() < r.due and r.due == time('2024-05-20T00:00:00')", due) == "permit"
        assert (
            outcome("r.due - now() == hours(105) and r.due + hours(12) == time('2024-05-20T12:00:00')", due) == "permit"
        )
        assert outcome("hours(12) * 2 == days(1) and days(1) / hours(6) == 4", due) == "permit"

    def test_times_with_an_offset_are_compared_in_utc(self) -> None:
        made = datetime(2024, 5, 15, 16, 0, tzinfo=timezone(timedelta(hours=2)))
        assert (
            outcome("r.made == time('2024-05-15T14:00:00') == time('2024-05-15T14:00:00Z')", order(made=made))
            == "permit"
        )
        assert outcome("now() == time('2024-05-15T14:00:00')", now=made) == "permit"
        assert outcome("date('2024-05-15T23:30:00-05:00') == date('2024-05-16')") == "permit"

    def test_texts_and_lists_are_not_added(self) -> None:
        assert "cannot add text and text" in said(wrapped("call.order_id + call.order_id")).because


class TestRule5BuiltIns:
    @pytest.mark.parametrize(
        "condition",
        [
            "len(call.codes) == 3 and len(call.order_id) == 1 and len(call.rows[0]) == 2",
            "any([False, True]) and not any([]) and all([]) and not all([True, False])",
            "sum(call.codes) == 7 and min(call.codes) == 1 and max(3, 9, 2) == 9 and sorted([3, 1])[0] == 1",
            "count(row.ok for row in call.rows) == 1 and count([1, 0, 2]) == 2",
            "abs(-2) == 2 and round(2.567, 1) == 2.6 and round(2.5) == 2",
            "date('2024-05-15') == date(now()) and date('2024-05-15T23:00:00') == date('2024-05-15')",
            "lower('AB') == 'ab' and strip(' a ') == 'a'",
            "get(call.rows[0], 'none', 5) == 5 and get(call.codes, 9, 0) == 0 and get(call, 'note', 'x') == 'x'",
            "get(call, 'note') == None and get(get(call.rows[0], 'none'), 'x', 1) == 1",
            "now() == time('2024-05-15T15:00:00')",
            "call.codes[1:] == [2, 4] and call.codes[-1] == 4 and 'b' in 'abc' and 'n' in call.rows[0]",
            "{'gold': 3, 'silver': 2}['gold'] == 3",
            "1 < 2 < 3 and not 1 < 2 > 3 and len(call.codes) < sum(call.codes) <= 7",
            "call.tool == 'refund'",
        ],
    )
    def test_built_ins_do_what_they_say(self, condition: str) -> None:
        completion = said(wrapped(condition), tool="refund")
        assert completion.outcome == "permit", completion.because

    def test_malformed_constants_are_found_at_load(self) -> None:
        assert "is not a date" in faults(wrapped("r.due > date('2024-13-01')"))[0]
        assert "is not an amount" in faults(wrapped("r.price > money('ten')"))[0]

    def test_done_counts_earlier_accepted_calls(self) -> None:
        source = Table(EXISTS, done=2)
        assert outcome('done("refund", order_id=call.order_id) == 2', source=source) == "permit"
        assert source.asked[:1] == [("refund", {"order_id": "A"})]
        assert "there is no tool `refnud`; did you mean `refund`?" in faults(wrapped('done("refnud") == 1'))[0]


class TestRule6Loops:
    def test_sets_serve_in_only(self) -> None:
        assert outcome("call.order_id in {'A', 'B'} and call.order_id not in {call.other_id}") == "permit"
        assert "a set stands only on the right of `in`" in faults(wrapped("len({1, 2}) == 2"))[0]

    def test_range_takes_constants(self) -> None:
        assert outcome("x == 3", before="x = 0\nfor i in range(1, 3):\n    x = x + i") == "permit"


class TestRule7Budget:
    def test_ten_thousand_steps_and_no_more(self) -> None:
        few = "for i in range(10):\n    for j in range(90):\n        x = j"
        many = "for i in range(101):\n    for j in range(100):\n        x = j"
        assert outcome("True", before="x = 0\n" + few) == "permit"
        completion = said(wrapped("True", "x = 0\n" + many))
        assert completion.outcome == "failed"
        assert "more than 10000 steps" in completion.because

    def test_caps_hold_on_entry_and_on_results(self) -> None:
        for arguments in ({"note": "x" * 10_001}, {"note": 10**19}, {"note": [0] * 10_001}, {"note": float("nan")}):
            assert outcome("call.note == 1", arguments={**ARGUMENTS, **arguments}) == "failed"
            assert outcome("call.note[0] == 1", arguments={**ARGUMENTS, "note": list(arguments.values())}) == "failed"
            assert outcome("r.owner == 'x'", order(owner=arguments["note"])) == "failed"


class TestRule8Failures:
    @pytest.mark.parametrize(
        ("condition", "reason"),
        [
            ("call.rows[0].none == 1", "there is no key `none`; use get()"),
            ("call.rows[9].n == 1", "there is no item 9 among 2"),
            ("1 / (call.amount - 3) == 1", "division by zero"),
            ("call.note == 1", "the call has no argument `note`; use get(call, ...)"),
            ("call.order_id < 3", "a text and a number do not go together"),
            ("r.due > 3", "a date and a number do not go together"),
            ("facts.Order(call.codes).paid", "a list is not a key of Order"),
            ("facts.Order(None).paid", "nothing is not a key of Order"),
            ("min([]) == 1", "min of nothing"),
            ("r.weight > 1", "weight is broken"),
        ],
    )
    def test_failure_names_its_reason_and_line(self, condition: str, reason: str) -> None:
        values = order(due=date(2024, 5, 5), weight=ValueError("weight is broken"))
        completion = said(wrapped(condition), values)
        assert completion.outcome == "failed"
        assert completion.because.startswith("guards/shop.py:3: ")
        assert reason in completion.because

    def test_failure_on_any_path_fails_the_completion(self) -> None:
        assert outcome("r.paid and 1 / (call.amount - 3) > 1") == "failed"
        assert outcome("r.paid or 1 / (call.amount - 3) > 1") == "failed"


class TestRule9Forks:
    def test_an_unknown_comparison_nobody_branches_on_does_not_fork(self) -> None:
        completion = said(wrapped("True", "x = r.size > 3\ny = r.state in ('open', 'sent')\nz = r.size + 1"))
        assert (completion.outcome, completion.paths, completion.lacking) == ("permit", 1, ())

    @pytest.mark.parametrize("condition", ["r.paid", "not r.paid", "r.paid or r.gift", "(True if r.paid else False)"])
    def test_branches_fork(self, condition: str) -> None:
        assert outcome(condition) == "undetermined"

    @pytest.mark.parametrize("condition", ["r.paid or not r.paid", "(r.paid if r.gift else True) or not r.paid"])
    def test_both_ways_alike_is_decided(self, condition: str) -> None:
        assert outcome(condition) == "permit"

    def test_any_and_all_fork(self) -> None:
        assert outcome("any([r.paid, True])") == "permit"
        assert outcome("all([r.paid, r.gift])") == "undetermined"
        assert outcome("any(row.n == 1 and r.paid for row in call.rows)") == "undetermined"


class TestRule10Constraints:
    @pytest.mark.parametrize(
        "impossible",
        [
            "r.size > 3 and r.size < 4",
            "r.size + 1 > 3 and 2 - r.size >= 0",
            "r.size * 1 > 3 and r.size * 1 <= 3",
            "r.due > date('2024-05-01') and r.due < date('2024-05-02')",
            "r.due > now() and r.due <= date(now())",
            "r.made > now() and now() - r.made >= hours(0)",
            "now() - r.made < hours(24) and r.made < now() - hours(25)",
            "r.price < 5 and r.price >= 5.0",
            "r.weight > 2.5 and r.weight < money('2.5')",
            "r.state != 'open' and r.state != 'sent' and r.state != 'done'",
            "r.state == 'open' and r.state == 'sent'",
            "r.owner == 'x' and r.owner in ('y', 'z')",
            "r.paid and r.paid == False",
            "len(r.items) < 0",
            "len(r.items) > 2 and not r.items",
            "r.address.city == 'x' and r.address.city == 'y'",
            "sum(r.items) > 3 and sum(r.items) < 2",
            "any(i > 3 for i in r.items) and not any(i > 3 for i in r.items)",
            "lower(r.owner) == 'a' and lower(r.owner) == 'b'",
            "r.size in (1, 2) and r.size > 2",
            "1 < r.size < 2",
        ],
    )
    def test_impossible_branches_are_not_taken(self, impossible: str) -> None:
        assert outcome(impossible) == "deny"

    @pytest.mark.parametrize(
        "possible",
        [
            "r.size > 3 and r.size < 5",
            "r.price > 3 and r.price < 4",
            "r.weight + 0.1 > 0.3 and r.weight <= 0.2",
            "r.weight + 1 <= 1 and r.weight > 0",
            "r.size + 0.1 <= 10000000000000000 and r.size >= 10000000000000000",
            "r.size <= 3 and r.size == 3",
            "r.size <= 3 and r.size >= 3",
            "r.price <= 3 and not r.price < 3",
            "r.made > now() and r.made < now() + hours(1)",
            "r.owner != 'x' and r.owner != 'y'",
            "r.size == None",
            "r.size == True",
            "r.paid == 1",
            "r.size in (True, False)",
            "r.owner < 'x'",
        ],
    )
    def test_possible_branches_are_taken(self, possible: str) -> None:
        assert outcome(possible) == "undetermined"


class TestRule11TwoFacts:
    def test_the_same_question_has_one_answer_per_path(self) -> None:
        other = order("B", exists=True)
        two = "o = facts.Order(call.other_id)"
        assert outcome("r.size < o.size and not o.size > r.size", other, two) == "deny"
        assert outcome("r.size < o.size and r.size >= o.size", other, two) == "deny"
        assert outcome("r.owner == o.owner and o.owner != r.owner", other, two) == "deny"
        assert outcome("r.owner > o.owner and not o.owner < r.owner", other, two) == "deny"
        assert outcome("r.owner < o.owner and not r.owner > o.owner", other, two) == "undetermined"
        assert outcome("r.made - o.made < hours(1) and r.made - o.made > hours(2)", other, two) == "deny"
        assert outcome("r.size + o.size > 3 and o.size + r.size <= 3", other, two) == "deny"

    def test_a_comprehension_over_an_unknown_list_asks_with_what_it_takes_from_around(self) -> None:
        before = "n = 0\nfor c in call.codes:\n    if any(i > c for i in r.items):\n        n += 1"
        assert outcome("n == 1", before=before) == "undetermined"
        assert outcome("n in (0, 3)", before=before.replace("i > c", "i > 1")) == "permit"

    def test_different_questions_are_not_compared(self) -> None:
        other = order("B", exists=True, size=1)
        two = "o = facts.Order(call.other_id)\np = facts.Order('C')"
        assert outcome("r.size < p.size and p.size < o.size and r.size > 5", other, two) == "undetermined"


class TestRule12Stuck:
    @pytest.mark.parametrize(
        "condition",
        [
            "any(True for a in sorted(r.items))",
            "call.codes[r.size] == 1 or not call.codes[r.size] == 1",
            "r.owner.lower() == 'x'",
            "'abc'.startswith(r.owner)",
            "10 / r.size > 0 or not 10 / r.size > 0",
            "r.owner[:1] == 'x'",
            "len({x for x in [r.size, 1]}) == 1",
            "get(call.rows, r.size, 1) == 1",
        ],
    )
    def test_what_needs_the_value_ends_undetermined(self, condition: str) -> None:
        completion = said(wrapped(condition))
        assert completion.outcome == "undetermined"
        assert len(completion.lacking) == 1

    def test_looping_over_an_unknown_list_ends_undetermined(self) -> None:
        text = (
            "def g(call, facts):\n"
            "    for item in facts.Order(call.order_id).items:\n"
            "        return permit()\n"
            "    return permit()\n"
        )
        completion = said(text)
        assert (completion.outcome, names(completion.lacking)) == ("undetermined", ["Order[A].items"])

    def test_stuck_on_the_users_fact_asks_the_user(self) -> None:
        completion = said(
            "def g(call, facts):\n    for item in facts.Request.things:\n        return permit()\n    return permit()\n"
        )
        assert (completion.outcome, completion.lacking) == ("undetermined", ())
        assert names(completion.asked) == ["Request.things"]


class TestRule13UnknownKeys:
    def test_the_first_missing_link_is_named(self) -> None:
        completion = said(wrapped("facts.Owner(r.owner).vip"))
        assert names(completion.reads) == ["Order[A].owner"]
        assert names(completion.lacking) == ["Order[A].owner"]

    def test_once_the_link_is_known_the_next_is_named(self) -> None:
        completion = said(wrapped("facts.Owner(r.owner).vip"), order(owner="o1"))
        assert names(completion.reads) == ["Order[A].owner", "Owner[o1].vip"]
        assert names(completion.lacking) == ["Owner[o1].vip"]

    def test_things_with_one_unknown_key_part_stay_apart(self) -> None:
        condition = "facts.Line(r.owner, 1).amount > 3 and facts.Line(r.owner, 2).amount < 2"
        assert outcome(condition) == "undetermined"
        assert outcome("facts.Line(r.owner, 1).amount > 3 and facts.Line(r.owner, 1).amount < 2") == "deny"
        assert outcome("facts.Owner(r.owner).owner_id != r.owner") == "deny"


class TestRule14Limits:
    def test_exploring_stops_at_one_permit_and_one_deny(self) -> None:
        text = wrapped(" and ".join(f"facts.Order('{key}').paid" for key in "BCDE"))
        assert said(text, {Fact("Order", (key,), "exists"): True for key in "BCDE"}).paths == 2

    def test_exploring_stops_at_256_paths(self) -> None:
        keys = [f"k{n}" for n in range(10)]
        before = "".join(f"if facts.Order('{key}').paid:\n    x = 1\n" for key in keys)
        completion = said(wrapped("True", before), {Fact("Order", (key,), "exists"): True for key in keys})
        assert (completion.outcome, completion.paths, completion.because) == (
            "undetermined",
            256,
            "more than 256 paths",
        )

    def test_a_reachable_number_of_paths_is_explored_to_the_end(self) -> None:
        keys = [f"k{n}" for n in range(8)]
        before = "".join(f"if facts.Order('{key}').paid:\n    x = 1\n" for key in keys)
        completion = said(wrapped("True", before), {Fact("Order", (key,), "exists"): True for key in keys})
        assert (completion.outcome, completion.paths) == ("permit", 256)


def test_done_asks_for_a_tool_that_changes_something_and_for_its_arguments() -> None:
    writes = {"refund": frozenset({"order_id"})}
    strict = Vocabulary(VOCABULARY.entities, VOCABULARY.arguments, VOCABULARY.tools | {"look"}, writes)

    def wrong(call: str) -> list[str]:
        text = f'def g(call, facts):\n    if {call} > 0:\n        return permit()\n    return deny("no")\n'
        return [fault.message for fault in parse_guards(text, file="g.py", vocabulary=strict)[1]]

    assert wrong('done("refund", order_id="A")') == []
    assert wrong('done("look")') == ["`look` changes nothing, so nothing is done by it"]
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
        assert faults(twice + "def f(x):\n    return x.total +\n")[0].startswith("guards/shop.py:12: not python")
        (only,) = faults(twice + "def f(x):\n    return x > limit\n")
        assert only.startswith("guards/shop.py:12: there is no name `limit`")
        assert "`f` can end without an answer" in faults(text + "def f(x):\n    if x:\n        return 1\n")[0]
        assert "only a guard says `deny`" in faults(text + "def f(x):\n    return deny('no')\n")[0]
        assert "there is no name `facts`" in faults(text + "def f(x):\n    return facts.Order(x).paid\n")[0]
        assert "takes 2 arguments" in faults(text + "def f(x, y):\n    return x\n")[0]
        assert "takes `facts` here" in faults(text + "def f(facts):\n    return facts.Request.sure\n")[0]
        assert "calls itself" in faults(text + "def f(x):\n    return g2(x)\n\ndef g2(x):\n    return f(x)\n")[0]

    def test_a_function_nobody_calls_and_one_that_is_called_as_a_guard_are_told(self) -> None:
        text = "def g(call, facts):\n    return permit()\n\ndef a(x):\n    return b(x)\n\ndef b(x):\n    return a(x)\n"
        assert ["no guard calls `a`" in faults(text)[0], "no guard calls `b`" in faults(text)[1]] == [True, True]
        text = "def g(call, facts):\n    return h(call, facts)\n\ndef h(call, facts):\n    return permit()\n"
        _, wrong = parse_guards(text, file="g.py", vocabulary=VOCABULARY, policies=("g", "h"))
        assert [fault.message for fault in wrong] == ["a return gives permit(...) or deny(...)"]

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
        assert "`zip` stands only in" in faults(wrapped("len(zip(call.codes, call.codes)) == 1"))[0]
        assert "each turn gives 2 values" in faults(wrapped("any(a for a, b, c in enumerate(call.codes))"))[0]
        assert "a loop has one name" in faults(wrapped("any(a for a, b in call.rows)"))[0]
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
    assert "a return gives" in faults("def g(call, facts):\n    return permit() if call.amount else 3\n")[0]


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
