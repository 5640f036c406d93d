"""Creates `summary.json` and `policies.json`: the results of an audit, and notes on its input."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from bylaw.audit.counts import ANSWERS, STATED, Counts
from bylaw.audit.request import Request, Shelf
from bylaw.audit.row import FINDING_IDS, FLAGGED, SEVERITIES, JsonRecord, writable
from bylaw.engine.limited import by_limit, over_and_open
from bylaw.engine.predicate_values import UNSAID, TellsUnanswered
from bylaw.engine.verdict import WORST_FIRST, Verdict
from bylaw.errors import RecordError
from bylaw.facts.evidence import EvidenceCount, rate
from bylaw.pack import CRITERIA, Criterion, Pack
from bylaw.policy.statement import Citation
from bylaw.text.number import counted

SCHEMA = "bylaw.audit/1"
REASONS = ("never_seen", "stale", "pending", "claimed")
LIMITED = 20
"""The maximum number of calls to list per limit."""


def summarise(
    shelf: Shelf, counts: Counts, request: Request, skipped: Sequence[RecordError], repeated: int = 0
) -> dict[str, Any]:
    """Return the content of `summary.json`. Unless noted otherwise, figures use the audit's criterion."""
    names = request.names()
    packs, counts = shelf.packs, counts.with_limits(shelf.packs)
    numbers = counts.numbers
    criterion = request.criterion or packs[-1].criterion
    held = _held(packs, counts)
    policies = list(dict.fromkeys(name for pack in packs for name in pack.policies if name in pack.guards))
    tools = _by_tool(counts)
    known = {tool for pack in packs for tool in pack.schema.tools}
    guarded = {tool for pack in packs for tool in pack.by_tool}
    evidence = EvidenceCount()
    for each in counts.evidence.values():
        evidence.update(each)
    return {
        "schema": SCHEMA,
        "pack": {"name": shelf.name, **_pack(packs[-1]), "variants": _variants(packs)},
        "criterion": criterion,
        "finding_ids": FINDING_IDS,
        "date": datetime.now(UTC).date().isoformat(),
        "files": [writable(names[file]) for file in request.files],
        "repeated_ids": repeated,
        "period": _period(counts),
        "world": "snapshot" if request.world is not None else request.mode,
        "worlds": {key[1]: key[2] for key in sorted(numbers) if key[0] == "world"},
        "not_in_world": shelf.not_in_world,
        "agents": [_agent(counts, name, criterion) for name in counts.names("agent")],
        "counts": _headline(counts, criterion),
        "verdicts": {
            each: {v: n for v, n in _verdicts(counts, "call", "executed", each).items() if n} for each in CRITERIA
        },
        "by_tool": tools,
        "by_lookup": _by_lookup(counts, criterion),
        "by_policy": _by_policy(counts, policies),
        "by_reason": {reason: numbers["reason", criterion, reason] for reason in REASONS},
        "by_rule": _by_rule(counts),
        "open": _open(counts, criterion),
        "answered": {
            name: {said: numbers["answered", name, said] for said in (*ANSWERS.values(), STATED, UNSAID)}
            for name in counts.names("answered")
        },
        "settled": {
            name: {said: numbers["settled", name, said] for said in ("yes", "no")} for name in counts.names("settled")
        },
        "failed_guards": {name: counts.under("failed", name) for name in counts.names("failed")},
        "limits": _limits(packs, counts),
        "evidence": [msgspec.structs.asdict(each) | {"cures": list(each.cures)} for each in evidence.found()],
        "outcome_from": counts.under("outcome"),
        "unguarded_tools": [tool for tool in tools if tool in known and tool not in guarded],
        "unknown_tools": counts.under("unknown_tool"),
        "unmapped_fields": {tool: list(counts.under("unmapped", tool)) for tool in counts.names("unmapped")},
        "untimed": numbers[("untimed",)],
        "clockless": numbers[("clockless",)],
        "contradicted": numbers[("contradicted",)] if request.world is not None else 0,
        "clock": sorted({pack.now.isoformat() for pack in held if pack.now is not None}),
        "changed_policy": _changed(counts),
        "stale_policies": sorted({name for pack in held for name in pack.stale}),
        "unreviewed_policies": sorted({name for pack in held for name in pack.unaccepted}),
        "unenforced_policies": _unenforced(held, counts),
        "citations": "text" if all(pack.document is not None for pack in held) else "heading and line",
        "other_documents": [p.name for p in held if p.document is None] if request.document is not None else [],
        "unanswered": request.answers.unanswered() if isinstance(request.answers, TellsUnanswered) else [],
        "skipped": [{"place": fault.place, "why": fault.message} for fault in skipped],
    }


