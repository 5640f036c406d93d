"""Asks a model once what a request allows. The question contains the user's words and the tool catalogue.

A faulty answer never raises an error here, and no function waits longer than `patience`. A part of an answer is ignored
if it names an unknown tool or quotes text that is not in the request. Without an answer, the user is asked.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, Literal, TypeVar, cast

import msgspec
from msgspec import Struct

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
from bylaw.llm import Answer, Chat, Pending, Request
from bylaw.llm.chat import render, schema_of
from bylaw.pack import Pack
from bylaw.policy.tool import Tool
from bylaw.text.folding import fold

_Made = TypeVar("_Made")
PATIENCE = 15.0
"""The maximum number of seconds that a call waits for an answer. If the answer arrives later, the next call can use
it.
"""
MOST_ASKED = 64
"""The maximum number of concurrent questions."""
FAILURES = 3
"""A model is considered down after this many consecutive failures."""
PAUSE = 30.0
"""The number of seconds to wait before a model that is down is tried again."""


class PatientChat:
    """A chat for many threads. Each thread waits only for its own question, for at most `patience` seconds."""

    def __init__(self, chat: Chat, patience: float = PATIENCE) -> None:
        self._chat, self._patience = chat, patience
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[Any]] = {}
        self._failures, self._down_until = 0, 0.0
        self.queries = 0

    def ask(self, asked: Request, made: Callable[[Answer], _Made | None]) -> _Made | str:
        """Return the converted answer, or why there is none. An answer that cannot be parsed is not converted."""
        with self._lock:
            waiting: Future[_Made | str] | None = self._under_way.get(asked.key)
            if waiting is None:
                if time.monotonic() < self._down_until:
                    return "the model has not answered recently"
                if len(self._under_way) >= MOST_ASKED:
                    return "too many questions are waiting for the model"
                waiting = self._under_way[asked.key] = Future[_Made | str]()
                self.queries += 1
                # Use a daemon thread, so that the program can exit while a model is still answering.
                threading.Thread(target=self._ask, args=(asked, made, waiting), daemon=True).start()
        try:
            return waiting.result(self._patience)
        except TimeoutError:
            self._count(is_answered=False)
            return f"the model gave no answer within {self._patience:g} seconds"

    def _ask(self, asked: Request, made: Callable[[Answer], _Made | None], waiting: Future[_Made | str]) -> None:
        is_pending = False
        try:
            (answer,) = self._chat.ask([asked])
            found, why = made(answer), answer.why or "no readable answer"
        except Exception as error:
            found, why = None, str(error) or type(error).__name__
            # The answer to a batch request arrives later, so this does not count as a failure.
            is_pending = isinstance(error, Pending)
        if not is_pending:
            self._count(is_answered=found is not None)
        with self._lock:
            self._under_way.pop(asked.key, None)
        no_answer = f"the model gave no answer ({why.splitlines()[0][:200]})"
        waiting.set_result(found if found is not None else no_answer)

    def _count(self, *, is_answered: bool) -> None:
        """Count consecutive failures. After several failures, the model is not asked for a while."""
        with self._lock:
            self._failures = 0 if is_answered else self._failures + 1
            self._down_until = time.monotonic() + PAUSE if self._failures >= FAILURES else 0.0


Meaning = Mapping[str, bool]
"""For each argument, whether the user means its value. Arguments that are undecided are left out."""


class SaidOfArgument(Struct, frozen=True):
    name: str
    meant: Literal["yes", "no", "unclear"]
    quotes: tuple[str, ...] = ()


class SaidOfCall(Struct, frozen=True):
    arguments: tuple[SaidOfArgument, ...] = ()


MEANING_SCHEMA = schema_of(SaidOfCall)


def second_question(doubt: Doubt) -> Request:
    """Return a question to the model about a call: whether the user means the call and, if they did not ask for it,
    whether their request needs it.
    """
    call = "\n".join(f"- {name}: {_written(value)}" for name, value in doubt.arguments.items())
    given = {
        "request": doubt.request,
        "shown": _shown(doubt),
        "call": f"{doubt.tool}\n{call}",
        "asked": ", ".join(f"`{name}`" for name in doubt.asked),
    }
    return render(PROMPTS, "step" if doubt.is_preparing else "meaning", given, schema=MEANING_SCHEMA, max_tokens=2000)


def meaning_of(reply: SaidOfCall, doubt: Doubt) -> Meaning:
    """Return the part of a model's answer that quotes the shown text."""
    shown = fold(f"{doubt.request} \n {_shown(doubt)}")
    found: dict[str, bool] = {}
    for each in reply.arguments:
        quotes = [fold(quote) for quote in each.quotes if quote.strip()]
        is_founded = bool(quotes) and all(quote in shown for quote in quotes)
        if each.name in doubt.asked and each.meant != "unclear" and (is_founded or each.meant == "no"):
            found[each.name] = each.meant == "yes" and found.get(each.name, True)
    return found


