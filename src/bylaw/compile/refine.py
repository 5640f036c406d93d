"""Rules made verifiable and free of doubles: ShieldAgent's Algorithm 2, over the rules of a compile.

Rules wait in a heap, the vaguest first. Each is asked about, and replaced where its new form loads and passes the
policy's cases; it is refined further only while that makes it less vague, or one gap after another would be found in
a pattern and no end. Then predicates that lie near to each other are asked about, and merged where every rule still
passes. This goes on until nothing changes or the budget ends. What each step left is recorded.
"""

import heapq
from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.bench import Bench
from bylaw.compile.check import Check, Question
from bylaw.compile.context import told_catalogue
from bylaw.compile.desk import Desk, Outcome, Unanswered, render, stage
from bylaw.compile.extract import Draft
from bylaw.compile.naming import Rules
from bylaw.compile.prune import prune
from bylaw.compile.ruleset import Ruleset, Step, rules_of
from bylaw.compile.sort import told as told_policy
from bylaw.llm.chat import unfenced
from bylaw.policy.yaml import YamlError, read_yaml
from bylaw.rule.embedding import Embedder
from bylaw.scan.written import dump

ITERATIONS = 5
_ROUNDS = 2


class Refined(Struct, frozen=True):
    """The checks in the end, and how they came about."""

    checks: dict[str, Check]
    steps: tuple[Step, ...]
    judged: dict[str, float]
    """By form, as YAML, how vague the model calls it."""


class Reply(Struct, frozen=True):
    """What an answer says of a rule."""

    rules: Rules | None = None
    """Its new form; None where it is to stay as it is."""
    cases: tuple[dict[str, Any], ...] = ()
    why: str = ""
    vagueness: float | None = None


@stage
def refine(
    desk: Desk,
    bench: Bench,
    checks: Mapping[str, Check],
    drafts: Sequence[Draft],
    general: str,
    *,
    budget: int,
    embed: Embedder | None = None,
    rounds: int = ITERATIONS,
) -> Refined:
    """Refine the rules among the checks, in so many rounds at most."""
    own = {name: check for name, check in checks.items() if check.rules is not None and not check.failed}
    told = {draft.id: told_policy(draft) for draft in drafts}
    work = _Refinement(desk, Ruleset(bench, own, embed), told, general, budget)
    if not own:
        return Refined(dict(checks), (), {})
    work.run(rounds)
    return Refined({**checks, **work.rules.checks}, tuple(work.judged_steps()), work.judged)