def _pack(pack: Pack) -> dict[str, str]:
    return {"version": pack.version, "digest": pack.digest, "checks": pack.pin}


def _variants(packs: Sequence[Pack]) -> list[dict[str, str]]:
    return [{"name": pack.name, **_pack(pack)} for pack in packs] if len(packs) > 1 else []


def _period(counts: Counts) -> dict[str, str] | None:
    try:
        times = [datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds") for time in counts.times]
    except (ValueError, OverflowError, OSError):
        return None
    return dict(zip(("from", "to"), times, strict=True)) if times else None


def _verdicts(counts: Counts, *prefix: str) -> dict[Verdict, int]:
    return {verdict: counts.numbers[(*prefix, verdict)] for verdict in WORST_FIRST}


def _headline(counts: Counts, criterion: Criterion) -> dict[str, Any]:
    """Return the counts that every output format shows. docs/reference/audit-output.md defines them."""
    numbers = counts.numbers.items()

    def calls(done: str) -> dict[str, int]:
        found = _verdicts(counts, "call", done, criterion)
        return {
            "calls": sum(found.values()),
            "violations": found["violation"],
            "near_misses": found["near_miss"],
            "uninformed": found["uninformed"],
            "undecided": counts.numbers["undecided", done, criterion],
        }

    return {
        "conversations": sum(n for key, n in numbers if key[0] == "agent" and key[2:] == ("trajectories",)),
        **calls("executed"),
        "broken_rules": sum(n for key, n in numbers if key[0] == "rule" and key[2:] == ("broken",)),
        "refused": calls("refused"),
    }


def _agent(counts: Counts, agent: str, criterion: Criterion) -> dict[str, Any]:
    def count(*key: str) -> int:
        return counts.numbers["agent", agent, *key]

    every, writing = count("trajectories"), count("with_write_calls")
    return {
        "agent": agent,
        "trajectories": every,
        "with_write_calls": writing,
        "outcome_known": count("outcome_known"),
        "failure_rate": rate(count("failures"), count("outcome_known")),
        "violation_rates": {each: rate(count(criterion, "violation", each), every) for each in SEVERITIES},
        "rule_rate": rate(count("rules"), every),
        "rule_rates": {severity: rate(count("rules", severity), every) for severity in SEVERITIES},
        **{
            each: {
                "violation_rate": rate(count(each, "violation"), every),
                "near_miss_rate": rate(count(each, "near_miss"), every),
                "near_miss_rate_of_writing": rate(count(each, "near_miss", "write"), writing),
                "uninformed_rate": rate(count(each, "uninformed"), every),
            }
            for each in CRITERIA
        },
    }


def _by_tool(counts: Counts) -> dict[str, Any]:
    figures = ("calls", "executed", "result_not_captured", "perhaps_done")
    return {
        name: {
            "effect": "read" if counts.numbers["tool", name, "read"] else "write",
            **{figure: counts.numbers["tool", name, figure] for figure in figures},
            **{criterion: _verdicts(counts, "tool", name, criterion) for criterion in CRITERIA},
        }
        for name in counts.names("tool")
    }


def _by_policy(counts: Counts, policies: Sequence[str]) -> dict[str, Any]:
    found: Counter[tuple[str, ...]] = Counter()
    for key, count in counts.numbers.items():
        if key[0] == "policy":
            _, name, strict, determined, could = key
            for figure in (("applied",), (could,), ("strict", strict), ("determined", determined)):
                found[name, *figure] += count
    return {
        name: {
            "applied": found[name, "applied"],
            "could_deny": found[name, "could_deny"],
            **{each: {verdict: found[name, each, verdict] for verdict in WORST_FIRST} for each in CRITERIA},
        }
        for name in policies
    }


def _by_lookup(counts: Counts, criterion: Criterion) -> dict[str, Any]:
    """For each look-up that was skipped, count the near-misses and uninformed calls by criterion, agent and tool."""
    return {
        name: {
            **{each: counts.numbers["lookup", name, each] for each in ("strict", "determined")},
            **{each: counts.under("lookup", name, criterion, each) for each in ("agents", "tools")},
        }
        for name in counts.names("lookup")
    }


def _by_rule(counts: Counts) -> dict[str, Any]:
    return {
        name: {
            "severity": next(iter(counts.under("rule", name, "severity")), "medium"),
            "broken": counts.numbers["rule", name, "broken"],
            "trajectories": counts.numbers["rule", name, "trajectories"],
            "agents": counts.under("rule", name, "agents"),
        }
        for name in counts.names("rule")
    }


def _open(counts: Counts, criterion: Criterion) -> dict[str, Any]:
    rules = {
        name: {
            "calls": counts.numbers["open", name, "calls"],
            "trajectories": counts.numbers["open", name, "trajectories"],
            "reasons": counts.under("open", name, "reasons"),
        }
        for name in counts.names("open")
    }
    return {"calls": counts.numbers["undecided", "executed", criterion], "rules": rules}


def _limits(packs: Sequence[Pack], counts: Counts) -> list[dict[str, Any]]:
    """For each limit across conversations, count the calls that exceed it and the undecided calls."""
    severities = {name: policy.severity for pack in packs for name, policy in pack.policies.items()}
    rows: list[dict[str, Any]] = []
    for limit, calls in by_limit(packs, counts.limited):
        over, is_open = over_and_open(limit, calls)
        rows.append(
            {
                "limit": limit.name,
                "policy": limit.policy,
                "severity": severities[limit.policy],
                "text": limit.text,
                "calls": len(calls),
                "over": len(over),
                "open": len(is_open),
                "untimed": sum(call.time is None for call in calls),
                "unknown_whose": sum(call.whose is None for call in calls),
                "first": [{"file": c.file, "position": c.position, "step": c.step} for c in over[:LIMITED]],
            }
        )
    return rows


def _changed(counts: Counts) -> list[dict[str, Any]]:
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for (kind, agent, *policies), count in sorted((key, n) for key, n in counts.numbers.items() if len(key) > 2):
        if kind == "changed":
            found.setdefault(tuple(policies), {})[agent] = count
    return [{"statements": list(names), "trajectories": found[names]} for names in sorted(found)]


def _unenforced(packs: Sequence[Pack], counts: Counts) -> list[str]:
    checks = {name for pack in packs for name, policy in pack.policies.items() if policy.unenforced is not None}
    flagged = {key[1] for key in counts.numbers if key[0] == "policy" and FLAGGED & {*key[2:4]}}
    broken = {name for name in counts.names("rule") if counts.numbers["rule", name, "broken"]}
    return sorted(checks & (flagged | broken))


def policies_record(packs: Sequence[Pack], counts: Counts) -> dict[str, Any]:
    """Return the content of `policies.json`: every policy with its sentences.

    Rules also have the meaning of their predicates. Variants that judged no conversation are left out. If several
    variants share a policy, the policy cites the documents of all of them.
    """
    found: dict[str, Any] = {}
    for pack in _held(packs, counts):
        for policy in pack.policies.values():
            citations = [_citation(each) for each in policy.citations]
            if policy.id in found:
                found[policy.id]["citations"] += [c for c in citations if c not in found[policy.id]["citations"]]
                continue
            found[policy.id] = {
                "definition": policy.definition,
                "severity": policy.severity,
                "kind": policy.kind,
                "tools": list(policy.tools),
                "citations": citations,
            }
            if policy.unenforced is not None:
                found[policy.id]["unenforced"] = policy.unenforced.reason
            if predicates := _predicates(pack, policy.id):
                found[policy.id]["predicates"] = predicates
    return found


def _citation(cited: Citation) -> dict[str, Any]:
    def places(citations: Iterable[Any]) -> list[dict[str, Any]]:
        return [{"document": each.document, "heading": each.heading, "line": each.line} for each in citations]

    again = places(cited.again)
    return places([cited])[0] | {"text": cited.whole} | ({"again": again} if again else {})


def _held(packs: Sequence[Pack], counts: Counts) -> Sequence[Pack]:
    """Return the packs that judged conversations, or all packs if there were no conversations."""
    return [pack for pack in packs if counts.numbers["pack", pack.name]] or packs


def _predicates(pack: Pack, policy: str) -> dict[str, str]:
    names = [name for rule in pack.book.rules if rule.policy == policy for name in pack.ready_rules.names[rule.name]]
    return {name.replace("_", " "): pack.book.predicates[name].description for name in names}


_MOST = 8


def limits(summary: JsonRecord) -> Iterator[str]:
    """Yield the limits of an audit: its sources of truth, its notes, and the data that it did not read."""
    if summary["world"] == "snapshot":
        yield "Ground truth: the database, replayed after each write."
    if worlds := summary["worlds"]:
        yield f"Databases by file: {_listed([f'{file}: {name}' for file, name in worlds.items()])}."
    yield from notes(summary)
    if not summary["outcome_from"]:
        yield "The logs record no outcome for these conversations."
    for tool, fields in summary["unmapped_fields"].items():
        yield f"The pack does not map these result fields of {tool}: {_listed(fields)}."
    if count := len(summary["skipped"]):
        yield f"{counted(count, 'unreadable record')} skipped and not counted as compliant. summary.json lists them."


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _MOST:,} more" if len(names) > _MOST else ""
    return ", ".join(names[:_MOST]) + more


