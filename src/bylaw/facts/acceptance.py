"""Whether a tool accepted a call, read off its result."""

import re
from typing import Any, cast

from msgspec.structs import replace

from bylaw.facts.failing import record_looks_failed, text_looks_failed
from bylaw.facts.path import NOTHING
from bylaw.policy.pattern import compile_pattern
from bylaw.policy.tool import Tool
from bylaw.trace.contradicted import Contradicted
from bylaw.trace.event import HOOK, NOT_DONE, Result

_REFUSAL = re.compile(
    r"(?:tool )?errors?(?:\s*[:!(](?!\s*(?:0|none)\b)|\s*-(?!\w)|\s*$"
    r"|\s+(?:executing|calling|invoking|processing|running|while|during)\b)"
    r"|(?:an )?error (?:occurred|code)\b"
    r"|\[error\]|unknown (?:action|tool|function)\b",
    re.IGNORECASE,
)
"""How frameworks begin the text of a call they did not carry out."""
_AS_A_SHIELD = re.compile(rf"(?:{'|'.join(map(re.escape, NOT_DONE))}) \(|{HOOK}", re.IGNORECASE)
"""How a shield does. Whether it refused the call is known otherwise; here a tool speaks, and may say anything."""
_DOUBT = re.compile(r"\berrors?\b", re.IGNORECASE)
_SUCCESS = re.compile(r"(?<!un)(?<!not )\bsuccess(?:ful|fully)?\b|\bno errors?\b", re.IGNORECASE)
_SIGNS = ('"error"', '"isError"', '"success"', '"ok"', '"status"')
"""What a record that says so has in it: looking for these is cheaper than reading every record."""

_FAILED = ("error", "failed", "failure")
_TURNED_DOWN = {"rejected": "reject", "declined": "decline", "denied": "deny", "refused": "refuse"}
"""Words of a `status`: that a call failed; and that it, or the thing that it made, was turned down, with the verb."""
_ACCOUNT = frozenset(("status", "message", "reason", "reasons", "detail", "details", "code", "description", "errors"))
"""What a record has that tells of the call alone, and shows no thing that it made."""

_ACCOUNT_OF_FAILURE = _ACCOUNT.union(
    ("error", "isError", "success", "ok", "type", "title", "traceback", "exception", "request_id", "timestamp"),
    (
        "error_code",
        "error_message",
        "errorCode",
        "errorMessage",
        "error_type",
        "errorType",
        "statusCode",
        "status_code",
    ),
    ("hint", "data", "result", "content", "path", "retryable", "msg", "instance"),
)
"""The same of one that failed."""

_PRINTED_SIGNS = ("error", "isError", "success", "ok", "status")
"""The same, in what Python printed of a record."""


_WAYS = 4
"""Values of one sign, where a result gives it in several ways, of which each is looked at."""


def accepted(tool: Tool | None, result: Result | None, value: Any = NOTHING) -> bool | None:
    """Whether the tool accepted the call: None where nobody can tell. `value` is the result's, if known."""
    if result is None or not result.captured:
        return None
    if result.refused:
        return False
    told = _by_result(tool, result, value)
    return None if told is False and result.refused is False else told


def declares_refusal(tool: Tool | None, result: Result) -> bool:
    """Whether the pack says of such a result that its tool has done nothing."""
    patterns = (tool.refused, tool.surely_refused) if tool is not None else ()
    if not any(patterns):
        return False
    text = result.text
    return any(compile_pattern(each, ignore_case=False).occurs(text) for each in patterns if each)


def _by_result(tool: Tool | None, result: Result, value: Any) -> bool | None:
    if tool is not None and tool.surely_refused:
        return _unless_surely_refused(tool, result, value)
    if result.error:
        return False
    content = result.text
    if tool is not None and tool.refused:
        return compile_pattern(tool.refused, ignore_case=False).search(content) is None
    if result.error is False:
        return True
    if value.__class__ is dict and content[:1] == "{" and "\\" not in content:
        # As nearly every result is: no text inside of it is data of its own, so all is told by its own fields.
        return _told_by(tool, value)
    head = content.lstrip()[:64]
    if head[:1] != "{" and (told := _told(head, content)) is not True:
        return told
    if tool is not None and tool.effect == "write":
        value = result.value() if value is NOTHING else value
        if isinstance(value, dict):
            return _told_by(tool, cast("dict[str, Any]", value))
        return None if text_looks_failed(content, tool.name) else True
    signs = (_SIGNS if head[:1] == "{" else ()) if result.is_json() else _PRINTED_SIGNS
    for sign in signs:
        if sign in content:
            break
    else:
        return True
    value = result.value() if value is NOTHING else value
    return _told_by(tool, cast("dict[str, Any]", value)) if isinstance(value, dict) else True


def _unless_surely_refused(tool: Tool, result: Result, value: Any) -> bool | None:
    """The same for a tool of which only some errors are sure refusals: of others nobody knows if the call was done."""
    if compile_pattern(tool.surely_refused, ignore_case=False).occurs(result.text):
        return False
    return _by_result(replace(tool, surely_refused=""), result, value) or None


def _told_by(tool: Tool | None, record: dict[str, Any]) -> bool | None:
    if record.keys().isdisjoint(_PRINTED_SIGNS):
        return None if _looks_failed(tool, record) else True
    for sign in _PRINTED_SIGNS:
        value: Any = record.get(sign)
        if value.__class__ is Contradicted:
            told = {_told_by(tool, {**record, sign: each}) for each in value.values[:_WAYS]}
            return told.pop() if len(told) == 1 and len(value.values) <= _WAYS else None
    told = _by_status(tool, record)
    if _is_refusal(record):
        # Beside what shows a thing that a write made, an error may be of what came after, or say that there was none.
        is_write = tool is not None and tool.effect == "write"
        told = None if is_write and not record.keys() <= _ACCOUNT_OF_FAILURE else False
    return None if told is True and _looks_failed(tool, record) else told


def _looks_failed(tool: Tool | None, record: dict[str, Any]) -> bool:
    return tool is not None and tool.effect == "write" and record_looks_failed(record)


def _told(head: str, text: str) -> bool | None:
    """What plain text tells: a refusal, success, or None where it speaks of an error and may yet tell of success."""
    if _AS_A_SHIELD.match(head):
        return None
    if _REFUSAL.match(head):
        return None if _SUCCESS.search(text) else False
    return None if _DOUBT.match(head) else True


def _is_refusal(record: dict[str, Any]) -> bool:
    if record.get("error") or record.get("isError"):
        return True
    if ("success" in record and _is_no(record["success"])) or ("ok" in record and _is_no(record["ok"])):
        return True
    status = record.get("status")
    return status is False or status == "error"


def _by_status(tool: Tool | None, record: dict[str, Any]) -> bool | None:
    """What the status in a write's result tells: done, not done, or None where it may be that of a thing it made.

    In a look-up's result it is a fact; so it is where the tool is told a status, or is there to turn something down.
    """
    if tool is None or tool.effect != "write":
        return True
    status = record.get("status")
    if not isinstance(status, str) or "status" in tool.parameters:
        return True
    word = status.strip().lower()
    if word in _FAILED:
        return False
    if word not in _TURNED_DOWN or _TURNED_DOWN[word] in tool.name.lower():
        return True
    return False if record.keys() <= _ACCOUNT else None


def _is_no(value: Any) -> bool:
    return value.lower() == "false" if isinstance(value, str) else value in (False, 0)
