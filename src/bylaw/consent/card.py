"""Cards: a call in plain words put to the user, bound to its arguments by digest, answered without reading prose.

A card is answered in the talk, where its text stands verbatim in one agent message and the next user message is the yes
or the no; or the host shows it and reports the answer. Each answer is used once.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.consent.talk import Exchange


class Card(Struct, frozen=True):
    """A call put to the user: the digest of what it does, and the words it is put in."""

    digest: str
    text: str


class Confirmation(Struct, frozen=True):
    """The user's answer to a card, good for one call."""

    digest: str
    step: int
    """Steps before this one had been taken when it was given: it counts for calls from here on."""
    yes: bool
    time: float | None = None


def digest(tool: str, arguments: Mapping[str, Any]) -> str:
    """What binds a card to a call: the same for the same tool and arguments, in whatever order they stand."""
    told = json.dumps([tool, msgspec.to_builtins(dict(arguments))], sort_keys=True, ensure_ascii=True, default=str)
    return sha256(told.encode()).hexdigest()


class Cards:
    """The cards of one conversation, and what the user answered to them."""

    def __init__(self) -> None:
        self._put: dict[str, list[Card]] = {}
        self._confirmed: dict[str, list[Confirmation]] = {}

    def put(self, card: Card) -> None:
        """A card was issued; the talk may now hold its words."""
        self._put.setdefault(card.digest, []).append(card)

    def confirm(self, confirmation: Confirmation) -> None:
        """The host reports the user's answer to a card."""
        self._confirmed.setdefault(confirmation.digest, []).append(confirmation)

    @property
    def are_there(self) -> bool:
        """Whether any card was issued or answered."""
        return bool(self._put or self._confirmed)

    def answer(self, name: str, exchanges: Sequence[Exchange], before: int) -> Confirmation | None:
        """The last answer to a card of this digest before a step; None where there is none."""
        found = [each for each in self._confirmed.get(name, ()) if each.step <= before]
        texts = {_plain(card.text) for card in self._put.get(name, ())}
        found += [
            Confirmation(name, exchange.answered_at, exchange.said != "no")
            for exchange in exchanges
            if texts and exchange.said != "other" and _holds(exchange, texts)
        ]
        return max(found, key=lambda each: each.step, default=None)


def _holds(exchange: Exchange, texts: set[str]) -> bool:
    return any(text in _plain(said) for _, said in exchange.told for text in texts)


def _plain(text: str) -> str:
    return " ".join(text.split())