class _Refinement:
    """One run of the loop."""

    def __init__(self, desk: Desk, rules: Ruleset, told: Mapping[str, str], general: str, budget: int) -> None:
        self.rules = rules
        self._desk = desk
        self._told = told
        self._general = general
        self._left = budget
        self._heap: list[tuple[float, str]] = []
        self._forms = {name: {dump(rules_of(check))} for name, check in rules.checks.items()}
        """By policy every form that its rules have had: going back to one is no refinement."""
        self.judged: dict[str, float] = {}
        """By form how vague the model calls it."""
        self._replaced: dict[str, tuple[float | None, float]] = {}
        """By policy how vague the form was that the present one stands for: as the model calls it, and by Eq. 3."""
        self._steps: list[tuple[Step, list[str]]] = []

    def run(self, rounds: int) -> None:
        """Refine and prune, until nothing changes or the budget ends."""
        self._push(self.rules.checks)
        self._note(self.rules.step(0, "start"))
        for iteration in range(1, rounds + 1):
            done = self._refine_all()
            self._note(self.rules.step(iteration, "refined", *done))
            pruned = prune(self._desk, self.rules)
            self._note(self.rules.step(iteration, "pruned", len(pruned.gone), pruned.refused))
            self._push(sorted(pruned.touched))
            if not done[0] and not pruned.gone:
                break

    def judged_steps(self) -> list[Step]:
        """The steps, with what the model said of the forms that there were."""
        made: list[Step] = []
        for step, forms in self._steps:
            scores = [self.judged[form] for form in forms if form in self.judged]
            made.append(replace(step, judged=round(sum(scores) / len(scores), 2) if scores else None))
        return made

    def _note(self, step: Step) -> None:
        self._steps.append((step, [dump(rules_of(check)) for check in self.rules.checks.values()]))

    def _push(self, names: "Sequence[str] | Mapping[str, Check]") -> None:
        scores = self.rules.vagueness()
        for name in names:
            heapq.heappush(self._heap, (-scores[name], name))

    def _refine_all(self) -> tuple[int, int]:
        """How many rules were replaced, and how many new forms were not taken."""
        refined = refused = missing = 0
        while self._heap and self._left > missing:
            _, name = heapq.heappop(self._heap)
            try:
                outcome = self._asked(name)
            except Unanswered:
                # What is asked of the others does not hang on this one: all are asked at once.
                missing += 1
                continue
            reply, check = outcome.made, self.rules.checks[name]
            if reply.vagueness is not None:
                self.judged[dump(rules_of(check))] = reply.vagueness
            complaint = outcome.complaints[0] if outcome.complaints else self._needless(name, reply)
            if complaint:
                text = f"{reply.why}: {complaint}" if reply.why else complaint
                question = Question("a refinement that was not taken", text, reply.rules)
                self.rules.checks[name] = replace(check, questions=(*check.questions, question))
                refused += 1
            elif reply.rules is not None:
                question = Question("a rule that was refined", reply.why, {"before": rules_of(check)})
                made = replace(check, rules=reply.rules, cases=reply.cases, questions=(*check.questions, question))
                self._replaced[name] = (reply.vagueness, self.rules.vagueness()[name])
                self.rules.put(made)
                self._forms[name].add(dump(rules_of(self.rules.checks[name])))
                self._push([name])
                self._left, refined = self._left - 1, refined + 1
        if missing:
            raise Unanswered
        return refined, refused

    def _needless(self, name: str, reply: Reply) -> str:
        """Why a rule is not refined again: its last refinement made it no less vague."""
        if reply.rules is None or name not in self._replaced:
            return ""
        called, measured = self._replaced[name]
        if called is not None and reply.vagueness is not None:
            before, now = called, reply.vagueness
        else:
            before, now = round(measured, 2), round(self.rules.vagueness()[name], 2)
        return "" if now < before else f"its last refinement made it no less vague ({before:g} before, {now:g} now)"

    def _asked(self, name: str) -> Outcome[Reply]:
        """What is said of one policy's rules, with a second try where a case fails."""
        check = self.rules.checks[name]
        shown = {
            "tools": told_catalogue(self.rules.bench.cards, self._told[name]),
            "general": self._general,
            "policy": self._told[name],
            "rule": dump(rules_of(check)),
        }
        return self._desk.converse(render("refine", shown), lambda text: self._read(check, text), rounds=_ROUNDS)

    def _read(self, check: Check, text: str) -> tuple[Reply, list[str]]:
        try:
            data = read_yaml(unfenced(text), file="answer").data
        except YamlError as error:
            return Reply(), [f"not the YAML asked for: {error}"]
        score = data.get("vagueness")
        vague = float(score) if isinstance(score, int | float) and 0 <= score <= 10 else None
        listed = data.get("rules")
        if data.get("verifiable") is True:
            return Reply(vagueness=vague), []
        if data.get("verifiable") is not False or not isinstance(listed, list):
            return Reply(vagueness=vague), ["`verifiable` must be true, or false with `predicates` and `rules`"]
        records = [cast(dict[str, Any], each) for each in cast(list[Any], listed) if isinstance(each, dict)]
        rules = [
            {"id": str(each.get("id")), "policy": check.policy, "formula": each.get("formula")} for each in records
        ]
        if len(rules) == 1:
            rules = [{"id": check.policy, "formula": rules[0]["formula"]}]
        made: Rules = {"predicates": data.get("predicates") or {}, "rules": rules}
        if dump(made) in self._forms[check.policy]:
            return Reply(vagueness=vague), []
        cases, wrong = self.rules.tried(check, made)
        return Reply(made, tuple(cases), str(data.get("why", "")), vague), wrong
