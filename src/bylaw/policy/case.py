"""Cases as a pack's author writes them; `engine.case` runs them."""

from typing import Any

from msgspec import UNSET, Struct

from bylaw.policy.reading import Read, Scalar, read_record
from bylaw.policy.yaml import Located

Things = dict[str, dict[str, Any] | None]
"""Records by the name of the thing, as in `Order[O1]`; None where there is no such thing."""


class WrittenEvent(Struct, frozen=True, forbid_unknown_fields=True):
    """One event of a case."""

    user: Scalar | None = None
    agent: Scalar | None = None
    call: Scalar | None = None
    args: dict[str, Any] = {}
    result: Any = UNSET
    error: bool | None = None
    turn: int | None = None


class WrittenCase(Struct, frozen=True, forbid_unknown_fields=True):
    """One case."""

    note: Scalar = ""
    policy: Scalar = ""
    rule: Scalar | None = None
    now: Scalar | None = None
    call: Things = {}
    facts: Things = {}
    world: Things | None = None
    events: list[WrittenEvent] | None = None
    context: dict[str, Any] = {}
    done: list[Things] = []
    want: Scalar | dict[str, Any] | None = None


class CasesFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of cases: a list, or under `cases:`."""

    cases: list[WrittenCase] = []


def read_case_file(source: Located) -> Read[CasesFile]:
    """The cases of a file."""
    return read_record(source.under("cases") if isinstance(source.data.get(""), list) else source, CasesFile)
