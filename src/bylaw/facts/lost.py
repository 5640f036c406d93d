"""Answers that leave open whether a write was done: the server failed, the line broke, or it was done before.

What counts is listed in docs/reference/tools-and-things.md, beside `refused`.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from bylaw.policy.pattern import compile_pattern
from bylaw.trace.event import decode_text

LONGEST = 400
"""A longer text is an answer that came, unless it begins as errors and their pages do."""
_SURELY = (
    # The server failed (500 to 599), gave up waiting (408, 499), or found it made already (409): said to be a status,
    # or with the words that go with it.
    r"\b(?:errors?|https?(?:/[\d.]+)?|status(?:[ _-]?code)?|(?:error|response)[ _]code)\W{0,4}(?:5\d\d|40[89]|499)"
    r"(?:\W*$|\s*[:;)\]}<\"'-]"
    r"|\W+(?:internal|server|bad|service|gateway|error|response|from|returned|while|when|conflict|request|client)\b)"
    r"|\b409\W{1,3}conflict\b|\b408\W{1,3}request time-?out\b|^\W*(?:40[89]|499)\W*$"
    r"|\b5\d\d\W{1,3}(?:(?:internal )?server error|internal error|(?:bad )?gateway|service unavailable)"
    r"|^\W*5\d\d\W*$"
    r"|\binternal (?:server )?error\b|\binternalservererror\b|\bserver error\b|\bbad gateway\b|\bgateway time-?out\b"
    # Nobody waited any longer.
    r"|\btimed[ -]?out\b|\btimes out\b|\bdeadline[ _]?exceeded|\be(?:socket)?timedout\b"
    r"|time-?out(?:error|exception|expired)\b|\b(?:read|request|connect|response)timeout\b"
    # The line broke.
    r"|\bconnection (?:was |has been |got )?(?:reset|lost|closed|aborted|dropped|broken|interrupted|terminat)"
    r"|\blost (?:the )?connection\b|\bconnection(?:reset|aborted|closed)|\be(?:connreset|connaborted|pipe)\b"
    r"|\bbroken pipe\b|\bsocket hang[ -]?up\b|\b(?:server|remote|peer|upstream|host)[ _]?disconnect"
    r"|\bupstream connect error\b|\btransport is closing\b"
    r"|\bunexpected (?:eof|end of)|\beoferror\b|\bincomplete chunked|\bremoteprotocolerror\b|\bincompleteread\b"
    r"|\bno (?:answer|response|reply) (?:came|from|within|was received)\b"
    r"|\b(?:task|request|operation|call) was cancell?ed\b|\bcancellederror\b"
)
_PERHAPS = (
    r"\btime[ -]?outs?\b|\bservice (?:is )?(?:temporarily |currently )?unavailable\b"
    r"|\balready (?:been |being )?(?:processed|processing|executed|submitted)\b"
    r"|\bduplicated? (?:request|transaction|submission|operation|call|message|idempotency)|\bidempotency\b"
)
"""What leaves it open unless something else says that the call was wrong."""
_WRONG = (
    r"\binvalid\b|\bnot (?:allowed|permitted|found|valid|supported)\b|\bvalidation\b|\bforbidden\b|\bunauthori[sz]ed\b"
    r"|\bmust (?:not )?be\b|\bmissing\b|\brequired\b|\b4(?:0[0-7]|[1-8]\d|9[0-8])\b"
)
_PARTLY = (
    r"\bpartial(?:ly)?\b(?s:.{0,80})\b(?:fail|error|abort|incomplete|succe)"
    r"|\b(?:fail|error|abort)(?s:.{0,80})\bpartial(?:ly)?\b"
)
_ANY = f"{_SURELY}|{_PERHAPS}|{_PARTLY}"
_DONE = (r"\bsuccess(?:ful|fully)?\b", r"\b(?:not|without) success")
_ERROR = re.compile(r"\s*(?:<|(?:\w*error|exception|traceback|http)\b)", re.IGNORECASE)

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_FAILING = frozenset(
    ("error", "errors", "exception", "failed", "failure", "fail", "wrong", "unable", "problem", "issue")
)
_EMPTY = _FAILING.union(
    ("a", "an", "the", "with", "in", "of", "to", "it", "is", "was", "has", "be", "been", "there", "this", "that"),
    ("and", "or", "your", "some", "any", "something", "went", "occurred", "happened", "raised", "please", "try"),
    ("again", "later", "sorry", "oops", "unknown", "unexpected", "unspecified", "unhandled", "internal", "generic"),
    ("general", "fatal", "server", "system", "tool", "tools", "function", "operation", "request", "call", "action"),
    ("task", "execution", "execute", "executing", "calling", "invoking", "running", "run", "processing", "process"),
    ("performing", "perform", "while", "during", "when", "could", "can", "not", "cannot", "complete", "completed"),
    ("finish", "finished", "code", "message", "text", "none", "null", "true", "false", "undefined"),
)
"""Words that say that something failed, and not why."""

STATUSES = ("status", "statusCode", "status_code", "statuscode", "httpStatus", "http_status", "http_code", "httpCode")
_TOLD = frozenset(
    (
        *("error", "errors", "message", "msg", "detail", "details", "reason", "description", "title", "body"),
        *("content", "text", "cause", "exception", "fault", "status", "type", "name", "error_message", "errorMessage"),
    )
)
"""What a record tells of the call, and not of the thing that it made."""
_ACCOUNT = _TOLD | {"code", "success", "ok", "isError"}


def is_lost(answer: str, error: bool | None = None, tool: str = "") -> bool:
    """Whether an answer leaves open if a write was done: then that has to be looked up before it is made again.

    `error` is what the source says of failure, `tool` the tool that was called.
    """
    value = decode_text(answer) if answer.lstrip()[:1] in ("{", "[") else answer
    if isinstance(value, str):
        return _is_lost_text(value) or (error is not False and _gives_no_reason([value], tool, is_error=error is True))
    if not isinstance(value, dict):
        return False
    record = cast("dict[str, Any]", value)
    codes = list(codes_in(record))
    if codes:
        # A conflict may be with the very write, made by an earlier try whose answer was lost.
        return any(500 <= code < 600 or code in (408, 409, 499) for code in codes)
    texts = list(_texts(record))
    if any(map(_is_lost_text, texts)):
        return True
    if error is False or not (record.keys() <= _ACCOUNT):
        return False
    is_error = error is True or bool(record.get("error") or record.get("isError"))
    is_error = is_error or record.get("success") is False or record.get("ok") is False
    return _gives_no_reason(texts, tool, is_error=is_error)


def _gives_no_reason(texts: Iterable[str], tool: str, *, is_error: bool) -> bool:
    """Whether something failed, and nothing tells why: the words are those of any failure, or the tool's name."""
    named = {word.lower() for word in _WORD.findall(tool)}
    has_failed = is_error
    for text in texts:
        for found in _WORD.finditer(text):
            word = found[0].lower()
            if word not in _EMPTY and word not in named:
                return False
            has_failed = has_failed or word in _FAILING
    return has_failed


