"""The report: one HTML file that works offline and treats everything it shows as text.

What came from logs or packs stands in data blocks that no browser runs, as ASCII JSON without `<`, `>` or `&`,
or compressed. One style and one script, both named by hash, are all that the page's own security policy lets through.
"""

import base64
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from bylaw.audit.report.conversation import blocks, bounded, broken_rules, conversation_places, cut
from bylaw.audit.report.finding import SOUGHT, WordList, find_place, index, kept, opening_kind, row, steps_of, telling
from bylaw.audit.report.overview import overview, policies, undecided
from bylaw.audit.store import JsonRecord, Store
from bylaw.errors import UsageError

CONVERSATIONS = 12_000_000
"""Most characters of compressed conversations in the page; it says how many do not fit."""
QUOTED = 300
"""Most characters of messages and arguments that the search covers, per finding."""
ELEMENTS = ("text", "words", "drawing", "charts", "conversation", "detail", "elements")
"""Elements that draw JSON, here and in the console."""
SCRIPTS = (*ELEMENTS, "data", "findings", "page")


def write_report(out: Path, target: Path | None = None, *, opening: str = "", room: int = CONVERSATIONS) -> Path:
    """Write `report.html` for the audit in `out`, and return its path.

    It opens on the finding with the id `opening`, else on the most telling one.
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
                f"no finding `{opening}`", place=str(out), hint="ids are in calls.jsonl and findings.jsonl"
            )
        found = msgspec.structs.replace(found, candidates=[place])
    words = WordList()
    rows: list[list[Any]] = []
    steps: dict[str, set[int]] = {}
    finding_blocks: list[str] = []
    for group, block in blocks(kept(folder, iter(found.places), document, criterion)):
        rows += [[*row(finding, words), len(finding_blocks)] for finding in group]
        for finding in group:
            steps.setdefault(finding["trajectory"], set()).update(steps_of(finding))
        finding_blocks.append(block)
    places = conversation_places(folder, set(steps))
    stated = policies(document)
    candidates = telling(kept(folder, iter(found.candidates), document, criterion))
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
    """The conversations of the first findings, compressed, until the room is spent; and the block each is in.

    Also what the page shows of each call, or quotes of each message, that a finding speaks of.
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
    """For each call that a finding speaks of its arguments, and the users' words that its conversation was about."""
    name, events = conversation["trajectory"], conversation["events"]
    spoken = sorted(step for step in steps.get(name, ()) if step < len(events))
    said = [_first(events[step]["text"]) for step in spoken if events[step]["type"] == "message"]
    for step in spoken:
        given = events[step].get("arguments", ())
        yield (name, step), cut(" ".join([*(_first(value) for _, value in given), *said]), QUOTED)


def _first(text: str | list[Any]) -> str:
    return cut(text if isinstance(text, str) else text[0], 120)


def _opening(
    folder: Store, ranked: list[JsonRecord], places: dict[str, int], stated: list[JsonRecord]
) -> JsonRecord | None:
    """The finding that the page opens on, with its conversation if it is available."""
    sentences = {policy["id"]: next((cite["text"] for cite in policy["citations"]), "") for policy in stated}
    undrawn: list[JsonRecord] = []
    for kind, group in groupby(ranked, key=opening_kind):
        some = list(group)
        first = [finding for finding in some if finding["trajectory"] in places][:60]
        whole = folder.at("conversations.jsonl", (places[finding["trajectory"]] for finding in first))
        pairs = [
            {"finding": finding, "conversation": told}
            for finding, conversation in zip(first, whole, strict=True)
            if (told := bounded(conversation, set(steps_of(finding)))) is not None
            and (kind != "near_miss" or _is_drawn_whole(finding, told))
        ]
        if pairs:
            return max(pairs, key=lambda pair: _draws_well(pair["finding"], pair["conversation"], sentences))
        undrawn += some[:1]
        if kind == "violation":
            return {"finding": some[0], "conversation": None}
    return {"finding": undrawn[0], "conversation": None} if undrawn else None


def _is_drawn_whole(finding: JsonRecord, conversation: JsonRecord) -> bool:
    """Whether the call and at least one fact that it needed can be drawn."""
    has_facts = any(policy.get("missing") or policy.get("seen") for policy in finding["policies"])
    return has_facts and finding["step"] < len(conversation["events"])


def _draws_well(finding: JsonRecord, conversation: JsonRecord, sentences: dict[str, str]) -> tuple[bool, ...]:
    """Prefers a call that the outcome check passed, a user's claim, a cited sentence and a short conversation."""
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
    """The page in parts."""
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
    """Findings that are known from an earlier audit or waived, if the audit was compared."""
    compared = folder.document("comparison.json")
    known = [[each["finding"], "still", ""] for each in compared.get("still", ())]
    waived = [[each["finding"], "waived", _waivers(each)] for each in compared.get("waived", ())]
    return {"compared": bool(compared), "standings": known + waived}


def _waivers(finding: JsonRecord) -> str:
    told = (f"{each['owner']}, until {each['expires']}: {each['reason']}" for each in finding.get("waivers", ()))
    return cut("; ".join(told), 600)


def joined_scripts(names: Sequence[str], more: Sequence[str] = ()) -> str:
    """Scripts of the page and the texts of `more`, joined without global names."""
    files = resources.files("bylaw.audit.report")
    body = "\n".join([*((files / "scripts" / f"{name}.js").read_text("utf-8") for name in names), *more])
    return f'(() => {{\n"use strict";\n{body}\n}})();\n'


def _digest(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")


def _inert(data: JsonRecord) -> str:
    """JSON that cannot end a data block, and that an editor shows in order."""
    written = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return written.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
