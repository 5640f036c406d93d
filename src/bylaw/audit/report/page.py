"""Writes the report as a single HTML file that works offline and shows all data as plain text.

Data blocks have a type that browsers never run. The page's content security policy allows only one style and one
script. The sizes of lists, strings and conversations are limited.
"""

import base64
import hashlib
import json
import os
import zlib
from collections.abc import Container, Iterator, Sequence
from importlib import resources
from itertools import groupby, islice
from pathlib import Path
from typing import Any, cast

import msgspec

from bylaw.audit.counts import OPEN_REASONS
from bylaw.audit.report.finding import (
    OPENING,
    SOUGHT,
    WordList,
    cut,
    details_of,
    find_place,
    index,
    opening_kind,
    row,
    simplicity,
    steps_of,
    whole_text,
)
from bylaw.audit.row import SEVERITIES, rank
from bylaw.audit.store import CALLS, JsonRecord, Store
from bylaw.audit.summary import limits
from bylaw.errors import UsageError
from bylaw.pack import CRITERIA, Criterion

TEXT = 20_000
"""The maximum length of a message or result in the report. To see the full text, run `bylaw explain`."""
BRIEF = 400
"""The maximum length of a message in a very long conversation, except messages that a finding refers to."""
CONVERSATION = 1_000_000
"""The maximum size of a conversation, in characters."""
BLOCK = 400_000
"""The approximate size of a compressed block, in characters. Showing a finding decompresses one block."""

SHOWN_KEYS = ("trajectory", "agent", "file", "position", "outcome")
RULES = 40
"""The maximum number of broken rules to mark in a conversation."""


def conversation_places(folder: Store, wanted: set[str]) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, told in folder.places("conversations.jsonl"):
        if (name := cut(told["trajectory"])) in wanted:
            places.setdefault(name, place)
    return places


def broken_rules(folder: Store, wanted: Container[str]) -> dict[str, list[JsonRecord]]:
    """Return the first `RULES` broken rules of each of these conversations, with the step of each rule."""
    broken: dict[str, list[JsonRecord]] = {}
    for _, found in folder.places("findings.jsonl"):
        name = cut(found["trajectory"])
        if name in wanted and len(listed := broken.setdefault(name, [])) < RULES:
            listed.append({"step": found["step"], "rule": found["rule"]})
    return broken


def bounded(conversation: JsonRecord, steps: set[int]) -> JsonRecord | None:
    """Shorten the messages of a conversation, but keep more of the messages at `steps`.

    Return None if the result is too long.
    """
    for brief in (TEXT, BRIEF):
        events = [_event(event, TEXT if step in steps else brief) for step, event in enumerate(conversation["events"])]
        if sum(map(_size, events)) <= CONVERSATION:
            return cut({name: conversation[name] for name in SHOWN_KEYS}) | {"events": events}
    return None


def _size(event: JsonRecord) -> int:
    said = event.get("text") or "".join(str(pair) for pair in event.get("arguments", ()))
    return 60 + len(said if isinstance(said, str) else said[0])


def _event(event: JsonRecord, limit: int) -> JsonRecord:
    if event["type"] != "call":
        return event | {"text": _shortened(event["text"], limit)}
    # Use pairs, because a key such as `__proto__` is special in a JavaScript object.
    arguments = [[cut(name, 300), _shortened(value, limit)] for name, value in event["arguments"].items()]
    return {"type": "call", "tool": cut(event["tool"], 300), "arguments": arguments[:100], "by": event["by"]}


def _shortened(value: Any, limit: int) -> str | list[Any]:
    whole = whole_text(value)
    return whole if len(whole) <= limit else [whole[:limit], len(whole)]


def blocks(items: Iterator[JsonRecord]) -> Iterator[tuple[list[JsonRecord], str]]:
    """Group consecutive items into blocks of about `BLOCK` characters. Yield each block with its compressed form."""
    group: list[JsonRecord] = []
    written: list[str] = []
    for item in items:
        group.append(item)
        written.append(json.dumps(item, separators=(",", ":")))
        if sum(map(len, written)) >= BLOCK:
            yield group, _packed(written)
            group, written = [], []
    if group:
        yield group, _packed(written)


def _packed(items: list[str]) -> str:
    return base64.b64encode(zlib.compress(f"[{','.join(items)}]".encode("ascii"), 6)).decode("ascii")


