"""What a request allows, asked of a model once: from the user's words and the tool catalogue, before anything is read.

Nothing here raises for what a model says, or waits for it longer than `patience`. A quote that does not appear in the
request, and an unknown tool, make that part of the answer allow nothing. Without an answer, the user is asked.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import Struct

from bylaw.answering.meaning import Meaning, SaidOfCall, meaning_of, second_question
from bylaw.answering.patience import PATIENCE, PatientChat
from bylaw.answering.running import PROMPTS
from bylaw.engine.request import (
    Allowance,
    Choice,
    Deed,
    Delegation,
    Doubt,
    Limit,
    RequestModel,
    Slot,
    Source,
    Span,
    fetches,
    is_deed,
)
from bylaw.llm import Answer, Chat, Request
from bylaw.llm.chat import schema_of
from bylaw.llm.prompt import render
from bylaw.pack import Pack
from bylaw.policy.tool import Tool


class SaidSource(Struct, frozen=True):
    """Where a value is to be found, as a model says it."""

    tools: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    perhaps: tuple[str, ...] = ()


class SaidArgument(Struct, frozen=True):
    """How an argument may be filled, as a model says it."""

    name: str
    fill: Literal["said", "found", "free"]
    quotes: tuple[str, ...] = ()
    value: str | float | bool | None = None
    sources: tuple[SaidSource, ...] = ()
    every: bool = False
    but: tuple[str, ...] = ()
    choice: Choice | None = None
    limits: tuple[Limit, ...] = ()
    field: str = ""
    factor: float | None = None
    plus: float | None = None
    clear: bool = False
    minutes: int | None = None
    must: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()


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
_T = TypeVar("_T")


def question(text: str, tools: Mapping[str, Tool]) -> Request:
    """What a model is asked of a request."""
    given = {"tools": "\n".join(_told(tool) for tool in tools.values()), "request": text}
    return render(PROMPTS, "request", given, schema=SCHEMA, max_tokens=4000)


def _told(tool: Tool) -> str:
    does = "changes" if tool.effect == "write" else "goes out" if fetches(tool) else "reads"
    given = ", ".join(
        f"{name}{'' if name in tool.required else '?'}{_closed(schema)}" for name, schema in tool.parameters.items()
    )
    return f"- {tool.name}({given}) [{does}]: {tool.description}"


def _closed(schema: object) -> str:
    """The values of a closed list."""
    declared: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    listed: list[Any] | None = ["true", "false"] if declared.get("type") == "boolean" else declared.get("enum")
    return f"={'|'.join(map(str, listed))}" if listed else ""


class RequestReader:
    """Reads requests with a model; each is asked once, and known answers are not asked again.

    For many threads: each waits for its own question alone, and for no longer than `patience`.
    """

    def __init__(
        self,
        chat: Chat | None,
        *,
        known: Mapping[str, Allowance] | None = None,
        patience: float = PATIENCE,
        meanings: Mapping[str, Meaning] | None = None,
    ) -> None:
        """`known` are earlier answers about requests, `meanings` those about calls; each by the key of its question."""
        self._asking = PatientChat(chat, patience) if chat is not None else None
        self.known: dict[str, Allowance] = dict(known or {})
        self.meanings: dict[str, Meaning] = dict(meanings or {})
        self.unanswered: dict[str, str] = {}
        """The latest requests without a usable answer, by the key of the question, each with the reason."""
        self.not_looked_at: dict[str, str] = {}
        """The same for calls."""

    @property
    def queries(self) -> int:
        """How often a model was asked."""
        return self._asking.queries if self._asking is not None else 0

    def __call__(self, pack: Pack) -> RequestModel:
        return _PackReader(self, pack.schema.tools)

    def read(self, text: str, tools: Mapping[str, Tool]) -> Allowance:
        """What a request allows; all is asked about where a model has no answer, and says why."""
        asked = question(text, tools)
        found = self.known.get(asked.key)
        if found is not None:
            return found

        def made(answer: Answer) -> Allowance | None:
            reply = reply_of(answer)
            if reply is None:
                return None
            return _keep(self.known, asked.key, allowance_of(reply, text, tools))

        found = self._asking.ask(asked, made) if self._asking is not None else "no model to ask"
        return Allowance(unread=_keep(self.unanswered, asked.key, found)) if isinstance(found, str) else found

    def look(self, doubt: Doubt) -> Meaning | None:
        """By argument, whether a call is what the user means; None where a model has no answer."""
        asked = second_question(doubt)
        found = self.meanings.get(asked.key)
        if found is not None:
            return found

        def made(answer: Answer) -> Meaning | None:
            reply = answer.read(SaidOfCall)
            return None if reply is None else _keep(self.meanings, asked.key, meaning_of(reply, doubt))

        found = self._asking.ask(asked, made) if self._asking is not None else "no model to ask"
        if isinstance(found, str):
            _keep(self.not_looked_at, asked.key, found)
            return None
        return found


class _PackReader:
    """A reader of requests to the tools of one pack."""

    def __init__(self, reader: RequestReader, tools: Mapping[str, Tool]) -> None:
        self._reader, self._tools = reader, tools
        self.look = reader.look

    def read(self, text: str) -> Allowance:
        return self._reader.read(text, self._tools)


def _keep(kept: dict[str, _T], key: str, value: _T) -> _T:
    """Keep what was found, in the place of the oldest where there is much."""
    while len(kept) >= MOST:
        # Another thread may have taken it.
        kept.pop(next(iter(kept), key), None)
    kept[key] = value
    return value


def reply_of(answer: Answer) -> Reply | None:
    """A model's answer; None where it cannot be read."""
    said = answer.read(dict[str, Any])
    try:
        return msgspec.convert(_with_bounds_as_text(said), Reply, strict=False)
    except msgspec.ValidationError:
        return None


