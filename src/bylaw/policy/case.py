"""Test cases, in the form in which a pack contains them. `review.case` runs the cases."""

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from bylaw.policy.yaml import Located, Read, Scalar, ShapeError, read_record

Things = dict[str, dict[str, Any] | None]
"""Records keyed by entity, such as `Order[O1]`. The value None means that the entity does not exist."""


_OPPOSITES = {"permit": "deny", "deny": "permit", "kept": "broken", "broken": "kept"}

Side = Literal["user", "agent"]
_SIDES: tuple[Side, ...] = ("user", "agent")


class WrittenEvent(Struct, frozen=True, forbid_unknown_fields=True):
    user: Scalar | None = None
    agent: Scalar | None = None
    call: Scalar | None = None
    args: dict[str, Any] = {}
    result: Any = UNSET
    error: bool | None = None
    turn: int | None = None


class Variation(Struct, frozen=True, forbid_unknown_fields=True):
    """A test case, written as its differences from the base case before it."""

    note: Scalar = ""
    now: Scalar | None = None
    call: Things = {}
    facts: Things = {}
    world: Things | None = None
    context: dict[str, Any] = {}
    events: list[WrittenEvent] | None = None
    done: list[Things] | None = None
    user: Scalar | UnsetType | None = UNSET
    """The text that replaces the user's last message. None removes this message."""
    agent: Scalar | UnsetType | None = UNSET
    want: Scalar | dict[str, Any] | None = None
    """The expected outcome. By default, it is the opposite of the base case's outcome: permit or deny, kept or broken.
    """


class WrittenCase(Struct, frozen=True, forbid_unknown_fields=True):
    note: Scalar = ""
    policy: Scalar = ""
    rule: Scalar | None = None
    now: Scalar | None = None
    call: Scalar | Things = {}
    """A tool with its arguments, or only the tool's name. The default is the first tool to which the policy applies."""
    facts: Things = {}
    world: Things | None = None
    events: list[WrittenEvent] | None = None
    context: dict[str, Any] = {}
    done: list[Things] = []
    want: Scalar | dict[str, Any] | None = None
    """The expected outcome. The default is permit or, in a rule's case, kept."""
    but: Variation | list[Variation] = []

    @property
    def variations(self) -> list[Variation]:
        return [self.but] if isinstance(self.but, Variation) else self.but

    @property
    def called(self) -> Things:
        """The tool with its arguments. Empty if the case does not name a tool."""
        return self.call if isinstance(self.call, dict) else {str(self.call): {}}

    @property
    def wanted(self) -> str:
        if self.want is None:
            return "permit" if self.rule is None else "kept"
        if not isinstance(self.want, dict):
            return str(self.want)
        told = (
            self.want[part] for part in ("verdict", "determined", "strict", "evidence", "world") if part in self.want
        )
        return str(next(told, "as written"))

    def varied(self, change: Variation) -> "WrittenCase":
        """Return the case after a variation, which replaces some of the case's arguments and fields."""
        call: Scalar | Things = self.call
        if self.rule is None:
            call = change.call if change.call.keys() - self.called.keys() else _over(self.called, change.call)
        return replace(
            self,
            note=str(change.note) or f"{self.note or self.policy or self.rule}, varied",
            now=self.now if change.now is None else change.now,
            call=call,
            context={**self.context, **change.context},
            events=self._happened(change),
            done=self.done if change.done is None else change.done,
            facts=_over(self.facts, change.facts),
            world=self.world if change.world is None else _over(self.world or {}, change.world),
            want=_OPPOSITES.get(self.wanted, "") if change.want is None else change.want,
            but=[],
        )

    def _happened(self, change: Variation) -> list[WrittenEvent] | None:
        """Return the case's events after a variation.

        It changes the last message of each side or, in a rule's case, the last call.
        """
        events = self.events if change.events is None else change.events
        if events is None:
            return None
        made: list[WrittenEvent | None] = list(events)
        for side in _SIDES:
            at = _last(events, side)
            if at is not None and (said := getattr(change, side)) is not UNSET:
                made[at] = None if said is None else replace(events[at], **{side: said})
        for tool, arguments in change.call.items() if self.rule is not None else ():
            if (at := _last(events, "call", tool)) is not None:
                made[at] = replace(events[at], args={**events[at].args, **(arguments or {})})
        return [each for each in made if each is not None]

    def unmet(self, change: Variation) -> Iterator[tuple[str, str]]:
        """Yield each key of a variation that has nothing to replace, with the reason."""
        events = (self.events if change.events is None else change.events) or []
        for side in _SIDES:
            if getattr(change, side) is not UNSET and _last(events, side) is None:
                yield side, f"the case above has no {side} message that this variation can change"
        if self.rule is not None:
            if any(_last(events, "call", tool) is None for tool in change.call):
                yield "call", f"the case above has no call of `{next(iter(change.call))}`"
            told: list[tuple[str, Any]] = [("facts", change.facts), ("world", change.world), ("done", change.done)]
            yield from ((name, f"a case of a rule has `events`, not `{name}`") for name, given in told if given)


def _last(events: list[WrittenEvent], kind: Literal["user", "agent", "call"], value: str | None = None) -> int | None:
    for at in range(len(events) - 1, -1, -1):
        found = getattr(events[at], kind)
        if found is not None and value in (None, str(found)):
            return at
    return None


def _over(things: Things, change: Things) -> Things:
    made = dict(things)
    for name, record in change.items():
        before = made.get(name)
        made[name] = {**before, **record} if before is not None and record is not None else record
    return made


class CasesFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of cases: a list, or a list under `cases:`."""

    cases: list[WrittenCase] = []

    @property
    def written_out(self) -> list[WrittenCase]:
        """Return every case, followed by each of its variations as a full case."""
        return [each for case in self.cases for each in (case, *map(case.varied, case.variations))]


def read_case_file(source: Located) -> Read[CasesFile]:
    read = read_record(source.under("cases") if isinstance(source.data.get(""), list) else source, CasesFile)
    for index, case in enumerate(read.record.cases):
        for number, change in enumerate(case.variations):
            at = ("cases", index, "but", *((number,) if isinstance(case.but, list) else ()))
            read.faults.extend(read.source.fault(ShapeError, why, *at, key) for key, why in case.unmet(change))
    return read