UNDECIDED = 300
"""The maximum number of undecided calls to list. Further calls are only counted."""
ROWS = 400
"""The maximum number of rows in a chart or table."""
SKIPPED = 200
"""The maximum number of skipped records to list. The rest are counted."""


def overview(summary: JsonRecord, criterion: Criterion) -> JsonRecord:
    """Return the figures from `summary.json` that the page shows."""
    shown: JsonRecord = cut(summary)
    period: JsonRecord = shown["period"] or {}
    return {
        "pack": shown["pack"],
        "criterion": criterion,
        **{name: shown[name] for name in ("date", "citations")},
        **{name: shown[name][:ROWS] for name in ("files", "evidence", "unguarded_tools")},
        "period": [period.get(end, "") for end in ("from", "to")],
        "agents": [_agent(agent, criterion) for agent in shown["agents"][:ROWS]],
        **{name: _rows(shown[name], criterion) for name in ("by_tool", "by_lookup", "by_policy", "by_rule")},
        "by_reason": _pairs(shown["by_reason"]),
        "limits": cut(list(limits(summary)), 600)[:ROWS],
        "skipped": [f"{each['place']}: {each['why']}" for each in shown["skipped"][:SKIPPED]],
        "skipped_count": len(shown["skipped"]),
    }


def policies(document: JsonRecord) -> list[JsonRecord]:
    """Return the policies, keyed by id, with the sentences that each policy cites."""
    told: JsonRecord = cut(document)
    return [
        {"id": name, "unenforced": "", **policy, "citations": policy["citations"][:8]}
        for name, policy in islice(told.items(), 2000)
    ]


def _agent(agent: JsonRecord, criterion: Criterion) -> JsonRecord:
    """Return one agent's rates. Rates by severity are sorted with the gravest first."""
    shown = {name: value for name, value in agent.items() if name not in CRITERIA} | agent[criterion]
    by_severity: dict[str, JsonRecord] = {name: agent.get(name, {}) for name in ("rule_rates", "violation_rates")}
    return shown | {name: [rates.get(each) for each in SEVERITIES] for name, rates in by_severity.items()}


def _rows(table: JsonRecord, criterion: Criterion) -> list[JsonRecord]:
    """Return the rows of a table, which is keyed by name. The counts by verdict and by agent become lists of pairs."""
    rows: list[JsonRecord] = []
    for name, entry in islice(table.items(), ROWS):
        row: JsonRecord = {"name": name} | {
            key: each for key, each in entry.items() if not isinstance(each, dict | list)
        }
        if "agents" in entry:
            row["agents"] = _pairs(entry["agents"])
        if isinstance(found := entry.get(criterion), dict):
            row["verdicts"] = _pairs(cast(JsonRecord, found))
        rows.append(row | {"lacked": found})
    return rows


def _pairs(counts: JsonRecord) -> list[list[Any]]:
    """Return a mapping as pairs, because a key such as `__proto__` is special in a JavaScript object."""
    return [[name, count] for name, count in islice(counts.items(), ROWS)]


def undecided(store: Store, summary: JsonRecord, criterion: Criterion) -> JsonRecord:
    """Return the undecided calls and the undecided rules, with each rule's reason in words."""
    counted: JsonRecord = summary["open"]
    rules: JsonRecord = cut(counted["rules"])
    groups: list[list[Any]] = []
    for name, rule in sorted(rules.items(), key=lambda item: -item[1]["calls"]):
        reasons = sorted(rule["reasons"].items(), key=lambda item: -item[1])
        groups.append([name, rule["calls"], [[OPEN_REASONS.get(reason, reason), count] for reason, count in reasons]])
    if without := summary["verdicts"][criterion].get("inconclusive"):
        groups.append(["(guards)", without, [["a guard could not decide", without]]])
    calls = counted["calls"]
    return {"calls": calls, "rules": groups, "list": _listed(store, criterion) if calls else []}


def _listed(store: Store, criterion: Criterion) -> list[JsonRecord]:
    found: list[JsonRecord] = []
    for _, call in store.places(CALLS):
        opened: list[JsonRecord] = call.get("open_rules") or []
        if call.get("executed") is False or not (opened or call[criterion] == "inconclusive"):
            continue
        if call[criterion] == "inconclusive":
            opened = [call, *(policy for policy in call["policies"] if policy[criterion] == "inconclusive"), *opened]
        why = "; ".join(dict.fromkeys(filter(None, (str(each.get("because") or "") for each in opened))))
        found.append(
            cut({"where": call["trajectory"], "step": call["step"], "tool": call["tool"], "because": why}, 500)
        )
        if len(found) == UNDECIDED:
            break
    return found


