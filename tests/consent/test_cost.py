"""What consent costs grows with what is said and done, whatever hostile form that has."""

from collections.abc import Callable
from time import process_time

import pytest

from bylaw.consent import CardWords, Consents, digest
from bylaw.consent.card import card_text
from bylaw.facts.ledger import Ledger
from bylaw.trace.event import Call, Card, Event
from tests.consent.desk import agent, desk, done, found, in_order, user

PACK = desk("""
tools:
  look: {effect: read, parameters: {}}
  pay: {effect: write, put_as: "pay {amount} to {to}", parameters: {to: string, amount: string}, changes: []}
""")
ASKED, LONG = "Shall I pay 1 to AC-22?", 1_000_000
Said = list[Event | list[Event]]


def paid(number: int) -> dict[str, str]:
    return {"to": "AC-22", "amount": str(number)}


def put(arguments: dict[str, str], name: str) -> Call:
    text = card_text(PACK.schema.tools["pay"], "pay", arguments, frozenset(), CardWords())
    return Call("pay", arguments, refused=True, card=Card(name, digest("pay", arguments), text))


def cards(number: int) -> Said:
    said: Said = [user("Hello.")]
    for each in range(number):
        call = put(paid(each), f"c/{each}")
        assert call.card is not None
        said += [call, agent(call.card.text), user("Yes.")]
    return said + [done("pay", paid(each)) for each in range(number)]


def shown(number: int) -> Said:
    said: Said = [
        user("Hello."),
        agent("Good morning to you. What can I do for you today?"),
        user("Some money is due."),
    ]
    for each in range(number):
        said += [done("look", {}, {"id": "AC-22", "name": "Anna", "at": f"r{each}"}), Call("pay", paid(each))]
    return said


MANY: dict[str, Callable[[int], Said]] = {
    "calls alike after one yes": lambda number: [agent(ASKED), user("Yes."), *([done("pay", paid(1))] * number)],
    "calls after one yes": lambda number: [agent(ASKED), user("Yes."), *(done("pay", paid(n)) for n in range(number))],
    "cards that were answered before any call": cards,
    "cards for one call by many spellings": lambda number: [
        user("Hello."), *(put({"to": f"AC-22{' ' * at}", "amount": "1"}, f"c/{at}") for at in range(number))
    ],
    "look-ups that show one thing": shown,
    "words of the user's in a row": lambda number: [
        agent(ASKED), *(part for at in range(number) for part in (user("Yes."), done("pay", paid(at))))
    ],
    "questions that nobody answers": lambda number: [
        user("Hello."), *(part for at in range(number) for part in (agent("Well?"), done("pay", paid(at))))
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", MANY)
def test_it_grows_with_the_number_of_calls(kind: str) -> None:
    """Four times as many take about four times as long, and not sixteen times; the best of some runs is compared."""
    ratios = (
        min(_seconds(MANY[kind](400)) for _ in range(times)) / min(_seconds(MANY[kind](100)) for _ in range(times))
        for times in (1, 2, 4, 8)
    )
    assert any(ratio < 9 for ratio in ratios)


def _seconds(said: Said) -> float:
    events = in_order(said)
    ledger = Ledger(PACK.schema)
    ledger.observe_all(0, events)
    consents = Consents(events, ledger)
    begun = process_time()
    for call in ledger.calls.values():
        if call.call.tool == "pay":
            consents.find(call)
    return process_time() - begun


CARD = put(paid(1), "c/1")


@pytest.mark.parametrize("tail", [ASKED, CARD.card.text if CARD.card is not None else ""], ids=["sentence", "card"])
@pytest.mark.parametrize(
    "hostile",
    ["[", "](", "<!--", "<a ", "~", "\n ", "\n\n\n\n\n\n\n x", "> ", '"', "\u200b", ASKED, "please ", "[x]: "],
)
def test_a_long_message_is_open_at_once(hostile: str, tail: str) -> None:
    message = hostile * (LONG // len(hostile))
    begun = process_time()
    consent = found(PACK, [user("Hello."), CARD, agent(f"{message}\n{tail}"), user("Yes.")], "pay", paid(1))
    assert consent.value is None
    assert process_time() - begun < 5


def test_a_long_answer_is_no_yes() -> None:
    consent = found(PACK, [user("Hello."), agent(ASKED), user("Yes " * (LONG // 4))], "pay", paid(1))
    assert consent.value is None


def test_a_card_that_looks_like_no_other_is_found_among_thousands() -> None:
    assert found(PACK, cards(200)[:-200], "pay", paid(199)).value is True
    assert found(PACK, cards(200)[:-200], "pay", paid(160)).value is True
    assert found(PACK, cards(200)[:-200], "pay", paid(3)).value is None
