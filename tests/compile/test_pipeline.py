"""What becomes of answers: right ones make a pack, wrong ones are sent back, and what stays wrong is no check."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from bylaw.compile.assemble import assemble
from bylaw.compile.bench import Bench
from bylaw.compile.check import Check
from bylaw.compile.guards import replaced_numbers
from bylaw.compile.pipeline import CompileError, compile_pack
from bylaw.compile.span import Draft
from bylaw.compile.things import Things
from bylaw.errors import PackError
from bylaw.llm import Answer, Request
from bylaw.pack import Pack
from bylaw.policy.document import Document
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import read_yaml
from bylaw.review.check import check
from bylaw.trace import Call, Message, Result, Trajectory
from tests.compile.shop import (
    CARDS,
    CASES,
    COVERED,
    EXTRACTED,
    LIMIT,
    POLICY,
    THINGS,
    WINDOW,
    Scripted,
    sorted_answer,
    source,
)


def compiled(chat: Scripted) -> dict[str, Check]:
    return compile_pack(source(), chat)[0].checks


def files(chat: Scripted) -> dict[str, str]:
    return assemble(source(), compile_pack(source(), chat)[0], name="shop")


def test_right_answers_make_a_sound_pack_that_covers_the_document() -> None:
    report = check(Pack.from_files(files(Scripted())))
    assert report.is_sound
    assert [covered.sentence.text for covered in report.sentences if covered.state == "uncovered"] == [
        "We are glad that you are here."
    ]


def test_the_same_answers_make_the_same_bytes() -> None:
    assert files(Scripted()) == files(Scripted())


def test_a_policy_with_a_quote_that_is_not_in_the_document_is_sent_back_and_then_left_out() -> None:
    wrong = json.loads(json.dumps(EXTRACTED))
    wrong["policies"][0]["quotes"] = ["A refund is made within 40 days after delivery."]
    chat = Scripted(extract=[json.dumps(wrong), json.dumps(wrong)])
    work, _ = compile_pack(source(), chat)
    assert len(chat.asked("extract")) == 2
    assert "40 days" in chat.asked("extract")[1].messages[-1].content
    assert "refund-window" not in {draft.id for draft in work.drafts}
    assert work.first is not None
    assert "40 days" in work.first.dropped[0]


def test_a_quote_that_is_mended_when_sent_back_counts() -> None:
    wrong = json.loads(json.dumps(EXTRACTED))
    wrong["policies"][0]["quotes"] = ["A refund is made within thirty days after delivery."]
    chat = Scripted(extract=[json.dumps(wrong), json.dumps(EXTRACTED)])
    work, _ = compile_pack(source(), chat)
    assert "refund-window" in {draft.id for draft in work.drafts}


def test_sentences_that_no_policy_cites_are_asked_about_and_then_listed() -> None:
    chat = Scripted()
    work, _ = compile_pack(source(), chat)
    asked = chat.asked("cover")[0].messages[1].content
    assert "We are glad that you are here." in asked
    assert '1. "Today" is the day of the call.' in asked
    assert work.second is not None
    assert list(work.second.aside.values()) == ["a greeting"]


def test_an_input_that_divides_two_generations_is_ruled_on_and_becomes_a_case() -> None:
    loose = LIMIT.replace('amount <= money("200.00")', 'amount <= money("250.00")')
    ruled = json.dumps({"rulings": [{"number": 1, "want": "deny", "why": "up to $200.00"}]})
    chat = Scripted(guards=[WINDOW + loose, WINDOW + LIMIT], cases=CASES.replace("200.01", "300.01"), referee=ruled)
    made = compiled(chat)["refund-limit"]
    assert 'money("200.00")' in made.code, "the generation that the ruling bears out"
    assert made.divided > 0
    assert made.questions[0].about == "two generated versions disagreed"
    assert made.questions[0].input is not None
    assert any("two generated versions disagreed" in case["note"] and case["want"] == "deny" for case in made.cases)


def test_the_referee_sees_neither_what_a_case_wants_nor_what_guards_said() -> None:
    loose = LIMIT.replace('amount <= money("200.00")', 'amount <= money("250.00")')
    ruled = json.dumps({"rulings": [{"number": 1, "want": "deny", "why": "up to $200.00"}]})
    chat = Scripted(guards=[WINDOW + loose, WINDOW + LIMIT], referee=lambda _: ruled)
    compiled(chat)
    context, _, situations = chat.asked("referee")[0].messages[1].content.partition("The situations:")
    assert "want" not in situations
    assert "a cent over" not in situations
    assert "Customer[customer_id]:" in context
    assert "Order[order_id]:" not in context, "the situations show no order"


def test_a_guard_that_fails_a_case_is_mended_on_the_message_of_that_case() -> None:
    strict = WINDOW.replace("> days(30)", ">= days(30)")
    ruled = json.dumps({"rulings": [{"number": 1, "want": "permit", "why": "within 30 days"}]})
    chat = Scripted(guards=strict + LIMIT, referee=ruled, repair=WINDOW)
    made = compiled(chat)["refund-window"]
    assert made.repairs == 1
    assert "> days(30)" in made.code
    assert "on the last day" in chat.asked("repair")[0].messages[1].content


def test_a_guard_that_still_fails_after_every_repair_is_none_and_the_pack_does_not_load() -> None:
    strict = WINDOW.replace("> days(30)", ">= days(30)")
    ruled = json.dumps({"rulings": [{"number": 1, "want": "permit", "why": "within 30 days"}]})
    chat = Scripted(guards=strict + LIMIT, referee=ruled, repair=strict)
    made = files(chat)
    with pytest.raises(PackError, match="policy `refund-window` has no check"):
        Pack.from_files(made)
    accepted = made["policies.yaml"].replace(
        "- id: refund-window\n", "- id: refund-window\n  unenforced: {accepted_by: Ines, reason: by hand for now}\n"
    )
    Pack.from_files({**made, "policies.yaml": accepted})


def test_a_case_that_both_guards_fail_and_the_referee_too_is_corrected_and_told() -> None:
    wrong = CASES.replace("2025-02-16T09:00:00, want: deny", "2025-02-16T09:00:00, want: permit").replace(
        "a day late", "a day late but permitted"
    ) + (
        '- {note: long ago, policy: refund-window, call: {refund: {order_id: A1, customer_id: C1, amount: "1.00"}},\n'
        '   facts: {"Order[A1]": {delivered_on: 2024-01-16}}, want: deny}\n'
    )
    ruled = json.dumps({"rulings": [{"number": 1, "want": "deny", "why": "31 days"}]})
    made = compiled(Scripted(cases=wrong, referee=ruled))["refund-window"]
    assert made.code
    assert [each.about for each in made.questions] == ["a case that was corrected"]


def test_a_guard_that_never_denies_is_a_failure_even_without_a_case_that_says_so() -> None:
    idle = "def refund_window(call, facts):\n    return permit()\n"
    only = "\n".join(line for line in CASES.splitlines() if line)
    ruled = json.dumps({"rulings": [{"number": 1, "want": "unclear", "why": "it says nothing"}]})
    made = compiled(Scripted(guards=idle + LIMIT, cases=only, referee=ruled, repair=idle))["refund-window"]
    assert not made.code
    assert "denies no case and none of" in made.failed


def test_a_guard_outside_the_language_is_sent_back_with_its_line() -> None:
    foreign = "def refund_window(call, facts):\n    import os\n    return permit()\n"
    chat = Scripted(guards=[foreign + LIMIT, WINDOW + LIMIT, WINDOW + LIMIT])
    assert compiled(chat)["refund-window"].code
    assert "line 2" in chat.asked("guards")[-1].messages[-1].content


def test_what_cannot_be_checked_is_said_with_its_reason() -> None:
    chat = Scripted(guards="# cannot refund-window: no tool shows the day\n" + LIMIT)
    assert compiled(chat)["refund-window"].failed == "no tool shows the day"


def test_of_cases_that_break_off_twice_those_before_the_break_count() -> None:
    cut = CASES.rstrip() + '\n- note: "one more\n  policy: refund-'
    chat = Scripted(cases=[cut, cut])
    work, _ = compile_pack(source(), chat)
    assert "not the YAML asked for" in chat.asked("cases")[1].messages[-1].content
    whole, _ = compile_pack(source(), Scripted())
    assert {name: len(check.cases) for name, check in work.checks.items()} == {
        name: len(check.cases) for name, check in whole.checks.items()
    }


def test_a_rule_that_fails_its_cases_is_sent_back() -> None:
    idle = "predicates:\n  refunds: {tool: refund}\nrules:\n  - {id: confirm-refunds, formula: ALWAYS (NOT refunds)}\n"
    from tests.compile.shop import RULES

    ruled = json.dumps({"rulings": [{"number": 1, "want": "kept", "why": "it was agreed to"}]})
    chat = Scripted(rules=[idle, RULES], referee=ruled)
    made = compiled(chat)["confirm-refunds"]
    assert made.rules is not None
    assert made.repairs == 1


def test_things_that_do_not_load_end_the_work_with_what_is_wrong() -> None:
    with pytest.raises(CompileError, match="not a tool"):
        compile_pack(source(), Scripted(things="tools: {get_ordre: {effect: read}}"))


def test_requests_grow_with_sentences_and_policies_and_carry_only_their_own_part() -> None:
    chat = Scripted()
    compile_pack(source(), chat)
    assert sum(len(requests) for requests in chat.rounds) == 10
    guard = chat.asked("guards")[0].messages[1].content
    assert "wait for a yes" not in guard
    assert {request.attempt for request in chat.asked("guards")} == {1, 2}


def test_what_new_checks_say_of_recorded_conversations_is_shown_to_the_reviewer() -> None:
    call = Call("refund", {"order_id": "A1", "customer_id": "C1", "amount": "900.00"}, turn=2)
    logs = [Trajectory("ada", (Message("user", "Hello.", 1), call, Result(1, '{"ok": true}', tool="refund")))]
    given = msgspec.structs.replace(source(), trajectories=logs)
    made = assemble(given, compile_pack(given, Scripted())[0], name="shop")
    noted = read_yaml(made["compiled.yaml"], file="compiled.yaml").data["policies"]
    assert noted["refund-limit"]["in_logs"]["violation"]["first"][0]["conversation"] == "ada"
    assert noted["confirm-refunds"]["in_logs"]["broken"]["calls"] == 1


HOSTILE = {
    "import": "    import os\n    return permit()",
    "inner import": "    __import__('os').system('true')\n    return permit()",
    "dunder": "    return permit() if call.__class__.__mro__ else deny('x')",
    "class of a fact": "    x = facts.Order(call.order_id).__dict__\n    return permit()",
    "open": "    open('/etc/passwd')\n    return permit()",
    "eval": "    eval('1')\n    return permit()",
    "exec": "    exec('x = 1')\n    return permit()",
    "endless": "    while True:\n        pass",
    "huge number": "    x = 10 ** 10 ** 10\n    return permit()",
    "huge text": "    x = 'a' * 10 ** 9\n    return permit()",
    "nested function": "    def inner():\n        return permit()\n    return inner()",
    "lambda": "    return (lambda: permit())()",
    "try": "    try:\n        return permit()\n    except Exception:\n        return permit()",
    "decorated call": "    getattr(facts, 'x')\n    return permit()",
    "format": "    return deny('{0.__class__}'.format(call))",
    "global": "    global x\n    x = 1\n    return permit()",
    "star": "    return permit(*[])",
    "walrus": "    if (x := 1):\n        return permit()\n    return permit()",
    "deep": f"    return permit() if {'not ' * 300}call.amount else deny('x')",
    "no end": "    if call.amount:\n        return permit()",
}


@pytest.fixture(scope="module")
def bench() -> Bench:
    data = read_yaml(THINGS, file="things").data
    return Bench(CARDS, Things(data["entities"], data["observations"], data["tools"]), {}, "2025-01-15T10:00:00")


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_code_never_loads(body: str, bench: Bench) -> None:
    policy = Policy("refund-window", "guard", "", ("refund",))
    guard, faults = bench.guard(policy, f"def refund_window(call, facts):\n{body}\n")
    assert guard is None
    assert faults


def test_what_stands_beside_hostile_code_is_not_lost() -> None:
    hostile = f"def refund_window(call, facts):\n{HOSTILE['import']}\n"
    made = compiled(Scripted(guards=hostile + LIMIT, repair=hostile))
    assert not made["refund-window"].code
    assert "import" in made["refund-window"].failed
    assert made["refund-limit"].code


@pytest.mark.parametrize("text", ["I am sorry, but no.", "{" * 5000])
def test_answers_that_make_no_sense_are_sent_back_and_end_in_words(text: str) -> None:
    for name in ("things", "extract"):
        with pytest.raises(CompileError):
            compile_pack(source(), Scripted(**{name: text}))
    for name in ("cover", "sort", "cases", "guards", "rules", "rule_cases"):
        chat = Scripted(**{name: text, "repair": text, "referee": text})
        work, _ = compile_pack(source(), chat)
        assert len(chat.asked(name)) >= 2
        assert assemble(source(), work, name="shop")["policies.yaml"]


def test_cases_of_a_pack_without_a_clock_bear_the_time_they_were_tried_at() -> None:
    """The prompt says what time it is where a case does not, so a case need not."""
    cases = CASES.replace("2025-01-16}}, now: 2025-02-15T09:00:00", "2024-12-16}}")
    cases = cases.replace("2025-01-16}}, now: 2025-02-16T09:00:00", "2024-12-15}}")
    given = msgspec.structs.replace(source(), now="")
    work = compile_pack(given, Scripted(cases=cases))[0]
    assert not work.checks["refund-window"].failed
    assert check(Pack.from_files(assemble(given, work, name="shop"))).is_sound


def test_a_document_that_names_its_day_is_tried_on_that_day() -> None:
    """Where logs bear their own times the pack has no clock, and requests must not name another day than the rules."""
    stated = Document(f"{POLICY}\nToday is March 9, 2026.\n")
    covered = json.loads(json.dumps(COVERED))
    covered["policies"][0]["quotes"].append("Today is March 9, 2026.")
    chat = Scripted(cover=json.dumps(covered))
    given = msgspec.structs.replace(source(), document=stated)
    work = compile_pack(given, chat)[0]
    assert "The time of the call is 2026-03-09T10:00:00" in chat.asked("cases")[0].messages[1].content
    made = assemble(given, work, name="shop")
    assert "now" not in read_yaml(made["pack.yaml"], file="pack.yaml").data
    assert check(Pack.from_files(made)).is_sound


def test_questions_about_what_the_time_decides_bear_the_time() -> None:
    other = WINDOW.replace("> days(30)", ">= days(30)") + LIMIT
    ruled = json.dumps({"rulings": [{"number": number, "want": "unclear", "why": "so"} for number in (1, 2, 3)]})
    chat = Scripted(guards=[WINDOW + LIMIT, other], referee=[ruled, ruled])
    for now, times in (("", 1), ("2025-03-01T10:00:00", 0)):
        given = msgspec.structs.replace(source(), now=now)
        chat = Scripted(guards=[WINDOW + LIMIT, other], referee=[ruled, ruled])
        made = assemble(given, compile_pack(given, chat)[0], name="shop")
        told = read_yaml(made["compiled.yaml"], file="compiled.yaml").data["policies"]["refund-window"]["questions"]
        inputs = [each["input"] for each in told if "input" in each]
        assert inputs
        assert sum("now" in each for each in inputs) >= times * len(inputs)
        assert times or not all("now" in each for each in inputs)


class Faulty(Scripted):
    """Its first answers about one prompt come back with a fault."""

    def __init__(self, name: str, *faults: Answer) -> None:
        super().__init__()
        self._name = name
        self._faults = list(faults)

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        answers = super().ask(requests)
        for place, request in enumerate(requests):
            if request.name == self._name and self._faults:
                answers[place] = self._faults.pop(0)
        return answers


def test_a_cut_answer_is_asked_again_with_more_room() -> None:
    chat = Faulty("cases", Answer(CASES[:400], "truncated", "cut"))
    assert not any(each.failed for each in compiled(chat).values())
    first, second = chat.asked("cases")
    assert second.max_tokens == 2 * first.max_tokens
    assert "truncated" in second.messages[-1].content
    assert "not the YAML" not in second.messages[-1].content


def test_a_refusal_is_told_and_nothing_is_said_of_its_form() -> None:
    refused = Answer("", "refused", "I cannot help.")
    chat = Faulty("guards", refused, refused, refused, refused)
    checks = compiled(chat)
    asked = chat.asked("guards")[2].messages[-1].content
    assert "- the answer was refused: I cannot help.\n\nAnswer again" in asked
    assert checks["refund-limit"].failed == "no guard was written: the answer was refused: I cannot help."


def test_figures_that_patterns_should_read_are_sent_back_and_never_read() -> None:
    """People say "no extra bags": a pattern would take that for none at all, and call two bags a violation."""
    figure: dict[str, Any] = {"name": "parcels", "type": "integer", "values": [], "question": "How many?"}
    figure |= {"argument": "", "sayings": [{"value": "0", "pattern": "no (extra )?parcels"}]}

    def kinds(request: Request) -> str:
        said = json.loads(sorted_answer(msgspec.structs.replace(request, messages=request.messages[:2])))
        for each in said["policies"]:
            each["user_facts"] = [figure] if each["id"] == "refund-limit" else []
        return json.dumps(said)

    chat = Scripted(sort=kinds)
    work = compile_pack(source(), chat)[0]
    assert any("people state figures in more ways" in each.messages[-1].content for each in chat.asked("sort"))
    assert work.request == {"parcels": {"type": "integer", "origin": "user", "question": "How many?"}}
    assert not work.checks["refund-limit"].failed


def test_an_argument_does_not_show_that_the_user_said_so() -> None:
    """Otherwise a guard would compare the argument that the agent passed with itself."""
    told: dict[str, Any] = {"name": "told", "type": "string", "values": [], "question": "How much?", "said": True}
    told |= {"argument": "amount", "sayings": [{"value": "", "pattern": "give me (.+)"}]}

    def kinds(request: Request) -> str:
        said = json.loads(sorted_answer(request))
        for each in said["policies"]:
            each["user_facts"] = [told] if each["id"] == "refund-limit" else []
        return json.dumps(said)

    field = compile_pack(source(), Scripted(sort=kinds))[0].request["told"]
    assert field == {"type": "string?", "origin": "user", "question": "How much?", "from": [{"says": "give me (.+)"}]}


FAR = """
- {note: yesterday, policy: refund-window, call: {refund: {order_id: A1, customer_id: C1, amount: "20.00"}},
   facts: {"Order[A1]": {delivered_on: 2025-02-14}}, now: 2025-02-15T09:00:00, want: permit}