CONVERSATIONS = 12_000_000
"""The maximum total size of the compressed conversations. If some are left out, the page says how many."""
QUOTED = 300
"""The maximum length of the searchable messages and arguments per finding."""
ELEMENTS = ("text", "words", "drawing", "charts", "conversation", "detail", "elements")
"""Scripts that display JSON in the report and in the console."""
SCRIPTS = (*ELEMENTS, "data", "findings", "page")


def write_report(out: Path, target: Path | None = None, *, opening: str = "", room: int = CONVERSATIONS) -> Path:
    """Write `report.html` for the audit in `out`, and return its path.

    The report opens with the finding whose id is `opening`, or else with the clearest finding.
    """
    target = target or out / "report.html"
    folder = Store(out)
    document, summary, criterion = folder.policies, folder.summary, folder.criterion
    severities: dict[str, str] = {name: policy["severity"] for name, policy in document.items()}
    found = index(folder, severities, criterion)
    if opening:
        place = find_place(folder, opening)
        if place is None:
            raise UsageError(
                f"no finding `{opening}`", place=str(out), hint="the ids are in calls.jsonl and findings.jsonl"
            )
        found = msgspec.structs.replace(found, candidates=[place])
    words = WordList()
    rows: list[list[Any]] = []
    steps: dict[str, set[int]] = {}
    finding_blocks: list[str] = []
    for group, block in blocks(details_of(folder, iter(found.places), document, criterion)):
        rows += [[*row(finding, words), len(finding_blocks)] for finding in group]
        for finding in group:
            steps.setdefault(finding["trajectory"], set()).update(steps_of(finding))
        finding_blocks.append(block)
    places = conversation_places(folder, set(steps))
    stated = policies(document)
    candidates = list(details_of(folder, iter(found.candidates), document, criterion))
    first = _opening(folder, candidates, places, stated)
    conversation_blocks, held, quoted = _conversations(folder, steps, places, room)
    for each in rows:
        name: str = words.list[int(each[1])]
        each[SOUGHT] = " ".join((each[SOUGHT], quoted.get((name, each[2]), "")))
    data = {
        "overview": overview(summary, criterion),
        "policies": stated,
        "words": words.list,
        "findings": rows,
        "held": [[words.of(name), block] for name, block in held.items()],
        "opening": first,
        "open": undecided(folder, summary, criterion),
        **_standings(folder),
        "out": out.resolve().name,
        "calls": found.calls,
        "flagged": found.total,
        "counts": summary["counts"],
        "conversations": len(steps),
        "kept": len(places),
    }
    rough = target.with_name(target.name + ".part")
    with rough.open("w", encoding="utf-8", newline="\n") as page:
        for part in _page(data, finding_blocks, conversation_blocks):
            page.write(part)
    os.replace(rough, target)
    return target


def _conversations(
    folder: Store, steps: dict[str, set[int]], places: dict[str, int], room: int
) -> tuple[list[str], dict[str, int], dict[tuple[str, int], str]]:
    """Return the compressed conversations of the first findings, as many as fit, and the block of each conversation.

    Also return the text of the calls and messages that the findings refer to.
    """
    names = [name for name in steps if name in places]
    broken = broken_rules(folder, places)
    told = (
        conversation | {"rules": broken.get(name, [])}
        for name, whole in zip(names, folder.at("conversations.jsonl", (places[name] for name in names)), strict=True)
        if (conversation := bounded(whole, steps[name])) is not None
    )
    written: list[str] = []
    held: dict[str, int] = {}
    quoted: dict[tuple[str, int], str] = {}
    for group, block in blocks(told):
        if len(block) > room:
            break
        room -= len(block)
        quoted.update(pair for conversation in group for pair in _quoted(conversation, steps))
        held.update((conversation["trajectory"], len(written)) for conversation in group)
        written.append(block)
    return written, held, quoted


def _quoted(conversation: JsonRecord, steps: dict[str, set[int]]) -> Iterator[tuple[tuple[str, int], str]]:
    name, events = conversation["trajectory"], conversation["events"]
    spoken = sorted(step for step in steps.get(name, ()) if step < len(events))
    said = [_first(events[step]["text"]) for step in spoken if events[step]["type"] == "message"]
    for step in spoken:
        given = events[step].get("arguments", ())
        yield (name, step), cut(" ".join([*(_first(value) for _, value in given), *said]), QUOTED)


