"""Sorts the findings for the report, and collects their details."""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, cast

from msgspec import Struct

from bylaw.audit.row import SEVERITIES, gravity, lacked, rank
from bylaw.audit.store import CALLS, RULES, JsonRecord, Store
from bylaw.engine.verdict import WORST_FIRST
from bylaw.engine.wording import (
    host_words,
    is_hosts,
    policy_words_for_reader,
    rule_words_for_reader,
    rule_words_in_a_row,
    source_words,
)
from bylaw.pack import Criterion

SHOWN_REASONS = ("claimed", "stale", "pending", "never_seen")
RULE_BROKEN = "broken"
"""The verdict shown for a broken rule. A broken rule cannot be a near-miss."""
LACKING = ("near_miss", "uninformed")
"""Verdicts on calls made without a required look-up."""

LISTED = 20_000
"""The maximum number of findings on a page. Further findings are only counted. The audit folder has all of them."""

SOUGHT = 11
"""The index of the searchable text in a finding's row."""
CANDIDATES = 60
"""The maximum number of findings per rank to consider for the diagram that the page opens with."""
_OF_GUARDS = (None, "not_looked_up", "denied")
"""Reasons for a predicate's value that have nothing to do with consent."""


LinePlace = tuple[str, int]
"""The location of a finding in the audit folder: a file, and the offset of a line in it."""


class Index(Struct):
    """The locations of an audit's findings, most severe first, and their number."""

    places: list[LinePlace]
    candidates: list[LinePlace]
    """Some findings of each rank. The page opens with a diagram of one of these."""
    total: int
    calls: int


def index(folder: Store, severities: Mapping[str, str], criterion: Criterion, *, listed: int = LISTED) -> Index:
    """Locate the flagged calls and the broken rules. Only their locations are held in memory."""
    shelves: dict[tuple[int, bool], list[LinePlace]] = {}
    total = calls = 0
    for place, call in folder.places(CALLS):
        calls += 1
        verdict: str = call[criterion]
        if not flagged(verdict):
            continue
        total += 1
        shelf = shelves.setdefault(_rank(call, criterion), [])
        if len(shelf) < listed:
            shelf.append((CALLS, place))
    for place, broken in folder.places(RULES):
        total += 1
        severity = severities.get(broken["policy"], "")
        shelf = shelves.setdefault((gravity(RULE_BROKEN, severity, executed=None), False), [])
        if len(shelf) < listed:
            shelf.append((RULES, place))
    ordered = [place for rank in sorted(shelves) for place in shelves[rank]]
    some = [place for rank in sorted(shelves) for place in shelves[rank][:CANDIDATES]]
    return Index(places=ordered[:listed], candidates=some, total=total, calls=calls)


def details_of(
    folder: Store, places: Iterator[LinePlace], stated: Mapping[str, JsonRecord], criterion: Criterion
) -> Iterator[JsonRecord]:
    """Yield the details of the findings at these locations, in the same order."""
    for file, group in groupby(places, key=lambda place: place[0]):
        for line in folder.at(file, (place for _, place in group)):
            yield call_details(line, criterion) if file == CALLS else rule_details(line, stated)


def find_place(folder: Store, finding: str) -> LinePlace | None:
    for file in (CALLS, RULES):
        for place, line in folder.places(file):
            if line.get("finding") == finding:
                return file, place
    return None


def flagged(verdict: str) -> bool:
    return verdict not in ("", "compliant")


def _rank(call: JsonRecord, criterion: Criterion) -> tuple[int, bool]:
    verdict: str = call[criterion]
    guilty = [policy for policy in call["policies"] if policy[criterion] == verdict]
    claimed = any(
        fact["reason"] == "claimed" and fact["decisive"] is not False for policy in guilty for fact in policy["missing"]
    )
    severity = min((policy["severity"] for policy in guilty), key=rank, default="")
    return gravity(verdict, severity, executed=call["executed"]), not claimed


def call_details(call: JsonRecord, criterion: Criterion) -> JsonRecord:
    """Return the details of a flagged call, with long texts shortened."""
    told = {name: call[name] for name in ("trajectory", "agent", "step", "tool", "executed")}
    # A call that could not be judged is not a finding, so it has no id.
    told["finding"] = call.get("finding") or f"{call['trajectory']}:{call['step']}"
    policies = [_policy(policy, criterion) for policy in call["policies"][:60]]
    origins = [_origin(origin) for origin in call.get("origins", ())[:20]]
    told |= {"origins": origins} if origins else {}
    return cut(told | {"verdict": call[criterion], "because": call.get("because", ""), "policies": policies})