def _with_bounds_as_text(said: Any) -> Any:
    """Bounds as texts: many models write 140 as a number, and the rest of their answer is none the worse for it."""
    if isinstance(said, list):
        return [_with_bounds_as_text(each) for each in cast("list[Any]", said)]
    if not isinstance(said, dict):
        return said
    fields = cast("dict[str, Any]", said)
    return {
        name: f"{part:g}"
        if name in ("least", "most") and isinstance(part, (int, float))
        else _with_bounds_as_text(part)
        for name, part in fields.items()
    }


def allowance_of(reply: Reply, text: str, tools: Mapping[str, Tool]) -> Allowance:
    """What a model's answer allows, after it was held against the request and the catalogue."""
    checking = _Checking(text, tools)
    deeds = tuple(deed for each in reply.deeds if (deed := checking.deed(each)) is not None)
    delegations = tuple(each for said in reply.delegations if (each := checking.delegation(said)) is not None)
    return Allowance(deeds, delegations, tuple(checking.faults))


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
        return Delegation(asked, self._sources(said.source)) if asked else None

    def _slot(self, said: SaidArgument, tool: Tool) -> Slot | None:
        if said.name not in tool.parameters:
            self.faults.append(f"`{tool.name}` has no argument `{said.name[:80]}`")
            return None
        quotes = self._spans(said.quotes)
        if said.fill == "said" and not quotes:
            self.faults.append(f"nothing is quoted that fixes `{said.name}` of `{tool.name}`")
            return None
        sources = tuple(source for each in said.sources for source in self._sources(each))
        limits = tuple(limit for limit in said.limits if limit.least or limit.most)
        return Slot(
            said.name,
            said.fill,
            quotes if said.fill != "free" else (),
            sources,
            said.choice,
            limits,
            every=said.every,
            but=self._spans(said.but),
            field=said.field,
            factor=said.factor,
            plus=said.plus or 0.0,
            clear=said.clear,
            minutes=said.minutes,
            value=said.value if said.fill == "said" else None,
            must=self._spans(said.must),
            judged=self._spans(said.judged),
        )

    def _sources(self, said: SaidSource) -> tuple[Source, ...]:
        """One for each tool; any tool where none is known."""
        known = [tool for tool in said.tools if tool in self._tools]
        self.faults += [f"`{tool[:80]}` is no tool" for tool in said.tools if tool not in self._tools]
        named = self._spans(said.named)
        return tuple(Source(tool, named) for tool in known or [""])

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
