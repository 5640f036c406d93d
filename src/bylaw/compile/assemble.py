"""Assembles a pack's files from the results of the stages.

The files list each policy that has no check. The pack loads only after its owner has accepted each of these policies.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from msgspec import UNSET, Struct, convert, to_builtins

from bylaw.compile.check import Check, Question
from bylaw.compile.items import read_items
from bylaw.compile.lesson import Weighed, learn_weights
from bylaw.compile.naming import function_name, named_apart, slug
from bylaw.compile.pipeline import Source, Work
from bylaw.compile.reading import named_in_pack
from bylaw.compile.schema import listed, record
from bylaw.compile.span import Draft, first_place, ranges, spans
from bylaw.compile.things import entities_file, tools_file
from bylaw.engine.finished import verdicts
from bylaw.pack import Pack
from bylaw.policy.case import Variation, WrittenCase
from bylaw.policy.document import Document
from bylaw.policy.yaml import read_yaml
from bylaw.scan.written import flow, packed
from bylaw.trace import Trajectory

Case = dict[str, Any]

_WORTH = 0.8
"""The maximum length of a variation as a fraction of the full case. If a variation would be longer, the case is stored
in full.
"""


def compacted(cases: Sequence[Case]) -> list[Case]:
    """Shorten a list of cases. A case that resembles another becomes a variation (`but`) of it."""
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
    """Count the cases, including those under `but`."""
    return sum(1 + len(_variations(case)) for case in cases)


def _implied(case: Case) -> str:
    """Return the default outcome, for a case that does not state an outcome."""
    return "permit" if case.get("rule") is None else "kept"


def _without_default(case: Case) -> Case:
    kept = {name: part for name, part in case.items() if (name, part) != ("want", _implied(case))}
    return {**kept, "but": [*_variations(kept)]} if "but" in kept else kept


def _with_single(case: Case) -> Case:
    only = len(case.get("but", ())) == 1
    return {**case, "but": case["but"][0]} if only else case


def _variations(case: Case) -> list[Any]:
    but = case.get("but", [])
    return listed(but) if isinstance(but, list) else [but]


def _variation(base: Case, case: Case) -> Case | None:
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
    wanted = case.get("want") or _implied(case)
    return next((each for each in (change, {**change, "want": wanted}) if _makes(base, each, case)), None)


def _makes(base: Case, change: Case, case: Case) -> bool:
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
    """Return the records, or fields of records, that are new or changed in `after`."""
    made: Case = {}
    for name, value in after.items():
        old = before.get(name, UNSET)
        if not isinstance(old, dict) or not isinstance(value, dict):
            made |= {name: value} if old != value else {}
        elif rest := {key: part for key, part in record(value).items() if record(old).get(key, UNSET) != part}:
            made[name] = rest
    return made


_VERSION = "0.1.0"


class Assembled(Struct, frozen=True):
    """A pack's files as they were compiled, without the compiler's notes."""

    files: dict[str, str]
    weighed: Weighed | None


def assemble(source: Source, work: Work, *, name: str) -> dict[str, str]:
    made = assembled(source, work, name=name)
    return {**made.files, "compiled.yaml": compile_record(source, work, made.files, made.weighed)}


def assembled(source: Source, work: Work, *, name: str) -> Assembled:
    """Return the pack's files without the owner's edits."""
    assert work.things is not None
    drafts = sorted(work.drafts, key=lambda draft: first_place(draft.quotes, source.document))
    manifest: dict[str, Any] = {"format": 1, "name": name, "version": _VERSION, "title": source.title}
    manifest |= {"document": named_in_pack(source.document)} | ({"now": source.now} if source.now else {})
    files = {
        "pack.yaml": packed(manifest),
        **{file.name: file.text for file in source.document.files},
        "tools.yaml": tools_file(source.cards, work.things, sentences=True),
        "entities.yaml": entities_file(work.things, work.request),
        "policies.yaml": packed({"policies": [_policy(draft, work, source.document) for draft in drafts]}),
    }
    guards: dict[str, list[str]] = {}
    cases: dict[str, list[dict[str, Any]]] = {}
    rules: list[Check] = []
    for draft in drafts:
        check = work.checks.get(draft.id)
        if check is None or check.failed:
            continue
        part = _part(draft, source.document)
        if check.code:
            guards.setdefault(part, []).append(check.code)
        elif check.rules:
            rules.append(check)
            part = "rules"
        cases.setdefault(part, []).extend(compacted([_at_a_time(case, check, source) for case in check.cases]))
    files |= {f"guards/{part}.py": "\n\n".join(codes) for part, codes in guards.items()}
    if work.lookups is not None and work.lookups.codes:
        files["lookups/found.py"] = work.lookups.text
    if rules:
        files["rules.yaml"] = packed(_merged(rules))
    files |= {f"cases/{part}.yaml": packed(own) for part, own in cases.items()}
    weighed = learn_weights(on_trial(files), source.trajectories, source.labels) if source.labels is not None else None
    if weighed is not None and weighed.weights:
        files["weights.yaml"] = weighed.weights
    return Assembled(files, weighed)


def _policy(draft: Draft, work: Work, document: Document) -> dict[str, Any]:
    sorted_as = work.kinds.get(draft.id)
    body: dict[str, Any] = {
        "id": draft.id,
        # A policy that was never classified must be either enforced or explicitly accepted as unenforced.
        "kind": sorted_as.kind if sorted_as is not None else "rule",
        "tools": list(sorted_as.tools) if sorted_as is not None and sorted_as.kind == "guard" else [],
        "definition": draft.definition,
        "scope": draft.scope,
        "description": draft.description,
        "severity": sorted_as.severity if sorted_as is not None else "medium",
        "spans": spans(draft.quotes, document),
    }
    return {name: part for name, part in body.items() if part}


def unenforced(files: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the policies that have neither a guard nor a rule, keyed by id."""
    parts = ("guards/", "rules.yaml", "policies.yaml")
    found = [pair for path in files if path.startswith(parts) for pair in read_items(path, files[path]).items()]
    held = {key[1] for key, _ in found if key[0] == "guards"}
    held |= {
        function_name(str(body.get("policy", body.get("id"))))
        for key, body in found
        if key[0] == "rules.yaml" and key[1] != "predicates"
    }
    policies = {key[2]: body for key, body in found if key[:2] == ("policies.yaml", "policies")}
    return {name: body for name, body in policies.items() if function_name(name) not in held}


