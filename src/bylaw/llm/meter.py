"""Tokens and money: counted as answers come, estimated before anything is asked."""

from collections.abc import Sequence

from msgspec import Struct

from bylaw.llm.chat import Request, Usage

LETTERS_PER_TOKEN = 4
"""English in common tokenizers; an estimate needs no better."""
ANSWERED_SHARE = 0.5
"""Answers are taken to be half as long as they may be."""


class Price(Struct, frozen=True):
    """What a million tokens cost."""

    asked: float = 0.0
    answered: float = 0.0

    def of(self, usage: Usage) -> float:
        return (usage.asked * self.asked + usage.answered * self.answered) / 1_000_000

    def told(self, usage: Usage) -> str:
        """Tokens in words, with what they cost where there is a price."""
        money = f", ${self.of(usage):,.2f}" if self.of(usage) else ""
        return f"{usage.asked:,} tokens in and {usage.answered:,} out{money}"


class Estimate(Struct, frozen=True):
    requests: int
    usage: Usage
    cost: float

    def __str__(self) -> str:
        money = f", about ${self.cost:,.2f}" if self.cost else ""
        return (
            f"{self.requests:,} requests, about {self.usage.asked:,} tokens in and {self.usage.answered:,} out{money}"
        )


def estimate(requests: Sequence[Request], price: Price = Price()) -> Estimate:  # noqa: B008
    """What some requests would take, without asking any."""
    asked = sum(-(-len(message.content) // LETTERS_PER_TOKEN) for each in requests for message in each.messages)
    answered = round(sum(each.max_tokens for each in requests) * ANSWERED_SHARE)
    usage = Usage(asked, answered)
    return Estimate(len(requests), usage, price.of(usage))
