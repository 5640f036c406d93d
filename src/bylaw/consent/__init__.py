"""Whether the user agreed to a call: agreed, not agreed by structure alone, or open. Certain, or a question.

Start at `consents`. On the way: what was said (`talk`), what the agent `put` and for which `deed`, what the `answer`
is, whether every `argument` was `told`, and what became of the yes (`spending`). A `card` is answered without reading
prose.
"""

from bylaw.consent.answer import is_refusal
from bylaw.consent.argument import Terms
from bylaw.consent.card import Cards, CardStanding, CardWords, digest, standing_of
from bylaw.consent.consents import Consents, ConsentWitness
from bylaw.consent.deed import Deeds
from bylaw.consent.finding import Basis, Consent, OpenConsent, Quote, Reason, Untold

__all__ = [
    "Basis", "CardStanding", "CardWords", "Cards", "Consent", "ConsentWitness", "Consents", "Deeds", "OpenConsent",
    "Quote", "Reason", "Terms", "Untold", "digest", "is_refusal", "standing_of",
]  # fmt: skip
