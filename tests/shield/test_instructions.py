"""What an agent's system prompt should say: an agent that follows it asks once, in words whose yes counts."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from bylaw import Pack, Shield, load_pack
from bylaw.rule.formula import atoms
from bylaw.shield.instructions import WriteInstruction, write_instructions
from tests.integrations.rental import CUSTOMER, EXTEND, FILES
from tests.shield.scenes import looked_up

SLOT = re.compile(r"\{(\w+)\}")


def pack(**changed: tuple[str, str]) -> Pack:
    """The rental desk with one replacement in each of these files."""
    files = dict(FILES)
    for name, (before, after) in changed.items():
        file = f"{name}.yaml"
        assert before in files[file]
        files[file] = files[file].replace(before, after)
    return Pack.from_files(files)


def told(pack: Pack) -> Mapping[str, WriteInstruction]:
    return {each.tool: each for each in write_instructions(pack)}


def test_each_write_has_its_sentence_and_the_look_ups_of_its_guards() -> None:
    assert told(pack()) == {
        "extend_rental": WriteInstruction(
            "extend_rental", ("get_rental(rental_id)",), ("Shall I extend rental {rental_id} to {new_end}?",)
        ),
        "refund": WriteInstruction(
            "refund", ("get_rental(rental_id)",), ("Shall I refund {amount} for rental {rental_id}?",)
        ),
    }


def test_an_agent_that_follows_them_asks_once() -> None:
    shield = Shield(pack())
    session = shield.session("c", context=CUSTOMER)
    session.user("Please keep R1 for me until the 20th of November 2026.")
    session.decide("get_rental", {"rental_id": "R1"})
    session.result({"rental_id": "R1", "customer_id": "C1", "paid": "400.00", "refunded": "0.00"})
    (question,) = told(shield.pack)["extend_rental"].questions
    assert question in shield.instructions()
    session.agent(SLOT.sub(lambda slot: EXTEND[slot[1]], question))
    session.user("Yes")
    assert session.decide("extend_rental", EXTEND).allowed


SHOWN = {"waive_invoice": {"amount": "7.00"}}
"""By tool the facts that are told with it."""


@pytest.mark.parametrize("name", ["clinic", "clinic/guarded", "tau-airline/tau2"])
@pytest.mark.parametrize("is_alone", [True, False])
def test_a_yes_to_every_sentence_of_a_built_in_pack_counts_if_it_stands_alone(name: str, is_alone: bool) -> None:
    held = load_pack(name)
    predicates = held.book.predicates
    rules = {rule.policy for rule in held.book.rules if any(predicates[each].consent for each in atoms(rule.formula))}
    asked = [(each.tool, question) for each in write_instructions(held) for question in each.questions]
    assert asked
    for tool, question in asked:
        shown = SHOWN.get(tool, {})
        parameters = held.schema.tools[tool].parameters
        arguments = {name: value_of(parameters[name]) for name in SLOT.findall(question) if name not in shown}
        session = Shield(held).session(tool)
        session.user("Hello, do that for number 7, please.")
        if shown:
            looked_up(session, "get_invoice", {"invoice_id": "7"}, {"invoice_id": "7", **shown})
        put = SLOT.sub(lambda slot, given=arguments | shown: str(given[slot[1]]).replace("_", " "), question)
        session.agent(put if is_alone else f"{put} It is free.")
        session.user("Yes, please.")
        decision = session.decide(tool, arguments)
        assert rules.isdisjoint(decision.policies) is is_alone, f"{tool}: {decision.feedback}"


def value_of(schema: Any) -> Any:
    return schema.get("enum", [7 if schema.get("type") in ("integer", "number") else "7"])[0]


def test_where_only_a_card_counts_no_sentence_is_given() -> None:
    found = told(pack(rules=("consented: told", "consented: card")))
    assert all(each.needs_card and not each.questions for each in found.values())
    assert "Call without asking; the answer contains a card." in Shield(pack(rules=("told", "card"))).instructions()


def test_what_the_user_asked_for_needs_no_question() -> None:
    found = told(pack(rules=("consented: told", "consented: requested")))
    assert all(not each.needs_card and not each.questions for each in found.values())


def test_facts_that_the_user_must_see_are_looked_up_and_written_with_their_currency() -> None:
    files = {
        "pack.yaml": "format: 1\nname: bank\ndocument: policy.md\n",
        "policy.md": "Ask before money is moved.\n",
        "policies.yaml": "policies: [{id: confirm, kind: rule, spans: [Ask before money is moved.]}]\n",
        "rules.yaml": FILES["rules.yaml"],
        "entities.yaml": (
            "entities:\n  Account: {key: to, read: get_account, fields: {fee: {type: money, currency: EUR}}}\n"
        ),
        "tools.yaml": """tools:
  get_account: {effect: read, parameters: {to: string}}
  transfer:
    effect: write
    put_as: "transfer {amount} to {to} for a fee of {fee}"
    show: {fee: facts.Account(call.to).fee}
    parameters: {to: string, amount: {type: string, currency: EUR}}
    changes: []
