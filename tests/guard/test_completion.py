"""What an evaluation reports beside its answer: completions, reads, what is lacking, coverage."""

import copy
from typing import Any

from bylaw.facts.entity import ABSENT, Fact
from bylaw.guard import evaluate

from .asking import all_said, names, outcome, said, wrapped
from .shop import ARGUMENTS, NOW, guard, order, request
from .twin import Table


class TestAbsence:
    def test_reading_a_field_of_an_absent_thing_denies(self) -> None:
        completion = said(wrapped("r.paid"), order(paid=ABSENT))
        assert (completion.outcome, completion.because) == ("deny", "no such Order `A`")

    def test_a_thing_nobody_saw_may_not_exist(self) -> None:
        completion = said(wrapped("r.size > 3 or r.size <= 3"), source=Table({}))
        assert (completion.outcome, names(completion.lacking)) == ("undetermined", ["Order[A].size"])
        assert outcome("r.exists and (r.size > 3 or r.size <= 3)", source=Table({})) == "undetermined"

    def test_what_does_not_exist_on_a_path_has_no_fields_there(self) -> None:
        text = (
            "def g(call, facts):\n"
            "    r = facts.Order(call.order_id)\n"
            "    if not r.exists:\n"
            "        if r.paid:\n"
            "            return permit()\n"
            "        return permit()\n"
            '    return deny("no")\n'
        )
        assert said(text, source=Table({})).outcome == "deny"

    def test_a_field_read_before_the_question_of_existence_ends_in_denial_all_the_same(self) -> None:
        before = "size = r.size\nif not r.exists:\n    return permit()"
        assert outcome("False", before=before, source=Table({})) == "deny"
        for condition in ("not r.exists", "r.exists == False"):
            assert outcome(condition, before="size = r.size", source=Table({})) == "deny"


class TestCompletions:
    def test_user_facts_split_and_system_facts_fork(self) -> None:
        condition = 'facts.Request.reason == "lost" and r.paid'
        lost, other = all_said(wrapped(condition))
        assert str(lost.assume) == "Request.reason = lost"
        assert (lost.outcome, names(lost.lacking), names(lost.asked)) == (
            "undetermined",
            ["Order[A].paid"],
            ["Request.reason"],
        )
        assert (str(other.assume), other.outcome, other.lacking) == ("Request.reason = late or other", "deny", ())

    def test_assumptions_given_back_stay_inside_their_completion(self) -> None:
        condition = 'facts.Request.reason == "lost" and facts.Request.wants > 2'
        for completion in all_said(wrapped(condition)):
            assert said(wrapped(condition), assume=completion.assume).outcome == completion.outcome
            assert said(wrapped(condition), assume=completion.assume).assume == completion.assume

    def test_a_user_fact_that_is_known_is_not_asked(self) -> None:
        completion = said(wrapped('facts.Request.reason == "lost"'), request(reason="lost"))
        assert (completion.outcome, completion.asked, completion.reads) == ("permit", (), ())

    def test_an_unknown_clock_is_a_question_to_the_host(self) -> None:
        one, other = all_said(wrapped("now() - r.made < hours(24)"), order(made=NOW), now=None)
        assert {one.outcome, other.outcome} == {"permit", "deny"}
        assert names(one.asked) == ["context.now"]

    def test_too_many_completions_give_one_undetermined(self) -> None:
        before = "".join(f"if facts.Request.wants == {n}:\n    x = 1\n" for n in range(80))
        completion = said(wrapped("True", before))
        assert completion.outcome == "undetermined"
        assert "more than 64 ways" in completion.because

    def test_context_facts_are_no_look_ups(self) -> None:
        first, second = all_said(wrapped('facts.context.principal == "kim"'))
        assert (first.reads, names(first.asked), second.outcome) == ((), ["context.principal"], "deny")


class TestReads:
    def test_reads_are_unique_and_in_order(self) -> None:
        facts = order(paid=False, gift=True, size=3)
        completion = said(wrapped("r.paid or r.size > 2 and r.gift and r.size < 9"), facts)
        assert names(completion.reads) == ["Order[A].paid", "Order[A].size", "Order[A].gift"]

    def test_reads_end_with_the_first_unknown(self) -> None:
        completion = said(wrapped("r.paid and r.size > 3 and r.gift"), order(paid=True))
        assert names(completion.reads) == ["Order[A].paid", "Order[A].size"]
        assert names(completion.lacking) == ["Order[A].size", "Order[A].gift"]

    def test_what_a_deny_text_shows_is_not_read(self) -> None:
        text = (
            "def g(call, facts):\n"
            "    r = facts.Order(call.order_id)\n"
            '    return deny(f"{r.size} of {call.rows[9].x}, {call.amount}")\n'
        )
        completion = said(text)
        assert (completion.outcome, completion.reads, completion.because) == ("deny", (), "... of ..., ...")
        good = 'def g(call, facts):\n    return deny(f"{facts.Order(call.order_id).size} is over {call.amount}")\n'
        assert said(good, order(size=7)).because == "7 is over 3"
        assert said(good).because == "... is over 3"

    def test_of_several_denials_the_words_of_the_first_are_told(self) -> None:
        for words, told in (('"paid"', "paid"), ('f"paid {call.amount}"', "paid 3")):
            before = f"if r.paid or r.gift:\n    return deny({words})"
            completion = said(wrapped("False", before))
            assert (completion.outcome, completion.because, completion.paths) == ("deny", told, 3)
            assert said(wrapped("False", before.replace("or", "and"))).because == told
            assert said(wrapped("False", before.replace("r.paid or", "not r.paid or"))).because == told