def _shown(doubt: Doubt) -> str:
    """Return the results, each after its look-up. An empty result is included, because it may support an answer too."""
    return "\n\n".join(
        f"[{number}] {each.tool}({_given(each.arguments)}) showed:\n{each.text}"
        for number, each in enumerate(doubt.shown, start=1)
    )


def _given(arguments: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_written(value)}" for name, value in arguments.items())


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


class SaidSource(Struct, frozen=True):
    """Where a value may come from, according to a model."""

    tools: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    perhaps: tuple[str, ...] = ()


class SaidArgument(Struct, frozen=True):
    """How an argument may be filled, according to a model."""

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
    tool: str
    asked: tuple[str, ...] = ()
    arguments: tuple[SaidArgument, ...] = ()


class SaidDelegation(Struct, frozen=True):
    asked: tuple[str, ...] = ()
    source: SaidSource = SaidSource()


class Reply(Struct, frozen=True):
    deeds: tuple[SaidDeed, ...] = ()
    delegations: tuple[SaidDelegation, ...] = ()


SCHEMA = schema_of(Reply)
MOST = 10_000
"""The maximum number of answers to keep. The oldest answers are dropped first."""


def question(text: str, tools: Mapping[str, Tool]) -> Request:
    """Return the question to the model about a request."""
    given = {"tools": "\n".join(_told(tool) for tool in tools.values()), "request": text}
    return render(PROMPTS, "request", given, schema=SCHEMA, max_tokens=4000)


def _told(tool: Tool) -> str:
    does = "changes" if tool.effect == "write" else "goes out" if fetches(tool) else "reads"
    given = ", ".join(
        f"{name}{'' if name in tool.required else '?'}{_closed(schema)}" for name, schema in tool.parameters.items()
    )
    return f"- {tool.name}({given}) [{does}]: {tool.description}"


def _closed(schema: object) -> str:
    declared: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    listed: list[Any] | None = ["true", "false"] if declared.get("type") == "boolean" else declared.get("enum")
    return f"={'|'.join(map(str, listed))}" if listed else ""