def on_trial(files: Mapping[str, str]) -> dict[str, str]:
    """Return the files with every policy accepted, so that the pack loads in trials. Writes no files."""
    lacking, nobody = unenforced(files), {"accepted_by": "nobody", "reason": "on trial"}
    bodies = read_yaml(files["policies.yaml"], file="policies.yaml").data["policies"]
    made = [{"unenforced": nobody, **body} if body["id"] in lacking else body for body in bodies]
    return {**files, "policies.yaml": packed({"policies": made})}


def compile_record(
    source: Source,
    work: Work,
    files: Mapping[str, str],
    weighed: Weighed | None,
    questions: Mapping[str, Sequence[Question]] | None = None,
    notes: Sequence[str] = (),
) -> str:
    """Return the text of `compiled.yaml`: how each policy was compiled, and what a reviewer should check."""
    said = flagged(on_trial(files), source.trajectories) if source.trajectories else {}
    kept = {key[2] for key in read_items("policies.yaml", files["policies.yaml"]) if len(key) == 3}
    drafts = sorted(work.drafts, key=lambda draft: first_place(draft.quotes, source.document))
    aside = work.second.aside if work.second is not None else {}
    policies: dict[str, Any] = {}
    for draft in (each for each in drafts if each.id in kept):
        check, kind = work.checks.get(draft.id), work.kinds.get(draft.id)
        body: dict[str, Any] = {
            "why": kind.why if kind is not None else "the model never stated what kind of policy this is"
        }
        asked = (*(questions or {}).get(draft.id, ()), *work.questions.get(draft.id, ()))
        if check is not None:
            asked = (
                *check.questions,
                *(weighed.questions.get(draft.id, ()) if weighed is not None else ()),
                *asked,
            )
            body |= {
                "failed": check.failed,
                "repairs": check.repairs,
                "cases": count(check.cases),
                "generated_inputs": check.generated,
                "generations_divided_on": check.divided,
            }
        body["questions"] = [_question_record(each, check, source) for each in asked]
        if draft.id in said:
            body["in_logs"] = said[draft.id]
        policies[draft.id] = {name: part for name, part in body.items() if part not in ("", [])}
    left_out = [each for found in work.extractions for each in found.left_out]
    uncited = [
        {**_file(source.document, each.start), "line": each.line, "sentence": each.text, "said": aside[each.digest]}
        for each in source.document.sentences
        if each.digest in aside
    ]
    noted: dict[str, Any] = {"policies": policies, "sentences_without_policy": uncited, "left_out": left_out}
    if notes:
        noted["edits_and_updates"] = list(notes)
    if work.things is not None and (told := [*work.things.misfits, *work.things.unshown]):
        noted["of_the_tools"] = told
    if work.steps:
        noted["refinement"] = [to_builtins(each) for each in work.steps]
    if weighed is not None:
        noted["weights"] = weighed.record
    if unfound := work.lookups.failed if work.lookups is not None else {}:
        noted["facts_that_nothing_shows"] = unfound
    return packed(noted)


