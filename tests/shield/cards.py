"""A bank that moves money only after the user has said yes to a card, for tests of cards."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bylaw import Shield, load_pack
from bylaw.pack import Pack
from bylaw.shield import LiveSession
from bylaw.shield.decision import Decision
from bylaw.trace.event import Card

FILES = {
    "pack.yaml": "format: 1\nname: bank\ndocument: policy.md\n",
    "policy.md": "Ask before money is moved.\n",
    "policies.yaml": "policies:\n  - {id: ask, kind: rule, spans: [{quote: Ask before money is moved.}]}\n",
    "tools.yaml": (
        "tools:\n"
        "  transfer:\n"
        "    effect: write\n"
        "    title: transfer money\n"
        "    put_as: transfer {amount} to {to}\n"
        "    parameters: {to: {type: string, title: recipient}, amount: number, note: {type: string, optional: true}}\n"
        "    changes: []\n"
    ),
    "rules.yaml": (
        "predicates:\n"
        "  change: {effect: write}\n"
        "  agreed: {consented: card}\n"
        "rules:\n"
        "  - {id: ask, formula: ALWAYS (change IMPLIES agreed)}\n"
    ),
}
WANTED = {"to": "AC-22", "amount": 250}
TEXT = """Please confirm: transfer money
- recipient: AC-22
- amount: 250
Shall I do this? Please answer yes or no."""


def write(folder: Path, agreed: str = "{consented: card}") -> Pack:
    for name, text in FILES.items():
        (folder / name).write_text(text.replace("{consented: card}", agreed), encoding="utf-8")
    return load_pack(folder)


class Clock:
    """A clock that stands still until it is moved."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(name="clock")
def still() -> Clock:
    return Clock()


@pytest.fixture(name="shield", params=["no log", "log"])
def open_shield(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Shield]:
    (tmp_path / "pack").mkdir()
    log = tmp_path / "log.db" if request.param == "log" else None
    with Shield(write(tmp_path / "pack"), log=log, clock=clock) as shield:
        yield shield


def card_of(decision: Decision) -> Card:
    assert (decision.answer, decision.allowed) == ("ask", False)
    assert decision.card is not None
    return decision.card


def ask(session: LiveSession, arguments: dict[str, Any] = WANTED) -> Decision:
    return session.decide("transfer", arguments)


def begun(shield: Shield, name: str = "c") -> tuple[LiveSession, Card]:
    session = shield.session(name)
    session.user("Send 250 to AC-22.")
    return session, card_of(ask(session))
