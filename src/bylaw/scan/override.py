"""A file of effects: what a scan guessed, for a person to correct and hand back."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import yaml

from bylaw.errors import PackError, UsageError
from bylaw.policy.tool import Effect
from bylaw.policy.yaml import read_yaml_file
from bylaw.scan.effect import EFFECTS, Guess


def read_effects(path: Path) -> dict[str, Effect]:
    """The effects a person gave, by tool; every fault of the file is reported together."""
    located = read_yaml_file(path)
    given: Any = located.data.get("effects")
    if not isinstance(given, dict):
        raise UsageError("no `effects:` in the file", place=str(path), hint="write one with --write-effects")
    effects: dict[str, Effect] = {}
    faults: list[UsageError] = []
    for tool, effect in cast("dict[str, Any]", given).items():
        if effect in EFFECTS:
            effects[tool] = effect
        else:
            place = located.place("effects", tool)
            faults.append(UsageError(f"`{effect}` is not an effect", place=place, hint="use read, write or none"))
    if faults:
        raise PackError(faults, place=str(path))
    return effects


def effects_file(guesses: Iterable[Guess]) -> str:
    """The text of an effects file: each guess, with how sure it is and why."""
    lines = ["# Guessed by `bylaw scan`. Correct what is wrong and pass it back with --effects.", "effects:"]
    for guess in guesses:
        name = yaml.safe_dump(guess.tool, width=10_000, default_style='"' if _needs_quotes(guess.tool) else None)
        why = " ".join("; ".join(guess.why).split())
        lines.append(f"  {name.splitlines()[0]}: {guess.effect}  # {guess.sure:.0%}: {why}")
    return "\n".join(lines) + "\n"


def _needs_quotes(name: str) -> bool:
    return not name.replace("_", "").replace("-", "").isalnum() or name.isdigit()
