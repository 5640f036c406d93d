"""Rules one to eight of the guard language, one section each: what may be written, and what it does."""

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from bylaw.facts.entity import Between, Fact, Field
from bylaw.facts.value import coerce
from bylaw.guard import NO_ASSUMPTIONS, Completion

from .asking import EXISTS, outcome, said, wrapped
from .shop import ARGUMENTS, faults, order
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

    def test_what_only_look_ups_say_is_a_name_like_any_other(self) -> None:
        text = """def g(call, facts):
    found = False
    for code in call.codes:
        if code == 2:
            found = True
    if found:
        return permit()
    return deny("no")
"""
        assert said(text).outcome == "permit"
        assert "`deny` is already defined" in faults(text.replace("found", "deny"))[0]

    def test_falling_off_the_end_is_a_load_error(self) -> None:
        (fault,) = faults("def g(call, facts):\n    if call.amount:\n        return permit()\n")
        assert fault == (
            "guards/shop.py:2: `g` can end without a `return`; end every path with return permit(...) or deny(...)"
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

    @pytest.mark.parametrize(
        ("expression", "instead"),
        [
            ("r.due < now() - timedelta(days=3)", "write days(n) or hours(n)"),
            ("now().date() > r.due", "write date(x)"),
            ("datetime.now() > r.due", "write now()"),
            ("int(call.amount) > 3", "write money(x)"),
            ('call.get("amount") == 3', 'write get(call, "name", default)'),
            ("len(call.codes, 1) > 3", "write `len(x)`"),
            ("r == None", "or `r.exists`"),
            ("facts.Order(paid=True).paid", "any(... for x in facts.Order.seen(paid=...))"),
        ],
    )
    def test_habits_of_python_are_told_what_to_write_instead(self, expression: str, instead: str) -> None:
        assert instead in " ".join(faults(wrapped(expression)))

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

    def test_amounts_in_two_currencies_do_not_go_together(self) -> None:
        pounds = order(price=coerce(Field("price", "money"), "£19.99"))
        for condition in (
            *("r.price == money('£19.99')", "r.price == 19.99", "r.price > 19", "r.price in [money('19.99')]"),
            *("r.price * 2 == money('39.98 GBP')", "r.price / money('£1') == money('€19.99') / money('€1')"),
            *("abs(-r.price) == round(r.price, 2)", "min(r.price, money('£50')) == r.price"),
        ):
            assert outcome(condition, pounds) == "permit", condition
        for condition in (
            *("r.price == money('€19.99')", "r.price != money('€5')", "r.price < money('$50')"),
            *("r.price + money('€1') > 0", "r.price / 2 < money('€50')", "r.price in [money('€19.99')]"),
            *(
                "max(r.price, money('€5')) == r.price",
                "abs(-r.price) == money('€1')",
                "round(r.price, 1) == money('€1')",
                "round(r.price) == money('€20')",
                "round(r.price) < money('€500')",
                "min(r.price, 5) < money('€500')",
                "max(5, r.price, money('7'), money('€9')) > 0",
                "min([money('€5'), money('4'), r.price]) == 4",
                "sorted([r.price, money('4'), money('€5')])[0] == 4",
                "sum([0, r.price]) == money('€1')",
                "r.price // 3 == money('€6')",
                "r.price % 3 == money('€6')",
            ),
        ):
            completion = said(wrapped(condition), pounds)
            assert completion.outcome == "failed", condition
            assert "convert one of them first" in completion.because

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

    def test_a_day_with_an_offset_is_the_day_that_is_written(self) -> None:
        assert outcome("date('2024-05-15T23:30:00-05:00') == date('2024-05-15')") == "permit"
        assert outcome("date('2024-05-16T00:30:00+14:00') == date('2024-05-16')") == "permit"

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

    @pytest.mark.parametrize("order", ["==", "!=", "<", ">="])
    def test_a_text_is_never_taken_for_an_amount(self, order: str) -> None:
        text = {**ARGUMENTS, "amount": "19.99"}
        for condition in (f"call.amount {order} due", f"due {order} call.amount"):
            for facts in (None, {Fact("Order", ("A",), "price"): Decimal("19.99")}):
                completion = said(wrapped(condition, "due = r.price"), facts, arguments=text)
                assert (completion.outcome, "cannot compare" in completion.because) == ("failed", True), condition
        assert outcome("call.amount in [r.price, '19.99']", arguments=text) == "permit"

    @pytest.mark.parametrize(
        ("condition", "listed"),
        [
            ("call.note in {}", [4711]),
            ("call.note not in {}", [4711]),
            ("call.note in {}", ["A", 4711.0]),
            ("any(x == call.note for x in {})", [4711]),
            ("any(x == '4711' for x in {})", [4711]),
            ("any(x in ['4711', 'A'] for x in {})", [4711]),
            ("any(x == 4711 for x in {})", ["4711"]),
            ("any(x in [4711] for x in {})", ["4711"]),
            ("[call.note] == {}", [4711]),
            ("money(call.note) in {}", ["4711"]),
            ("r.due in {}", ["2024-05-05"]),
            ("r.due not in {}", ["2024-05-05"]),
            ("any(x == r.due for x in {})", ["2024-05-05"]),
            ("time('2024-05-05T10:00:00') in {}", ["2024-05-05T10:00:00"]),
            ("any(x == True for x in {})", ["true"]),
            ("any(x != False for x in {})", ["no"]),
            ("len({{x for x in {}}}) == 1", ["4711", 4711]),
            ("call.note in {}[0]", [{4711: "a"}]),
            ("get({}[0], 4711, 'none') == 'none'", [{"4711": "a"}]),
        ],
    )
    def test_what_may_be_one_in_two_forms_is_neither_in_a_list_nor_out_of_it(
        self, condition: str, listed: list[Any]
    ) -> None:
        arguments = {**ARGUMENTS, "note": "4711", "codes": listed}
        completion = said(wrapped(condition.format("call.codes")), order(due=date(2024, 5, 5)), arguments=arguments)
        assert completion.outcome == "failed", completion

    def test_what_is_surely_in_a_list_or_out_of_it_is_told(self) -> None:
        arguments = {**ARGUMENTS, "note": "4711", "codes": [4711, "4711", "A"], "rows": [{"a": 1}, {"a": None}]}
        for condition in (
            *("call.note in call.codes", "call.note not in ['A', None]", "call.rows == call.rows"),
            *("'B' not in ['A', None, True]", "not any(x == 'gold' for x in call.codes)", "'a' in call.rows[0]"),
            *("any(x in ['A', 'gold'] for x in call.codes)", "not any(x == None for x in call.codes)"),
        ):
            assert outcome(condition, arguments=arguments) == "permit", condition

    @pytest.mark.parametrize("value", [None, "", " ", "false", "no"])
    @pytest.mark.parametrize(
        "condition",
        [
            "any(x.blocked for x in call.rows)",
            "all(not x.blocked for x in call.rows)",
            "count(x.blocked for x in call.rows) == 0",
            "call.rows[0].blocked and r.exists",
            "not call.rows[0]['blocked']",
            "get(call.rows[0], 'blocked', True)",
            "r.exists if call.rows[0].blocked else not r.exists",
            "any(call.codes)",
            "any(x for x in call.codes)",
            "count(call.codes) > 0",
            "any(r.exists for x in call.rows if x.blocked)",
        ],
    )
    def test_null_and_a_text_inside_a_record_are_neither_true_nor_false(self, condition: str, value: Any) -> None:
        for text in (condition, f"not ({condition})"):
            arguments = {**ARGUMENTS, "rows": [{"blocked": value}], "codes": [value]}
            assert outcome(text, arguments=arguments) == "failed", text

    def test_null_inside_a_record_is_none_where_the_guard_asks(self) -> None:
        arguments = {**ARGUMENTS, "rows": [{"back": None, "on": "2024-05-05"}], "codes": [None, 1], "note": ""}
        for condition in (
            *("call.rows[0].back == None", "call.rows[0]['back'] == None", "get(call.rows[0], 'back', 1) == None"),
            *("any(x.back == None for x in call.rows)", "any(x == None for x in call.codes)", "call.rows[0].on"),
            "not any(x.back != None and x.back for x in call.rows)",
            *("get(call.rows[0], 'none', True)", "not call.note", "call.codes[1] == 1"),
        ):
            assert outcome(condition, arguments=arguments) == "permit", condition
        assert outcome("back == None", before="back = call.rows[0].back", arguments=arguments) == "permit"
        assert outcome("call.rows[0].back == 1", arguments=arguments) == "failed"

    def test_an_unknown_text_among_numbers_fails_as_it_does_once_known(self) -> None:
        assert outcome("r.owner in call.codes", arguments={**ARGUMENTS, "codes": [4711]}) == "failed"
        assert outcome("r.owner == call.codes[0]", arguments={**ARGUMENTS, "codes": [date(2024, 5, 5)]}) == "failed"
        assert outcome("r.owner in call.codes", arguments={**ARGUMENTS, "codes": ["A", 4711]}) == "undetermined"
        found = "any(x.paid for x in facts.Order.seen(price=call.note))"
        assert outcome(found, arguments={**ARGUMENTS, "note": "19.99"}) == "failed"

    def test_values_that_do_not_go_together_are_named(self) -> None:
        completion = said(wrapped("r.exists and call.amount > 5"), arguments={**ARGUMENTS, "amount": "7"})
        assert completion.outcome == "failed"
        told = "guards/shop.py:3: cannot compare text with a number (argument `amount` is text)"
        assert completion.because == told

    def test_malformed_constants_are_found_at_load(self) -> None:
        assert "is not a date" in faults(wrapped("r.due > date('2024-13-01')"))[0]
        assert "is not an amount" in faults(wrapped("r.price > money('ten')"))[0]

    def test_bounds_of_a_count_settle_what_they_can(self) -> None:
        def asked(condition: str, least: int, most: int) -> str:
            return outcome(condition, source=Table(EXISTS, done=Between(least, most)))

        count = 'done("refund", order_id=call.order_id)'
        for condition in ("> 0", ">= 1", "<= 3", "!= 0", "< 4", "+ 1 > 1", "!= 7"):
            assert asked(f"{count} {condition}", 1, 3) == "permit", condition
        for condition in ("< 1", "> 3", "== 0", "== 4", "* 0 == 1"):
            assert asked(f"{count} {condition}", 1, 3) in ("deny", "failed"), condition
        assert asked(count, 1, 3) == "permit"
        for condition in ("> 1", "== 2", "<= 2", "* 2 > 3", "in [1, 2]"):
            assert asked(f"{count} {condition}", 1, 3) == "failed", condition
        assert asked(f"call.codes[{count}] == 2", 1, 3) == "failed"
        assert asked(f"r.price > 5 and {count} > 1", 1, 3) == "failed"
        assert "was called: between 0 and 1 times" in (
            said(wrapped(f"{count} > 0"), source=Table(EXISTS, done=Between(0, 1))).because
        )

    def test_done_counts_earlier_accepted_calls(self) -> None:
        source = Table(EXISTS, done=2)
        assert outcome('done("refund", order_id=call.order_id) == 2', source=source) == "permit"
        assert source.asked[:1] == [("refund", {"order_id": "A"})]
        assert "there is no tool `refnud`; did you mean `refund`?" in faults(wrapped('done("refnud") == 1'))[0]


class TestRule6Loops:
    def test_sets_serve_in_only(self) -> None:
        assert outcome("call.order_id in {'A', 'B'} and call.order_id not in {call.other_id}") == "permit"
        assert "a set is allowed only on the right of `in`" in faults(wrapped("len({1, 2}) == 2"))[0]

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
            ("call.rows[9].n == 1", "the list has 2 items, so `[9]` does not exist"),
            ("1 / (call.amount - 3) == 1", "division by zero"),
            ("call.note == 1", "the call has no argument `note`; use get(call, ...)"),
            ("call.order_id < 3", "cannot compare text with a number"),
            ("r.due > 3", "cannot compare a date with a number"),
            ("facts.Order(call.codes).paid", "a list is not a key of Order"),
            ("facts.Order(None).paid", "None is not a valid key of Order; test it first: `if x != None`"),
            ("min([]) == 1", "min of an empty list"),
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
