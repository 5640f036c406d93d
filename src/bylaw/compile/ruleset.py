"""The rules of a compile as they are now, while they are refined: tried on their cases, measured, grouped."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.bench import Bench, Case, told
from bylaw.compile.check import Check
from bylaw.compile.naming import Rules, named_apart
from bylaw.errors import BylawError
from bylaw.pack.rules import Rules as Book
from bylaw.policy.statement import Policy
from bylaw.review.case import CaseResult, run_cases
from bylaw.rule.embedding import Embedder, HashedNgrams
from bylaw.rule.structure import Likeness, cluster, rule_vagueness, vagueness

_ALIKE = 0.5
"""From which likeness two predicates are joined in the graph that is clustered."""


class Step(Struct, frozen=True):
    """What one step left: the paper's figures 4 to 6."""

    iteration: int
    stage: Literal["start", "refined", "pruned"]
    rules: int
    predicates: int
    vagueness: float
    """The mean over rules, each as vague as its vaguest predicate (the paper's Eq. 3)."""
    judged: float | None
    """The mean of what the model says of each rule's vagueness, 0 to 10; None where it was asked about none."""
    changed: int
    """Rules replaced, or predicates and rules that were merged away."""
    refused: int
    """New forms and merges that were not taken, since a case failed or they did not load."""


class Ruleset:
    """Rules by policy; a predicate has one meaning over all of them."""

    def __init__(self, bench: Bench, checks: Mapping[str, Check], embed: Embedder | None = None) -> None:
        self.bench = bench
        self.checks: dict[str, Check] = {}
        self._embed = embed or HashedNgrams()
        self._likeness = Likeness(self._embed)
        self._book: Book | None = None
        for check in checks.values():
            self.put(check)

    def put(self, check: Check) -> None:
        """Take in a policy's rules, in the place of those it had."""
        taken = {
            name: body
            for policy, other in self.checks.items()
            if policy != check.policy
            for name, body in rules_of(other)["predicates"].items()
        }
        self.checks[check.policy] = replace(check, rules=named_apart(rules_of(check), check.policy, taken))
        self._book = None

    @property
    def predicates(self) -> dict[str, Any]:
        return {name: body for check in self.checks.values() for name, body in rules_of(check)["predicates"].items()}

    @property
    def book(self) -> Book:
        if self._book is None:
            every = [rule for check in self.checks.values() for rule in rules_of(check)["rules"]]
            policies = [Policy(name, "rule", "") for name in self.checks]
            self._book = self.bench.with_rules(policies, {"predicates": self.predicates, "rules": every}).book
        return self._book

    def vagueness(self) -> dict[str, float]:
        """By policy how vague its rules are: as the vaguest predicate, among those of its type."""
        scores: dict[str, float] = {}
        for texts in self._texts():
            scores |= vagueness(texts, likeness=self._likeness)
        by_rule = rule_vagueness(self.book.every, scores)
        return {
            name: max(by_rule[str(rule["id"])] for rule in rules_of(check)["rules"])
            for name, check in self.checks.items()
        }

    def groups(self) -> list[list[str]]:
        """Predicates of one type that lie near to each other: by likeness, or since one rule has both."""
        found = [cluster(self.book.every, texts, threshold=_ALIKE, embed=self._embed) for texts in self._texts()]
        return [group for each in found for group in each.groups if len(group) > 1]

    def _texts(self) -> list[dict[str, str]]:
        """Action predicates and state predicates, in words."""
        every = self.book.predicates.items()
        return [{name: each.text for name, each in every if each.is_action is kind} for kind in (True, False)]

    def step(
        self, iteration: int, stage: Literal["start", "refined", "pruned"], changed: int = 0, refused: int = 0
    ) -> Step:
        scores = self.vagueness().values()
        mean = round(sum(scores) / len(scores), 4) if scores else 0.0
        return Step(iteration, stage, len(self.book.rules), len(self.predicates), mean, None, changed, refused)

    def tried(self, check: Check, rules: Rules) -> tuple[list[Case], list[str]]:
        """A policy's cases for new rules of it, each with the part that it is about, and what goes wrong."""
        policy = Policy(check.policy, "rule", "")
        names = [str(each["id"]) for each in rules["rules"]]
        strange = [name for name in names if name != check.policy and not name.startswith(f"{check.policy}-")]
        if not names or strange or len(set(names)) < len(names):
            wanted = f"`{check.policy}`, and for further rules `{check.policy}-2` and so on"
            return [], [f"the rules' ids must be {wanted}, each once"]
        if faults := self.bench.rule_faults([policy], rules):
            return [], faults
        cases = _undivided(check.cases)
        tried = [{**case, "rule": name} for case in cases for name in names]
        try:
            results = list(run_cases(self.bench.with_rules([policy], rules, tried))) if tried else []
        except BylawError as error:
            return [], [told(error)]
        kept: list[Case] = []
        wrong: list[str] = []
        for place, case in enumerate(cases):
            said = list(zip(names, results[place * len(names) : (place + 1) * len(names)], strict=True))
            faults = [told(result, case) for _, result in said if not isinstance(result, CaseResult)]
            broken = [
                name for name, result in said if isinstance(result, CaseResult) and result.got.startswith("broken")
            ]
            got = "broken" if broken else "kept"
            if faults or got != case["want"]:
                shown = {"events": case.get("events")}
                wrong += faults or [f"`{case.get('note', '')}`: {shown}: wanted {case['want']}, got {got}"]
            kept += [{**case, "rule": name} for name in broken or names]
        return kept, wrong


def rules_of(check: Check) -> Rules:
    """`predicates` and `rules` of a check; empty where it has none."""
    return check.rules if check.rules is not None else {"predicates": {}, "rules": []}


def _undivided(cases: Sequence[Case]) -> list[Case]:
    """Cases as they were written, where rules that were split share them."""
    found: dict[bytes, Case] = {}
    for case in cases:
        whole = {part: value for part, value in case.items() if part != "rule"}
        found.setdefault(msgspec.json.encode(cast(Any, whole), order="sorted", enc_hook=str), whole)
    return list(found.values())
