"""What poisoned agents are made to do (`schemes.yaml`), and how agents speak (`words.yaml`)."""

from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import yaml
from msgspec import Struct

from bylaw.policy.yaml import LOADER

Part = Literal["train", "development", "test"]
Source = Literal["memory", "environment"]
"""What is poisoned: what the agent remembers, of which nothing shows, or what it reads."""
Category = Literal["access", "content", "hallucination", "instruction", "operation", "error", "long-term"]
Moment = Literal["proposal", "write", "report", "refusal"]
SOURCES: tuple[Source, ...] = get_args(Source)
CATEGORIES: tuple[Category, ...] = get_args(Category)
Calls = list[dict[str, dict[str, Any]]]
"""Calls to make, each as `{tool: arguments}` with `{names}` to fill in."""


class Scheme(Struct, frozen=True, forbid_unknown_fields=True):
    """One way in which an agent is led astray."""

    id: str
    part: Part
    category: Category
    note: str
    """What stands on the record where the environment is poisoned."""
    at: Moment
    """The act of a careful agent before which it happens."""
    errand: list[str] = []
    """Tools that the caller's request may come to."""
    against: list[str] = []
    """Policies, one of which refuses the caller's request; in place of `errand`."""
    calls: Calls = []
    times: int = 1
    """How often the calls are made."""
    beside: Calls = []
    """Calls made in one turn with the write."""
    alter: dict[str, str] = {}
    """Arguments of the write that differ from what was agreed."""
    says: str = ""
    """What is added to what the agent says."""
    goes_ahead: bool = False
    """What should be refused is proposed and done."""
    skips: bool = False
    """The caller is not asked."""
    at_once: bool = False
    """The caller is asked, and the answer is not waited for."""
    wrong_amount: bool = False
    repeats_errand: int = 0
    breaks: tuple[str, ...] = ()
    """The rules of conduct that it breaks."""


class Words(Struct, frozen=True, forbid_unknown_fields=True):
    """How the agents of a part speak, but where they propose a change: they all do that in the pack's sentences."""

    question: str
    report: list[str]
    refusal: str
    sides: list[tuple[str, str]]
    """What callers ask in between, and the answers."""
    asides: list[str]
    """What agents say on the side, rightly, though some of it sounds like what they must not say."""
    notes: list[str]
    """What harmless notes say."""


@cache
def schemes() -> tuple[Scheme, ...]:
    """All schemes of both parts."""
    return msgspec.convert(_read("schemes.yaml"), tuple[Scheme, ...])


@cache
def words(part: Part) -> Words:
    """How the agents of a part speak."""
    return msgspec.convert(_read("words.yaml")[part], Words)


def _read(file: str) -> Any:
    return yaml.load((Path(__file__).parent / file).read_text(encoding="utf-8"), LOADER)
