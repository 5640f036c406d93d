"""What a request allows, asked of a model once: from the user's words and the tool catalogue, before anything is read.

Nothing here raises for what a model says, or waits for it longer than `patience`. A quote that does not stand in the
request, and a tool that is none, make that part of the answer allow nothing; where a model gives no answer, nothing is
allowed and all is asked about. Only where there is no model do the words of the catalogue tell.
"""

import re
import threading
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.answering.running import PROMPTS
from bylaw.engine.request import (
    Allowance,
    Choice,
    Deed,
    Delegation,
    Limit,
    ReadRequest,
    Slot,
    Source,
    Span,
    allowed_by_words,
    fetches,
    is_deed,
)
from bylaw.errors import UsageError
from bylaw.llm import Chat, Pending, Request
from bylaw.llm.chat import schema_of
from bylaw.llm.prompt import render
from bylaw.pack import Pack
from bylaw.policy.tool import Tool
from bylaw.text.folding import fold


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
PATIENCE = 15.0
"""Seconds that a call waits for an answer at most; one that comes later is there for the next call."""
MOST_ASKED = 64
"""Questions under way at once, at most."""
FAILURES = 3
"""After so many failures in a row a model is taken to be down."""
PAUSE = 30.0
"""Seconds before one that is down is asked again."""


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
        self, chat: Chat | None, *, known: Mapping[str, Allowance] | None = None, patience: float = PATIENCE
    ) -> None:
        """`known` are allowances that were made before, by the key of their question."""
        self._chat = chat
        self._patience = patience
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[Allowance]] = {}
        self._failures, self._down_until = 0, 0.0
        self.known: dict[str, Allowance] = dict(known or {})
        self.queries = 0
        """How often a model was asked."""
        self.unanswered: dict[str, str] = {}
        """The latest questions without an answer that can be used, by key, each with why."""

    def __call__(self, pack: Pack) -> ReadRequest:
        return lambda text: self.read(text, pack.schema.tools)

    def read(self, text: str, tools: Mapping[str, Tool]) -> Allowance:
        """What a request allows; all is asked about where a model has no answer, and says why."""
        asked = question(text, tools)
        found = self.known.get(asked.key)
        if found is not None:
            return found
        if self._chat is None:
            self._leave(asked.key, "nobody is there to ask")
            return allowed_by_words(text, tools)
        waiting = self._begin(self._chat, asked, text, tools)
        if isinstance(waiting, str):
            return Allowance(by="model", unread=waiting)
        try:
            return waiting.result(self._patience)
        except TimeoutError:
            why = f"the model gave no answer within {self._patience:g} seconds"
            self._fails(asked.key, why)
            return Allowance(by="model", unread=why)

    def _begin(self, chat: Chat, asked: Request, text: str, tools: Mapping[str, Tool]) -> "Future[Allowance] | str":
        """The answer that is under way, or why the model is not asked now."""
        with self._lock:
            waiting = self._under_way.get(asked.key)
            if waiting is not None:
                return waiting
            if time.monotonic() < self._down_until:
                return "the model did not answer lately"
            if len(self._under_way) >= MOST_ASKED:
                return "too many questions wait for the model"
            waiting = self._under_way[asked.key] = Future[Allowance]()
            self.queries += 1
        # Whoever stops the program does not wait for a model.
        threading.Thread(target=self._ask, args=(chat, asked, text, tools, waiting), daemon=True).start()
        return waiting

    def _ask(
        self, chat: Chat, asked: Request, text: str, tools: Mapping[str, Tool], waiting: "Future[Allowance]"
    ) -> None:
        is_down = True
        try:
            (answer,) = chat.ask([asked])
            reply, why = answer.read(Reply), answer.why or "no answer that can be read"
        except Exception as error:
            reply, why = None, str(error) or type(error).__name__
            # A batch is answered when somebody gets to it.
            is_down = not isinstance(error, Pending)
        if reply is None:
            found = Allowance(by="model", unread=f"the model gave no answer ({why.splitlines()[0][:200]})")
            self._fails(asked.key, why, is_down=is_down)
        else:
            found = allowance_of(reply, text, tools)
        with self._lock:
            if reply is not None:
                self._failures, self._down_until = 0, 0.0
                while len(self.known) >= MOST:
                    del self.known[next(iter(self.known))]
                self.known[asked.key] = found
            self._under_way.pop(asked.key, None)
        waiting.set_result(found)

    def _fails(self, key: str, why: str, *, is_down: bool = True) -> None:
        with self._lock:
            self._failures += is_down
            if self._failures >= FAILURES:
                self._down_until = time.monotonic() + PAUSE
            self._leave(key, why)

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
        said_at = [(each, self._whole(each)) for each in said.perhaps if each.strip()]
        perhaps = tuple(span for _, span in said_at if span is not None)
        guessed = tuple(dict.fromkeys(fold(each).strip() for each, span in said_at if span is None))
        return tuple(Source(tool, named, perhaps, guessed) for tool in known or [""])

    def _whole(self, words: str) -> Span | None:
        """Where the user said words, as whole ones."""
        found = re.search(rf"(?<!\w){re.escape(words.strip())}(?!\w)", self._text, re.IGNORECASE)
        return Span(*found.span()) if found else None

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
