"""Processes results of tools, resources and prompts of an MCP server.

The log and the guards get the unchanged result.

Resources and prompts are content, not the user's request. But hosts insert their text into user messages, and prompts
even have the user's role. So the proxy records the text in the conversation. If the text appears in a user message, it
is unknown which words are the user's own.
"""
# pyright: basic, reportMissingImports=false

import base64
import binascii
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec
from fastmcp.exceptions import McpError, NotFoundError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, TextContent
from msgspec import Struct, field
from msgspec.structs import replace

from bylaw.integrations.follower import log
from bylaw.integrations.history import Heard, Part
from bylaw.shield import Decision, LiveSession
from bylaw.trace.event import Message, Result
from bylaw.trace.recorded_value import Contradicted, decode_json


def read_data(text: str) -> Any:
    """Return the object or list in a JSON text, or None for any other text."""
    try:
        data = decode_json(text)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return cast(Any, data) if isinstance(data, dict | list) else None


def never_ran(error: BaseException) -> bool:
    """Whether a call failed before its tool ran. Only a protocol error proves this."""
    if isinstance(error, McpError):
        return error.error.code in (INVALID_PARAMS, METHOD_NOT_FOUND)
    return isinstance(error, NotFoundError)


def returned(answer: Any, tool: str) -> dict[str, Any]:
    """Return a record of a response: its content, and whether it failed.

    The content may be both data and text, and an agent may read either one. If data and text differ, neither is
    recorded as shown.
    """
    structured, error = answer.structured_content, answer.is_error
    texts = [part.text for part in answer.content if isinstance(part, TextContent)]
    if structured is None:
        return {"content": "\n".join(texts), "error": error}
    # The key of a tool result that is not an object.
    wrapped = structured.get("result") if structured.keys() == {"result"} else structured
    if any(_contradicts(read_data(text), wrapped) for text in texts):
        log.warning("%s: its text result contradicts the structured result; neither counts as seen", tool)
        return {"content": "", "captured": False}
    return {"content": wrapped, "error": error}


def _contradicts(words: Any, data: Any) -> bool:
    if isinstance(words, Contradicted):
        return True
    if isinstance(words, dict) and isinstance(data, dict):
        return any(_contradicts(words[name], data[name]) for name in words.keys() & data.keys())
    if isinstance(words, list) and isinstance(data, list):
        return len(words) == len(data) and any(map(_contradicts, words, data))
    if isinstance(words, dict | list | None) or isinstance(data, dict | list | None):
        return False
    return words != data and str(words) != str(data)


def with_note(answer: Any, decision: Decision) -> Any:
    if not decision.feedback:
        return answer
    note = TextContent(type="text", text=decision.feedback)
    return answer.model_copy(update={"content": [*answer.content, note]})


RESOURCE, PROMPT = "resources/read", "prompts/get"
MOST = 10_000
"""The maximum number of conversations to remember, and of texts that belong to no conversation."""
LINE = 3
"""The minimum number of words in a line for the line to be recognised."""
LONG = 8
"""The minimum number of words in a text for removing only the paragraphs that contain the text."""
_BREAK = re.compile(r"\n[ \t\r]*\n\s*")


class _Seen(Struct):
    """Texts that the server has sent in a conversation, and the earlier messages of the user."""

    events: int = 0
    texts: dict[str, None] = field(default_factory=dict[str, None])
    """The normalised texts and their lines."""
    said: list[str] = field(default_factory=list[str])


