"""The findings of an audit: which are listed, in what order, and what the page keeps of each."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.audit.finding import lacked
from bylaw.audit.report.folder import Folder, Record, decode, entries, record, text, whole_number
from bylaw.engine.pack import Criterion
from bylaw.engine.wording import host_words, is_hosts, policy_words_for_reader, rule_words_for_reader

VERDICTS = ("violation", "near_miss", "uninformed", "inconclusive", "compliant")
REASONS = ("claimed", "stale", "pending", "never_seen")
SEVERITIES = ("high", "medium", "low")
BROKEN = "broken"
"""Stands for a verdict where a rule was broken: a rule of the conversation knows no near-misses."""
WRONG = ("violation", "near_miss")
CALLS, RULES = "calls.jsonl", "findings.jsonl"

LISTED = 20_000
"""The most findings one page lists; the rest is counted and stays in the folder's files."""

CANDIDATES = 60
"""How many findings of one rank compete for the opening drawing."""


class MissingGlance(Struct):
    """What a first look needs of a missing fact."""

    reason: str | None = None
    decisive: bool | None = None


class PolicyGlance(Struct):
    """What a first look needs of one policy's judgement."""

    strict: str = ""
    determined: str = ""
    severity: str | None = None
    missing: list[MissingGlance] = []


class CallGlance(Struct):
    """What a first look needs of a call."""

    strict: str = ""
    determined: str = ""
    executed: bool | None = None
    policies: list[PolicyGlance] = []


_heads = msgspec.json.Decoder(CallGlance)
Place = tuple[str, int]
"""A file of the folder, and where in it a line starts."""


class Index(Struct):
    """Where the findings of a folder are, most telling first, and how many there are."""

    places: list[Place]
    candidates: list[Place]
    """Some findings of every kind, from which the opening drawing is chosen."""
    total: int
    calls: int
    refused: Counter[str]
    """By verdict, the flagged calls that the tool refused: listed, but in no count of executed calls."""


def index(folder: Folder, severities: Mapping[str, str], criterion: Criterion, *, listed: int = LISTED) -> Index:
    """Find the flagged calls and the broken rules without keeping more than their places."""
    shelves: dict[tuple[int, ...], list[Place]] = {}
    refused = Counter[str]()
    total = calls = 0
    for place, line in folder.places(CALLS):
        head = _head(line)
        if head is None:
            folder.unreadable += 1
            continue
        calls += 1
        verdict: str = getattr(head, criterion)
        if not flagged(verdict):
            continue
        total += 1
        if head.executed is False:
            refused[verdict] += 1
        shelf = shelves.setdefault(_rank(head, criterion), [])
        if len(shelf) < listed:
            shelf.append((CALLS, place))
    for place, line in folder.places(RULES):
        broken = record(decode(line))
        folder.unreadable += not broken
        if broken:
            total += 1
            severity = severities.get(text(broken.get("policy")), "")
            shelf = shelves.setdefault((0, 0, _position(SEVERITIES, severity), len(WRONG), 0), [])
            if len(shelf) < listed:
                shelf.append((RULES, place))
    ordered = [place for rank in sorted(shelves) for place in shelves[rank]]
    some = [place for rank in sorted(shelves) for place in shelves[rank][:CANDIDATES]]
    return Index(places=ordered[:listed], candidates=some, total=total, calls=calls, refused=refused)


def kept(
    folder: Folder, places: Iterator[Place], stated: Mapping[str, Record], criterion: Criterion
) -> Iterator[Record]:
    """What the page keeps of the findings at these places, in the order asked for."""
    for file, group in groupby(places, key=lambda place: place[0]):
        for line in folder.at(file, (place for _, place in group)):
            yield details(line, criterion) if file == CALLS else rule_details(line, stated)


def place_of(folder: Folder, finding: str) -> Place | None:
    """Where the finding with this id stands."""
    for file in (CALLS, RULES):
        for place, line in folder.places(file):
            if finding.encode() in line and record(decode(line)).get("finding") == finding:
                return file, place
    return None


def flagged(verdict: str) -> bool:
    """Whether a verdict says anything but compliant."""
    return verdict not in ("", "compliant")


def _head(line: bytes) -> CallGlance | None:
    try:
        return _heads.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    # Odd, but perhaps only in a field that does not matter here.
    call = record(decode(line))
    if not call:
        return None
    policies = [_judged(record(policy)) for policy in entries(call.get("policies"))]
    return CallGlance(
        text(call.get("strict")), text(call.get("determined")), call.get("executed") is not False, policies
    )


