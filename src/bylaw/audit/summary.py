"""`summary.json`: what an audit found, for people and programs that build on it."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from bylaw.audit.examine import Examiner
from bylaw.audit.limited import limits_record
from bylaw.audit.line import FINDING_IDS, FLAGGED, whole_sentence, writable
from bylaw.audit.request import Request
from bylaw.audit.tally import Tally
from bylaw.engine.predicate_values import TellsUnanswered
from bylaw.errors import RecordError
from bylaw.facts.evidence import LookupEvidence
from bylaw.pack import CRITERIA, Pack
from bylaw.policy.statement import Citation
from bylaw.rule.formula import atoms

SCHEMA = "bylaw.audit/1"


def summarise(
    examiner: Examiner, request: Request, skipped: Sequence[RecordError], repeated: int = 0
) -> dict[str, Any]:
    """The summary record; what it counts but once is counted under the audit's criterion."""
    names = request.names()
    shelf, coverage = examiner.shelf, examiner.coverage
    criterion = request.criterion or shelf.packs[-1].criterion
    packs, tally = shelf.packs, examiner.tally
    held = _held(packs, tally)
    policies = list(dict.fromkeys(name for pack in packs for name in pack.policies if name in pack.guards))
    return {
        "schema": SCHEMA,
        "pack": {
            "name": shelf.name,
            "version": packs[-1].version,
            "digest": packs[-1].digest,
            "checks": packs[-1].pin,
            "variants": [_pack(pack) for pack in packs] if len(packs) > 1 else [],
        },
        "criterion": criterion,
        "finding_ids": FINDING_IDS,
        "date": datetime.now(UTC).date().isoformat(),
        "files": [writable(names[file]) for file in request.files],
        "repeated_ids": repeated,
        "period": coverage.period(),
        "world": "snapshot" if request.world is not None else request.mode,
        "worlds": dict(sorted(coverage.worlds.items())),
        "agents": tally.agents(criterion),
        "counts": tally.headline(criterion),
        "verdicts": {each: dict(tally.verdicts(each)) for each in CRITERIA},
        "by_tool": tally.by_tool(),
        "by_lookup": tally.by_lookup(criterion),
        "by_policy": tally.by_policy(policies),
        "by_reason": tally.by_reason(criterion),
        "by_rule": tally.by_rule(),
        "open": tally.open(criterion),
        "answered": tally.answered(),
        "failed_guards": tally.failed(),
        "limits": limits_record(packs, coverage.limited),
        "evidence": [_evidence(each) for each in coverage.lookups()],
        "outcome_from": tally.outcome_from(),
        "unguarded_tools": [tool for tool in tally.by_tool() if _is_unguarded(packs, tool)],
        "unknown_tools": dict(sorted(coverage.unknown_tools.items())),
        "unmapped_fields": _by_tool(coverage.unmapped),
        "untimed": tally.untimed(),
        "clockless": tally.clockless(),
        "contradicted": tally.contradicted() if request.world is not None else 0,
        "clock": sorted({pack.now.isoformat() for pack in held if pack.now is not None}),
        "changed_policy": [
            {"statements": list(names), "trajectories": dict(sorted(agents.items()))}
            for names, agents in sorted(coverage.changed.items())
        ],
        "stale_policies": sorted({name for pack in held for name in pack.stale}),
        "unreviewed_policies": sorted({name for pack in held for name in pack.unaccepted}),
        "unenforced_policies": _unenforced(held, tally),
        "citations": "text" if all(pack.document is not None for pack in held) else "heading and line",
        "other_documents": [p.name for p in held if p.document is None] if request.document is not None else [],
        "unanswered": request.answers.unanswered() if isinstance(request.answers, TellsUnanswered) else [],
        "skipped": [{"place": fault.place, "why": fault.message} for fault in skipped],
    }


def _evidence(lookup: LookupEvidence) -> dict[str, Any]:
    """What became of one look-up's results; `shown` is null where the pack maps nothing of the tool."""
    return {name: getattr(lookup, name) for name in LookupEvidence.__struct_fields__} | {"cures": list(lookup.cures)}


def policies_record(packs: Sequence[Pack], tally: Tally) -> dict[str, Any]:
    """`policies.json`: every policy with its sentences, and for a rule what its predicates mean.

    Of a pack with variants, those that conversations were held to; what they share cites the document of each.
    """
    found: dict[str, Any] = {}
    for pack in _held(packs, tally):
        for policy in pack.policies.values():
            citations = [_citation(pack, each) for each in policy.citations]
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


def _citation(pack: Pack, cited: Citation) -> dict[str, Any]:
    """A cited sentence and its place; where it stands again and is meant there, too, those places."""
    own = {"document": cited.document, "heading": cited.heading, "line": cited.line}
    again = [{"document": each.document, "heading": each.heading, "line": each.line} for each in cited.again]
    return own | {"text": whole_sentence(pack, cited)} | ({"again": again} if again else {})


def _held(packs: Sequence[Pack], tally: Tally) -> Sequence[Pack]:
    """The packs that conversations were held to; all of them where there were none."""
    return [pack for pack in packs if pack.name in tally.packs()] or packs


def _predicates(pack: Pack, policy: str) -> dict[str, str]:
    """What the predicates of a policy's rules mean, by the names that findings call them."""
    names = [name for rule in pack.book.rules if rule.policy == policy for name in atoms(rule.formula)]
    return {name.replace("_", " "): pack.book.predicates[name].description for name in names}


def _unenforced(packs: Sequence[Pack], tally: Tally) -> list[str]:
    """Policies that flag something here, and on which a shield does not act."""
    checks = {name for pack in packs for name, policy in pack.policies.items() if policy.unenforced is not None}
    flagged = {name for name, each in tally.by_rule().items() if each["broken"]}
    for name, each in tally.by_policy(sorted(checks)).items():
        if any(each[criterion][verdict] for criterion in CRITERIA for verdict in FLAGGED):
            flagged.add(name)
    return sorted(checks & flagged)


def _is_unguarded(packs: Sequence[Pack], tool: str) -> bool:
    return any(tool in pack.schema.tools for pack in packs) and not any(tool in pack.by_tool for pack in packs)


def _pack(pack: Pack) -> dict[str, str]:
    return {"name": pack.name, "version": pack.version, "digest": pack.digest, "checks": pack.pin}


def _by_tool(fields: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for tool, name in sorted(fields):
        found.setdefault(tool, []).append(name)
    return found