class HandedOut:
    def __init__(self) -> None:
        self._seen: OrderedDict[str, _Seen] = OrderedDict()
        self._anywhere: OrderedDict[str, None] = OrderedDict()
        """Texts requested outside any conversation. In every conversation, these texts are not the user's."""

    def note(self, session: LiveSession | None, way: str, parts: Sequence[dict[str, str]], id: str) -> None:
        """Record a server's texts in their conversation and its log, if known."""
        if session is None:
            for text in _known_by(part["text"] for part in parts):
                self._anywhere[text] = None
            while len(self._anywhere) > MOST:
                self._anywhere.popitem(last=False)
        elif parts:
            content = msgspec.json.encode(parts).decode()
            session.messages([{"role": "tool", "tool_call_id": id, "name": way, "content": content}])
            session.flush()

    def own(self, session: LiveSession, said: Sequence[Part]) -> list[Part]:
        """In user messages, replace text from a server with unknown words."""
        seen = self._of(session)
        texts = sorted((*seen.texts, *self._anywhere), key=len, reverse=True)
        if not texts:
            return [*said]
        told = [(part, own_words(part.text, texts)) if isinstance(part, Heard) else (part, "") for part in said]
        heard = [(part.text, own) for part, own in told if isinstance(part, Heard)]
        # If the host sends the whole history again, its earlier messages are known to be the user's. Only the others
        # are new.
        earlier = zip(heard, seen.said, strict=False)
        is_whole = len(heard) >= len(seen.said) and all(known in words for words, known in earlier)
        known = len(seen.said) if is_whole else 0
        found: list[Part] = []
        for part, own in told:
            if isinstance(part, Heard):
                known -= 1
                if known < 0:
                    # A server may return any text, even "No, stop." It is then unknown who wrote the message.
                    part = replace(part, text=own, whole=part.whole and own == part.text.strip())
            found.append(part)
        return found

    def _of(self, session: LiveSession) -> _Seen:
        seen = self._seen.pop(session.id, None) or _Seen()
        self._seen[session.id] = seen
        if len(self._seen) > MOST:
            self._seen.popitem(last=False)
        events = session.since(seen.events)
        for event in events:
            if isinstance(event, Message) and event.by == "user":
                seen.said.append(event.text)
            elif isinstance(event, Result) and event.call is None and event.tool in (RESOURCE, PROMPT):
                seen.texts |= dict.fromkeys(_known_by(part["text"] for part in event.value()))
        seen.events += len(events)
        return seen


def own_words(text: str, handed: Iterable[str]) -> str:
    """Return a message without the paragraphs that contain a server's text. A one-word text must be a whole paragraph.

    Sentences are never shortened, because the rest may mean the opposite. The whole message is removed if the server's
    text is short, because a server could return "please do not".
    """
    whole, (folded, places) = _folded(text), _letters(text)
    for each in handed:
        if each == whole:
            return ""
        words = each.count(" ") + 1
        while words > 1 and (start := folded.find(each)) >= 0:
            if words < LONG:
                return ""
            text = _without(text, places[start], places[start + len(each) - 1] + 1)
            whole, (folded, places) = _folded(text), _letters(text)
    return text.strip()


def _without(text: str, start: int, end: int) -> str:
    breaks = [*_BREAK.finditer(text)]
    before = max((each.end() for each in breaks if each.end() <= start), default=0)
    after = min((each.start() for each in breaks if each.start() >= end), default=len(text))
    return text[:before] + text[after:]


def _letters(text: str) -> tuple[str, list[int]]:
    letters: list[str] = []
    places: list[int] = []
    for place, letter in enumerate(text):
        for each in " " if letter.isspace() else letter.casefold():
            if each != " " or letters[-1:] != [" "]:
                letters.append(each)
                places.append(place)
    return "".join(letters), places


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _known_by(texts: Iterable[str]) -> Iterable[str]:
    """Yield the normalised text and its lines, which are used to recognise the text."""
    for text in texts:
        lines = [line for line in text.splitlines() if len(line.split()) >= LINE]
        yield from (folded for each in (text, *lines) if (folded := _folded(each)))


def resource_parts(contents: Iterable[Any]) -> list[dict[str, str]]:
    return [{"uri": str(each.uri), "text": text} for each in contents if (text := text_of(each))]


def prompt_parts(messages: Iterable[Any]) -> list[dict[str, str]]:
    found = [(each.role, getattr(each.content, "resource", each.content)) for each in messages]
    return [{"role": role, "text": text} for role, content in found if (text := text_of(content))]


def embedded(content: Iterable[Any]) -> list[dict[str, str]]:
    return resource_parts(part.resource for part in content if getattr(part, "type", "") == "resource")


def text_of(content: Any) -> str:
    text = getattr(content, "text", None)
    if isinstance(text, str):
        return text
    try:
        return base64.b64decode(getattr(content, "blob", ""), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