SEEN = (
    "def g(call, facts):\n"
    '    if any(o.size > 2 for o in facts.Order.seen(owner="kim")):\n'
    "        return permit()\n"
    '    return deny("no")\n'
)


class TestSeen:
    def members(self, complete: bool = True, **sizes: int | None) -> Table:
        facts: dict[Fact, Any] = {}
        for key, size in sizes.items():
            facts |= order(key, owner="kim", exists=True) | ({} if size is None else order(key, size=size))
        return Table(facts, [(key,) for key in sizes], complete=complete)

    def test_one_sure_member_is_enough_and_only_its_reads_count(self) -> None:
        completion = said(SEEN, source=self.members(A=1, B=None, C=5, complete=False))
        assert (completion.outcome, completion.lacking, completion.paths) == ("permit", (), 1)
        assert names(completion.reads) == ["Order[C].owner", "Order[C].size"]

    def test_none_among_all_is_false_and_all_reads_count(self) -> None:
        completion = said(SEEN, source=self.members(A=1, B=2))
        assert completion.outcome == "deny"
        assert names(completion.reads) == ["Order[A].owner", "Order[A].size", "Order[B].owner", "Order[B].size"]

    def test_none_among_some_is_unknown(self) -> None:
        completion = said(SEEN, source=self.members(A=1, complete=False))
        assert completion.outcome == "undetermined"
        assert completion.lacking == (Fact("Order", None, "owner"),)
        assert completion.reads[-1] == Fact("Order", None, "owner")

    def test_unknown_members_fork(self) -> None:
        completion = said(SEEN, source=self.members(A=1, B=None))
        assert (completion.outcome, names(completion.lacking)) == ("undetermined", ["Order[B].size"])

    def test_what_one_path_decided_of_a_member_holds_on_that_path_alone(self) -> None:
        before = "    big = facts.Order(call.order_id).size > 2\n    if big:\n        big = True\n"
        text = SEEN.replace("(call, facts):\n", "(call, facts):\n" + before)
        assert said(SEEN, source=self.members(A=None)).outcome == "undetermined"
        completion = said(text, source=self.members(A=None))
        assert (completion.outcome, names(completion.lacking)) == ("undetermined", ["Order[A].size"])

    def test_the_world_run_prefers_a_member_that_was_seen(self) -> None:
        source = self.members(A=5, B=6, C=7)
        completion = said(SEEN, source=source, seen=lambda fact: fact.key == ("B",))
        assert names(completion.reads) == ["Order[B].owner", "Order[B].size"]
        completion = said(SEEN, source=source, seen=lambda fact: False)
        assert names(completion.reads) == ["Order[A].owner", "Order[A].size"]

    def test_conditions_and_inner_loops(self) -> None:
        text = SEEN.replace("o.size > 2 for o in", "o.size > c for o in").replace(
            'owner="kim"))', 'owner="kim") if o.size != 5 for c in call.codes)'
        )
        assert said(text, source=self.members(A=5)).outcome == "deny"
        assert said(text, source=self.members(A=5, B=4)).outcome == "permit"

    def test_the_source_is_asked_with_the_match(self) -> None:
        source = self.members(A=1)
        said(SEEN, source=source)
        assert source.asked[:1] == [("Order", {"owner": "kim"})]


def test_true_one_and_one_point_zero_are_keys_of_different_things() -> None:
    facts = order("true", size=1) | order(1, size=2) | order("1", size=3)
    text = wrapped("facts.Order(True).size == 1 and facts.Order(1).size == 2 and facts.Order(1.0).size == 3")
    completion = said(text, facts)
    assert (completion.outcome, len(completion.reads)) == ("permit", 3)


class TestPurity:
    def test_evaluation_changes_neither_arguments_nor_source(self) -> None:
        arguments, source = copy.deepcopy(ARGUMENTS), Table(order(size=3, items=[3, 1, 2], exists=True))
        before = copy.deepcopy(source.values)
        text = wrapped("sorted(r.items)[0] == 1 and sorted(call.codes)[0] == 1 and r.paid")
        first = evaluate(guard(text), arguments, source, now=NOW)
        assert evaluate(guard(text), arguments, source, now=NOW) == first
        assert (arguments, source.values) == (ARGUMENTS, before)

    def test_coverage_names_the_branches_taken(self) -> None:
        one = guard(
            "def g(call, facts):\n"
            "    x = 1 if call.amount > 2 else 2\n"
            "    for c in call.codes:\n"
            "        if c == 9:\n"
            '            return deny("no")\n'
            "    return permit()\n"
        )
        covered: set[int] = set()
        evaluate(one, ARGUMENTS, Table({}), coverage=covered)
        taken = [(branch.line, branch.kind) for branch in one.branches if branch.id in covered]
        missed = [(branch.line, branch.kind) for branch in one.branches if branch.id not in covered]
        assert sorted(taken) == [(2, "then"), (3, "loop"), (4, "else"), (6, "return")]
        assert sorted(missed) == [(2, "else"), (4, "then"), (5, "return")]

    def test_guards_show_where_they_stand(self) -> None:
        assert repr(guard("def g(call, facts):\n    return permit()\n")) == "<guard g at guards/shop.py:1>"
