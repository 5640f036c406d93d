"""Attestations: a person's answers on undecided calls, which settle them."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.rule_finding import RuleFinding
from bylaw.engine.settlement import CallVerdict, PolicyVerdict
from bylaw.engine.verdict import Reason, worst
from bylaw.errors import UsageError
from bylaw.policy.yaml import read_yaml_file

ATTESTATIONS = "attestations.yaml"
JsonRecord = dict[str, Any]


class Attestation(Struct, frozen=True):
    """A person's answer: whether the rule was followed in an undecided call."""

    finding: str
    """The call: the name of its conversation, a colon, and its step."""
    answer: Literal["fine", "wrong"]
    by: str
    on: str
    reason: str
    question: str = ""
    talk: str = ""
    """The digest of the conversation up to the call. If it has changed, the answer no longer counts."""

    @property
    def is_fine(self) -> bool:
        return self.answer == "fine"


class Settled(Struct, frozen=True):
    """What an attestation settled: a rule, or a policy with a guard, at one call."""

    step: int
    name: str
    attestation: Attestation

    def record(self) -> JsonRecord:
        """As `calls.jsonl` holds it."""
        given = self.attestation
        told: JsonRecord = {"rule": self.name, "value": given.is_fine, "by": "person", "name": given.by}
        return told | {"on": given.on, "because": given.reason}


class Attestations:
    """The answers by conversation and step; of several on one call the last counts."""

    def __init__(self, given: Iterable[Attestation] = ()) -> None:
        self._by_conversation: dict[str, dict[int, Attestation]] = {}
        for each in given:
            name, _, step = each.finding.rpartition(":")
            if step.isdigit():
                self._by_conversation.setdefault(name, {})[int(step)] = each

    def of(self, name: str, events: Sequence[JsonRecord]) -> dict[int, Attestation]:
        """The answers on calls of a conversation with these events, by step."""
        found = self._by_conversation.get(name, {})
        return {step: each for step, each in found.items() if each.talk in ("", talk_digest(events, step))}

    def __contains__(self, name: str) -> bool:
        return name in self._by_conversation


def file_beside(out: Path, name: str) -> Path:
    """A file in the current folder, else in the folder above the audit: where `bylaw view` writes it."""
    return Path(name) if Path(name).is_file() else out.resolve().parent / name


def read_attestations(path: Path) -> dict[str, Attestation]:
    """The last attestation of each call; none if there is no file."""
    return {each.finding: each for each in every_attestation(path)}


def every_attestation(path: Path) -> list[Attestation]:
    """The attestations of a file, in its order; none if there is no file."""
    if not path.is_file():
        return []
    listed = cast("list[Any]", read_yaml_file(path, file=str(path)).data.get("attestations") or [])
    try:
        return [msgspec.convert(each, Attestation, strict=False) for each in listed]
    except msgspec.ValidationError as error:
        hint = "an attestation has finding, answer (fine or wrong), by, on and reason"
        raise UsageError(f"not a valid list of attestations: {error}", place=str(path), hint=hint) from None


def talk_digest(events: Sequence[JsonRecord], step: int) -> str:
    """A digest of a conversation, from its rows, up to a call."""
    # `json`, not msgspec: it also writes texts that are not valid.
    text = json.dumps(events[: step + 1], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def settle(
    verdicts: Sequence[CallVerdict], attested: Mapping[int, Attestation]
) -> tuple[list[CallVerdict], list[RuleFinding], list[Settled]]:
    """The verdicts with what people settled, the rules that are broken by their word, and what was settled."""
    settled, broken = list[Settled](), list[RuleFinding]()
    made: list[CallVerdict] = []
    for verdict in verdicts:
        given = attested.get(verdict.made.step)
        if given is None:
            made.append(verdict)
            continue
        opened, policies = verdict.open_rules, tuple(_policy(each, given) for each in verdict.policies)
        names = [each.rule.name for each in opened]
        names += [new.policy.id for old, new in zip(verdict.policies, policies, strict=True) if new is not old]
        settled += [Settled(verdict.made.step, name, given) for name in dict.fromkeys(names)]
        wrong = () if given.is_fine else tuple(_broken(each, given) for each in opened)
        broken += wrong
        verdict = replace(verdict, policies=policies, rules=(*verdict.rules, *wrong), open_rules=())
        if policies:
            strict, determined = worst(each.strict for each in policies), worst(each.determined for each in policies)
            verdict = replace(verdict, strict=strict, determined=determined)
        made.append(verdict)
    return made, broken, settled


def _broken(finding: RuleFinding, given: Attestation) -> RuleFinding:
    """An undecided rule as one that was broken; a consent that was undecided was not given."""
    why: JsonRecord = {"reason": "person", "holds": False, "by": given.by, "words": given.reason}
    consents = {name for name, value in finding.values if value is None and name in dict(finding.whys)}
    names = consents or {next((name for name, value in finding.values if value is None), finding.values[0][0])}
    values = tuple((name, False if name in consents else value) for name, value in finding.values)
    whys = dict(finding.whys)
    for name in names:
        # The steps of the question and of the answer still lead there.
        steps = {at: step for at, step in whys.get(name, {}).items() if at in ("told_at", "answered_at")}
        whys[name] = why | steps
    return replace(finding, standing="broken", values=values, whys=tuple(whys.items()))


def _policy(verdict: PolicyVerdict, given: Attestation) -> PolicyVerdict:
    """A policy whose guard reached no verdict, with the verdict that the answer gives it."""
    if "inconclusive" not in (verdict.strict, verdict.determined):
        return verdict
    word = "compliant" if given.is_fine else "violation"
    found = {name: word for name in ("strict", "determined") if getattr(verdict, name) == "inconclusive"}
    said = "was" if given.is_fine else "was not"
    reason = Reason("person", f"a person ({given.by}) says that the policy {said} followed: {given.reason}")
    return replace(verdict, **found, reason=reason, asks=(), missing=(), depends_on_user=False)
