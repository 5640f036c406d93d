"""Shows a reviewer an undecided consent: the question, the answer, and the calls that depend on the answer."""
# pyright: basic, reportMissingImports=false

import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from bylaw.audit.report.finding import spelled, undecided_consent
from bylaw.audit.store import JsonRecord
from bylaw.consent.card import CardWords, card_text
from bylaw.console.index.query import FindingRow, Index
from bylaw.console.page import said, seen
from bylaw.facts.value import leaves

LONGEST = 6_000
"""The maximum length of a message on the page. The page links to the whole conversation."""
_SHORTEST = 2
"""The minimum length of a value that is marked in a message."""


class Said(Struct, frozen=True):
    by: str
    step: int
    text: Markup


class AskedCall(Struct, frozen=True):
    """A call that depends on the customer's answer, with its values as on an approval card."""

    row: FindingRow
    lines: list[str]


class ConsentQuestion(Struct, frozen=True):
    """A question for the reviewer: did the customer agree to these calls?"""

    messages: list[Said]
    calls: list[AskedCall]

    @property
    def words(self) -> str:
        return "Did the customer agree to this?" if len(self.calls) == 1 else "Did the customer agree to all of these?"


def consent_question(index: Index, row: FindingRow) -> ConsentQuestion | None:
    """Return the reviewer's question about a finding, or None if the finding is not an undecided consent."""
    if not row.exchange or row.state != "open":
        return None
    why = undecided_consent(index.line(row)["open_rules"][0])
    whole = index.whole(row.conversation)
    events: list[JsonRecord] = whole["events"] if whole is not None else []
    rows = index.sharing(row) or [row]
    # Put the call of this finding first.
    rows.sort(key=lambda each: each.id != row.id)
    given = {each.step: events[each.step]["arguments"] for each in rows if each.step < len(events)}
    values = [str(leaf) for arguments in given.values() for leaf in leaves(arguments)]
    steps = _steps(why, "put", "told_at") | _steps(why, "answered", "answered_at")
    spoken = ((step, events[step]) for step in sorted(steps) if step < len(events))
    messages = [
        Said(event["by"], step, with_values(event["text"].strip(), values))
        for step, event in spoken
        if event["type"] == "message" and str(event.get("text") or "").strip()
    ]
    return ConsentQuestion(messages, [AskedCall(each, _lines(each.tool, given.get(each.step, {}))) for each in rows])


def _steps(why: JsonRecord | None, quoted: str, last: str) -> set[int]:
    found = why or {}
    steps = [each["step"] for each in found.get(quoted) or ()] or [found.get(last)]
    return {step for step in steps if step is not None}


def _lines(tool: str, arguments: dict[str, Any]) -> list[str]:
    card = card_text(None, tool, arguments, frozenset(), CardWords()).splitlines()[1:-1]
    lines = [line.removeprefix("- ") for line in card]
    return lines or [f"{name}: {spelled(value, 600)}" for name, value in arguments.items()]


def with_values(text: str, values: Sequence[str]) -> Markup:
    """Return a message in which the call's values are marked."""
    if len(text) > LONGEST:
        return said(text, LONGEST)
    parts = _values(values).split(text)
    marked = (Markup("<mark>{}</mark>").format(seen(part)) if at % 2 else seen(part) for at, part in enumerate(parts))
    return Markup("<bdi>{}</bdi>").format(Markup("").join(marked))


def _values(values: Sequence[str]) -> re.Pattern[str]:
    wanted = sorted({each for each in values if len(each) >= _SHORTEST}, key=len, reverse=True)
    return re.compile(rf"(?<!\w)({'|'.join(map(re.escape, wanted)) or '(?!)'})(?!\w)", re.IGNORECASE)