def _origin(origin: JsonRecord) -> JsonRecord:
    """Return the origin of an argument's value. If the value occurs only in free text, its origin is not reliable."""
    told = {"argument": origin["argument"], "words": source_words(origin | {"step": None}), "step": origin.get("step")}
    return told | {"founded": origin["source"] in ("user", "host", "record")}


def rule_details(broken: JsonRecord, stated: Mapping[str, JsonRecord]) -> JsonRecord:
    policy = stated.get(broken["policy"], {})
    meanings = policy.get("predicates", {})
    why, headline = rule_words_for_reader(broken, meanings), rule_words_in_a_row(broken, meanings)
    nothing: JsonRecord = {"evidence": "", "world": "", "depends_on_user": False, "missing": [], "spare": 0}
    judged = {"id": broken["policy"], "verdict": RULE_BROKEN, "because": why, "severity": policy.get("severity", "")}
    judged |= {"headline": headline} if headline != why else {}
    return cut(
        {name: broken[name] for name in ("finding", "trajectory", "agent", "step")}
        | {"tool": broken["rule"], "executed": None, "verdict": RULE_BROKEN, "because": why}
        | {"exchange": _exchange(broken)}
        | {"policies": [judged | nothing | {"seen": [], "asks": [], "host": []}]}
    )


def undecided_consent(rule: JsonRecord) -> JsonRecord | None:
    """Return why consent is undecided, or None if the rule is undecided for another reason."""
    undecided = [each.get("why") for each in rule["predicates"] if each["value"] is None]
    why: JsonRecord | None = undecided[0] if len(undecided) == 1 else None
    return why if why is not None and why.get("reason") not in _OF_GUARDS else None


def _exchange(broken: JsonRecord) -> JsonRecord:
    found = [each["why"] for each in broken.get("predicates", ()) if each.get("why")]
    return {name: each[name] for each in found[:1] for name in ("told_at", "answered_at") if name in each}


def _policy(policy: JsonRecord, criterion: Criterion) -> JsonRecord:
    told: JsonRecord = {"id": policy["id"], "verdict": policy[criterion]}
    if not flagged(told["verdict"]):
        return told
    lacking = lacked(policy["missing"], criterion)
    asks: list[JsonRecord] = policy["asks"][:20]
    asked: list[str] = [ask["fact"] for ask in asks]
    return told | {
        "because": policy_words_for_reader(policy),
        "is_lacking": policy.get("reason", {}).get("kind") == "missing",
        **{name: policy[name] for name in ("severity", "evidence", "world")},
        "depends_on_user": policy.get("depends_on_user", False) and not (asked and all(map(is_hosts, asked))),
        "missing": [_missing(fact) for fact in lacking[:40]],
        "spare": len(policy["missing"]) - len(lacking),
        "seen": [_fact(fact) for fact in policy["seen"][:40]],
        "asks": [ask for ask in asks if not is_hosts(ask["fact"])],
        "host": [host_words(fact) for fact in asked if is_hosts(fact)],
    }


def _fact(fact: JsonRecord) -> JsonRecord:
    told = fact | {"key": [spelled(part) for part in fact["key"] or ()]}
    return told | {"value": spelled(fact["value"])} if "value" in fact else told


def _missing(fact: JsonRecord) -> JsonRecord:
    lookup: JsonRecord = fact["lookup"] or {"tool": "", "args": {}}
    arguments = {name: spelled(value) for name, value in lookup["args"].items()}
    return _fact(fact) | {"lookup": {"tool": lookup["tool"], "args": arguments}}


