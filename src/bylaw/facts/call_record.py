"""The calls in a conversation, as recorded by the ledger. Each has the fields that it may have changed, and answered
calls are indexed by their arguments.

The result of a call shows whether the tool ran it. A log or host marks failures with an error flag. A pack declares
failures with `refused` and `surely_refused` in tools.yaml. A result that only looks like an error proves nothing,
because a write may have run all the same.
"""

import re
from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from operator import attrgetter
from typing import Any, cast

import msgspec
from msgspec import Struct

from bylaw.facts.observation import NOTHING
from bylaw.facts.value import alike, is_same, key_of, loose, names_several
from bylaw.policy.pattern import compile_pattern
from bylaw.policy.tool import Effect, Tool
from bylaw.trace.event import Call, Result, tells_refusal
from bylaw.trace.recorded_value import Contradicted, values_inside

_STATUSES = "|".join(f"{status} {re.escape(status.phrase)}" for status in HTTPStatus if status >= 400)
_ERROR_NAME = r"\w*(?:errors?|exception|failed|failure|time(?:d ?)?-?out)\b"
_ERROR_TEXT = re.compile(
    # Matches the name of an error among the first three words (`ValueError`, `E_ERROR`, `The refund failed`), or an
    # HTTP status.
    rf"\W*(?:(?:\w+ ){{0,2}}{_ERROR_NAME}|unknown (?:tool|action|function)\b|traceback \("
    rf"|(?:https?(?:/[\d.]+)?|status|code)(?: code)?\W{{1,2}}[45]\d\d\b|[45]\d\d\W*$|(?:{_STATUSES})\b)",
    re.IGNORECASE,
)
_ERROR_HEADING = re.compile(rf"\W*(?:tool )?{_ERROR_NAME}\W*(?:[:!(\]]|$)", re.IGNORECASE)
_ERROR_FIELDS = ("error", "errors", "exception", "fault", "failure", "traceback")
_FAILED = re.compile(r"[45][0-9]{2}|error|failed|failure|rejected|declined|denied|refused", re.IGNORECASE)
"""Matches a status or a code that may report a failure."""
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
    """Return whether the tool ran the call, or None if this is unknown. `value` is the decoded result, if the caller
    has it.
    """
    if result is None or not result.captured:
        return None
    if result.refused:
        return False
    done = _is_done(tool, result, value)
    return None if done is False and result.refused is False else done


def declares_refusal(tool: Tool | None, result: Result) -> bool:
    """Whether the pack declares that a tool which returned this result has done nothing."""
    if tool is None or not (tool.refused or tool.surely_refused):
        return False
    for declared in (tool.refused, tool.surely_refused):
        if declared:
            occurs = compile_pattern(declared, ignore_case=False).occurs
            if occurs(result.text) or ((text := _as_json(result)) and occurs(text)):
                return True
    return False


def _as_json(result: Result) -> str:
    """Return a record as JSON, if Python printed it or a message contains it. Empty for any other result."""
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
    if value is NOTHING:
        value = result.value() if "isError" in result.text else None
    return value.__class__ is dict and value.get("isError") is True


def _is_looked_up(value: Any) -> bool | None:
    """Whether a look-up ran. Unlike a write's, its `status` and similar fields may be facts about the record that it
    shows.
    """
    if value.__class__ is dict:
        return not _reports_error(value)
    if value.__class__ is str and _ERROR_HEADING.match(value[:120]):
        return False
    return None if looks_failed(value) else True


def failed(result: Result) -> bool:
    """Whether a result has an error flag or looks like an error. It may be wrong, so use it only for statistics."""
    return bool(result.captured and (result.error or (result.error is None and looks_failed(result.value()))))


