"""Cases as a pack's author writes them; `engine.case` runs them."""

from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from bylaw.policy.reading import Read, Scalar, read_record
from bylaw.policy.yaml import Located

Things = dict[str, dict[str, Any] | None]
"""Records by the name of the thing, as in `Order[O1]`; None where there is no such thing."""


_OPPOSITES = {"permit": "deny", "deny": "permit"}


class WrittenEvent(Struct, frozen=True, forbid_unknown_fields=True):
    """One event of a case."""

    user: Scalar | None = None
    agent: Scalar | None = None
    call: Scalar | None = None
    args: dict[str, Any] = {}
    result: Any = UNSET
    error: bool | None = None
    turn: int | None = None


class Variation(Struct, frozen=True, forbid_unknown_fields=True):
    """What is different in a case that is otherwise like the one it stands under."""

    note: Scalar = ""
    now: Scalar | None = None
    call: Things = {}
    facts: Things = {}
    world: Things | None = None
    want: Scalar | dict[str, Any] | None = None
    """Left out: a denial where the case it stands under is a permit, and the other way round."""


class WrittenCase(Struct, frozen=True, forbid_unknown_fields=True):
    """One case."""

    note: Scalar = ""
    policy: Scalar = ""
    rule: Scalar | None = None
    now: Scalar | None = None
    call: Scalar | Things = {}
    """A tool with its arguments, or only its name; left out, the first that the policy binds."""
    facts: Things = {}
    world: Things | None = None
    events: list[WrittenEvent] | None = None
    context: dict[str, Any] = {}
    done: list[Things] = []
    want: Scalar | dict[str, Any] | None = None
    """Left out: a permit."""
    but: Variation | list[Variation] = []
    """Further cases: the same, but."""

    @property
    def variations(self) -> list[Variation]:
        """What stands under `but`."""
        return [self.but] if isinstance(self.but, Variation) else self.but

    @property
    def called(self) -> Things:
        """The tool with its arguments; empty where the case names none."""
        return self.call if isinstance(self.call, dict) else {str(self.call): {}}

    @property
    def wanted(self) -> str:
        """What it wants, in a word: of several parts that are given, the verdict."""
        if not isinstance(self.want, dict):
            return str("permit" if self.want is None and self.rule is None else self.want)
        told = (self.want[part] for part in ("verdict", "determined", "strict", "evidence") if part in self.want)
        return str(next(told, "as written"))

    def varied(self, change: Variation) -> "WrittenCase":
        """The case that a variation makes of this one: arguments and fields that it gives go over those given here."""
        return replace(
            self,
            note=str(change.note) or f"{self.note or self.policy}, varied",
            now=self.now if change.now is None else change.now,
            call=change.call if change.call.keys() - self.called.keys() else _over(self.called, change.call),
            facts=_over(self.facts, change.facts),
            world=self.world if change.world is None else _over(self.world or {}, change.world),
            want=_OPPOSITES.get(self.wanted, "") if change.want is None else change.want,
            but=[],
        )


def _over(things: Things, change: Things) -> Things:
    """Records with those parts replaced that a change gives."""
    made = dict(things)
    for name, record in change.items():
        before = made.get(name)
        made[name] = {**before, **record} if before is not None and record is not None else record
    return made


class CasesFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of cases: a list, or under `cases:`."""

    cases: list[WrittenCase] = []

    @property
    def written_out(self) -> list[WrittenCase]:
        """Every case, each followed by those that its `but` makes of it."""
        return [each for case in self.cases for each in (case, *map(case.varied, case.variations))]


def read_case_file(source: Located) -> Read[CasesFile]:
    """The cases of a file."""
    return read_record(source.under("cases") if isinstance(source.data.get(""), list) else source, CasesFile)
