"""Cases of a pack as a reader sees them: what each wants, and everything that decides it."""

import json
from collections.abc import Container, Iterator
from typing import Any, cast

from bylaw.pack import Pack


def cases_of(pack: Pack, names: Container[str]) -> Iterator[Any]:
    """The cases of a policy, in their order; `names` are its own and those of its rules."""
    for read in pack.cases.values():
        for case in read.record.written_out:
            if str(case.rule or case.policy) in names:
                yield case


def parts_of(case: Any) -> tuple[tuple[str, str], ...]:
    """Everything that decides a case, each part with its title."""
    parts = [
        ("now", case.now), ("context", case.context), ("done", case.done), ("call", case.called),
        ("facts", case.facts), ("world", case.world), ("events", [_event(each) for each in case.events or ()]),
    ]  # fmt: skip
    return tuple((title, _told(value)) for title, value in parts if value)


def _event(event: Any) -> str:
    for side in ("user", "agent"):
        if (said := getattr(event, side)) is not None:
            return f"{side}: {said}"
    return f"{event.call}({json.dumps(event.args, ensure_ascii=False, default=str)})"


def _told(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        lines = cast("list[Any]", value)
        if all(isinstance(each, str) for each in lines):
            return "\n".join(lines)
    return json.dumps(value, ensure_ascii=False, default=str)
