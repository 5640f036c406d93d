"""Whether the user agreed to a call: told before it, affirmed after that, about these very arguments, and not spent.

Start at `consents`. The way of a question: what was `said`, in exchanges; what the agent `put` to the user; what the
`answer` is; whether this `call` is what was `told`, by what tools have `shown`; and `spending`.
"""

from bylaw.engine.consent.consent import Basis, Consent
from bylaw.engine.consent.consents import Consents
from bylaw.engine.consent.witness import ConsentWitness

__all__ = ["Basis", "Consent", "ConsentWitness", "Consents"]
