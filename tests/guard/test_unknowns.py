"""Rules nine to fourteen of the guard language: what becomes of a guard that meets what is not known."""

import pytest

from bylaw.facts.entity import Fact

from .asking import names, outcome, said, wrapped
from .shop import order


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
            "has more than 256 paths",
        )

    def test_a_reachable_number_of_paths_is_explored_to_the_end(self) -> None:
        keys = [f"k{n}" for n in range(8)]
        before = "".join(f"if facts.Order('{key}').paid:\n    x = 1\n" for key in keys)
        completion = said(wrapped("True", before), {Fact("Order", (key,), "exists"): True for key in keys})
        assert (completion.outcome, completion.paths) == ("permit", 256)
