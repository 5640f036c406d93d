"""A shield and an audit of its conversation agree on what a refused call means for the rules."""

import pytest

from bylaw import Pack, Shield, verdicts
from tests.packs import made


def till(formula: str) -> Pack:
    return made(
        {
            "pack.yaml": "{format: 1, name: till, document: policy.md, shield: {unguarded: allow}}",
            "policy.md": "Be good.",
            "policies.yaml": "policies: [{id: good, kind: rule, spans: [Be good.]}]",
            "rules.yaml": f"""
predicates: {{pays: {{tool: pay}}, closes: {{tool: close}}}}
rules: [{{id: good, formula: "{formula}", hard: true}}]
""",
            "tools.yaml": """
tools:
  pay: {effect: write, changes: []}
  close: {effect: write, changes: []}
""",
        }
    )


@pytest.mark.parametrize(
    ("formula", "answers"),
    [
        ("ALWAYS NOT ONCE closes", ["deny", "allow"]),
        ("ALWAYS ((closes IMPLIES FALSE) AND (pays IMPLIES ONCE closes))", ["deny", "deny"]),
        ("ALWAYS (pays IMPLIES NOT ONCE closes)", ["allow", "deny"]),
    ],
)
def test_later_calls_do_not_see_a_call_that_the_shield_refused(formula: str, answers: list[str]) -> None:
    pack = till(formula)
    session = Shield(pack).session()
    session.user("Please.")
    seen: list[str] = []
    for tool in ("close", "pay"):
        decision = session.decide(tool, {})
        seen.append(decision.answer)
        session.result("done" if decision.allowed else decision.feedback)
    assert seen == answers
    judged = verdicts(pack, session.trajectory())
    assert judged.findings == ()
    broken = [bool(call.rules) for call in judged.calls]
    assert broken == [answer == "deny" for answer in answers]


def test_later_calls_see_a_call_that_the_tool_refused() -> None:
    pack = till("ALWAYS (pays IMPLIES NOT ONCE closes)")
    session = Shield(pack).session()
    session.user("Please.")
    assert session.decide("close", {}).allowed
    session.result("no such till", error=True, refused=True)
    assert session.decide("pay", {}).answer == "deny"
    assert [bool(call.rules) for call in verdicts(pack, session.trajectory()).calls] == [False, True]
