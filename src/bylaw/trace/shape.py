"""Detects the format of a record from its fields, even if only the beginning of the record is known."""

import json
import re
from typing import Any, Literal, cast

Format = Literal[
    "openai",
    "langchain",
    "tau1",
    "tau2",
    "otlp",
    "langfuse",
    "langsmith",
    "inspect",
    "agentdojo",
    "pydantic-ai",
    "adk",
    "llama-index",
    "agent-framework",
    "claude",
    "claude-code",
    "parquet",
]

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}:,]|[^\s\[\]{}:,"]+|"', re.DOTALL)
_CLOSER = {b"{": b"}", b"[": b"]"}
_DEEPEST = 100
"""No format needs deeper fields; this bounds the time for endless brackets."""
_CLAUDE_TYPES = {"UserMessage", "AssistantMessage", "SystemMessage", "ResultMessage", "StreamEvent"}
_LANGCHAIN_TYPES = {"human", "ai", "tool", "system", "function", "developer", "chat", "generic", "remove"}


def shape(value: Any) -> Format | None:
    """The format of a record, or of a list of records, by the fields it has."""
    if isinstance(value, list):
        items = cast(list[Any], value)
        if is_messages(items):
            return _messages_shape(items)
        return next((format for item in items if item and (format := shape(item))), None)
    if not isinstance(value, dict):
        return None
    record = cast(dict[str, Any], value)
    for format, keys in _TELLING:
        if keys <= record.keys():
            return format
    match record.get("info"):
        # The simulations come last, far from here.
        case {"agent_info": _} | {"user_info": _} | {"environment_info": _}:
            return "tau2"
        case _:
            pass
    if "type" in record and ("traceId" in record or "trace_id" in record):
        return "langfuse"
    if isinstance(record.get("message"), dict) and ("sessionId" in record or "session_id" in record):
        return "claude-code"
    if record.get("type") in ("system", "summary") and ("sessionId" in record or "session_id" in record):
        return "claude-code"
    if isinstance(record.get("events"), list) and ("app_name" in record or "appName" in record):
        return "adk"
    if "observations" in record or "batch" in record or ("sessionId" in record and "input" in record):
        return "langfuse"
    if isinstance(record.get("data"), list):
        return shape(record["data"])
    if isinstance(values := record.get("values"), dict) and "messages" in values:
        # A LangGraph state.
        return shape(values)
    messages = record.get("messages")
    if isinstance(messages, list):
        listed = cast(list[Any], messages)
        return _messages_shape(listed) if is_messages(listed) else "openai" if not listed else None
    match record.get("contents"):
        case [{"parts": [*_]}, *_]:
            # A request to Gemini: chat under other names.
            return "openai"
        case _:
            return None


_TELLING: tuple[tuple[Format, set[str]], ...] = (
    ("otlp", {"resourceSpans"}),
    ("otlp", {"resourceLogs"}),
    ("tau2", {"simulations"}),
    ("tau2", {"info", "tasks"}),
    ("tau2", {"messages", "reward_info", "task_id"}),
    ("tau1", {"traj"}),
    ("tau1", {"task_id", "reward", "info"}),
    ("agentdojo", {"suite_name", "user_task_id"}),
    ("inspect", {"eval", "status"}),
    ("inspect", {"eval", "version"}),
    ("langsmith", {"run_type"}),
    ("langsmith", {"post", "patch"}),
    ("langsmith", {"runs"}),
)


def is_messages(value: list[Any]) -> bool:
    """Whether a list is the messages of one conversation."""
    first = next(iter(value), None)
    if not isinstance(first, dict):
        return False
    message = cast(dict[str, Any], first)
    if "role" in message or "lc" in message or _is_request(message):
        return True
    kind = str(message.get("type"))
    if kind in _CLAUDE_TYPES:
        return True
    if kind in _LANGCHAIN_TYPES and ("data" in message or "content" in message):
        return True
    return kind in {"function_call", "function_call_output"} and "call_id" in message


def _is_request(message: dict[str, Any]) -> bool:
    return message.get("kind") in ("request", "response") and isinstance(message.get("parts"), list)


def _messages_shape(messages: list[Any]) -> Format:
    first: dict[str, Any] = messages[0]
    if _is_request(first):
        return "pydantic-ai"
    if str(first.get("type")) in _CLAUDE_TYPES:
        return "claude"
    if "role" in first and isinstance(first.get("blocks"), list):
        return "llama-index"
    if "role" in first and isinstance(first.get("contents"), list):
        return "agent-framework"
    if "role" in first and "lc" not in first:
        return "openai"
    if str(first.get("type")) in {"function_call", "function_call_output"}:
        return "openai"
    return "langchain"


def glimpse(head: bytes, *, again: bool = True) -> Any:
    """The part of a document that its beginning shows, up to the first damage; None if nothing can be read."""
    closers: list[bytes] = []
    before = b""
    cut, tail = 0, b""
    for token in _TOKEN.finditer(head):
        mark = token[0]
        ended = True
        if mark == b'"':
            break
        if mark in _CLOSER:
            if len(closers) == _DEEPEST:
                break
            closers.append(_CLOSER[mark])
        elif mark in (b"}", b"]"):
            if not closers or closers[-1] != mark:
                break
            closers.pop()
        elif mark in (b",", b":"):
            ended = False
        else:
            is_key = bool(closers) and closers[-1] == b"}" and before in (b"{", b",")
            ended = not is_key and token.end() < len(head)
        before = mark
        if ended:
            cut, tail = token.end(), b"".join(reversed(closers))
        if not closers:
            break
    try:
        return json.loads((head[:cut] + tail).decode("utf-8", "replace"))
    except json.JSONDecodeError as error:
        before = head[:cut].decode("utf-8", "replace")[: error.pos].encode()
        return glimpse(before, again=False) if again and before else None
    except (ValueError, RecursionError):
        return None