def notes(summary: JsonRecord) -> list[str]:
    """Return notes on the input of an audit. Each note recommends an action."""
    told: list[str] = []
    verdicts = summary["verdicts"][summary["criterion"]]
    if summary["world"] != "snapshot" and summary["agents"]:
        unjudged = sum(summary["by_tool"][tool]["executed"] for tool in summary["unguarded_tools"])
        uninformed, total = verdicts.get("uninformed", 0), sum(verdicts.values()) - unjudged
        settle = ". To decide them, add --world" if uninformed else ""
        told.append(f"No database ({summary['world']}): {uninformed:,} of {total:,} verdicts stay uninformed{settle}.")
    if names := summary["not_in_world"]:
        told.append(
            f"The database has no records of {', '.join(names)}. Name a table after the entity, or map it under"
            " `world:` in entities.yaml."
        )
    told += [_lacking(lookup) for lookup in summary["evidence"] if lookup["cures"]]
    told += [
        f"{tool}: {each['perhaps_done']:,} of {each['calls']:,} results do not say whether the write was executed."
        " Add `surely_refused` to the tool in tools.yaml (`bylaw explain` shows the line to add)."
        for tool, each in summary["by_tool"].items()
        if each.get("perhaps_done") and each["effect"] == "write"
    ]
    told += _settling(summary)
    if len(summary["outcome_from"]) > 1:
        sources = ", ".join(f"{name} ({count:,})" for name, count in summary["outcome_from"].items())
        told.append(f"Outcomes come from: {sources}.")
    if others := summary["other_documents"]:
        told.append(
            f"The document does not belong to {', '.join(others)}, so findings under those packs cite only the heading"
            " and the line."
        )
    elif summary["citations"] != "text":
        told.append(
            "Citations give only the heading and the line, because the pack does not contain its document. Add"
            " --document."
        )
    if summary["unreviewed_policies"]:
        count = len(summary["unreviewed_policies"])
        are = "is" if count == 1 else "are"
        told.append(f"{counted(count, 'policy', 'policies')} of the pack {are} not accepted yet. See `bylaw review`.")
    if names := summary["unenforced_policies"]:
        are = "the policy is" if len(names) == 1 else "these policies are"
        told.append(
            f"This audit judges calls by {', '.join(names)}, but a shield does not: {are} `unenforced` in the pack."
        )
    if summary["stale_policies"]:
        told.append(
            f"These policies quote a sentence that is not in the document: {', '.join(summary['stale_policies'])}"
        )
    for change in summary["changed_policy"]:
        count = sum(change["trajectories"].values())
        told.append(
            f"{count:,} conversations ran under a different version of the policy ({', '.join(change['statements'])})."
            " They have separate rows."
        )
    if summary["unguarded_tools"]:
        names = ", ".join(summary["unguarded_tools"])
        told.append(f"Calls of these tools were not judged, because no guard applies: {names}")
    if summary["clockless"]:
        told.append(
            f"{summary['clockless']:,} calls depend on the time, but the time is unknown. Add a"
            " `timestamp` to messages, or `now:` to the pack."
        )
    if count := summary["repeated_ids"]:
        what = "conversation has the same id as another" if count == 1 else "conversations have the same id as others"
        told.append(f"{count:,} {what}, so Bylaw appended `~2`, `~3` and so on to the ids, in file order.")
    if summary["contradicted"]:
        count = summary["contradicted"]
        told.append(
            f"At {count:,} {'call' if count == 1 else 'calls'}, the database contradicts what the agent had"
            " looked up. Check that the database shows the state before these conversations."
        )
    if summary["clock"] and summary["period"] is not None:
        told.append(
            f"The pack sets the time (`now: {', '.join(summary['clock'])}`). Calls were judged as of that time, not"
            " as of the times in the logs."
        )
    for limit in summary.get("limits", []):
        if limit["over"] or limit["open"]:
            lacking = ("untimed", "without a time"), ("unknown_whose", "without an owner")
            why = ", ".join(f"{limit[name]:,} calls {what}" for name, what in lacking if limit[name])
            counts = f"{limit['over']:,} of {limit['calls']:,} calls exceeded it"
            counts += f", {limit['open']:,} undecided{f' ({why})' if why else ''}" if limit["open"] else ""
            told.append(f"Limit `{limit['limit']}` ({limit['text']}): {counts}.")
    if summary["untimed"]:
        told.append(f"{summary['untimed']} conversations have no times, so no fact expired in them.")
    if summary["unknown_tools"]:
        told.append(f"Tools that are not in the pack: {', '.join(summary['unknown_tools'])}")
        if summary["by_tool"].keys() <= summary["unknown_tools"].keys():
            told.append("None of the tools is in the pack. Check that this is the right pack for these logs.")
    return told


