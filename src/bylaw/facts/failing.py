"""Results that look like errors where neither the log nor the pack says what they are.

What an error of a tool is stands in tools.yaml, as `refused` or `surely_refused`. Nothing here says that a call failed:
a write after which something looks like an error was perhaps done, and whoever owns the pack is told what to write.
"""

import re
from http import HTTPStatus
from typing import Any, cast

from bylaw.facts.lost import STATUSES, codes_in, is_lost
from bylaw.policy.tool import Effect
from bylaw.trace.event import decode_text

_STATUSES = "|".join(f"{status} {re.escape(status.phrase)}" for status in HTTPStatus if status >= 400)
_BEGINS = re.compile(
    r"\W*(?:"
    # Whatever the word is of: `ValueError`, `E_ERROR`, `[error]`.
    r"\w*(?:errors?|exception|failure)\b|(?:\w+ ){0,2}failed\b|traceback \(|fatal\b|panic:"
    r"|https?(?:/[\d.]+)?\W{1,2}[45]\d\d\b|(?:status|code)(?: code)?\W{1,2}[45]\d\d\b|[45]\d\d\W*$"
    rf"|(?:{_STATUSES})\b"
    r"|(?:(?:was|were|i am|we are) )?unable to\b|(?:could|can) ?not\b|(?:could|ca)n['\u2019]t\b"
    r")",
    re.IGNORECASE,
)
"""How texts begin that tell of a failure; what follows may tell of anything."""
_CODE = re.compile(r"(?:^|_)(?:E|ERR)(?:_|-?\d)|error|exception|fail", re.IGNORECASE)
_SIGNS = ("errors", "exception", "fault", "failure", "traceback")
_ACCOUNT = frozenset(
    ("status", "message", "msg", "reason", "detail", "details", "code", "description", "title", "type", "body")
)
"""Fields of a record that tells of the call alone."""
_TELLING = _ACCOUNT.union(_SIGNS, STATUSES, ("error",))
_TOLD = re.compile(
    r'"(?:status_?code|http_?(?:status|code)|code|status|message|reason)"\s*:\s*(?:"[^"]{1,60}"|\d+)', re.IGNORECASE
)
_SENTENCE = re.compile(r"(?<=[\w\])])[:;.](?=\s|$)")
_MARKED = re.compile(r"[\\^$.|?*+()\[\]{}]")
_LONGEST = 60


def text_looks_failed(text: str, tool: str = "") -> bool:
    """Whether a plain text may tell that a call failed."""
    return _BEGINS.match(text[:120]) is not None or is_lost(text, None, tool)


def record_looks_failed(record: dict[str, Any]) -> bool:
    """Whether a record may tell that the call failed, by no sign that is read as a refusal."""
    if record.keys().isdisjoint(_TELLING):
        return False
    for sign in _SIGNS:
        if record.get(sign):
            return True
    if any(codes_in(record)):
        return True
    if not record or not (record.keys() <= _ACCOUNT):
        return False
    code = record.get("code")
    if isinstance(code, str) and _CODE.search(code):
        return True
    # What a `status` says is read as such.
    texts = (value for name, value in record.items() if name not in ("code", "status", "type"))
    return any(isinstance(text, str) and is_lost(text) for text in texts)


def looks_failed(text: str, tool: str = "") -> bool:
    """Whether an answer, a text or a record, may tell that a call failed."""
    value = decode_text(text) if text.lstrip()[:1] == "{" else text
    if isinstance(value, dict):
        return record_looks_failed(cast("dict[str, Any]", value))
    return text_looks_failed(text, tool)


def line_to_write(effect: Effect, answer: str) -> str:
    """What to write under the tool in tools.yaml where such an answer means that the tool did nothing, or failed.

    Of a write just this answer is meant: another error may have come after the deed.
    """
    key = "surely_refused" if effect == "write" else "refused"
    told = _TOLD.search(answer) if answer.lstrip()[:1] == "{" else None
    start = "^" if not told and answer[:1].strip() else ""
    pattern = start + _MARKED.sub(r"\\\g<0>", told[0] if told else _head(effect, answer)).replace("'", "''")
    return f"{key}: '{pattern}'"


def _head(effect: Effect, text: str) -> str:
    """The words by which a text is known again."""
    line = text.strip().partition("\n")[0][:_LONGEST]
    begins = _SENTENCE.split(line, maxsplit=1)[0]
    first = begins.partition(" ")[0]
    if effect != "write":
        return first if _CODE.search(first) else begins
    return begins if begins != first else line
