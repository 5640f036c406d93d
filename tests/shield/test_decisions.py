"""From evidence to decision: allow, deny, look this up first, ask; and never allow where nobody can tell."""
# pyright: basic, reportAttributeAccessIssue=false

from typing import Any

import pytest

from bylaw import BylawError, Pack, load_pack
from bylaw.errors import PackError
from bylaw.policy.tool import Postures
from bylaw.shield import Decision, Shield
from tests.engine.test_conversation import FILES
from tests.packs import made
from tests.shield.scenes import CANCEL, asked, looked_up, shop


@pytest.fixture(scope="module")
def clinic() -> Shield:
    return Shield(load_pack("clinic"))


def test_an_agent_without_a_yes_is_told_what_to_put_to_the_user(clinic: Shield) -> None:
    call = {"patient_id": "P121", "invoice_id": "I0255"}
    with clinic.session("c") as session:
        session.user("Please drop the bill I0255. I'm P121.")
        first = session.decide("waive_invoice", call).feedback
        assert first.startswith("Not done yet: look this up first")
        assert "confirm" not in first, "the user is asked once the invoice was looked up"
        invoice = {"patient_id": "P121", "amount": "96.00"}
        for name in ("I0255", "I0256"):
            looked_up(session, "get_invoice", {"invoice_id": name}, invoice | {"invoice_id": name})
        session.agent("I can waive invoice I0256 of patient P121 over $96.00. Shall I go ahead?")
        session.user("Yes, please.")
        other = session.decide("waive_invoice", call).feedback
        assert "card" not in other
        assert "Ask the user" not in other
        session.agent("I can waive invoice I0255 of patient P121 over $96.00. Shall I go ahead?")
        session.user("No, thanks.")
        assert "the user said no to this call" in session.decide("waive_invoice", call).feedback
        session.agent("I can waive invoice I0255 of patient P121 over $96.00. Shall I go ahead?")
        session.user("Yes, please.")
        assert "a clear yes" not in session.decide("waive_invoice", call).feedback


def test_what_was_looked_up_denies_with_its_sentence(clinic: Shield) -> None:
    session = asked(clinic.session())
    looked_up(session, "get_membership", {"membership_id": "M878"}, {"membership_id": "M878", "tier": "standard"})
    decision = session.decide("cancel_appointment", CANCEL)
    assert (decision.answer, decision.allowed) == ("deny", False)
    ground = decision.grounds[0]
    assert ground.because == "the fee is $40.00, not $0.00"
    assert "Standard members pay $40.00" in (ground.citations[0].text or "")


def test_a_broken_rule_is_a_ground_like_any_other(clinic: Shield) -> None:
    session = clinic.session()
    session.user("Cancel A0362. I'm P121.")
    decision = session.decide("cancel_appointment", CANCEL)
    assert decision.answer == "look_up"
    assert "confirm-before-change" in decision.policies
    assert decision.look_ups, "look-ups are named whatever wins"


@pytest.mark.parametrize(
    ("tool", "arguments", "on_error", "answer"),
    [
        ("erase_all", {}, "deny", "deny"),
        ("erase_all", {}, "ask", "ask"),
        ("refund", {"order_id": ["7"]}, "deny", "deny"),
    ],
)
def test_what_cannot_be_judged_is_never_allowed(
    tool: str, arguments: dict[str, Any], on_error: Any, answer: str
) -> None:
    guard = 'if call.order_id[9] == "x":\n        return permit()\n    return deny("no")\n'
    pack = shop(guards__g_py=f"def returned_first(call, facts):\n    {guard}")
    decision = Shield(pack, postures=Postures(on_error=on_error)).session().decide(tool, arguments)
    assert (decision.answer, decision.allowed) == (answer, False)


@pytest.mark.parametrize(
    ("shield", "answer", "allowed"),
    [
        ({}, "ask", False),
        ({"posture": "advise"}, "allow", True),
        ({"posture": "shadow"}, "allow", True),
        ({"tools": {"note": "advise"}}, "allow", True),
        ({"unguarded": "allow"}, "allow", True),
        ({"unguarded": "deny"}, "deny", False),
        ({"unguarded": "deny", "posture": "advise"}, "deny", True),
        ({"unguarded": "deny", "unguarded_tools": {"note": "allow"}}, "allow", True),
        ({"unguarded": "allow", "unguarded_tools": {"note": "ask"}}, "ask", False),
    ],
)
def test_a_write_that_no_policy_binds_is_asked_about_unless_the_pack_says_otherwise(
    shield: dict[str, Any], answer: str, allowed: bool
) -> None:
    tools = FILES["tools.yaml"] + "  note: {effect: write, parameters: {text: string}, changes: []}\n"
    decision = Shield(shop(tools_yaml=tools), postures=shield).session().decide("note", {"text": "x"})
    assert (decision.answer, decision.allowed, decision.unguarded) == (answer, allowed, True)


