"""What came of a compile, for whoever reads on: what is enforced, what is not, and what a person has to decide."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bylaw.compile.forecast import toolguard_calls
from bylaw.compile.pipeline import Source, Work
from bylaw.compile.weights import told_weights


def told_lines(source: Source, work: Work, made: Mapping[str, str], requests: int, out: Path) -> tuple[list[str], bool]:
    """Lines to print, and whether every policy that can be enforced is."""
    kinds = Counter(each.kind for each in work.kinds.values())
    checks = work.checks.values()
    failed = [check for check in checks if check.failed]
    unsorted = [draft.id for draft in work.drafts if draft.id not in work.kinds]
    killed = sum(check.mutants[0] for check in checks)
    mutants = sum(check.mutants[1] for check in checks)
    items = Counter(tool for each in work.kinds.values() if each.kind == "guard" for tool in each.tools)
    asked = work.questions.values()
    aside = work.second.aside if work.second is not None else {}
    dropped = [each for found in work.extractions for each in found.left_out]
    lines = [
        f"policies: {len(work.drafts)} ({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))})",
        f"with a check that passes its cases: {sum(not check.failed for check in checks)} of {len(work.checks)}",
        f"cases: {sum(len(check.cases) for check in checks)}; mutants of guards that they find: {killed} of {mutants}",
        f"sentences without a policy: {len(aside)}, listed in compiled.yaml",
        f"questions for the reviewer: {sum(map(len, [*(check.questions for check in checks), *asked]))}",
        f"requests: {requests}; 4 + 11 per item, per tool, would be {toolguard_calls(dict(items))}",
    ]
    lines += [
        f"{each.stage}, {each.iteration}: {each.rules} rules, {each.predicates} predicates, vague {each.vagueness:.2f}"
        f"{f', judged {each.judged:g} of 10' if each.judged is not None else ''}"
        f"{f'; {each.changed} changed' if each.changed else ''}{f', {each.refused} refused' if each.refused else ''}"
        for each in work.steps
    ]
    lines += [told_weights(made["weights.yaml"])] if "weights.yaml" in made else []
    lines += [f"of the tools: {each}" for each in (work.things.misfits if work.things is not None else ())]
    lines += [f"left out: {each}" for each in dropped]
    lines += [f"unenforced: {check.policy}: {check.failed}" for check in failed]
    lines += [f"unenforced: {name}: nobody said what kind it is" for name in unsorted]
    lines.append(f"wrote {out}; next: bylaw review {out}")
    return lines, not failed and not unsorted