def looks_failed(value: Any) -> bool:
    """Whether a decoded result may report a failure. Even if it does, the tool may have done something."""
    if value.__class__ is int:
        return 400 <= value < 600
    if value.__class__ is str:
        return _ERROR_TEXT.match(value[:120]) is not None or tells_refusal(value)
    if value.__class__ is not dict or _MARKS.isdisjoint(value):
        return False
    record = cast("dict[str, Any]", value)
    if _reports_error(record) or any(map(record.get, _ERROR_FIELDS)):
        return True
    if any(_FAILED.fullmatch(str(record.get(name)).strip()) for name in _STATUS_CODES):
        return True
    # A record that contains only a message is treated like plain text.
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
    """Return the line for tools.yaml that declares this result a failure. For a write, the line matches only this
    error.
    """
    is_write = effect == "write"
    field = _CODE_FIELD.search(result) if result.lstrip()[:1] == "{" else None
    start = "^" if not field and result[:1].strip() else ""
    literal = field[0] if field else _opening(result, whole=is_write)
    pattern = start + _SPECIAL.sub(r"\\\g<0>", literal).replace("'", "''")
    return f"{'surely_refused' if is_write else 'refused'}: '{pattern}'"


def _opening(text: str, *, whole: bool) -> str:
    """Return the first clause of the text. If its first word names an error and `whole` is not set, return only that
    word.
    """
    line = text.strip().partition("\n")[0][:_LONGEST_PATTERN]
    clause = _SENTENCE_END.split(line, maxsplit=1)[0]
    first = clause.partition(" ")[0]
    if not whole:
        return first if _ERROR_TEXT.match(first) else clause
    return line if clause == first else clause


TO_USER = "\0user"
"""The value of `CallRecord.who` for calls made by the user, who then also sees the results."""


class CallRecord(Struct, eq=False):
    """A call, the changes that it makes, and its result once that is known."""

    call: Call
    step: int
    start: int
    """The step at which the call's turn began."""
    tool: Tool | None
    who: str
    """Who sees the result: an agent or the user."""
    result: Result | None = None
    delivered: int | None = None
    accepted: bool | None = None
    value: Any = NOTHING
    has_shown: bool = False
    """Whether the result showed any field other than the key, of any entity."""
    actions: "tuple[CallRecord, ...]" = ()
    """The actions that a call to a generic tool performs. They share the call's step and result."""
    called: str = ""
    """For an action: the call to a generic tool that performs it."""
    untold: Mapping[str, Any] = {}
    """For an action: values in the call that the action does not use. Consent to the action also covers them."""
    is_evidence: bool = True
    """Whether the result counts as evidence of facts. It does not for an action whose result the agent may have
    written.
    """
    is_beside: bool = False
    """Whether the actions of the call are counted, so that the call itself is not counted as well."""
    may_be: frozenset[str] = frozenset()
    """The actions that a call to a generic tool may perform, if it is uncertain which of them it does."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The call's arguments. Empty if an argument was given twice with different values."""
        return {} if self.call.fault else self.call.arguments

    def was_answered(self) -> bool | None:
        """Whether a look-up returned anything but an error. None if unknown."""
        if self.result is None or self.accepted is False:
            return self.accepted
        return accepted(self.tool, self.result)

    def counts_at(self, step: int) -> bool:
        """Whether the call may have taken effect, according to what was known just before `step`."""
        return self.accepted is not False or self.delivered is None or self.delivered >= step

    def is_another_view(self) -> bool:
        """Whether the agent may have written or influenced the result, so that it is not evidence."""
        tool = self.tool
        if not self.is_evidence:
            return True
        return tool is not None and tool.effect == "read" and bool(tool.undeclared(self.call.arguments))

    def is_surely_refused(self) -> bool:
        """Whether the call certainly did not run: a shield refused it, the pack declares that its result means a
        refusal, or it failed before the tool ran.

        Any other error may have occurred after the tool took effect. For example, a tool can make a payment and then
        fail to write the receipt.
        """
        result = self.result if self.accepted is False else None
        is_declared = result is not None and (result.refused is True or declares_refusal(self.tool, result))
        return self.call.refused or is_declared

    def is_doubtful(self) -> bool:
        """Whether the text of the result leaves open if the call ran."""
        return self.accepted is None and self.result is not None and self.result.captured

    def is_perhaps_done(self) -> bool:
        """Whether it is uncertain if the call ran, because the text of its result is unclear or a shield marked the
        result so.
        """
        return self.is_doubtful() or (self.result is not None and self.result.refused is False)

    def counts(self) -> bool:
        return self.accepted is not False

    def is_answered_at(self, step: int | None) -> bool:
        """Whether the result arrived before a step. If the step is None, whether it has arrived at all."""
        return self.delivered is not None and (step is None or self.delivered < step)