@pytest.mark.parametrize(
    ("predicate", "answer"),
    [
        ("tool: refund", "deny"),
        ("pattern: refund", "deny"),
        ("turn: several_calls", "deny"),
        ("effect: read", "deny"),
        ('tool: note, when: \'act.arguments["text"] == "y"\'', "allow"),
        ('code: \'act.tool == "note" and act.arguments["text"] == "y"\'', "allow"),
    ],
)
def test_a_rule_binds_the_writes_it_names_and_no_others(predicate: str, answer: str) -> None:
    quote = "Refund an order only after it was returned."
    pack = shop(
        tools_yaml=FILES["tools.yaml"] + "  note: {effect: write, parameters: {text: string}, changes: []}\n",
        rules_yaml=f"predicates: {{named: {{{predicate}}}}}\nrules: [{{id: ruled, formula: ALWAYS NOT named}}]\n",
        policies_yaml=FILES["policies.yaml"] + f"  - {{id: ruled, kind: rule, spans: [{{quote: {quote}}}]}}\n",
    )
    session = Shield(pack, postures={"unguarded": "deny"}).session()
    session.user("Hello.")
    assert session.decide("note", {"text": "x"}).answer == answer


def test_a_read_that_no_policy_binds_is_allowed() -> None:
    assert Shield(shop()).session().decide("get_order", {"order_id": "7"}).answer == "allow"


def test_a_word_for_unguarded_that_is_none_of_ours_is_an_error() -> None:
    with pytest.raises(ValueError, match="unguarded cannot be `maybe`"):
        Postures(unguarded="maybe")  # pyright: ignore[reportArgumentType]


def test_a_refused_call_changes_nothing_and_is_not_pending() -> None:
    tools = FILES["tools.yaml"].replace("changes: []", "changes: [Order]")
    session = Shield(shop(tools_yaml=tools)).session()
    looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": False})
    first = session.decide("refund", {"order_id": "7"}, id="a")
    second = session.decide("refund", {"order_id": "7"}, id="b")
    assert (first.answer, second.answer) == ("deny", "deny")


def test_a_caller_may_keep_the_history_itself() -> None:
    shield = Shield(shop())
    call = {"id": "c", "function": {"name": "get_order", "arguments": '{"order_id": "7"}'}}
    history = [
        {"role": "user", "content": "Refund 7."},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": '{"order_id": "7", "returned": true}'},
    ]
    assert shield.decide(history, "refund", {"order_id": "7"}).allowed
    assert not shield.decide(history[:1], "refund", {"order_id": "7"}).allowed


def history(*more: dict[str, Any]) -> list[dict[str, Any]]:
    calls = [
        {"id": "a", "function": {"name": "get_order", "arguments": '{"order_id": "7"}'}},
        {"id": "b", "function": {"name": "refund", "arguments": '{"order_id": "7"}'}},
    ]
    shown = {"role": "tool", "tool_call_id": "a", "content": '{"order_id": "7", "returned": true}'}
    return [{"role": "user", "content": "Refund 7."}, {"role": "assistant", "tool_calls": calls}, shown, *more]


def test_a_call_that_the_last_message_asks_for_does_not_see_what_came_beside_it() -> None:
    shield = Shield(shop())
    decision = shield.decide(history(), "refund", {"order_id": "7"})
    assert decision.answer == "look_up"
    refused = {"role": "tool", "tool_call_id": "b", "content": "look the order up first"}
    assert shield.decide(history(refused), "refund", '{"order_id": "7"}').allowed
    session = shield.session()
    with session.turn():
        looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
        assert session.decide("refund", {"order_id": "7"}).answer == "look_up"


def test_a_call_that_is_decided_does_not_make_its_own_facts_stale() -> None:
    tools = FILES["tools.yaml"].replace("changes: []", "changes: [Order]")
    shield = Shield(shop(tools_yaml=tools))
    first = [
        {**message, "tool_calls": message["tool_calls"][:1]} if "tool_calls" in message else message
        for message in history()
    ]
    asks = {"role": "assistant", "tool_calls": history()[1]["tool_calls"][1:]}
    assert shield.decide([*first, asks], "refund", {"order_id": "7"}).allowed
    assert shield.decide(first, "refund", {"order_id": "7"}).allowed


