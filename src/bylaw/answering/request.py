"""What a request allows, asked of a model once: from the user's words and the tool catalogue, before anything is read.

Nothing here raises for what a model says. A quote that does not stand in the request, and a tool that is none, make
that part of the answer allow nothing; where there is no answer, the words of the catalogue tell.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.answering.running import PROMPTS
from bylaw.engine.request import (
    Allowance,
    Choice,
    Deed,
    Delegation,
    ReadRequest,
    Slot,
    Source,
    Span,
    allowed_by_words,
    fetches,
    is_deed,
)
from bylaw.errors import UsageError
from bylaw.llm import Chat, Request
from bylaw.llm.chat import ChatError, schema_of
from bylaw.llm.prompt import render
from bylaw.pack import Pack
from bylaw.policy.tool import Tool


class SaidSource(Struct, frozen=True):
    """Where a value is to be found, as a model says it."""

    tool: str = ""
    named: tuple[str, ...] = ()


class SaidArgument(Struct, frozen=True):
    """How an argument may be filled, as a model says it."""

    name: str
    fill: Literal["said", "found", "free"]
    quotes: tuple[str, ...] = ()
    sources: tuple[SaidSource, ...] = ()
    choice: Choice | None = None


class SaidDeed(Struct, frozen=True):
    """A deed, as a model says it."""

    tool: str
    asked: tuple[str, ...] = ()
    arguments: tuple[SaidArgument, ...] = ()


class SaidDelegation(Struct, frozen=True):
    """A delegation, as a model says it."""

    asked: tuple[str, ...] = ()
    source: SaidSource = SaidSource()


class Reply(Struct, frozen=True):
    """A model's answer."""

    deeds: tuple[SaidDeed, ...] = ()
    delegations: tuple[SaidDelegation, ...] = ()


SCHEMA = schema_of(Reply)
MOST = 10_000
"""Answers that a reader keeps; the oldest go first."""


def question(text: str, tools: Mapping[str, Tool]) -> Request:
    """What a model is asked of a request."""
    given = {"tools": "\n".join(_told(tool) for tool in tools.values()), "request": text}
    return render(PROMPTS, "request", given, schema=SCHEMA, max_tokens=1500)


def _told(tool: Tool) -> str:
    does = "changes" if tool.effect == "write" else "goes out" if fetches(tool) else "reads"
    given = ", ".join(name if name in tool.required else f"{name}?" for name in tool.parameters)
    return f"- {tool.name}({given}) [{does}]: {tool.description}"


class RequestReader:
    """Reads requests with a model; each is asked once, and known answers are not asked again."""

    def __init__(self, chat: Chat | None, *, known: Mapping[str, Allowance] | None = None) -> None:
        """`known` are allowances that were made before, by the key of their question."""
        self._chat = chat
        self.known: dict[str, Allowance] = dict(known or {})
        self.queries = 0
        """How often a model was asked."""
        self.unanswered: dict[str, str] = {}
        """The latest questions without an answer that can be used, by key, each with why."""

    def __call__(self, pack: Pack) -> ReadRequest:
        return lambda text: self.read(text, pack.schema.tools)

    def read(self, text: str, tools: Mapping[str, Tool]) -> Allowance:
        """What a request allows; without an answer, as far as the words of the catalogue tell."""
        asked = question(text, tools)
        found = self.known.get(asked.key)
        if found is None:
            found = self._ask(asked, text, tools)
            if found is None:
                return allowed_by_words(text, tools)
            while len(self.known) >= MOST:
                del self.known[next(iter(self.known))]
            self.known[asked.key] = found
        return found

    def _ask(self, asked: Request, text: str, tools: Mapping[str, Tool]) -> Allowance | None:
        if self._chat is None:
            self._leave(asked.key, "nobody is there to ask")
            return None
        self.queries += 1
        try:
            (answer,) = self._chat.ask([asked])
        except ChatError as error:
            self._leave(asked.key, str(error))
            return None
        reply = answer.read(Reply)
        if reply is None:
            self._leave(asked.key, answer.why or "no answer that can be read")
            return None
        return allowance_of(reply, text, tools)

    def _leave(self, key: str, why: str) -> None:
        while len(self.unanswered) >= MOST:
            del self.unanswered[next(iter(self.unanswered))]
        self.unanswered[key] = why


