"""What the system message tells an agent, held against what counts under the pack."""

import re

from bylaw.align.prompt import system_message
from bylaw.shield import Shield
from bylaw_lab.clinic.simulator.desk import WRITES
from bylaw_lab.clinic.simulator.dialogue import do
from bylaw_lab.clinic.simulator.wants import Want
from tests.shield.scenes import looked_up

WAIVED = {"patient_id": "P121", "invoice_id": "I0255"}
OWED = {"amount": "96.00"}
ASKED = re.compile(r'nothing else: "(.+)\{call\}(.+)"')


def told() -> tuple[tuple[str, str], dict[str, str]]:
    """The question, cut at the call, and what each change is called in it."""
    text = system_message("clinic", "none")
    asked = ASKED.search(text)
    assert asked is not None
    lines = text[asked.end() :].splitlines()[1:]
    return (asked[1], asked[2]), dict(line.split(": ", 1) for line in lines if line)


def test_the_agent_is_told_a_sentence_for_every_change_and_asks_in_it() -> None:
    _, called = told()
    assert list(called) == list(WRITES)
    assert do(Want("waive_invoice", WAIVED), lambda _: OWED["amount"]) == called["waive_invoice"].format(
        **WAIVED, **OWED
    )


def test_a_yes_to_what_the_agent_is_told_to_ask_counts() -> None:
    (begin, end), called = told()
    right = called["waive_invoice"].format(**WAIVED, **OWED)
    other = called["waive_invoice"].format(**WAIVED, amount="9.60")
    for sentence, counts in ((right, True), (other, False), ("waive that bill", False)):
        session = Shield("clinic").session()
        session.user("Please drop the bill I0255. I'm P121.")
        looked_up(session, "get_invoice", {"invoice_id": "I0255"}, {"invoice_id": "I0255", "patient_id": "P121"} | OWED)
        session.agent(f"{begin}{sentence}{end}")
        session.user("Yes, please.")
        against = {each.policy for each in session.decide("waive_invoice", WAIVED).grounds if each.answer != "allow"}
        assert ("confirm-before-change" not in against) == counts


def test_a_pack_without_sentences_tells_none() -> None:
    assert "ask the user in a message with nothing else" not in system_message("agentdojo/banking", "none")