@pytest.mark.parametrize(
    "arguments", [None, 7, ["order_id"], '{"order_id": "7"', {"order_id": object()}, {}, {"order_id": None}]
)
def test_odd_arguments_are_refused_and_the_session_goes_on(arguments: Any) -> None:
    session = Shield(shop()).session()
    decision = session.decide("refund", arguments)
    assert (decision.answer, decision.allowed) == ("deny", False)
    assert decision.feedback
    with pytest.raises(BylawError, match="the tool name must be a string"):
        session.decide(None, {})  # type: ignore[arg-type]
    looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
    assert session.decide("refund", {"order_id": "7"}).allowed
    with pytest.raises(BylawError, match="not valid JSON data"):
        session.result(object())
    session.result("refunded")


def test_arguments_outside_of_what_the_tool_declares_are_not_allowed(clinic: Shield) -> None:
    session = clinic.session()
    session.agent("I'm about to record the telehealth consent of patient P1 as withdrawn. Shall I go ahead?")
    session.user("Yes, please.")
    for wrong in ({"kind": "nonsense", "status": "withdrawn", "patient_id": "P1"}, {"status": "withdrawn"}):
        assert not session.decide("record_consent", wrong).allowed
    assert session.decide("record_consent", {"patient_id": "P1", "kind": "telehealth", "status": "withdrawn"}).allowed


def test_what_the_agent_is_told_has_no_word_of_files_or_predicates(clinic: Shield) -> None:
    decision = clinic.session().decide("cancel_appointment", CANCEL)
    for word in ("guards/", ".py", "not spoke", "not agreed"):
        assert word not in decision.feedback
    assert decision.feedback.startswith("Not done yet: look this up first (cancel_appointment).")


def test_without_a_history_no_call_that_a_policy_binds_is_allowed(clinic: Shield) -> None:
    def decide(tool: str, arguments: dict[str, Any], lacks: str = "nobody said which conversation it is") -> Decision:
        return clinic.session(lacks=lacks).decide(tool, arguments)

    withdrawal = {"patient_id": "P1", "kind": "telehealth", "status": "withdrawn"}
    decision = decide("record_consent", withdrawal)
    assert (decision.answer, decision.allowed) == ("deny", False)
    assert "nobody said which conversation it is" in decision.feedback
    assert decide("get_patient", {"patient_id": "P1"}).allowed
    shop_decision = Shield(shop()).session(lacks="no key").decide("get_order", {"order_id": "7"})
    assert shop_decision.allowed


def test_where_nobody_heard_the_talk_a_rule_about_it_is_open(clinic: Shield) -> None:
    session = clinic.session()
    session.unheard()
    decision = session.decide("record_consent", {"patient_id": "P1", "kind": "telehealth", "status": "withdrawn"})
    assert (decision.answer, decision.policies) == ("ask", ("confirm-before-change",))


def test_calls_of_one_turn_do_not_see_each_other_even_if_made_one_after_the_other() -> None:
    session = Shield(shop()).session()
    looked_up(session, "get_order", {"order_id": "7"}, {"order_id": "7", "returned": True})
    session.resume_turn()
    assert session.decide("refund", {"order_id": "7"}).answer == "look_up"
    session.result("look it up first")
    assert session.decide("refund", {"order_id": "7"}).allowed


ONE_AT_A_TIME = {
    "policy_md": "Refund an order only after it was returned.\nMake one call at a time.\n",
    "policies_yaml": FILES["policies.yaml"]
    + "  - {id: one-call, kind: rule, definition: One call at a time., spans: [{quote: Make one call at a time.}]}\n",
    "rules_yaml": "predicates:\n  called: {message: false}\n  several: {turn: several_calls}\n"
    "rules:\n  - {id: one-call, formula: ALWAYS NOT (called AND several), weight: 1.0}\n",
}


def test_a_turn_is_decided_as_a_whole_and_its_shape_is_no_finding() -> None:
    session = Shield(shop(**{name: text for name, text in ONE_AT_A_TIME.items() if name != "policy_md"},
                          **{"policy.md": ONE_AT_A_TIME["policy_md"]})).session()  # fmt: skip
    calls = [("get_order", {"order_id": "7"}), ("get_order", {"order_id": "8"}, "b")]
    first, second = session.decide_turn("One moment.", calls)  # type: ignore[arg-type]
    assert (first.answer, first.policies) == ("deny", ("one-call",))
    # The first was not made, so the second is alone in what was made of the turn.
    assert (second.answer, second.allowed) == ("allow", True)
    session.result({"order_id": "8", "returned": True}, id="b")
    (alone,) = session.decide_turn("", [("get_order", {"order_id": "7"})])
    assert [each.id for each in (first, second, alone)] == ["1", "2", "3"]
    assert alone.allowed
    assert [call.id for call in session.trajectory().events if getattr(call, "refused", False)] == [""]
    from bylaw import verdicts

    assert verdicts(session.shield.pack, session.trajectory()).findings == ()


