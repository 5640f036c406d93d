"""Whether a pack is sound: its cases, the branches they take, its rules among each other, the sentences it covers."""

from typing import Any

import msgspec
from msgspec import Struct

from bylaw.errors import BylawError
from bylaw.pack import Pack
from bylaw.pack.review import Standing
from bylaw.pack.statements import Ambiguous
from bylaw.review.case import CaseResult, run_cases, untested
from bylaw.review.coverage import Covered, covered_sentences
from bylaw.rule.lint import LintFinding, lint


class Untaken(Struct, frozen=True):
    """A branch of a guard that no case takes."""

    policy: str
    file: str
    line: int
    kind: str


class CheckReport(Struct, frozen=True):
    """What a check of one pack found."""

    pack: str
    version: str
    digest: str
    cases: tuple[CaseResult, ...]
    faults: tuple[BylawError, ...]
    """Cases that cannot be run as they are written."""
    untested: tuple[str, ...]
    """Guards that lack a case that permits or one that denies."""
    branches: int
    untaken: tuple[Untaken, ...]
    rules: int
    conflicts: tuple[LintFinding, ...]
    """Rules that contradict, repeat or block one another."""
    sentences: tuple[Covered, ...]
    """Every sentence of the document; none where it is not at hand."""
    unenforced: tuple[tuple[str, str, str], ...]
    """Policies that nothing enforces: id, reason, who accepted it."""
    stale: tuple[str, ...]
    """Policies whose sentence no longer stands in the document."""
    unaccepted: tuple[tuple[str, Standing], ...] = ()
    """Policies that a review keeps from being enforced, and how they stand."""
    ambiguous: tuple[Ambiguous, ...] = ()
    """Quotes that stand in sentences that differ. All count as meant, which may be right: no fault."""
    lost: tuple[BylawError, ...] = ()
    """What policies cite and the document that was given does not say, each at its line."""
    unsaid: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Writes of which the pack does not say what they change, with the kinds of things that they are taken to
    change beside whatever their arguments name; none where there are no things that they could change."""
    unread: tuple[str, ...] = ()
    """Predicates for which no yes in words counts: no tool is `put_as` anything, and no model may settle it."""
    disarmed: tuple[tuple[str, float], ...] = ()
    """Rules whose weight is too light to deny a call on their own, with the weight."""

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """The cases that do not come out as they want."""
        return tuple(case for case in self.cases if not case.passed)

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found that has to be mended."""
        return not (self.faults or self.failed or self.untested or self.conflicts or self.stale)

    def record(self) -> dict[str, Any]:
        return {
            "pack": self.pack,
            "version": self.version,
            "digest": self.digest,
            "sound": self.is_sound,
            "cases": [
                {name: getattr(case, name) for name in ("place", "policy", "note", "want", "got", "passed")}
                for case in self.cases
            ],
            "faults": [
                {"code": fault.code, "place": fault.place, "message": fault.message, "hint": fault.hint}
                for fault in self.faults
            ],
            "untested": list(self.untested),
            "branches": {"all": self.branches, "taken": self.branches - len(self.untaken)},
            "untaken": [
                {"policy": branch.policy, "place": f"{branch.file}:{branch.line}", "branch": branch.kind}
                for branch in self.untaken
            ],
            "rules": self.rules,
            "conflicts": [{"kind": found.kind, "message": found.message} for found in self.conflicts],
            "sentences": [
                {
                    "document": covered.document,
                    "line": covered.sentence.line,
                    "text": covered.sentence.text,
                    "state": covered.state,
                    "policies": [policy.id for policy in covered.policies],
                }
                for covered in self.sentences
            ],
            "unenforced": [{"policy": name, "reason": why, "accepted_by": who} for name, why, who in self.unenforced],
            "stale": list(self.stale),
            "unaccepted": dict(self.unaccepted),
            "lost": [{"place": each.place, "message": each.message, "hint": each.hint} for each in self.lost],
            "unsaid": {tool: list(kinds) for tool, kinds in self.unsaid},
            "unread": list(self.unread),
            "disarmed": dict(self.disarmed),
            "ambiguous": [msgspec.to_builtins(each) for each in self.ambiguous],
        }

    def __repr__(self) -> str:
        state = "sound" if self.is_sound else "not sound"
        right = len(self.cases) - len(self.failed)
        return f"<check of {self.pack} {self.version}: {state}, {right} of {len(self.cases)} cases pass>"


def check(pack: Pack) -> CheckReport:
    """Run every case of a pack, and look for what nothing tests, covers or can keep."""
    taken: dict[str, set[int]] = {}
    results = list(run_cases(pack, taken))
    cases = tuple(result for result in results if isinstance(result, CaseResult))
    ways = [name for name, predicate in pack.book.predicates.items() if predicate.way]
    words = [each for each in pack.book.predicates.values() if each.consent in ("told", "requested")]
    return CheckReport(
        pack.name,
        pack.version,
        pack.digest,
        cases,
        tuple(result for result in results if isinstance(result, BylawError)),
        tuple(untested(cases, pack)),
        sum(len(guard.branches) for guard in pack.guards.values()),
        tuple(
            Untaken(name, guard.file, branch.line, branch.kind)
            for name, guard in pack.guards.items()
            for index, branch in enumerate(guard.branches)
            if index not in taken.get(name, ())
        ),
        len(pack.book.rules),
        tuple(lint(pack.book.rules, actions=pack.book.actions, ways=ways)) if pack.book.rules else (),
        tuple(covered_sentences(pack)),
        tuple(
            (policy.id, policy.unenforced.reason, policy.unenforced.accepted_by)
            for policy in pack.policies.values()
            if policy.unenforced is not None
        ),
        pack.stale,
        tuple(pack.unaccepted.items()),
        pack.ambiguous,
        pack.lost,
        tuple(
            (tool.name, tuple(change.entity for change in pack.schema.changes[tool.name]))
            for tool in pack.schema.tools.values()
            if tool.is_unsaid and not all(entity.is_always_there for entity in pack.schema.entities.values())
        ),
        ()
        if any(tool.put_as for tool in pack.schema.tools.values())
        else tuple(each.name for each in words if not each.model_settles),
        tuple((rule.name, rule.weight) for rule in pack.book.disarmed),
    )
