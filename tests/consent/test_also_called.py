"""Words that a pack gives for what a tool does, and the verb of its description, count for consent."""

import pytest

from bylaw import Pack
from bylaw.engine.conversation import Conversation

FILES = {
    "pack.yaml": "format: 1\nname: parcels\ndocument: policy.md\n",
    "policy.md": "Ask before an order is changed.\n",
    "policies.yaml": "policies:\n  - {id: ask, kind: rule, spans: [{quote: Ask before an order is changed.}]}\n",
    "rules.yaml": (
        "predicates: {change: {effect: write}, agreed: {consented: told}}\n"
        "rules:\n  - {id: ask, formula: ALWAYS (change IMPLIES agreed)}\n"
    ),
}
TOOL = "tools:\n  alter_parcel: {{effect: write, parameters: {{parcel_id: string}}, changes: []{more}}}\n"
ASKED = "I'd whisk P-1001 away at no charge. Agreed?"
"""No more than the thing is told: then the verb says what would be done to it."""


@pytest.mark.parametrize(
    ("more", "is_kept"),
    [("", False), (", also_called: [whisk]", True), (", description: Whisk a parcel away.", True)],
)
def test_a_deed_may_have_words_of_its_own(more: str, is_kept: bool) -> None:
    pack = Pack.from_files({**FILES, "tools.yaml": TOOL.format(more=more)})
    with Conversation(pack) as talk:
        talk.user("Can P-1001 go elsewhere?")
        talk.agent(ASKED)
        talk.user("Yes, agreed.")
        judgement = talk.call("alter_parcel", {"parcel_id": "P-1001"})
    assert not judgement.rules
    assert bool(judgement.open_rules) is not is_kept
