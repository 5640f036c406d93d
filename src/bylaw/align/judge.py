"""A model in the place of the slots: the paper's way to mark replies."""

from collections.abc import Iterable, Sequence
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from bylaw.align.written import request
from bylaw.llm import Chat, Request
from bylaw.llm.chat import ChatError

_Shape = TypeVar("_Shape")


class Mark(Struct, frozen=True):
    """A model's mark of a reply."""

    analysis: str
    mark: Annotated[float, Meta(ge=0, le=10)]


class ModelJudge:
    """Marks replies by asking a model; a `Judge` of the grader."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._known: dict[tuple[str, str], float] = {}

    def __call__(self, due: str, given: str) -> float:
        self.prepare([(due, given)])
        return self._known[due, given]

    def prepare(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Ask about many replies together; each is marked once, however often it comes."""
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._known]
        asked = [request("mark", Mark, {"due": due, "given": given}) for due, given in new]
        self._known |= {pair: found.mark for pair, found in zip(new, _ask(self._chat, asked, Mark), strict=True)}


def _ask(chat: Chat, asked: Sequence[Request], shape: type[_Shape]) -> list[_Shape]:
    """The answers as data; one that cannot be read gives no reward."""
    if not asked:
        return []
    found: list[_Shape] = []
    for question, answer in zip(asked, chat.ask(asked), strict=True):
        data = answer.read(shape)
        if data is None:
            why = answer.why or f"no {shape.__name__.lower()}: {answer.text[:80]}"
            raise ChatError(f"the judge's answer cannot be read: {why}", place=question.key)
        found.append(data)
    return found
