"""A number in a sentence of the pack's is the number, however people write it; a text is the text."""

from typing import Any

import pytest

from bylaw import Pack, Shield

FILES = {
    "pack.yaml": "format: 1\nname: bank\ndocument: policy.md\n",
    "policy.md": "Ask before money is moved.\n",
    "policies.yaml": "policies:\n  - {id: ask, kind: rule, spans: [Ask before money is moved.]}\n",
    "tools.yaml": "tools:\n  pay: {effect: write, put_as: 'pay {amount} in {parts} parts', changes: [], "
    "parameters: {amount: number, parts: integer}}\n",
    "rules.yaml": "predicates: {change: {effect: write}, agreed: {consented: told}}\n"
    "rules: [{id: ask, formula: ALWAYS (change IMPLIES agreed)}]\n",
}
PACK = Pack.from_files(FILES)
TEXT = Pack.from_files(FILES | {"tools.yaml": FILES["tools.yaml"].replace("amount: number", "amount: string")})


@pytest.mark.parametrize(
    ("pack", "amount", "told", "is_agreed"),
    [
        (PACK, 20, "20", True),
        (PACK, 20, "20.00", True),
        (PACK, 20.0, "20", True),
        (PACK, 12.5, "12.50", True),
        (PACK, 12.5, "12.5", True),
        (PACK, 20, "200", False),
        (PACK, 20, "20.01", False),
        (PACK, 12.505, "12.50", False),
        (PACK, 12.505, "12.51", False),
        (PACK, 1250, "1.250", False),
        (PACK, 10**40, "1e40", False),
        (PACK, float("inf"), "inf", False),
        (TEXT, "20", "20.00", False),
        (TEXT, "20.00", "20.00", True),
    ],
)
def test_a_yes_is_to_the_number_that_was_told(pack: Pack, amount: Any, told: str, is_agreed: bool) -> None:
    session = Shield(pack).session("c")
    session.user("Pay it.")
    session.agent(f"Shall I pay {told} in 3 parts?")
    session.user("Yes.")
    assert session.decide("pay", {"amount": amount, "parts": 3}).allowed is is_agreed
