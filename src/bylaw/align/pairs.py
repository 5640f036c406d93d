"""Preference pairs from what an audit flags: the call as it was made, against the look-up that it lacked.

Neither side has a thought: a true one leads to the look-up and none leads to the call, so a pair with thoughts would
teach that there is one, and not which call is right.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.align.dataset import Row, write_manifest, write_rows
from bylaw.align.lesson import Turn, turns_of
from bylaw.align.output import write_call
from bylaw.align.prompt import pack_named, system_message
from bylaw.align.standing import Auditor, JudgedCalls
from bylaw.errors import BylawError, UsageError
from bylaw.pack import Criterion
from bylaw.trace.source import LogFile
from bylaw.trace.trajectory import Trajectory

FLAGGED = ("near_miss", "violation")


class Marked(Struct, frozen=True):
    """A call that an audit judged, where it was made."""

    place: str
    """Its conversation and its step."""
    verdict: str
    policies: tuple[str, ...]
    """Those that it broke, or that it met by luck."""
    prompt: tuple[dict[str, Any], ...]
    made: str
    """The call as a model writes it."""
    lacked: str = ""
    """The look-up that would have shown what was missing; empty where the audit knows none."""

    @property
    def is_flagged(self) -> bool:
        """Whether the call should not have been made there."""
        return self.verdict != "compliant"


class Pairs(Struct, frozen=True):
    """What was written."""

    pairs: int
    examples: int
    """Rows with a label, for KTO."""
    without: Mapping[str, int]
    """Flagged calls that give no pair, by verdict: no look-up would have helped."""


def marked_calls(pack: str, trajectory: Trajectory, judged: JudgedCalls) -> Iterator[Marked]:
    """The calls of a conversation that are flagged, and those that are right beyond doubt."""
    if not judged.calls:
        return
    made = list(turns_of(trajectory))
    turns = {each.span.start: turn for turn, each in enumerate(made)}
    for call in judged.calls:
        verdict = _verdict(call, judged.criterion)
        turn = turns.get(call["step"])
        if verdict is None or turn is None or made[turn].call is None:
            continue
        against = [each for each in call["policies"] if each[judged.criterion] in FLAGGED]
        broken = [*(each["id"] for each in against), *(each["rule"] for each in call["rules"])]
        yield Marked(
            f"{trajectory.id}@{call['step']}",
            verdict,
            tuple(broken),
            tuple(_prompt(system_message(pack, "none"), made, turn)),
            made[turn].answer,
            _lacked(against, judged.criterion) if verdict in FLAGGED else "",
        )


def _prompt(system: str, made: Sequence[Turn], upto: int) -> Iterator[dict[str, Any]]:
    """The conversation before a turn, as chat messages."""
    yield {"role": "system", "content": system}
    for turn, each in enumerate(made[: upto + 1]):
        yield from ({"role": role, "content": content} for role, content in each.heard)
        if turn < upto:
            yield {"role": "assistant", "content": each.answer}


def _verdict(call: Mapping[str, Any], criterion: Criterion) -> str | None:
    """What a call is: flagged by a guard, flagged by a rule, right; None where something is open."""
    verdict = call[criterion]
    if verdict in FLAGGED:
        return verdict
    if call["rules"]:
        return "rule"
    return "compliant" if verdict == "compliant" and not call["open_rules"] else None


def _lacked(against: Iterable[Mapping[str, Any]], criterion: Criterion) -> str:
    """The first look-up that was missing and whose arguments are known."""
    for policy in against:
        for missing in policy["missing"]:
            look_up = missing["lookup"]
            is_needed = missing["decisive"] or criterion == "strict"
            if is_needed and look_up is not None and None not in look_up["args"].values():
                return write_call(look_up["tool"], look_up["args"])
    return ""


def pair_row(marked: Marked) -> Row:
    """A row for DPO, as TRL reads it."""
    return {
        "prompt": list(marked.prompt),
        "chosen": [{"role": "assistant", "content": marked.lacked}],
        "rejected": [{"role": "assistant", "content": marked.made}],
        "id": marked.place,
        "verdict": marked.verdict,
        "policies": list(marked.policies),
    }


def example_rows(marked: Marked) -> list[Row]:
    """Rows for KTO: the call, with what it was worth, and the look-up in its place."""
    said = [(marked.made, not marked.is_flagged), *([(marked.lacked, True)] if marked.lacked else [])]
    return [
        {
            "prompt": list(marked.prompt),
            "completion": [{"role": "assistant", "content": text}],
            "label": label,
            "id": marked.place,
        }
        for text, label in said
    ]


def write_pairs(
    pack: str,
    out: Path,
    logs: Iterable[tuple[LogFile, Trajectory | BylawError]],
    auditor: Auditor,
    *,
    command: str = "",
) -> Pairs:
    """`dpo.jsonl`, `kto.jsonl` and `data.json`, from recorded conversations and the audit of them."""
    found = [
        marked
        for file, each in logs
        if not isinstance(each, BylawError)
        for marked in marked_calls(pack, each, auditor.judged(each, file))
    ]
    pairs = [pair_row(each) for each in found if each.lacked]
    if not any(each.is_flagged for each in found):
        raise UsageError("the audit flagged no call, so there are no pairs", hint="see `bylaw audit`")
    examples = [row for each in found for row in example_rows(each)]
    out.mkdir(parents=True, exist_ok=True)
    write_rows(out / "dpo.jsonl", pairs)
    write_rows(out / "kto.jsonl", examples)
    write_manifest(out, pack, pack_named(pack), command, ("dpo", "kto"))
    without = Counter(each.verdict for each in found if each.is_flagged and not each.lacked)
    return Pairs(len(pairs), len(examples), without)
