"""Whether the user agreed to a call: agreed, not agreed by structure alone, or open. Certain, or a question.

Start at `consents`. On the way: what was said (`talk`), how a call is put to the user (`card`), what they answered
(`cards`, `answer`), and whether anything of a call was said at all (`unnamed`).
Code reads no prose: what the agent says in words of its own is for a model or a person to read.
"""

from bylaw.consent.card import CardWords, Terms, digest
from bylaw.consent.card_facts import CardFacts, card_facts
from bylaw.consent.cards import Cards, CardStanding, has_other_message, is_message, press_fault, standing_of
from bylaw.consent.consents import Basis, Consent, Consents, ConsentWitness, OpenConsent, QuotedSpan, Reason

__all__ = [
    "Basis", "CardFacts", "CardStanding", "CardWords", "Cards", "Consent", "ConsentWitness", "Consents", "OpenConsent",
    "QuotedSpan", "Reason", "Terms", "card_facts", "digest", "has_other_message", "is_message", "press_fault",
    "standing_of",
]  # fmt: skip
