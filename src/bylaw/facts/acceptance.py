"""Whether a tool carried out a call, by its result.

The log, the host and the pack say what failed: an error flag, `refused` and `surely_refused` in tools.yaml. A result
that only looks like an error proves nothing: the write may have been executed.
"""

import re
from http import HTTPStatus
from typing import Any, cast

import msgspec

from bylaw.facts.path import NOTHING
from bylaw.policy.pattern import compile_pattern
from bylaw.policy.tool import Effect, Tool
from bylaw.trace.contradicted import Contradicted
from bylaw.trace.event import Result, tells_refusal

_STATUSES = "|".join(f"{status} {re.escape(status.phrase)}" for status in HTTPStatus if status >= 400)
_ERROR_NAME = r"\w*(?:errors?|exception|failed|failure|time(?:d ?)?-?out)\b"
_ERROR_TEXT = re.compile(
    # An error name within the first three words (`ValueError`, `E_ERROR`, `The refund failed`), or an HTTP status.
    rf"\W*(?:(?:\w+ ){{0,2}}{_ERROR_NAME}|unknown (?:tool|action|function)\b|traceback \("
    rf"|(?:https?(?:/[\d.]+)?|status|code)(?: code)?\W{{1,2}}[45]\d\d\b|[45]\d\d\W*$|(?:{_STATUSES})\b)",
    re.IGNORECASE,
)
_ERROR_HEADING = re.compile(rf"\W*(?:tool )?{_ERROR_NAME}\W*(?:[:!(\]]|$)", re.IGNORECASE)
_ERROR_FIELDS = ("error", "errors", "exception", "fault", "failure", "traceback")
_FAILED = frozenset(("error", "failed", "failure", "rejected", "declined", "denied", "refused"))
"""Values of `status` that may report a failure."""
_STATUS_CODES = ("status", "code", "statusCode", "status_code", "httpStatus", "http_status", "httpCode", "http_code")
_MARKS = frozenset((*_ERROR_FIELDS, *_STATUS_CODES, "success", "ok", "isError", "message"))

_CODE_FIELD = re.compile(
    r'"(?:status_?code|http_?(?:status|code)|code|status|message|reason|error)"\s*:\s*(?:"[^"]{1,60}"|\d+)',
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[\w\])])[:;.](?=\s|$)")
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
_LONGEST_PATTERN = 60


def accepted(tool: Tool | None, result: Result | None, value: Any = NOTHING) -> bool | None:
    """Whether the tool carried out the call; None if it may have. `value` is the decoded result, if known."""
    if result is None or not result.captured:
        return None
    if result.refused:
        return False
    done = _is_done(tool, result, value)
    return None if done is False and result.refused is False else done


def declares_refusal(tool: Tool | None, result: Result) -> bool:
    """Whether the pack declares that the tool did nothing if it returns such a result."""
    if tool is None or not (tool.refused or tool.surely_refused):
        return False
    for declared in (tool.refused, tool.surely_refused):
        if declared:
            occurs = compile_pattern(declared, ignore_case=False).occurs
            if occurs(result.text) or ((text := _as_json(result)) and occurs(text)):
                return True
    return False


def _as_json(result: Result) -> str:
    """A record that Python printed, or that a message part holds, as JSON; empty for any other result."""
    text = result.text
    if text.startswith('{"') and "\\" not in text:
        return ""
    value = result.value()
    return msgspec.json.encode(value, enc_hook=repr).decode() if value.__class__ is dict else ""


def _is_done(tool: Tool | None, result: Result, value: Any) -> bool | None:
    if declares_refusal(tool, result):
        return False
    is_open = tool is not None and bool(tool.surely_refused)
    if result.error or (result.error is None and _has_error_flag(result, value)):
        return None if is_open else False
    if result.error is False or (tool is not None and tool.refused and not is_open):
        return True
    value = result.value() if value is NOTHING else value
    if tool is not None and tool.effect != "write":
        return _is_looked_up(value)
    return None if looks_failed(value) else True


def _has_error_flag(result: Result, value: Any) -> bool:
    """Whether the result is an MCP result that is flagged as an error."""
    if value is NOTHING:
        value = result.value() if "isError" in result.text else None
    return value.__class__ is dict and value.get("isError") is True


def _is_looked_up(value: Any) -> bool | None:
    """The same of a look-up, where `status` and the like may be facts of the record."""
    if value.__class__ is dict:
        return not _reports_error(value)
    if value.__class__ is str and _ERROR_HEADING.match(value[:120]):
        return False
    return None if looks_failed(value) else True


def failed(result: Result) -> bool:
    """Whether a result is flagged as an error or looks like one; for statistics that need no certainty."""
    return bool(result.captured and (result.error or (result.error is None and looks_failed(result.value()))))


def looks_failed(value: Any) -> bool:
    """Whether a decoded result may report a failure. It does not prove that nothing was done."""
    if value.__class__ is int:
        return 400 <= value < 600
    if value.__class__ is str:
        return _ERROR_TEXT.match(value[:120]) is not None or tells_refusal(value)
    if value.__class__ is not dict or _MARKS.isdisjoint(value):
        return False
    record = cast("dict[str, Any]", value)
    if _reports_error(record) or any(map(record.get, _ERROR_FIELDS)):
        return True
    if record.get("status").__class__ is str and record["status"].strip().lower() in _FAILED:
        return True
    for name in _STATUS_CODES:
        written = str(record.get(name))
        if len(written) == 3 and written[0] in "45" and written.isascii() and written.isdigit():
            return True
    # A record that holds nothing but a message is read as that text.
    return record.keys() <= {"message", "code"} and any(map(looks_failed, record.values()))


def _reports_error(record: dict[str, Any]) -> bool:
    if record.get("error") or record.get("isError"):
        return True
    for name in ("success", "ok"):
        value = record.get(name, True)
        if value.__class__ is Contradicted or str(value).lower() in ("false", "0"):
            return True
    return record.get("status") is False or record.get("status") == "error"


def declaration_for(effect: Effect, result: str) -> str:
    """The line for tools.yaml that declares such a result a failure.

    For a write the pattern matches only this error: another one may follow after the write was executed.
    """
    is_write = effect == "write"
    field = _CODE_FIELD.search(result) if result.lstrip()[:1] == "{" else None
    start = "^" if not field and result[:1].strip() else ""
    literal = field[0] if field else _opening(result, whole=is_write)
    pattern = start + _SPECIAL.sub(r"\\\g<0>", literal).replace("'", "''")
    return f"{'surely_refused' if is_write else 'refused'}: '{pattern}'"


def _opening(text: str, *, whole: bool) -> str:
    """The first clause of a text; unless `whole`, only its first word if that names an error."""
    line = text.strip().partition("\n")[0][:_LONGEST_PATTERN]
    clause = _SENTENCE_END.split(line, maxsplit=1)[0]
    first = clause.partition(" ")[0]
    if not whole:
        return first if _ERROR_TEXT.match(first) else clause
    return line if clause == first else clause