""",
    }
    shield = Shield(Pack.from_files(files))
    (found,) = write_instructions(shield.pack)
    assert found.look_ups == ("get_account(to)",)
    assert found.written == {"amount": "\u20ac1,234.50", "fee": "\u20ac1,234.50"}
    session = shield.session("c")
    session.user("Send 250 euros to AC-22, please.")
    session.decide("get_account", {"to": "AC-22"})
    session.result('{"to": "AC-22", "fee": "1.50"}')
    values = {"amount": "\u20ac250.00", "to": "AC-22", "fee": "\u20ac1.50"}
    session.agent(SLOT.sub(lambda slot: values[slot[1]], found.questions[0]))
    session.user("Yes")
    assert session.decide("transfer", {"to": "AC-22", "amount": "250.00"}).allowed


def test_a_rule_about_one_tool_asks_for_that_tool_alone() -> None:
    found = told(pack(rules=("{effect: write}", "{tool: refund}")))
    assert (bool(found["refund"].questions), bool(found["extend_rental"].questions)) == (True, False)


def test_a_tool_that_a_rule_leaves_out_needs_no_yes() -> None:
    rule = "  small: {tool: extend_rental}\nrules:\n"
    held = pack(rules=("rules:\n", rule))
    assert told(held)["extend_rental"].questions
    files = {
        **FILES,
        "rules.yaml": FILES["rules.yaml"].replace("rules:\n", rule).replace("(change", "((change AND NOT small)"),
    }
    assert not told(Pack.from_files(files))["extend_rental"].questions


def test_a_sentence_without_a_required_argument_is_not_given() -> None:
    found = told(pack(tools=("put_as: refund {amount} for rental {rental_id}", "put_as: refund {amount}")))
    assert (found["refund"].questions, found["refund"].needs_card) == ((), True)


def test_an_optional_argument_that_no_sentence_names_needs_a_card() -> None:
    given = "{rental_id: string, new_end: string}", "{rental_id: string, new_end: string, seats: integer?}"
    found = told(pack(tools=given))["extend_rental"]
    assert (bool(found.questions), found.unnamed, found.needs_card) == (True, ("seats",), False)


def test_a_rule_that_decides_on_no_call_asks_for_nothing() -> None:
    unenforced = "{id: confirm, unenforced: {accepted_by: ann, reason: later}, "
    found = told(pack(policies=("{id: confirm, ", unenforced)))
    assert not any(each.questions or each.needs_card for each in found.values())


def test_an_agent_whose_words_are_not_heard_is_told_no_sentence() -> None:
    text = Shield(pack()).instructions(heard=False)
    assert "Make the call without asking" in text
    assert "get_rental(rental_id)" in text
    assert "Shall I" not in text


def test_a_pack_that_asks_for_nothing_has_nothing_to_say() -> None:
    held = Pack.from_files(
        {
            "pack.yaml": "format: 1\nname: shop\ndocument: policy.md\n",
            "policy.md": "Be kind.\n",
            "policies.yaml": "policies: [{id: kind, kind: knowledge, spans: [Be kind.]}]\n",
            "tools.yaml": "tools:\n  pay: {effect: write, parameters: {amount: string}, changes: []}\n",
        }
    )
    assert (write_instructions(held), Shield(held).instructions()) == ((), "")