def _judged(policy: Record) -> PolicyGlance:
    facts = [record(fact) for fact in entries(policy.get("missing"))]
    return PolicyGlance(
        strict=text(policy.get("strict")),
        determined=text(policy.get("determined")),
        severity=text(policy.get("severity")),
        missing=[MissingGlance(reason=text(fact.get("reason")), decisive=bool(fact.get("decisive"))) for fact in facts],
    )


def _rank(head: CallGlance, criterion: Criterion) -> tuple[int, ...]:
    """Small comes first: what was done and is wrong before what is not settled, the gravest policy, the verdict."""
    verdict: str = getattr(head, criterion)
    guilty = [policy for policy in head.policies if getattr(policy, criterion) == verdict]
    claimed = any(
        fact.reason == "claimed" and fact.decisive is not False for policy in guilty for fact in policy.missing
    )
    severity = min((_position(SEVERITIES, policy.severity or "") for policy in guilty), default=len(SEVERITIES))
    return (head.executed is False, verdict not in WRONG, severity, _position(VERDICTS, verdict), not claimed)


def _position(words: tuple[str, ...], word: str) -> int:
    return words.index(word) if word in words else len(words)


def details(call: Record, criterion: Criterion) -> Record:
    """What the page shows of one finding when it is opened; every text is bounded."""
    return {
        "finding": text(call.get("finding")) or f"{text(call.get('trajectory'))}:{call.get('step')}",
        "trajectory": text(call.get("trajectory"), 1000),
        "agent": text(call.get("agent")),
        "step": whole_number(call.get("step")),
        "tool": text(call.get("tool")),
        "executed": call.get("executed") if isinstance(call.get("executed"), bool) else None,
        "verdict": text(call.get(criterion), 40),
        "because": text(call.get("because"), 2000),
        "policies": [_policy(record(policy), criterion) for policy in entries(call.get("policies"))[:60]],
    }


def rule_details(broken: Record, stated: Mapping[str, Record]) -> Record:
    """The same of a broken rule."""
    policy = text(broken.get("policy"))
    meant = {name: text(said) for name, said in record(record(stated.get(policy)).get("predicates")).items()}
    why = text(rule_words_for_reader(broken, meant), 2000)
    judged = {"id": policy, "verdict": BROKEN, "because": why}
    return {
        "finding": text(broken.get("finding")) or f"{text(broken.get('trajectory'))}:{broken.get('step')}:{policy}",
        "trajectory": text(broken.get("trajectory"), 1000),
        "agent": text(broken.get("agent")),
        "step": whole_number(broken.get("step")),
        "tool": text(broken.get("rule")) or policy,
        "executed": None,
        "verdict": BROKEN,
        "because": why,
        "policies": [
            judged
            | {"severity": text(record(stated.get(policy)).get("severity"), 40), "evidence": "", "world": ""}
            | {"depends_on_user": False, "missing": [], "spare": 0, "seen": [], "asks": [], "host": []}
        ],
    }


def _policy(policy: Record, criterion: Criterion) -> Record:
    kept: Record = {"id": text(policy.get("id")), "verdict": text(policy.get(criterion), 40)}
    if not flagged(kept["verdict"]):
        return kept
    every = [record(fact) for fact in entries(policy.get("missing"))]
    lacking = lacked(every, criterion)
    asks = [record(ask) for ask in entries(policy.get("asks"))[:20]]
    asked = [text(ask.get("fact")) for ask in asks]
    return kept | {
        "because": text(policy_words_for_reader(policy), 2000),
        "is_lacking": record(policy.get("reason")).get("kind") == "missing",
        "severity": text(policy.get("severity"), 40),
        "evidence": text(policy.get("evidence"), 40),
        "world": text(policy.get("world"), 40),
        "depends_on_user": bool(policy.get("depends_on_user")) and not (asked and all(map(is_hosts, asked))),
        "missing": [_missing(fact) for fact in lacking[:40]],
        "spare": len(every) - len(lacking),
        "seen": [_seen(record(fact)) for fact in entries(policy.get("seen"))[:40]],
        "asks": [
            {"fact": fact, "question": text(ask.get("question"), 1000)}
            for fact, ask in zip(asked, asks, strict=True)
            if not is_hosts(fact)
        ],
        "host": [host_words(fact) for fact in asked if is_hosts(fact)],
    }


