"""What asking a model would cost, found by going through the motions: requests are counted, and nobody is asked."""

from collections.abc import Callable, Sequence

from bylaw.llm import Answer, Request
from bylaw.llm.chat import ChatError

_CHARACTERS = 4
"""Of a token, about."""


class Estimate:
    """A chat that answers from what is at hand, and counts the rest."""

    def __init__(self, known: Callable[[Request], Answer | None]) -> None:
        self._known = known
        self._asked: dict[str, Request] = {}

    def ask(self, requests: Sequence[Request]) -> list[Answer]:
        """What is known already; for anything else it fails, as a model would that cannot be reached for this."""
        found = [(request, self._known(request)) for request in requests]
        for request, answer in found:
            if answer is None:
                self._asked[request.key] = request
        if any(answer is None for _, answer in found):
            raise ChatError("counted, not asked")
        return [answer for _, answer in found if answer is not None]

    @property
    def requests(self) -> int:
        """How many requests would be sent at once."""
        return len(self._asked)

    @property
    def leads(self) -> int:
        """How many of them lead to others: those that ask for a plan."""
        return sum(request.name == "plan" for request in self._asked.values())

    def words(self, model: str, budget: int) -> str:
        """What it costs, in one line."""
        sent = sum(len(message.content) for request in self._asked.values() for message in request.messages)
        answered = sum(request.max_tokens for request in self._asked.values())
        count = "1 request" if self.requests == 1 else f"{self.requests:,} requests"
        told = f"{model} will be sent {count}: about {sent // _CHARACTERS:,} tokens, at most {answered:,} in answers"
        if self.leads:
            told += f"; {self.leads:,} of them ask for a plan, each with a few more to follow"
        if self.requests > budget:
            told += f". --budget allows {budget:,}: the rest stays open"
        return f"{told}."
