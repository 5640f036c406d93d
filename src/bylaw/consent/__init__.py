"""Determines whether the user agreed to a call: agreed, not agreed or undecided. Start at `consents`.

`talk` collects the messages, and `card` shows a call to the user. `cards` and `answer` find the user's answer. Code
does not interpret free text. If the agent chose its own wording, a model or a reviewer judges the answer.
"""

from bylaw.consent.card import CardFacts, CardWords, Terms, card_facts, digest
from bylaw.consent.cards import Cards, CardStanding, has_other_message, is_message, press_fault, standing_of
from bylaw.consent.consents import Basis, Consent, Consents, ConsentWitness, OpenConsent, QuotedSpan, Reason

__all__ = [
    "Basis", "CardFacts", "CardStanding", "CardWords", "Cards", "Consent", "ConsentWitness", "Consents", "OpenConsent",
    "QuotedSpan", "Reason", "Terms", "card_facts", "digest", "has_other_message", "is_message", "press_fault",
    "standing_of",
]  # fmt: skip
