"""Words that a pack gives for what a tool does, and the verb of its description, count for consent."""

import pytest

from bylaw.engine.conversation import Conversation
from tests.consent.agreed_pack import agreed_pack

TOOL = "tools:\n  alter_parcel: {{effect: write, parameters: {{parcel_id: string}}, changes: []{more}}}\n"
ASKED = "I'd whisk P-1001 away at no charge. Agreed?"
"""No more than the thing is told: then the verb says what would be done to it."""


@pytest.mark.parametrize(
    ("more", "is_kept"),
    [("", False), (", also_called: [whisk]", True), (", description: Whisk a parcel away.", True)],
)
def test_a_deed_may_have_words_of_its_own(more: str, is_kept: bool) -> None:
    pack = agreed_pack(TOOL.format(more=more))
    with Conversation(pack) as talk:
        talk.user("Can P-1001 go elsewhere?")
        talk.agent(ASKED)
        talk.user("Yes, agreed.")
        judgement = talk.call("alter_parcel", {"parcel_id": "P-1001"})
    assert not judgement.rules
    assert bool(judgement.open_rules) is not is_kept
