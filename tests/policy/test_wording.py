"""What a pack says of words: patterns in lists, and `but_not`, in predicates and in user facts."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bylaw.facts import seen
from bylaw.facts.entity import UNSEEN, Field, Saying
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Schema
from bylaw.rule.monitor import Act
from bylaw.trace import Message, Result
from tests.policy.shop import faults, load

RULES = """\
predicates:
  agreed:
    said:
      - \\b(go ahead|do it)\\b
      - {pattern: '\\byes\\b', but_not: '\\byes,? but\\b'}
    but_not: \\bquote\\b
  promised: {pattern: guarantee, but_not: (no|not) guarantee}
  found: {returned: [one, two]}
rules: []
"""


@pytest.mark.parametrize(
    ("name", "texts", "holds"),
    [
        ("agreed", ["Yes, please"], True),
        ("agreed", ["yes, but not today"], False),
        ("agreed", ["yes but... well, go ahead"], True),
        ("agreed", ["yes but", "yes"], True),
        ("agreed", ["to quote you: do it"], False),
        ("promised", ["I guarantee it"], True),
        ("promised", ["I give no guarantee; he might guarantee it"], False),
        ("found", ["nothing", "number Two"], True),
        ("found", ["nothing"], False),
    ],
)
def test_a_text_matches_one_pattern_and_nothing_it_must_not(
    name: str, texts: list[str], holds: bool, tmp_path: Path
) -> None:
    find = load(tmp_path, {"rules.yaml": RULES}).book.predicates[name].find
    assert find is not None
    said = tuple(Message("user", text) for text in texts)
    results = tuple(Result(None, text) for text in texts)
    assert find(Act(0, None, {}, texts[0], said, results, 0, 0, True, "")) is holds


@pytest.mark.parametrize(
    ("predicate", "fault"),
    [
        ("{said: [a, 'b(?!c)']}", "BY409 rules.yaml:2: `b(?!c)` is not a valid pattern"),
        ("{said: a, but_not: (}", "BY409 rules.yaml:2: `(` is not a valid pattern"),
        ("{said: [{but_not: b}]}", "BY303 rules.yaml:2: `p` has an entry without a `pattern`"),
        ("{said: [{pattern: a, butnot: b}]}", "BY408 rules.yaml:2: `butnot` is not a known key"),
        (
            "{tool: ship, but_not: b}",
            "BY303 rules.yaml:2: `but_not` is not allowed next to `tool`; allowed keys: description",
        ),
    ],
)
def test_a_slip_in_a_pattern_of_a_rule_has_its_place(predicate: str, fault: str, tmp_path: Path) -> None:
    found = faults(tmp_path, {"rules.yaml": f"predicates:\n  p: {predicate}\nrules: []\n"})
    assert found[0].startswith(fault)


def test_a_user_fact_is_not_read_off_a_message_that_says_otherwise() -> None:
    sayings = (Saying(says="in state", value=True, but_not="not (be )?in state"), Saying(says="abroad", value=False))
    field = Field("here", "boolean", origin="user", sayings=sayings)

    def told(*texts: str) -> Any:
        ledger = Ledger(Schema({}, {}, {}, {}, {}))
        ledger.observe_all(0, [Message("user", text, turn) for turn, text in enumerate(texts)])
        at = SimpleNamespace(call=SimpleNamespace(arguments={}), step=len(texts))
        return seen.Testimony(ledger, cast(Any, at), {}).read(field)

    assert told("I am in state") is True
    assert told("I will not be in state") is UNSEEN
    assert told("I will not be in state, I am abroad") is False
    assert told("I am in state", "I will not be in state") is True
