"""Estimates the cost of a compile, and summarises the result from the pack's files."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bylaw.compile.assemble import count, unenforced
from bylaw.compile.desk import Desk
from bylaw.compile.extract import sections
from bylaw.compile.guards import TOGETHER as GUARDS_TOGETHER
from bylaw.compile.items import read_items
from bylaw.compile.lesson import describe_weights
from bylaw.compile.pipeline import Source, Work, run
from bylaw.compile.sort import TOGETHER as SORTED_TOGETHER
from bylaw.llm.chat import Price, estimate
from bylaw.pack.review import COMPILED
from bylaw.policy.yaml import read_yaml


def report_lines(work: Work, made: Mapping[str, str], requests: int, out: Path) -> list[str]:
    """Summarise the result of a compile in a few lines."""
    paths = [path for path in made if path.startswith(("policies.yaml", "cases/"))]
    items = [pair for path in paths for pair in read_items(path, made[path]).items()]
    bodies = [body for key, body in items if key[:2] == ("policies.yaml", "policies")]
    noted = read_yaml(made[COMPILED], file=COMPILED).data
    kinds = Counter(str(body.get("kind", "guard")) for body in bodies)
    enforceable = kinds["guard"] + kinds["rule"]
    without = {name: body for name, body in unenforced(made).items() if body.get("kind", "guard") in ("guard", "rule")}
    unheld = [name for name, body in without.items() if "unenforced" not in body]
    lines = [
        f"policies: {len(bodies)} ({', '.join(f'{count} {kind}' for kind, count in sorted(kinds.items()))})",
        f"with a check: {enforceable - len(without)} of {enforceable}",
        f"cases: {count(body for key, body in items if key[0] == 'cases')}",
        f"sentences without a policy: {len(noted['sentences_without_policy'])}, listed in {COMPILED}",
        f"questions for the reviewer: {sum(len(each.get('questions', ())) for each in noted['policies'].values())}",
        f"requests: {requests}",
    ]
    lines += [
        f"{each.stage}, {each.iteration}: {each.rules} rules, {each.predicates} predicates, vague {each.vagueness:.2f}"
        f"{f', judged {each.judged:g} of 10' if each.judged is not None else ''}"
        f"{f'; {each.changed} changed' if each.changed else ''}{f', {each.refused} refused' if each.refused else ''}"
        for each in work.steps
    ]
    lines += [describe_weights(noted["weights"])] if "weights" in noted else []
    lines += [f"about the tools: {each}" for each in noted.get("of_the_tools", ())]
    lines += [f"left out: {each}" for each in noted["left_out"]]
    for name in unheld:
        why = noted["policies"].get(name, {}).get("failed", "the model never stated what kind of policy this is")
        lines.append(f"unenforced: {name}: {why}")
    lines.append(f"wrote {out}; next: bylaw review {out}")
    return lines


_POLICIES_PER_SENTENCE = 0.8
_GUARDS_PER_POLICY = 0.75
_DISPUTED = 0.2
"""The typical share of guards that need a referee or a repair."""


def forecast(source: Source, price: Price = Price()) -> list[str]:  # noqa: B008
    """Return an estimate of the number and cost of the questions, in a few lines."""
    desk = Desk()
    run(desk, source, [])
    first = estimate(list(desk.wanted.values()), price)
    if source.earlier is not None:
        then = "then requests for the policies found there" if first.requests else "no change needs a request"
        return [f"first round: {first}", then]
    sentences = len(source.document.sentences)
    policies = max(1, round(sentences * _POLICIES_PER_SENTENCE))
    guards = max(1, round(policies * _GUARDS_PER_POLICY))
    later = {
        "uncovered sentences": -(-len(sections(source.document)) // 2),
        "kinds and tools": -(-policies // SORTED_TOGETHER),
        "cases and guards": 3 * -(-guards // GUARDS_TOGETHER),
        "rules": 2 + source.refinements,
        "referee and repairs": round(guards * _DISPUTED),
    }
    told = f"{policies} polic{'y' if policies == 1 else 'ies'}"
    return [
        f"document: {sentences} sentences; catalogue: {len(source.cards)} tools",
        f"first round: {first}",
        *(f"then about {count:>3} for {what}" for what, count in later.items()),
        f"about {first.requests + sum(later.values())} requests in all, for about {told}",
    ]
