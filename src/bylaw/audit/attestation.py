"""Attestations: reviewers' answers that settle undecided calls."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.row import JsonRecord
from bylaw.engine.conduct import RuleFinding
from bylaw.engine.settlement import CallVerdict, PolicyVerdict
from bylaw.engine.verdict import Reason, worst
from bylaw.engine.wording import person_words
from bylaw.errors import UsageError
from bylaw.policy.yaml import read_yaml_file

ATTESTATIONS = "attestations.yaml"


class Attestation(Struct, frozen=True):
    """A reviewer's answer about an undecided call: whether the call followed a policy."""

    finding: str
    """The call that the answer is about, as `CONVERSATION:STEP`."""
    answer: Literal["fine", "wrong"]
    by: str
    on: str
    reason: str
    question: str = ""
    policy: str = ""
    seen: str = ""
    """A digest of the text that the reviewer saw. If this text has changed, the answer no longer applies."""

    @property
    def is_fine(self) -> bool:
        return self.answer == "fine"


class Settled(Struct, frozen=True):
    """A rule or a guarded policy on which a reviewer decided, for one call."""

    step: int
    name: str
    attestation: Attestation

    def record(self) -> JsonRecord:
        """Return the record for `calls.jsonl`."""
        given = self.attestation
        told: JsonRecord = {"rule": self.name, "value": given.is_fine, "by": "person", "on": given.on}
        return told | {name: text for name, text in (("name", given.by), ("because", given.reason)) if text}


def file_beside(out: Path, name: str) -> Path:
    """Return the path of a file: in the current folder if it exists there, otherwise next to the audit folder."""
    return Path(name) if Path(name).is_file() else out.resolve().parent / name


def read_attestations(path: Path) -> dict[str, Attestation]:
    """Return the latest attestation for each digest, from a file.

    Return an empty mapping if the file does not exist.
    """
    return by_digest(every_attestation(path))


def by_digest(given: Iterable[Attestation]) -> dict[str, Attestation]:
    """Return the latest attestation for each digest. Attestations without a digest are ignored."""
    return {each.seen: each for each in given if each.seen}


def every_attestation(path: Path) -> list[Attestation]:
    """Return all attestations in a file, in order. Return an empty list if the file does not exist."""
    if not path.is_file():
        return []
    listed = cast("list[Any]", read_yaml_file(path, file=str(path)).data.get("attestations") or [])
    try:
        return [msgspec.convert(each, Attestation, strict=False) for each in listed]
    except msgspec.ValidationError as error:
        hint = "an attestation needs finding, answer (fine or wrong), by, on and reason"
        raise UsageError(f"not a valid list of attestations: {error}", place=str(path), hint=hint) from None


def settle(
    verdicts: Sequence[CallVerdict], attested: Mapping[int, Mapping[str, Attestation]]
) -> tuple[list[CallVerdict], list[RuleFinding], list[Settled]]:
    """Replace undecided results with reviewers' answers, which are keyed by step and policy.

    Return the new verdicts, the rules that reviewers marked as broken, and the settled questions.
    """
    settled, broken = list[Settled](), list[RuleFinding]()
    made: list[CallVerdict] = []
    for verdict in verdicts:
        given = attested.get(verdict.made.step)
        if not given:
            made.append(verdict)
            continue
        policies = tuple(_policy(each, given.get(each.policy.id)) for each in verdict.policies)
        answered = [(each, given[each.rule.policy]) for each in verdict.open_rules if each.rule.policy in given]
        names = {each.rule.name: answer for each, answer in answered}
        for old, new in zip(verdict.policies, policies, strict=True):
            if new is not old:
                names.setdefault(new.policy.id, given[new.policy.id])
        settled += [Settled(verdict.made.step, name, answer) for name, answer in names.items()]
        wrong = tuple(_broken(each, answer) for each, answer in answered if not answer.is_fine)
        broken += wrong
        left = tuple(each for each in verdict.open_rules if each.rule.policy not in given)
        verdict = replace(verdict, policies=policies, rules=(*verdict.rules, *wrong), open_rules=left)
        if policies:
            strict, determined = worst(each.strict for each in policies), worst(each.determined for each in policies)
            verdict = replace(verdict, strict=strict, determined=determined)
        made.append(verdict)
    return made, broken, settled


def _broken(finding: RuleFinding, given: Attestation) -> RuleFinding:
    """Mark an undecided rule as broken. If its consent is undecided, mark the consent as not given."""
    why: JsonRecord = {"reason": "person", "holds": False, "by": given.by, "words": given.reason}
    consents = {name for name, value in finding.values if value is None and name in dict(finding.whys)}
    names = consents or {next((name for name, value in finding.values if value is None), finding.values[0][0])}
    values = tuple((name, False if name in consents else value) for name, value in finding.values)
    whys = dict(finding.whys)
    for name in names:
        # Keep the steps of the question and of the user's answer.
        steps = {at: step for at, step in whys.get(name, {}).items() if at in ("told_at", "answered_at")}
        whys[name] = why | steps
    return replace(finding, standing="broken", values=values, whys=tuple(whys.items()))


def _policy(verdict: PolicyVerdict, given: Attestation | None) -> PolicyVerdict:
    """Return the policy's verdict, with the reviewer's answer in place of an inconclusive verdict."""
    if given is None or "inconclusive" not in (verdict.strict, verdict.determined):
        return verdict
    word = "compliant" if given.is_fine else "violation"
    found = {name: word for name in ("strict", "determined") if getattr(verdict, name) == "inconclusive"}
    said = "was" if given.is_fine else "was not"
    reason = Reason("person", person_words(f"the policy {said} followed", given.by, given.reason))
    return replace(verdict, **found, reason=reason, asks=(), missing=(), depends_on_user=False)