def _settling(summary: JsonRecord) -> list[str]:
    told: list[str] = []
    for name, row in summary["answered"].items():
        left = f", undecided {row['open']:,} times" if row["open"] else ""
        if row["yes"] or row["no"]:
            told.append(f"Decided by a model: {name} is true {row['yes']:,} times, false {row['no']:,} times{left}.")
        if row.get(STATED) or row.get(UNSAID):
            silent = f", did not mention it {counted(row[UNSAID], 'time')}" if row.get(UNSAID) else ""
            stated = counted(row[STATED], "time")
            told.append(f"Read by a model: the user stated {name} {stated}{silent}{left}.")
    for name, row in summary["settled"].items():
        yes, no = counted(row["yes"], "time"), counted(row["no"], "time")
        told.append(f"Settled by a reviewer: {name} was followed {yes}, not followed {no}.")
    if summary["open"]["calls"] and not summary["answered"] and not summary["unanswered"]:
        told.append("Undecided calls do not count as violations. To decide them, use --llm MODEL or `bylaw view`.")
    return told


def _lacking(lookup: JsonRecord) -> str:
    counts = f"{lookup['captured']:,} recorded, {lookup['readable']:,} readable"
    shown = f", {lookup['shown']:,} used by the pack" if lookup["shown"] is not None else ""
    return f"{lookup['tool']}: {lookup['results']:,} results, {counts}{shown}. {'; '.join(lookup['cures'])}."