def record_of(call: Call, step: int, start: int, tool: Tool | None) -> CallRecord:
    return CallRecord(call, step, start, tool, TO_USER if call.by == "user" else call.agent)


def matches(given: Mapping[str, Any], match: Mapping[str, Any]) -> bool | None:
    """Whether the arguments match. None if they differ only in ways that a tool might ignore."""
    found = [is_same(given[name], value) if name in given else False for name, value in match.items()]
    return False if False in found else None if None in found else True


class Answers:
    def __init__(self) -> None:
        self._by_tool: dict[str, AnsweredCalls] = {}
        """Answered calls by tool. Those added since the last query are still in `_unsorted`."""
        self._unsorted: list[CallRecord] = []
        self.add = self._unsorted.append

    def by_tool(self) -> "Mapping[str, AnsweredCalls]":
        for made in self._unsorted:
            self._by_tool.setdefault(made.call.tool, AnsweredCalls()).add(made)
        self._unsorted.clear()
        return self._by_tool

    def of(self, tool: str, at: CallRecord, arguments: Mapping[str, Any] | None = None) -> Iterator[CallRecord]:
        """Yield the calls whose results the agent had seen. With `arguments`, most calls with other arguments are left
        out.
        """
        answered = self.by_tool().get(tool)
        if answered is None:
            return
        for made in answered.records if arguments is None else answered.about(arguments):
            shown = made.delivered is not None and made.delivered < at.start
            if shown and made.call.by == "agent" and made.call.agent == at.call.agent:
                yield made

    def delivered(
        self, tool: str, at: CallRecord, arguments: Mapping[str, Any] | None = None
    ) -> Iterator[tuple[CallRecord, Result]]:
        """Like `of`, but yield only calls that ran, each with its result."""
        for made in self.of(tool, at, arguments):
            if made.result is not None and accepted(made.tool, made.result):
                yield made, made.result

    def to(self, tool: str, arguments: Mapping[str, Any], at: CallRecord) -> list[CallRecord]:
        """Return the look-ups that may have had these arguments and whose results (or errors) the agent had seen."""
        made = self.of(tool, at, arguments)
        return [record for record in made if matches(record.call.arguments, arguments) is not False]

    def has_failed(self, tool: str, arguments: Mapping[str, Any], at: CallRecord) -> bool:
        """Whether every look-up with these arguments has failed so far. If so, it is worth retrying, because the error
        may be temporary.
        """
        made = self.to(tool, arguments, at)
        return bool(made) and not any(each.result is not None and accepted(each.tool, each.result) for each in made)

    def was_asked(self, tool: str, arguments: Mapping[str, Any], at: CallRecord) -> bool:
        """Whether the agent had already made a call with exactly these arguments and had received a result before this
        turn.
        """
        return any(made.arguments == arguments for made, _ in self.delivered(tool, at, arguments))


_step = attrgetter("step")


