"""What a compile would ask, before anything is asked; and what came of it: what is enforced, and what is to decide."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bylaw.compile.desk import Desk
from bylaw.compile.extract import sections
from bylaw.compile.guards import TOGETHER as GUARDS_TOGETHER
from bylaw.compile.lesson import describe_weights
from bylaw.compile.pipeline import Source, Work, run
from bylaw.compile.sort import TOGETHER as SORTED_TOGETHER
from bylaw.llm.chat import Price, estimate
from bylaw.policy.yaml import read_yaml


def report_lines(
    source: Source, work: Work, made: Mapping[str, str], requests: int, out: Path
) -> tuple[list[str], bool]:
    """Lines to print, and whether every policy that can be enforced is."""
    kinds = Counter(each.kind for each in work.kinds.values())
    checks = work.checks.values()
    failed = [check for check in checks if check.failed]
    unsorted = [draft.id for draft in work.drafts if draft.id not in work.kinds]
    items = Counter(tool for each in work.kinds.values() if each.kind == "guard" for tool in each.tools)
    asked = work.questions.values()
    aside = work.second.aside if work.second is not None else {}
    dropped = [each for found in work.extractions for each in found.left_out]
    lines = [
        f"policies: {len(work.drafts)} ({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))})",
        f"with a check that passes its cases: {sum(not check.failed for check in checks)} of {len(work.checks)}",
        f"cases: {sum(len(check.cases) for check in checks)}",
        f"sentences without a policy: {len(aside)}, listed in compiled.yaml",
        f"questions for the reviewer: {sum(map(len, [*(check.questions for check in checks), *asked]))}",
        f"requests: {requests}; 4 + 11 per item, per tool, would be {sum(4 + 11 * count for count in items.values())}",
    ]
    lines += [
        f"{each.stage}, {each.iteration}: {each.rules} rules, {each.predicates} predicates, vague {each.vagueness:.2f}"
        f"{f', judged {each.judged:g} of 10' if each.judged is not None else ''}"
        f"{f'; {each.changed} changed' if each.changed else ''}{f', {each.refused} refused' if each.refused else ''}"
        for each in work.steps
    ]
    learned = read_yaml(made["compiled.yaml"], file="compiled.yaml").data.get("weights")
    lines += [describe_weights(learned)] if learned else []
    lines += [f"of the tools: {each}" for each in (work.things.misfits if work.things is not None else ())]
    lines += [f"left out: {each}" for each in dropped]
    lines += [f"unenforced: {check.policy}: {check.failed}" for check in failed]
    lines += [f"unenforced: {name}: nobody said what kind it is" for name in unsorted]
    lines.append(f"wrote {out}; next: bylaw review {out}")
    return lines, not failed and not unsorted


_POLICIES_PER_SENTENCE = 0.5
_GUARDS_PER_POLICY = 0.75
_DISPUTED = 0.4
"""The share of guards on which readings differ, so that a referee, and perhaps a repair, is asked."""


def forecast(source: Source, price: Price = Price()) -> list[str]:  # noqa: B008
    """What asking would take, in lines to print."""
    desk = Desk()
    run(desk, source, [])
    first = estimate(list(desk.wanted.values()), price)
    if source.earlier is not None:
        then = (
            "then what the policies found there need" if first.requests else "nothing has changed that is asked about"
        )
        return [f"first round, as it is: {first}", then]
    sentences = len(source.document.sentences)
    policies = max(1, round(sentences * _POLICIES_PER_SENTENCE))
    guards = max(1, round(policies * _GUARDS_PER_POLICY))
    later = {
        "uncovered sentences": len(sections(source.document)),
        "kinds and tools": -(-policies // SORTED_TOGETHER),
        "cases and guards": 3 * -(-guards // GUARDS_TOGETHER),
        "rules": 2,
        "referee and repairs": round(2 * guards * _DISPUTED),
    }
    return [
        f"the document has {sentences} sentences, the catalogue {len(source.cards)} tools",
        f"first round, as it is: {first}",
        *(f"then about {count:>3} for {what}" for what, count in later.items()),
        f"in all about {first.requests + sum(later.values())} requests for about {policies} policies",
    ]