class WordList:
    """Strings that many findings share. Each string is stored once, and findings refer to its position."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._positions: dict[str, int] = {}

    def of(self, word: str) -> int:
        """Return the position of a string, adding the string if it is new."""
        if word not in self._positions:
            self._positions[word] = len(self.list)
            self.list.append(word)
        return self._positions[word]


def row(finding: JsonRecord, words: WordList) -> list[Any]:
    """Return a finding as a row of the page's list, with all data for sorting, filtering and searching."""
    judged = [policy for policy in finding["policies"] if flagged(policy["verdict"])]
    gravest = sorted(judged, key=lambda policy: rank(policy["verdict"], WORST_FIRST))
    # For a near-miss, list only the look-ups and reasons that `by_lookup` and `by_reason` in the summary count.
    lacking = [p for p in judged if finding["verdict"] not in LACKING or p["verdict"] in LACKING]
    facts = sorted(
        (fact for policy in lacking for fact in policy["missing"]),
        key=lambda fact: rank(fact["reason"], SHOWN_REASONS),
    )
    # If several entities lack the same field, list the field once. The finding's details name each entity.
    distinct = dict.fromkeys((name(fact), fact["reason"], _lookup(fact)) for fact in facts)
    return [
        finding["finding"],
        words.of(finding["trajectory"]),
        finding["step"],
        words.of(finding["agent"]),
        words.of(finding["tool"]),
        {True: 1, False: 0, None: -1}[finding["executed"]],
        words.of(finding["verdict"]),
        words.of(min((str(each.get("severity", "")) for each in judged), key=rank, default="")),
        [words.of(policy["id"]) for policy in judged],
        [list(map(words.of, fact)) for fact in distinct],
        words.of(cut(next((entry["because"] for entry in (*gravest, finding) if entry["because"]), ""), 300)),
        _sought(judged),
    ]


def _sought(judged: list[JsonRecord]) -> str:
    parts: list[str] = []
    for fact in (fact for policy in judged for fact in (*policy.get("seen", ()), *policy["missing"])):
        parts += [*(fact["key"] or ()), str(fact.get("claim") or ""), str(fact.get("value", ""))]
    return cut(" ".join(dict.fromkeys(part for part in parts if part)), 300)


def _lookup(fact: JsonRecord) -> str:
    return fact["lookup"]["tool"] or f"({fact['entity']})"


def name(fact: JsonRecord) -> str:
    """Return the name of a fact on one line, such as `Patient.membership`, without the entity's key."""
    return f"{fact['entity']}.{fact['field']}" if fact["field"] else fact["entity"]


def steps_of(finding: JsonRecord) -> Iterator[int]:
    """Yield the steps that a finding refers to."""
    yield finding["step"]
    yield from finding.get("exchange", {}).values()
    yield from (origin["step"] for origin in finding.get("origins", ()) if origin["step"] is not None)
    for policy in finding["policies"]:
        for fact in (*policy.get("missing", ()), *policy.get("seen", ())):
            yield from (fact[at] for at in ("claimed_at", "shown_at", "stale_by") if fact.get(at) is not None)


OPENING = ("near_miss", "violation", "refused", "uninformed", RULE_BROKEN)
"""The kinds of finding that the page may open with, most preferred first."""


def opening_kind(finding: JsonRecord) -> str:
    refused = finding["executed"] is False and finding["verdict"] in ("near_miss", "violation")
    return "refused" if refused else finding["verdict"]


def simplicity(finding: JsonRecord) -> tuple[int, ...]:
    """Return a sort key that prefers simple diagrams: those with one missing fact and a few known facts."""
    judged = [p for p in finding["policies"] if "missing" in p and p["verdict"] == finding["verdict"]]
    facts = [fact for policy in judged for fact in policy["missing"]]
    had = sum(len(policy["seen"]) for policy in judged)
    return (
        len(SEVERITIES) - min((rank(p["severity"]) for p in judged), default=len(SEVERITIES)),
        any(fact["reason"] == "claimed" for fact in facts),
        len(judged) == 1,
        len(facts) == 1,
        finding["executed"] is True,
        1 <= had <= 4,
    )


def cut(data: Any, limit: int = 2000) -> Any:
    """Return the data with every string, including names, shortened to `limit` characters."""
    if isinstance(data, str):
        return data if len(data) <= limit else data[: limit - 1] + "…"
    if isinstance(data, list):
        return [cut(item, limit) for item in cast(list[Any], data)]
    if isinstance(data, dict):
        return {cut(name, limit): cut(item, limit) for name, item in cast(JsonRecord, data).items()}
    return data


def whole_text(value: Any) -> str:
    """Return a value as text. A string stays unchanged, None becomes an empty string, and other values become JSON."""
    if isinstance(value, str):
        return value
    try:
        return "" if value is None else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(too deeply nested to show)"


def spelled(value: Any, limit: int = 300) -> str:
    """Return `whole_text`, shortened to `limit` characters."""
    return cut(whole_text(value), limit)
