"""Whether the user agreed to a call: told before it, affirmed after that, about these very arguments, and not spent."""

from bylaw.engine.consent.consents import Basis, Consent, Consents
from bylaw.engine.consent.witness import ConsentWitness

__all__ = ["Basis", "Consent", "ConsentWitness", "Consents"]
