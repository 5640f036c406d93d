"""What whoever owns a pack may write where a yes was not found, and the log shows why."""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any


def consent_hints(found: dict[str, Any], events: list[dict[str, Any]]) -> Iterator[str]:
    """What to write where a rule about consent is broken or open."""
    step: int = found.get("step", len(events))
    call = events[step] if step < len(events) and events[step]["type"] == "call" else None
    for why in filter(None, (predicate.get("why") for predicate in found.get("predicates", ()))):
        put = _text(events, why.get("told_at"))
        if why.get("reason") == "unread" and call is not None and put:
            yield f"if those words mean `{call['tool']}`, list them in its `also_called` in tools.yaml"
        for each in why.get("untold") or ():
            name: str = each.get("argument", "")
            value = call["arguments"].get(name) if call is not None else None
            if isinstance(value, str | int) and each.get("why") in ("never", "another") and _is_in(str(value), put):
                yield f"`{name}` was told in another spelling: the call has `{value}`"
            elif each.get("why") == "never":
                beside = f"`need_not_be_told: [{name}]` beside `consented` in rules.yaml"
                yield f"if no user is ever told `{name}`, write {beside}"


def is_spelt_otherwise(given: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether two calls name the same but for marks, blanks and the case of letters."""
    return given.keys() == wanted.keys() and all(_plain(given[name]) == _plain(wanted[name]) for name in wanted)


def _text(events: list[dict[str, Any]], step: int | None) -> str:
    return str(events[step].get("text") or "") if step is not None and step < len(events) else ""


def _is_in(value: str, text: str) -> bool:
    """Whether a text names a value in another spelling."""
    wanted = _plain(value)
    words = [_plain(word) for word in text.split()]
    pairs = [first + second for first, second in pairwise(words)]
    return bool(wanted) and wanted in (*words, *pairs)


def _plain(value: str) -> str:
    return re.sub(r"[\W_]", "", value).casefold()