- {note: long ago, policy: refund-window, call: {refund: {order_id: A1, customer_id: C1, amount: "20.00"}},
   facts: {"Order[A1]": {delivered_on: 2024-01-16}}, now: 2025-02-16T09:00:00, want: deny}
""" + CASES[CASES.index("- {note: up to the limit") :]


def test_a_guard_with_another_number_than_its_sentence_is_none_although_it_passes_its_cases() -> None:
    wrong = WINDOW.replace("30", "45")
    failed = compiled(Scripted(guards=wrong + LIMIT, cases=FAR, repair=wrong))["refund-window"]
    assert "the sentences name 30, which it does not use; it uses 45, which they do not name" in failed.failed
    mended = compiled(Scripted(guards=wrong + LIMIT, cases=FAR, repair=WINDOW))["refund-window"]
    assert not mended.failed
    assert mended.repairs == 1


@pytest.mark.parametrize(
    ("sentence", "code", "cases", "replaced"),
    [
        ("within 30 days", "days(60)", "", ["30"]),
        ("within 30 days", "days(60)", "delivered 30 days ago", []),
        ("within 30 days", "days(30)", "", []),
        ("within thirty days", "days(30)", "", []),
        ("within 3 weeks", "days(21)", "", []),
        ("a fee of 15 %", "money(call.amount) * 0.15", "", []),
        ("at most 12 months", "days(365)", "", []),
        ("within 5 to 7 business days", "call.amount == 1", "", []),
        ("up to $1,500.00", 'money("1500.00")', "", []),
        ("up to $1,500.00", 'money("2500.00")', "", ["1,500.00"]),
    ],
)
def test_numbers_that_stand_in_place_of_others(sentence: str, code: str, cases: str, replaced: list[str]) -> None:
    assert replaced_numbers(Draft("limit", sentence, quotes=(sentence,)), "", code, cases)[0] == replaced
