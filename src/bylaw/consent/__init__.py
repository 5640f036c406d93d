"""Decides whether the user agreed to a call: agreed, not agreed (proven by structure alone), or undecided.

Start at `consents`. The steps: what was said (`talk`), how a call is shown to the user (`card`), what they answered
(`cards`, `answer`), and whether the agent mentioned the call at all (`unnamed`). Code reads no prose: an agent's own
wording is left to a model or a person.
"""

from bylaw.consent.card import CardFacts, CardWords, Terms, card_facts, digest
from bylaw.consent.cards import Cards, CardStanding, has_other_message, is_message, press_fault, standing_of
from bylaw.consent.consents import Basis, Consent, Consents, ConsentWitness, OpenConsent, QuotedSpan, Reason

__all__ = [
    "Basis", "CardFacts", "CardStanding", "CardWords", "Cards", "Consent", "ConsentWitness", "Consents", "OpenConsent",
    "QuotedSpan", "Reason", "Terms", "card_facts", "digest", "has_other_message", "is_message", "press_fault",
    "standing_of",
]  # fmt: skip