def allowance_of(reply: Reply, text: str, tools: Mapping[str, Tool]) -> Allowance:
    """What a model's answer allows, after it was held against the request and the catalogue."""
    checking = _Checking(text, tools)
    deeds = tuple(deed for each in reply.deeds if (deed := checking.deed(each)) is not None)
    delegations = tuple(each for said in reply.delegations if (each := checking.delegation(said)) is not None)
    return Allowance(deeds, delegations, "model", tuple(checking.faults))


class _Checking:
    """Holds an answer against the request: what does not stand there is left out, and said."""

    def __init__(self, text: str, tools: Mapping[str, Tool]) -> None:
        self._text, self._tools = text, tools
        self.faults: list[str] = []

    def deed(self, said: SaidDeed) -> Deed | None:
        tool = self._tools.get(said.tool)
        if tool is None or not is_deed(tool):
            self.faults.append(f"`{said.tool[:80]}` is no tool that changes something or goes out")
            return None
        asked = self._spans(said.asked)
        if not asked:
            self.faults.append(f"nothing is quoted that asks for `{said.tool}`")
            return None
        slots = [slot for each in said.arguments if (slot := self._slot(each, tool)) is not None]
        return Deed(said.tool, asked, tuple(slots))

    def delegation(self, said: SaidDelegation) -> Delegation | None:
        asked = self._spans(said.asked)
        return Delegation(asked, self._source(said.source)) if asked else None

    def _slot(self, said: SaidArgument, tool: Tool) -> Slot | None:
        if said.name not in tool.parameters:
            self.faults.append(f"`{tool.name}` has no argument `{said.name[:80]}`")
            return None
        quotes = self._spans(said.quotes)
        if said.fill == "said" and not quotes:
            self.faults.append(f"nothing is quoted that fixes `{said.name}` of `{tool.name}`")
            return None
        sources = tuple(self._source(each) for each in said.sources)
        return Slot(said.name, said.fill, quotes if said.fill == "said" else (), sources, said.choice)

    def _source(self, said: SaidSource) -> Source:
        if said.tool and said.tool not in self._tools:
            self.faults.append(f"`{said.tool[:80]}` is no tool")
        return Source(said.tool if said.tool in self._tools else "", self._spans(said.named))

    def _spans(self, quotes: Iterable[str]) -> tuple[Span, ...]:
        found: list[Span] = []
        for quote in quotes:
            start = self._text.find(quote.strip()) if quote.strip() else -1
            if start < 0:
                start = self._text.casefold().find(quote.strip().casefold()) if quote.strip() else -1
            if start < 0:
                self.faults.append("a quote does not stand in the request")
            else:
                found.append(Span(start, start + len(quote.strip())))
        return tuple(found)


class KeptAllowance(Struct, frozen=True):
    """One allowance in a file: no word of the request, only places in it."""

    key: str
    allowance: Allowance


def read_allowances(file: Path) -> dict[str, Allowance]:
    """The allowances that a file keeps, by the keys of their questions."""
    decoder = msgspec.json.Decoder(KeptAllowance)
    found: dict[str, Allowance] = {}
    for number, line in enumerate(file.read_bytes().splitlines(), start=1):
        if line.strip():
            try:
                kept = decoder.decode(line)
            except msgspec.DecodeError as error:
                raise UsageError(f"not an allowance: {error}", place=f"{file}:{number}") from None
            found[kept.key] = kept.allowance
    return found


def write_allowances(file: Path, allowances: Mapping[str, Allowance]) -> None:
    """Keep allowances in a file, each on a line, without a word of the requests or of the answers' faults."""
    lines = [
        msgspec.json.encode(KeptAllowance(key, replace(allowance, faults=())))
        for key, allowance in sorted(allowances.items())
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(line + b"\n" for line in lines))