def _is_lost_text(text: str) -> bool:
    if len(text) > LONGEST:
        if not _ERROR.match(text):
            return False
        text = f"{text[:LONGEST]} {text[-LONGEST:]}"
    if not _has(text, _ANY):
        return False
    if _has(text, _PARTLY):
        return True
    if compile_pattern(*_DONE).occurs(text):
        return False
    return _has(text, _SURELY) or (_has(text, _PERHAPS) and not _has(text, _WRONG))


def _has(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).occurs(text)


def codes_in(record: dict[str, Any], *, is_error: bool = False) -> Iterator[int]:
    """The statuses of 400 and above that a record bears; a bare `code` is one only where it tells of an error."""
    is_error = is_error or any(record.get(name) for name in ("error", "errors", "message", "isError"))
    for name, value in record.items():
        if isinstance(value, dict) and name in _TOLD:
            yield from codes_in(cast("dict[str, Any]", value), is_error=name != "body")
        elif name in STATUSES or (name == "code" and is_error):
            written = str(cast(Any, value))
            if len(written) == 3 and written[0] in "45" and written.isascii() and written.isdigit():
                yield int(written)


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """What a record says of the call in words."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and depth < 4:
        for item in cast("list[Any]", value):
            yield from _texts(item, depth + 1)
    elif isinstance(value, dict) and depth < 4:
        for name, item in cast("dict[str, Any]", value).items():
            if name in _TOLD or name == "code":
                yield from _texts(item, depth + 1)
