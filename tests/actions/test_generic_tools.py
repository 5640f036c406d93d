"""What binds a generic tool applies to its calls besides what binds their actions."""

import json
from typing import Any

import pytest

from bylaw import Shield
from bylaw.pack import Pack
from tests.actions.desk import CHECKOUT, audited, page
from tests.actions.desk import pack as desk
from tests.packs import made

BASE = {
    "pack.yaml": "format: 1\nname: desk\ndocument: policy.md\n",
    "policy.md": "At most one statement an hour.\n\nNever more than this.\n",
    "policies.yaml": "policies: [{id: few, kind: rule, spans: [At most one statement an hour.]}]\n",
    "tools.yaml": """tools:
  execute_sql: {effect: write, parameters: {query: string}}
actions:
  read_rows: {of: execute_sql, reads: {argument: query, as: sql, dialect: postgres, statements: [select]}, effect: read}
  add:
    of: execute_sql
    reads: {argument: query, as: sql, dialect: postgres, statements: [insert]}
    effect: write
    changes: []
""",
    "guards/g.py": 'def fine(call: add, facts):\n    """Never more than this."""\n    return permit()\n',
}
ADD = {"query": "INSERT INTO t VALUES (1)"}
LIMIT = "limits: [{id: few, tool: execute_sql, most: 1, within: 1h}]\n"
NAMED = """predicates:
  sql: {tool: execute_sql}
  earlier: {tool: read_rows}
  adds: {tool: add}
  many: {turn: several_writes}
rules:
"""


FREE = {**BASE, "policies.yaml": ""}


def ruled(rules: str, **more: str) -> Pack:
    return made({**BASE, "rules.yaml": rules, **more})


def test_a_limit_of_the_tool_counts_its_calls() -> None:
    with Shield(ruled(LIMIT), log=":memory:") as shield, shield.session("x") as session:
        assert session.decide("execute_sql", ADD).allowed
        session.result("INSERT 1")
        assert session.decide("execute_sql", ADD).answer == "deny"


def test_a_rule_of_the_tool_sees_its_calls() -> None:
    with Shield(ruled(NAMED + "  - {id: few, formula: ALWAYS NOT sql}\n")) as shield, shield.session("x") as session:
        assert session.decide("execute_sql", ADD).answer == "deny"
        assert any(verdict == "violation" for *_, verdict in audited(session, shield.pack))
    once = ruled(NAMED + "  - {id: few, formula: ALWAYS (sql IMPLIES ONCE earlier)}\n")
    with Shield(once) as shield, shield.session("y") as session:
        assert session.decide("execute_sql", ADD).answer == "deny"
        assert session.decide("execute_sql", {"query": "SELECT 1"}).answer == "deny"


def test_a_call_and_its_action_are_one_write() -> None:
    rules = NAMED + "  - {id: few, formula: ALWAYS ((sql OR adds) IMPLIES NOT many)}\n"
    with Shield(ruled(rules)) as shield, shield.session("x") as session:
        assert session.decide("execute_sql", ADD).allowed
        session.result("INSERT 1")
        assert not session.decide("execute_sql", {"query": f"{ADD['query']}; {ADD['query']}"}).allowed


@pytest.mark.parametrize(
    ("postures", "allowed"),
    [
        ({"posture": "advise", "tools": {"execute_sql": "enforce"}}, False),
        ({"posture": "enforce", "tools": {"execute_sql": "advise"}}, True),
        ({"posture": "enforce", "tools": {"execute_sql": "advise", "add": "enforce"}}, False),
    ],
)
def test_a_posture_of_the_tool_is_that_of_its_actions(postures: Any, allowed: bool) -> None:
    never = BASE["guards/g.py"].replace("permit()", 'deny("never")')
    with Shield(made({**FREE, "guards/g.py": never}), postures=postures) as shield:
        assert shield.session("x").decide("execute_sql", ADD).allowed == allowed


def test_what_no_policy_binds_goes_by_the_tool() -> None:
    unbound = {name: text for name, text in FREE.items() if not name.startswith("guards")}
    postures: Any = {"unguarded": "allow", "unguarded_tools": {"execute_sql": "deny"}}
    with Shield(made(unbound), postures=postures) as shield:
        assert shield.session("x").decide("execute_sql", ADD).answer == "deny"


def test_a_soft_rule_weighs_an_action_after_those_before_it() -> None:
    rules = "predicates:\n  adds: {tool: add}\nrules:\n"
    rules += "  - {id: few, formula: ALWAYS NOT (adds AND YESTERDAY ONCE adds), hard: false, weight: 5.0}\n"
    with Shield(ruled(rules)) as shield, shield.session("x") as session:
        assert session.decide("execute_sql", {"query": f"{ADD['query']}; {ADD['query']}"}).answer == "deny"
        assert session.decide("execute_sql", ADD).allowed


def test_a_call_that_may_have_been_the_action_uses_up_the_yes_to_it() -> None:
    """The history that is sent no longer has the page that the first order was made on."""
    history: list[dict[str, Any]] = [{"role": "user", "content": "Order it."}]

    def call(tool: str, arguments: dict[str, Any], result: str) -> list[dict[str, Any]]:
        name = f"call-{len(history)}"
        asked = {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        return [
            {"role": "assistant", "content": None, "tool_calls": [asked]},
            {"role": "tool", "tool_call_id": name, "content": result},
        ]

    click = ("browser_click", {"target": "e7"})
    with Shield(desk()) as shield:
        history += call("browser_navigate", {"url": "http://shop.test/checkout"}, page(CHECKOUT))
        card = shield.decide(history, *click).card
        assert card is not None
        history += [{"role": "assistant", "content": card.text}, {"role": "user", "content": "yes"}]
        assert shield.decide(history, *click).allowed
        start = len(history) - 2
        history += call(*click, "ordered")
        history += call("browser_navigate", {"url": "http://shop.test/checkout"}, page(CHECKOUT))
        assert not shield.decide(history, *click).allowed
        assert not shield.decide(history[start:], *click).allowed
