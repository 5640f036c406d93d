"""Checks that somebody rejected: an update asks for them again, and shows why beside the policy."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from bylaw.compile.pipeline import Work
from bylaw.compile.span import Draft, first_place
from bylaw.pack.review import COMPILED, read_signatures, standings
from bylaw.policy.document import Document
from bylaw.policy.folder import own_record
from bylaw.trace import Call, Trajectory

_NEIGHBOURS = 6
_LONGEST = 400
"""Letters of a call that are shown."""


def rejections(root: Path, work: Work, document: Document, trajectories: Sequence[Trajectory] = ()) -> dict[str, str]:
    """By policy what is told beside it: the note, the check as it was, the logged calls it flagged, its neighbours.

    A word that has lapsed, since the policy or its check is another by now, is no longer one on what there is.
    """
    signed = read_signatures(root)
    names = [name for name, standing in standings(root).items() if standing == "rejected"]
    noted = cast(dict[str, Any], own_record(root, COMPILED).get("policies") or {}) if names else {}
    found: dict[str, str] = {}
    for draft in work.drafts:
        if draft.id not in names:
            continue
        parts = [
            f"{signed[draft.id].by} rejected an earlier check of this policy: {signed[draft.id].note or 'no note'}"
        ]
        check = work.checks.get(draft.id)
        if check is not None and (check.code or check.rules):
            parts.append(f"The rejected check was: {_line(check.code or msgspec.json.encode(check.rules).decode())}")
        flagged = cast(dict[str, Any], cast(dict[str, Any], noted.get(draft.id) or {}).get("in_logs") or {})
        parts += [f"It flagged in the logs: {each}" for each in _calls(flagged, trajectories)]
        parts += [f"Beside it stands {each.id}: {each.definition}" for each in _neighbours(draft, work, document)]
        found[draft.id] = "\n".join(parts)
    return found


def _calls(flagged: Mapping[str, Any], trajectories: Sequence[Trajectory]) -> list[str]:
    """The calls that a check spoke against, each with its verdict and why."""
    by_id = {trajectory.id: trajectory for trajectory in trajectories}
    lines: list[str] = []
    for verdict, body in flagged.items():
        for each in body["first"]:
            call = _call(by_id.get(str(each["conversation"])), int(each["step"]))
            lines.append(f"{call}: {verdict}, {_line(str(each['why']))}")
    return lines


def _call(trajectory: Trajectory | None, step: int) -> str:
    events = trajectory.events if trajectory is not None else ()
    event = events[step] if step < len(events) else None
    return f"{event.tool}({_line(str(event.arguments))})" if isinstance(event, Call) else "a step"


def _neighbours(draft: Draft, work: Work, document: Document) -> list[Draft]:
    """The policies before and after it in the document, and those that bind one of its tools."""
    order = sorted(work.drafts, key=lambda each: first_place(each.quotes, document))
    at = order.index(draft)
    tools = set(work.kinds[draft.id].tools) if draft.id in work.kinds else set[str]()
    beside = [*order[max(0, at - 1) : at], *order[at + 1 : at + 2]]
    sharing = [each for each in order if each.id in work.kinds and tools & set(work.kinds[each.id].tools)]
    return [each for each in dict.fromkeys([*beside, *sharing]) if each != draft][:_NEIGHBOURS]


def _line(text: str) -> str:
    """Text in one line, however it was written, and not too much of it."""
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]} ..."
