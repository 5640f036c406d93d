"""Guesses a tool's effect from the tool's name, definition and results.

Each piece of evidence adds weight to one effect. The guess is the effect with the most weight, and its lead over the
other effects is the confidence. A tool without evidence is assumed to write, so that no write is missed. A reviewer
can correct the guesses in a file.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from bylaw.errors import PackError, UsageError
from bylaw.policy.tool import Effect
from bylaw.policy.verb import VERBS, hands_over, words_of
from bylaw.policy.yaml import read_record, read_yaml_file
from bylaw.scan import written

EffectHint = tuple[Effect, float, str]
"""Evidence: an effect, its weight, and a description."""
EFFECTS: tuple[Effect, ...] = ("read", "write", "none")


class Guess(Struct, frozen=True):
    tool: str
    effect: Effect
    sure: float
    """The confidence, a number from 0 to 1. It is 1 only if a reviewer set the effect."""
    why: tuple[str, ...]
    calls: int = 0
    refused: int = 0
    trajectories: int = 0
    declaration: str = ""
    """A line for tools.yaml that declares the most frequent error of a write, if the logs do not flag this error."""


class Behaviour:
    def __init__(self) -> None:
        self.calls = 0
        self.trajectories = 0
        self.refused = 0
        self.unflagged: Counter[str] = Counter()
        """Declarations for results that look like errors but that the logs do not flag as errors."""
        self.same = 0
        """The number of repeated calls whose result did not change."""
        self.changed = 0
        """How often another tool's result changed after a call of this tool. The two calls must share a value."""
        self.unchanged = 0
        self.empty = 0
        self.definitions: set[tuple[EffectHint, ...]] = set()
        """Evidence from each recorded definition of the tool. Most tools have only one definition."""


def guess(tool: str, behaviour: Behaviour, override: Effect | None = None) -> Guess:
    counts = (behaviour.calls, behaviour.refused, behaviour.trajectories)
    declaration = min(behaviour.unflagged.items(), key=lambda each: (-each[1], each[0]), default=("", 0))[0]
    if override is not None:
        return Guess(tool, override, 1.0, ("you said so",), *counts, declaration if override == "write" else "")
    evidence = [*by_name(tool)]
    for pieces in sorted(behaviour.definitions):
        evidence += pieces
    evidence += _by_behaviour(behaviour, leans=weigh(evidence)[0])
    effect, sure = weigh(evidence)
    why = tuple(dict.fromkeys(text for side, _, text in evidence if side == effect))
    against = tuple(dict.fromkeys(f"but {text}" for side, _, text in evidence if side != effect))
    why = why + against or ("no evidence; assumed to write",)
    return Guess(tool, effect, sure, why, *counts, declaration if effect == "write" else "")


def weigh(evidence: Iterable[EffectHint]) -> tuple[Effect, float]:
    """Return the effect with the most weight, and the confidence in it."""
    score: dict[Effect, float] = {"read": 0.0, "write": 0.1, "none": -0.7}
    for side, weight, _ in evidence:
        score[side] += weight
    total = sum(math.exp(value) for value in score.values())
    best = max(EFFECTS, key=lambda effect: score[effect])
    return best, min(0.99, round(math.exp(score[best]) / total, 2))


def by_name(tool: str) -> list[EffectHint]:
    """Return the evidence from the first verb in a tool's name that is known."""
    if hands_over(tool):
        return [("none", 3.0, "its name suggests a handover to a person")]
    for position, word in enumerate(words_of(tool)):
        effect = VERBS.get(word)
        if effect is not None:
            return [(effect, 3.0 if position == 0 else 2.0, f"`{word}` in its name")]
    return []


def by_definition(definition: Mapping[str, Any]) -> tuple[EffectHint, ...]:
    """Return the evidence from a recorded definition: MCP's hints, and the first verb of the description."""
    body = _mapping(definition.get("function")) or definition
    hints = _mapping(definition.get("annotations")) or _mapping(body.get("annotations"))
    evidence: list[EffectHint] = []
    if hints.get("readOnlyHint") is True:
        evidence.append(("read", 4.0, "readOnlyHint: true"))
    elif hints.get("destructiveHint") is True:
        evidence.append(("write", 4.0, "destructiveHint: true"))
    elif hints.get("readOnlyHint") is False:
        evidence.append(("write", 3.0, "readOnlyHint: false"))
    description = body.get("description")
    for word in words_of(description[:80])[:3] if isinstance(description, str) else ():
        effect = VERBS.get(word) or VERBS.get(word.removesuffix("s")) or VERBS.get(word.removesuffix("es"))
        if effect is not None:
            evidence.append((effect, 1.5, f"`{word}` in its description"))
            break
    return tuple(evidence)


def defined_name(definition: Mapping[str, Any]) -> str:
    """Return the name of a tool from its definition, which may be wrapped in a function definition."""
    name = (_mapping(definition.get("function")) or definition).get("name")
    return name if isinstance(name, str) else ""


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _by_behaviour(seen: Behaviour, *, leans: Effect) -> list[EffectHint]:
    evidence: list[EffectHint] = []
    if seen.changed:
        share = seen.changed / (seen.changed + seen.unchanged)
        of = f"{seen.changed} of {seen.changed + seen.unchanged}"
        evidence.append(
            ("write", min(3.0, seen.changed) * share, f"a look-up after this call gave a different result, {of} times")
        )
    if seen.same and leans != "none":  # Repeated calculations also return the same result.
        evidence.append(("read", min(1.0, 0.2 * seen.same), f"the same call gave the same result, {seen.same} times"))
    answered = max(1, seen.calls - seen.refused)
    if seen.empty * 2 > answered:
        evidence.append(("write", 0.3, "its results are empty"))
    return evidence


def may_write(tool: str, known: Mapping[str, Effect], definitions: Mapping[str, tuple[EffectHint, ...]]) -> bool:
    """Whether a call may be a write.

    Only its own conversation is considered, so the order of conversations does not matter.
    """
    if tool in known:
        return known[tool] == "write"
    return weigh([*by_name(tool), *definitions.get(tool, ())])[0] == "write"


class EffectsFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The file that the option `--write-effects` writes."""

    effects: dict[str, Effect] = {}


def read_effects(path: Path) -> dict[str, Effect]:
    """Read the effects that a reviewer set, keyed by tool. All errors in the file are reported together."""
    read = read_record(read_yaml_file(path), EffectsFile)
    if read.faults:
        raise PackError(read.faults, place=str(path))
    if not read.record.effects:
        raise UsageError("the file has no `effects:`", place=str(path), hint="create one with --write-effects")
    return read.record.effects


def effects_file(guesses: Iterable[Guess]) -> str:
    """Return the content of an effects file: each guess, with its confidence and the reasons for it."""
    lines = ["# Inferred by `bylaw scan`. Correct this file and pass it back with --effects.", "effects:"]
    for guess in guesses:
        why = written.remark("; ".join(guess.why))
        lines.append(f"  {written.word(guess.tool)}: {guess.effect}  # {guess.sure:.0%}: {why}")
    return "\n".join(lines) + "\n"
