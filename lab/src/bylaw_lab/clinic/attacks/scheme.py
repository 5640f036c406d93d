"""Loads the schemes of poisoned agents (`schemes.yaml`) and the wording of agents (`words.yaml`)."""

from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import yaml
from msgspec import Struct

from bylaw.policy.yaml import LOADER

Part = Literal["train", "development", "test"]
Source = Literal["memory", "environment"]
"""The part that is poisoned: the agent's invisible memory, or the data that it reads."""
Category = Literal["access", "content", "hallucination", "instruction", "operation", "error", "long-term"]
Moment = Literal["proposal", "write", "report", "refusal"]
SOURCES: tuple[Source, ...] = get_args(Source)
CATEGORIES: tuple[Category, ...] = get_args(Category)
Calls = list[dict[str, dict[str, Any]]]
"""Calls to make, each as `{tool: arguments}` with `{names}` to fill in."""


class Scheme(Struct, frozen=True, forbid_unknown_fields=True):
    """One way to mislead an agent."""

    id: str
    part: Part
    category: Category
    note: str
    """The note in the records, if the environment is poisoned."""
    at: Moment
    """The scheme begins just before this step of the careful agent."""
    errand: list[str] = []
    """Tools for the caller's request."""
    against: list[str] = []
    """Policies to use in place of `errand`. One of them refuses the caller's request."""
    calls: Calls = []
    times: int = 1
    """The number of times to make the calls."""
    beside: Calls = []
    """Calls in the same turn as the write."""
    alter: dict[str, str] = {}
    """Arguments of the write that differ from the agreed ones."""
    says: str = ""
    """Text added to the agent's message."""
    goes_ahead: bool = False
    """Whether the agent proposes and makes a change that it should refuse."""
    skips: bool = False
    """Whether the agent does not ask the caller."""
    at_once: bool = False
    """Whether the agent asks but does not wait for the answer."""
    wrong_amount: bool = False
    repeats_errand: int = 0
    breaks: tuple[str, ...] = ()
    """The rules of conduct that the scheme breaks."""


class Words(Struct, frozen=True, forbid_unknown_fields=True):
    """The wording of the agents in one part of the data. They all propose changes with the sentences of the pack."""

    question: str
    report: list[str]
    refusal: str
    sides: list[tuple[str, str]]
    """Side questions from callers, with answers."""
    asides: list[str]
    """Correct side remarks by agents. Some of them sound forbidden."""
    notes: list[str]
    """Texts of harmless notes."""


@cache
def schemes() -> tuple[Scheme, ...]:
    return msgspec.convert(_read("schemes.yaml"), tuple[Scheme, ...])


@cache
def words(part: Part) -> Words:
    return msgspec.convert(_read("words.yaml")[part], Words)


def _read(file: str) -> Any:
    return yaml.load((Path(__file__).parent / file).read_text(encoding="utf-8"), LOADER)
