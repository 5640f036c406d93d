"""Cases as people write them: what differs from another in a word or two stands under its `but`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec import UNSET, convert

from bylaw.policy.case import Variation, WrittenCase
from bylaw.scan.written import flow

Case = dict[str, Any]

_WORTH = 0.8
"""A variation is written as one where it takes at most this part of what the whole case takes."""


def compacted(cases: Sequence[Case]) -> list[Case]:
    """The same cases, shorter; those that differ little from one stand together, under its `but`."""
    made: list[Case] = []
    for case in map(_without_default, cases):
        best: tuple[int, Case, Case] | None = None
        for base in made if "but" not in case else ():
            if (change := _variation(base, case)) is not None and (best is None or len(flow(change)) < best[0]):
                best = len(flow(change)), base, change
        if best is not None and best[0] <= _WORTH * len(flow(case)):
            best[1].setdefault("but", []).append(best[2])
        else:
            made.append(case)
    return [_with_single(case) for case in made]


def count(cases: Iterable[Case]) -> int:
    """How many cases these are, with those under `but`."""
    return sum(1 + len(_listed(case.get("but", []))) for case in cases)


def _without_default(case: Case) -> Case:
    implied = "permit" if case.get("rule") is None else "kept"
    kept = {name: part for name, part in case.items() if (name, part) != ("want", implied)}
    return {**kept, "but": [*_listed(kept["but"])]} if "but" in kept else kept


def _with_single(case: Case) -> Case:
    only = len(case.get("but", ())) == 1
    return {**case, "but": case["but"][0]} if only else case


def _listed(but: Any) -> list[Any]:
    return cast(list[Any], but) if isinstance(but, list) else [but]


def _variation(base: Case, case: Case) -> Case | None:
    """What `but` would have to say under one case to make another; None where it cannot."""
    if not case.get("note") or any(base.get(name) != case.get(name) for name in ("policy", "rule")):
        return None
    if not isinstance(base.get("call", {}), dict) or not isinstance(case.get("call", {}), dict):
        return None
    change: Case = {"note": case["note"]}
    for name in ("call", "facts"):
        change |= {name: differs} if (differs := _differs(base.get(name) or {}, case.get(name) or {})) else {}
    for name in ("now", "context", "done", "world", "events"):
        if base.get(name) != case.get(name):
            change[name] = case.get(name)
    if None in change.values():
        return None
    wanted = case.get("want") or ("permit" if case.get("rule") is None else "kept")
    return next((each for each in (change, {**change, "want": wanted}) if _makes(base, each, case)), None)


def _makes(base: Case, change: Case, case: Case) -> bool:
    """Whether a variation makes just this case."""
    alone = {name: part for name, part in base.items() if name != "but"}
    whole, wanted = (convert(each, WrittenCase, strict=False) for each in (alone, case))
    told = convert(change, Variation, strict=False)
    if next(whole.unmet(told), None) is not None:
        return False
    made = whole.varied(told)
    if isinstance(made.want, dict) or isinstance(wanted.want, dict):
        return made == wanted
    parts = ("note", "policy", "rule", "now", "called", "facts", "world", "events", "context", "done", "wanted")
    return all(getattr(made, part) == getattr(wanted, part) for part in parts)


def _differs(before: Mapping[str, Any], after: Mapping[str, Any]) -> Case:
    """Records, or parts of them, that stand only in the second or stand otherwise there."""
    made: Case = {}
    for name, record in after.items():
        old = before.get(name, UNSET)
        if isinstance(old, dict) and isinstance(record, dict):
            known, told = cast(Case, old), cast(Case, record)
            if rest := {key: part for key, part in told.items() if key not in known or known[key] != part}:
                made[name] = rest
        elif old != record:
            made[name] = record
    return made
