"""A third reading, blind: what a policy says of situations on which a case and a check, or two checks, disagree."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from bylaw.compile.bench import Case
from bylaw.compile.desk import Desk
from bylaw.compile.prompt import render
from bylaw.llm.chat import bare_json, schema_of
from bylaw.scan.written import dump

_ROUNDS = 2


class Ruling(Struct, frozen=True):
    """What was said of one situation."""

    number: int
    want: Literal["permit", "deny", "kept", "broken", "unclear"]
    why: str = ""


class _Answer(Struct, frozen=True):
    rulings: tuple[Ruling, ...]


def rule_on(
    desk: Desk, situations: Sequence[Case], wants: tuple[str, str], shown: Mapping[str, str]
) -> dict[int, Ruling] | None:
    """The rulings by the situations' positions; None while the answer is missing. The wants of cases are not shown."""
    bare = [{name: part for name, part in each.items() if name not in _UNSHOWN} for each in situations]
    listed = "\n".join(dump({"number": number, **each}) for number, each in enumerate(bare, 1))
    allowed = (*wants, "unclear")
    request = render("referee", {**shown, "situations": listed, "wants": ", ".join(allowed)}, schema=schema_of(_Answer))
    outcome = desk.converse(request, lambda text: _judged(text, len(situations), allowed), rounds=_ROUNDS)
    return None if outcome is None else {each.number - 1: each for each in outcome.made}


_UNSHOWN = frozenset(("want", "note", "policy", "rule"))


def _judged(text: str, count: int, allowed: Sequence[str]) -> tuple[tuple[Ruling, ...], list[str]]:
    try:
        rulings = msgspec.json.decode(bare_json(text), type=_Answer).rulings
    except (msgspec.DecodeError, RecursionError) as error:
        return (), [f"not the JSON asked for: {error}"]
    kept = tuple(each for each in rulings if 0 < each.number <= count and each.want in allowed)
    missing = set(range(1, count + 1)) - {each.number for each in kept}
    return kept, [f"nothing is said of situation {number}" for number in sorted(missing)]