def test_a_fault_of_the_shield_itself_is_no_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    from bylaw.shield import grounds

    def fail(*_: Any) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr(grounds, "_GuardGrounds", fail)
    decision = Shield(shop()).session().decide("refund", {"order_id": "7"})
    assert (decision.answer, decision.allowed) == ("deny", False)
    assert "an internal error in the shield." in decision.feedback
    assert "RuntimeError: out of order" not in decision.feedback
    assert "RuntimeError: out of order" in decision.for_person


def test_rules_are_weighed_where_they_speak(clinic: Shield) -> None:
    session = clinic.session()
    session.user("Cancel A0362. I'm P121.")
    decision = session.decide("cancel_appointment", CANCEL)
    assert decision.probability is not None
    assert decision.interval is not None
    assert decision.interval[1] < 0.5
    assert [str(each) for each in decision.sentences]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            {"order_id": "7", "amount": "012"},
            "this call could not be checked: cannot compare text with a number (argument `amount` is text).",
        ),
        ({"order_id": "7"}, "this call could not be checked: the call has no argument `amount`."),
    ],
)
def test_an_agent_is_told_what_a_guard_cannot_answer_and_not_how_it_is_written(
    arguments: dict[str, Any], told: str
) -> None:
    tools = FILES["tools.yaml"].replace("{order_id: string}, changes", '{order_id: string, amount: "number?"}, changes')
    guard = (
        "def returned_first(call, facts):\n    if call.amount > 5:\n        return permit()\n    return deny('no')\n"
    )
    decision = Shield(shop(tools_yaml=tools, guards__g_py=guard)).session().decide("refund", arguments)
    assert told in decision.feedback
    assert not any(part in decision.feedback for part in ("guards/g.py", "instances", "get(call"))
    assert "guards/g.py:2" in decision.for_person


def test_the_text_of_a_number_is_held_to_the_guards_like_the_number() -> None:
    tools = FILES["tools.yaml"].replace("{order_id: string}, changes", "{order_id: string, amount: number}, changes")
    guard = "def returned_first(call, facts):\n    return permit() if call.amount > 5 else deny('no')\n"
    shield = Shield(shop(tools_yaml=tools, guards__g_py=guard))
    for amount, answer in ((12, "allow"), ("12", "allow"), ("12.50", "allow"), (4, "deny"), ("4", "deny")):
        assert shield.session().decide("refund", {"order_id": "7", "amount": amount}).answer == answer


def test_a_person_is_asked_for_what_the_host_did_not_say_in_words() -> None:
    entities = FILES["entities.yaml"] + "context: {work_shift: [day, night]}\n"
    guard = (
        "def returned_first(call, facts):\n    if facts.context.work_shift == 'day':\n        return permit()\n"
        "    return deny('no')\n"
    )
    decision = Shield(shop(entities_yaml=entities, guards__g_py=guard)).session().decide("refund", {"order_id": "7"})
    assert [each.text for each in decision.questions] == [
        'What is the "work shift": day or night? The host did not provide it: add it to the session\'s `context`.'
    ]


def test_of_several_sentences_those_that_bear_on_the_refusal_are_told() -> None:
    said = ("Cancelled early, an order is refunded in full.", "Cancelled late, half of the price is refunded.")
    files = {
        "pack.yaml": "format: 1\nname: refunds\ndocument: policy.md\n",
        "policy.md": " Ask the lead if in doubt. ".join((*said, "x" * 590 + ".")) + "\n",
        "tools.yaml": "tools:\n  refund: {effect: write, parameters: {amount: number}, changes: []}\n",
        "policies.yaml": (
            "policies:\n  - id: amount\n    kind: guard\n    tools: [refund]\n"
            f"    spans: [{said[0]!r}, {said[1]!r}, {'x' * 590 + '.'!r}]\n"
        ),
        "guards/refunds.py": (
            "def amount(call, facts):\n"
            "    if call.amount > 48:\n        return deny('half of the price is refunded, 48.00')\n"
            "    return permit()\n"
        ),
    }
    told = Shield(made(files)).session().decide("refund", {"amount": 96}).feedback
    assert f'The policy says: "{said[0]} ... {said[1]}"' in told
    assert "xxx" not in told


def test_a_misspelt_name_under_shield_is_an_error_with_its_line() -> None:
    shield = "shield:\n  unguarded_tools: {cancle_order: deny}\n  approval:\n    stands_in: [refunnd]\n"
    with pytest.raises(PackError) as caught:
        Pack.from_files(FILES | {"pack.yaml": FILES["pack.yaml"] + shield})
    faults = [str(each) for each in caught.value.faults if "`shield` names" in str(each)]
    assert any("policy `refunnd`, which does not exist" in each for each in faults)
    assert any("tool `cancle_order`, which does not exist" in each for each in faults)