def _file(document: Document, offset: int) -> dict[str, str]:
    return {"document": document.file_at(offset).name} if len(document.files) > 1 else {}


def _merged(checks: list[Check]) -> dict[str, Any]:
    """Merge the rules of several policies. Of two predicates with the same name but different meanings, rename one."""
    predicates: dict[str, Any] = {}
    rules: list[dict[str, Any]] = []
    for check in checks:
        assert check.rules is not None
        own = named_apart(check.rules, check.policy, predicates)
        predicates |= own["predicates"]
        rules += own["rules"]
    return {"predicates": predicates, "rules": rules}


def _question_record(question: Question, check: Check | None, source: Source) -> dict[str, Any]:
    body = {name: part for name, part in to_builtins(question).items() if part}
    if check is None or question.input is None:
        return body
    return {**body, "input": _at_a_time(question.input, check, source)}


def _at_a_time(case: dict[str, Any], check: Check, source: Source) -> dict[str, Any]:
    """Add the trial's time to a case if its check reads the time but the pack has no fixed time."""
    asks = "now(" in f"{check.code}{check.rules}" or (check.failed and not check.code)
    return case if source.now or not asks or "now" in case else {**case, "now": source.tried_at}


def _part(draft: Draft, document: Document) -> str:
    """Return the file name for a policy's guard and cases: the heading above the policy or, if there are several
    documents, the document's name.
    """
    found = ranges(draft.quotes, document)
    heading = document.heading_at(found[0][0][0]) if found else ""
    if found and len(document.files) > 1:
        heading = PurePosixPath(document.file_at(found[0][0][0]).name).stem
    return slug(heading).replace("-", "_") or "policies"


_SHOWN = 3
_TOLD = ("violation", "near_miss", "inconclusive")


def flagged(files: Mapping[str, str], trajectories: Sequence[Trajectory]) -> dict[str, dict[str, Any]]:
    """Return, for each policy, how many recorded calls and messages it flags, and the first few with their reasons."""
    if not trajectories:
        return {}
    pack = Pack.from_files(files)
    found: dict[str, dict[str, Any]] = {}

    def note(policy: str, verdict: str, trajectory: Trajectory, step: int, why: str) -> None:
        body = found.setdefault(policy, {}).setdefault(verdict, {"calls": 0, "first": []})
        body["calls"] += 1
        if len(body["first"]) < _SHOWN:
            body["first"].append({"conversation": trajectory.id, "step": step, "why": why})

    for trajectory in trajectories:
        said = verdicts(pack, trajectory)
        for call in said.calls:
            for each in call.policies:
                if each.determined in _TOLD:
                    note(each.policy.id, each.determined, trajectory, call.made.step, each.because)
        for finding in said.findings:
            note(finding.rule.policy, "broken", trajectory, finding.step, finding.because)
    return found