class AnsweredCalls:
    """The answered calls to one tool, in the order of the calls. The results may have arrived in a different order."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []
        self._indexes: dict[tuple[str, ...], dict[tuple[str, ...] | None, list[CallRecord]]] = {}
        """For each set of argument names, the calls by normalised values. The key is None if a value is a list or an
        object.
        """

    def add(self, made: CallRecord) -> None:
        insort(self.records, made, key=_step)
        for names, index in self._indexes.items():
            insort(index.setdefault(_rough_of(made, names), []), made, key=_step)

    def about(self, arguments: Mapping[str, Any]) -> Sequence[CallRecord]:
        """Return the calls whose arguments may include these. The list may contain a few others."""
        names = tuple(arguments)
        wanted = _rough(arguments, names)
        if wanted is None:
            return self.records
        index = self._indexes.get(names)
        if index is None:
            index = self._indexes[names] = {}
            for made in self.records:
                index.setdefault(_rough_of(made, names), []).append(made)
        found, unsure = index.get(wanted, []), index.get(None)
        return sorted((*found, *unsure), key=_step) if unsure else found


def _rough_of(made: CallRecord, names: Sequence[str]) -> tuple[str, ...] | None:
    return None if made.call.fault else _rough(made.call.arguments, names)


def _rough(arguments: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...] | None:
    """Return these arguments, normalised as in `is_same`. None if a value may name more than one entity."""
    found: list[str] = []
    for name in names:
        value = arguments.get(name)
        if names_several(value):
            return None
        found.append(alike(key_of((value,))[0]))
    return tuple(found)


_MASK = re.compile(
    r"\[[^\[\]]*\]|<[^<>]*>|\*+|\.{2,}|[\u2026\u2022\u25cf\u2588\u2593\u2592\u2591\u25a0\ufffd]+|(?i:x{3,}|_{3,})"
)
"""Matches a gap in recorded text: a placeholder in brackets, or several masking characters."""


def may_have_run(earlier: CallRecord, step: int) -> bool:
    """Whether a call may have run, according to what was known just before `step`."""
    return earlier.counts_at(step) or not earlier.is_surely_refused()


def could_be_same_call(earlier: CallRecord, call: CallRecord, ignored: frozenset[str] = frozenset()) -> bool:
    """Whether an earlier call may have done the same as `call`. Arguments named in `ignored` are not compared."""
    if earlier.call.tool != call.call.tool:
        return call.call.tool in earlier.may_be
    wanted = {name: value for name, value in call.call.arguments.items() if name not in ignored}
    if not could_have_had(earlier.call, earlier.tool, wanted):
        return False
    more = [name for name, value in earlier.call.arguments.items() if value is not None and name not in ignored]
    tool = earlier.tool
    if tool is None or not tool.parameters or tool.others is not False:
        return all(name in wanted for name in more)
    # An undeclared argument may come from the recorder, or the tool may ignore it.
    return all(name in wanted or name not in tool.parameters for name in more)


def could_have_had(earlier: Call, tool: Tool | None, arguments: Mapping[str, Any]) -> bool:
    """Whether a recorded call may have had these arguments, possibly with others in addition."""
    if earlier.fault:
        return True
    for name, value in arguments.items():
        if name in earlier.arguments:
            if not could_be_same_value(earlier.arguments[name], value):
                return False
        elif value is not None and not (tool is not None and name in tool.required):
            # The record lacks a required argument, so it is incomplete.
            return False
    return True


def had(earlier: CallRecord, match: Mapping[str, Any]) -> bool | None:
    """Whether a call had these arguments. None if this is unknown."""
    if not match or (not earlier.call.fault and matches(earlier.call.arguments, match)):
        return True
    return None if could_have_had(earlier.call, earlier.tool, match) else False


def could_be_same_value(recorded: Any, value: Any) -> bool:
    """Whether a recorded value may be `value`, but truncated, masked or spelled differently."""
    if isinstance(recorded, Mapping) and isinstance(value, Mapping):
        some, others = cast("Mapping[str, Any]", recorded), cast("Mapping[str, Any]", value)
        names = {name for each in (some, others) for name, part in each.items() if part is not None}
        return all(could_be_same_value(some.get(name), others.get(name)) for name in names)
    if isinstance(recorded, list | tuple) and isinstance(value, list | tuple):
        these, those = cast("Sequence[Any]", recorded), cast("Sequence[Any]", value)
        return len(these) == len(those) and all(map(could_be_same_value, these, those))
    if is_same(recorded, value) is not False:
        return True
    return isinstance(recorded, str) and _could_be_masked(recorded, value)


def is_readable(call: Call, tool: Tool | None) -> bool:
    """Whether a call was recorded completely. If not, different records may show the same call."""
    if call.fault or has_gap(call.arguments):
        return False
    if tool is None:
        return True
    return all(name in call.arguments for name in tool.required) and not tool.undeclared(call.arguments)


def has_gap(value: Any) -> bool:
    return any(isinstance(part, str) and _MASK.search(part) is not None for part in values_inside(value))


def _could_be_masked(recorded: str, value: Any) -> bool:
    """Whether masked text may stand for a value, because its unmasked characters occur there in the same order."""
    parts = _MASK.split(recorded)
    if len(parts) == 1:
        return False
    if isinstance(value, Mapping | list | tuple):
        return True
    pattern = ".*".join(re.escape(loose(part)) for part in parts)
    return re.fullmatch(pattern, loose(str(value)), re.DOTALL) is not None