class RequestReader:
    """Interprets requests with a model. Each request is asked about once, and known answers are not asked for again.

    Several threads may use it. Each thread waits only for its own question, for at most `patience` seconds.
    """

    def __init__(
        self,
        chat: Chat | None,
        *,
        known: Mapping[str, Allowance] | None = None,
        patience: float = PATIENCE,
        meanings: Mapping[str, Meaning] | None = None,
    ) -> None:
        """`known` contains earlier answers about requests, and `meanings` contains earlier answers about calls. Both
        are keyed by question.
        """
        self._asking = PatientChat(chat, patience) if chat is not None else None
        self.known: dict[str, Allowance] = dict(known or {})
        self.meanings: dict[str, Meaning] = dict(meanings or {})
        self.unanswered: dict[str, str] = {}
        """The latest requests without a usable answer, and the reasons, keyed by question."""
        self.not_looked_at: dict[str, str] = {}

    @property
    def queries(self) -> int:
        return self._asking.queries if self._asking is not None else 0

    def __call__(self, pack: Pack) -> RequestModel:
        return _PackReader(self, pack.schema.deeds)

    def read(self, text: str, tools: Mapping[str, Tool]) -> Allowance:
        """Return what a request allows. Without an answer, nothing is allowed, and the result gives the reason."""

        def made(answer: Answer) -> Allowance | None:
            reply = reply_of(answer)
            return None if reply is None else allowance_of(reply, text, tools)

        found = self._ask(question(text, tools), made, self.known, self.unanswered)
        return Allowance(unread=found) if isinstance(found, str) else found

    def look(self, doubt: Doubt) -> Meaning | None:
        """Return, for each argument, whether the user means its value. None if the model gives no answer."""

        def made(answer: Answer) -> Meaning | None:
            reply = answer.read(SaidOfCall)
            return None if reply is None else meaning_of(reply, doubt)

        found = self._ask(second_question(doubt), made, self.meanings, self.not_looked_at)
        return None if isinstance(found, str) else found

    def _ask(
        self, asked: Request, made: Callable[[Answer], _Made | None], known: dict[str, _Made], missing: dict[str, str]
    ) -> _Made | str:
        if (answered := known.get(asked.key)) is not None:
            return answered

        def kept(answer: Answer) -> _Made | None:
            found = made(answer)
            return None if found is None else _keep(known, asked.key, found)

        found = self._asking.ask(asked, kept) if self._asking is not None else "no model to ask"
        return _keep(missing, asked.key, found) if isinstance(found, str) else found


class _PackReader:
    def __init__(self, reader: RequestReader, tools: Mapping[str, Tool]) -> None:
        self._reader, self._tools = reader, tools
        self.look = reader.look

    def read(self, text: str) -> Allowance:
        return self._reader.read(text, self._tools)


def _keep(kept: dict[str, _Made], key: str, value: _Made) -> _Made:
    """Keep a value. If there are too many, drop the oldest value."""
    while len(kept) >= MOST:
        # Another thread may have removed the entry.
        kept.pop(next(iter(kept), key), None)
    kept[key] = value
    return value


def reply_of(answer: Answer) -> Reply | None:
    """Return a model's answer, or None if the answer cannot be parsed."""
    said = answer.read(dict[str, Any])
    try:
        return msgspec.convert(_with_bounds_as_text(said), Reply, strict=False)
    except msgspec.ValidationError:
        return None


def _with_bounds_as_text(said: Any) -> Any:
    """Convert bounds to text, because many models write 140 as a number in otherwise correct answers."""
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
    """Check a model's answer against the request and the catalogue. Return what the answer allows."""
    checking = _Checking(text, tools)
    deeds = tuple(deed for each in reply.deeds if (deed := checking.deed(each)) is not None)
    delegations = tuple(each for said in reply.delegations if (each := checking.delegation(said)) is not None)
    return Allowance(deeds, delegations, tuple(checking.faults))


class _Checking:
    """Checks an answer against the request. Parts that the request does not support are left out and reported."""

    def __init__(self, text: str, tools: Mapping[str, Tool]) -> None:
        self._text, self._tools = text, tools
        self.faults: list[str] = []

    def deed(self, said: SaidDeed) -> Deed | None:
        tool = self._tools.get(said.tool)
        if tool is None or not is_deed(tool):
            self.faults.append(f"`{said.tool[:80]}` is not a tool that changes or sends something")
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
        """Return a source for each tool. If the answer names no known tool, the value may come from any tool."""
        known = [tool for tool in said.tools if tool in self._tools]
        self.faults += [f"`{tool[:80]}` is not a tool" for tool in said.tools if tool not in self._tools]
        named = self._spans(said.named)
        return tuple(Source(tool, named) for tool in known or [""])

    def _spans(self, quotes: Iterable[str]) -> tuple[Span, ...]:
        """Return the positions of quotes in the request. Letter case is ignored only if a quote does not occur exactly
        as written.
        """
        found: list[Span] = []
        for quote in (each.strip() for each in quotes):
            start = self._text.find(quote)
            if start < 0:
                start = self._text.casefold().find(quote.casefold())
            if start < 0 or not quote:
                self.faults.append("a quote does not occur in the request")
            else:
                found.append(Span(start, start + len(quote)))
        return tuple(found)
