"""A model in the place of the matcher and of the slots: the paper's way to find B and C, and to mark replies."""

from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, TypeVar

from msgspec import Meta, Struct

from bylaw.align.matcher import Mentions
from bylaw.align.written import request
from bylaw.llm import Chat, Request
from bylaw.llm.chat import ChatError
from bylaw.pack import Pack

_Shape = TypeVar("_Shape")


class Found(Struct, frozen=True):
    """What a model finds in a thought."""

    analysis: str
    stated: list[int]
    made_up: list[str]


class Mark(Struct, frozen=True):
    """A model's mark of a reply."""

    analysis: str
    mark: Annotated[float, Meta(ge=0, le=10)]


class ModelReader:
    """Reads thoughts by asking a model; a `Reader`, as the matcher is."""

    def __init__(self, pack: Pack, chat: Chat) -> None:
        self._chat = chat
        self._policies = [policy for policy in pack.policies.values() if policy.kind != "knowledge"]
        # Numbers, not ids: an id tells what its policy is about before the thought does.
        self._listed = "\n".join(f"{place}. {each.definition}" for place, each in enumerate(self._policies, 1))

    def mentions(self, thought: str, known: Collection[tuple[str, str]] = ()) -> Mentions:
        """B and C of a thought."""
        return self.mentions_of([thought])[0]

    def mentions_of(self, thoughts: Sequence[str]) -> list[Mentions]:
        """B and C of many thoughts, asked for together."""
        asked = [request("mentions", Found, {"policies": self._listed, "thought": thought}) for thought in thoughts]
        return [self._read(*pair) for pair in zip(asked, _ask(self._chat, asked, Found), strict=True)]

    def _read(self, asked: Request, found: Found) -> Mentions:
        if wrong := [number for number in found.stated if not 1 <= number <= len(self._policies)]:
            raise ChatError(f"the model names policy {wrong[0]} of {len(self._policies)}", place=asked.key)
        return Mentions(frozenset(self._policies[number - 1].id for number in found.stated), tuple(found.made_up))


class ModelJudge:
    """Marks replies by asking a model; a `Judge` of the grader."""

    def __init__(self, chat: Chat) -> None:
        self._chat = chat
        self._known: dict[tuple[str, str], float] = {}

    def __call__(self, due: str, given: str) -> float:
        """The mark of one reply."""
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