def _fact(fact: Record) -> Record:
    key = fact.get("key")
    parts: list[Any] = entries(key) if isinstance(key, list) else [] if key is None else [key]
    return {
        "entity": text(fact.get("entity")),
        "key": [text(part) for part in parts[:8]],
        "field": text(fact.get("field")),
    }


def _missing(fact: Record) -> Record:
    lookup = record(fact.get("lookup"))
    arguments = lookup.get("args", lookup.get("arguments"))
    return _fact(fact) | {
        "reason": text(fact.get("reason"), 40),
        "claimed_at": whole_number(fact.get("claimed_at")),
        "claim": text(fact.get("claim"), 500),
        "stale_by": whole_number(fact.get("stale_by")),
        "lookup": {"tool": text(lookup.get("tool")), "args": {text(k): text(v) for k, v in record(arguments).items()}},
    }


def _seen(fact: Record) -> Record:
    kept = _fact(fact) | {"shown_at": whole_number(fact.get("shown_at"))}
    return kept | {"value": text(fact["value"])} if "value" in fact else kept


class Words:
    """Strings that many findings share, kept once and named by position."""

    def __init__(self) -> None:
        self.list: list[str] = []
        self._positions: dict[str, int] = {}

    def of(self, word: str) -> int:
        """The position of `word`, new or known."""
        if word not in self._positions:
            self._positions[word] = len(self.list)
            self.list.append(word)
        return self._positions[word]


def row(finding: Record, words: Words) -> list[Any]:
    """A finding in the page's list: what it is sorted, filtered and searched by."""
    judged = [policy for policy in finding["policies"] if flagged(policy["verdict"])]
    gravest = sorted(judged, key=lambda policy: _position(VERDICTS, policy["verdict"]))
    facts = sorted(
        (fact for policy in judged for fact in policy["missing"]), key=lambda fact: _position(REASONS, fact["reason"])
    )
    # The same field of many things is one entry: the list says what kind of fact was missing, the finding says which.
    distinct = dict.fromkeys((name(fact), fact["reason"], fact["lookup"]["tool"]) for fact in facts)
    return [
        finding["finding"],
        words.of(finding["trajectory"]),
        finding["step"],
        words.of(finding["agent"]),
        words.of(finding["tool"]),
        {True: 1, False: 0, None: -1}[finding["executed"]],
        words.of(finding["verdict"]),
        words.of(_gravest_severity(judged)),
        [words.of(policy["id"]) for policy in judged],
        [list(map(words.of, fact)) for fact in distinct],
        words.of(text(next((entry["because"] for entry in (*gravest, finding) if entry["because"]), ""))),
    ]


def _gravest_severity(judged: list[Record]) -> str:
    severities = [str(policy.get("severity", "")) for policy in judged]
    return min(severities, key=lambda word: _position(SEVERITIES, word), default="")


def name(fact: Record) -> str:
    """A fact in one line, without its key: `Patient.membership`."""
    return f"{fact['entity']}.{fact['field']}" if fact["field"] else fact["entity"]


OPENING = ("near_miss", "violation", "refused", "uninformed", BROKEN)
"""What the page opens on: the first of these that there is. A near-miss only where it can be drawn."""


def opening_kind(finding: Record) -> str:
    """Which of the kinds in `OPENING` a finding is, if any."""
    refused = finding["executed"] is False and finding["verdict"] in ("near_miss", "violation")
    return "refused" if refused else finding["verdict"]


def telling(findings: Iterator[Record]) -> list[Record]:
    """Candidates for the opening drawing, best first: by kind, then with one gap and something seen beside it."""

    def score(finding: Record) -> tuple[int, ...]:
        judged = [p for p in finding["policies"] if "missing" in p and p["verdict"] == finding["verdict"]]
        facts = [fact for policy in judged for fact in policy["missing"]]
        claims = [fact for fact in facts if fact["reason"] == "claimed"]
        had = sum(len(policy["seen"]) for policy in judged)
        return (
            -_position(OPENING, opening_kind(finding)),
            len(SEVERITIES) - min((_position(SEVERITIES, p["severity"]) for p in judged), default=len(SEVERITIES)),
            bool(claims),
            len(judged) == 1,
            len(facts) == 1,
            finding["executed"] is True,
            1 <= had <= 4,
        )

    return sorted(findings, key=score, reverse=True)