def _first(text: str | list[Any]) -> str:
    return cut(text if isinstance(text, str) else text[0], 120)


def _opening(
    folder: Store, candidates: list[JsonRecord], places: dict[str, int], stated: list[JsonRecord]
) -> JsonRecord | None:
    """Return the finding to show first, and its conversation. It is the clearest finding of the preferred kind."""
    sentences = {policy["id"]: next((cite["text"] for cite in policy["citations"]), "") for policy in stated}
    undrawn: JsonRecord | None = None
    candidates = sorted(candidates, key=lambda finding: rank(opening_kind(finding), OPENING))
    for kind, group in groupby(candidates, key=opening_kind):
        some = sorted(group, key=simplicity, reverse=True)
        first = [finding for finding in some if finding["trajectory"] in places][:60]
        whole = folder.at("conversations.jsonl", (places[finding["trajectory"]] for finding in first))
        pairs = [
            {"finding": finding, "conversation": told}
            for finding, conversation in zip(first, whole, strict=True)
            if (told := bounded(conversation, set(steps_of(finding)))) is not None
            and (kind != "near_miss" or _can_be_drawn(finding, told))
        ]
        if pairs:
            return max(pairs, key=lambda pair: _clarity(pair["finding"], pair["conversation"], sentences))
        undrawn = undrawn or {"finding": some[0], "conversation": None}
        if kind == "violation":
            return {"finding": some[0], "conversation": None}
    return undrawn


def _can_be_drawn(finding: JsonRecord, conversation: JsonRecord) -> bool:
    has_facts = any(policy.get("missing") or policy.get("seen") for policy in finding["policies"])
    return has_facts and finding["step"] < len(conversation["events"])


def _clarity(finding: JsonRecord, conversation: JsonRecord, sentences: dict[str, str]) -> tuple[bool, ...]:
    """Return a sort key for clarity.

    Good outcomes, users' claims, cited sentences and short conversations come first.
    """
    outcome = conversation["outcome"]
    facts = [fact for policy in finding["policies"] for fact in policy.get("missing", ())]
    return (
        outcome is None or outcome["good"],
        any(fact["reason"] == "claimed" for fact in facts),
        outcome is not None,
        all(sentences.get(policy["id"]) for policy in finding["policies"] if "missing" in policy),
        len(conversation["events"]) <= 40,
    )


def _page(data: JsonRecord, findings: list[str], conversations: list[str]) -> Iterator[str]:
    files = resources.files("bylaw.audit.report")
    style = (files / "page.css").read_text("utf-8")
    script = joined_scripts(SCRIPTS)
    security = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    template = (files / "page.html").read_text("utf-8")
    for piece in template.replace("}}", "{{").split("{{"):
        match piece:
            case "security":
                yield security
            case "style":
                yield style
            case "script":
                yield script
            case "data":
                yield f'<script type="application/json" id="data">{_inert(data)}</script>\n'
                for number, block in enumerate(findings):
                    yield f'<script type="text/plain" id="findings-{number}">{block}</script>\n'
                for number, block in enumerate(conversations):
                    yield f'<script type="text/plain" id="conversations-{number}">{block}</script>\n'
            case _:
                yield piece


def _standings(folder: Store) -> JsonRecord:
    """Return the waived findings, and the findings that the earlier audit also had."""
    compared = folder.document("comparison.json")
    known = [[each["finding"], "still", ""] for each in compared.get("still", ())]
    waived = [[each["finding"], "waived", _waivers(each)] for each in compared.get("waived", ())]
    return {"compared": bool(compared), "standings": known + waived}


def _waivers(finding: JsonRecord) -> str:
    told = (f"{each['owner']}, until {each['expires']}: {each['reason']}" for each in finding.get("waivers", ()))
    return cut("; ".join(told), 600)


def joined_scripts(names: Sequence[str], more: Sequence[str] = ()) -> str:
    """Join the page's scripts and the strings in `more`. The result defines no global names."""
    files = resources.files("bylaw.audit.report")
    body = "\n".join([*((files / "scripts" / f"{name}.js").read_text("utf-8") for name in names), *more])
    return f'(() => {{\n"use strict";\n{body}\n}})();\n'


def _digest(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")


def _inert(data: JsonRecord) -> str:
    """Return JSON that cannot close the script element that contains it, and that text editors can display."""
    written = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
