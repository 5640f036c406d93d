"""Twins: the same request over two databases that differ in one fact, so that what is right differs."""

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from bylaw.packs.clinic.simulator.needs import refused
from bylaw.packs.clinic.simulator.tables import NOW, TODAY, Fact, stored, tables
from bylaw.packs.clinic.simulator.truth import POLICIES, policies_of
from bylaw.packs.clinic.simulator.verdict import PolicyRun, run
from bylaw.packs.clinic.simulator.wants import Clinic, Want, correct, propose
from bylaw.packs.clinic.simulator.world import PARTS as RECORD_PARTS

AMOUNTS = ("visit-copay", "specialist-copay", "late-cancel-fee")
"""Policies that refuse nothing: they say which amount goes with the call."""
TRIES = 20_000
IN_STATE: Fact = ("Request", (), "in_state")
"""What only the caller can tell."""


class Flip(NamedTuple):
    """The one fact in which twins differ."""

    fact: Fact
    value: Any


class Right(NamedTuple):
    """What the handbook says of a want: the call to make, or the one policy against it."""

    call: Want | None
    against: str
    """The policy that refuses it, or that sets another amount than the caller named; empty where none does."""


class Twins(NamedTuple):
    """A want, and the flip that changes what is right for it."""

    want: Want
    flip: Flip
    focus: str


@contextmanager
def flipped(clinic: Clinic, flip: Flip | None) -> Generator[None]:
    """The clinic with one fact changed, and afterwards as it was."""
    if flip is not None and flip.fact != IN_STATE:
        entity, key, field = flip.fact
        clinic.desk.set(entity, key, **{field: stored(tables()[entity].columns[field].type, flip.value)})
    try:
        yield
    finally:
        clinic.desk.reset()


def asked(want: Want, flip: Flip | None) -> Want:
    """The want of a caller whose own fact is flipped."""
    return Want(want.tool, want.arguments, flip.value) if flip is not None and flip.fact == IN_STATE else want


def right_for(clinic: Clinic, want: Want) -> Right | None:
    """What the handbook says of a want now; None where more than one policy speaks against it."""
    against = clinic.denied_by(want)
    if len(against) > 1:
        return None
    return Right(correct(clinic, want), against[0] if against else "")


def rights(clinic: Clinic, wants: Sequence[Want], flip: Flip | None) -> list[Right] | None:
    """What is right for wants one after the other; None where that is not clear, or the system would not do it."""
    found: list[Right] = []
    with flipped(clinic, flip):
        for want in wants:
            right = right_for(clinic, asked(want, flip))
            if right is None or (right.call is None and right.against in AMOUNTS):
                return None
            found.append(right)
            if right.call is not None and refused(clinic.desk.call(right.call.tool, right.call.arguments)):
                return None
    return found


def find(
    clinic: Clinic,
    rng: random.Random,
    focus: str,
    keeps: Callable[[Any], bool],
    *,
    patient: str = "",
    tries: int = TRIES,
) -> Twins | None:
    """A want that turns on `focus`: one flip makes that policy, and it alone, speak against it; None if not found."""
    policy = POLICIES[focus]
    for _ in range(tries):
        want = propose(clinic, rng, rng.choice(policy.tools), patient or rng.choice(clinic.patients))
        if others_deny(clinic, want, focus):
            continue
        found = run(policy, want.arguments, want.told(), clinic.read)
        if not found.permitted and focus in AMOUNTS:
            continue
        for flip in flips(clinic, rng, want, found, keeps):
            if permits(clinic, focus, want, flip) != found.permitted:
                with flipped(clinic, flip):
                    if not others_deny(clinic, asked(want, flip), focus):
                        return Twins(want, flip, focus)
    return None


def others_deny(clinic: Clinic, want: Want, focus: str) -> bool:
    """Whether some policy beside one denies a want."""
    told = want.told()
    return any(
        not run(policy, want.arguments, told, clinic.read).permitted
        for policy in policies_of(want.tool)
        if policy.id != focus
    )


def permits(clinic: Clinic, focus: str, want: Want, flip: Flip) -> bool:
    """Whether one policy permits a want with one fact flipped, without touching the database."""

    def read(fact: Fact) -> Any:
        return flip.value if fact == flip.fact else clinic.read(fact)

    return run(POLICIES[focus], want.arguments, asked(want, flip).told(), read).permitted


def flips(
    clinic: Clinic, rng: random.Random, want: Want, found: PolicyRun, keeps: Callable[[Any], bool]
) -> Iterator[Flip]:
    """Other values of what a policy looked at, in any order."""
    path = [(fact, value) for fact, value in found.path if value is not None]
    rng.shuffle(path)
    for fact, value in path:
        for other in values(clinic, rng, fact, value, keeps):
            if other != value:
                yield Flip(fact, other)
    if "slot_id" in want.arguments and want.tool == "book_visit":
        yield Flip(IN_STATE, not want.in_state)


def values(clinic: Clinic, rng: random.Random, fact: Fact, value: Any, keeps: Callable[[Any], bool]) -> list[Any]:
    """Some values that the record could hold instead."""
    entity, _, field = fact
    column = tables()[entity].columns[field]
    match column.type:
        case "boolean":
            return [not value]
        case "enum":
            return rng.sample(column.words, len(column.words))
        case "integer":
            return rng.sample(range(7), 7)
        case "money":
            return [Decimal(0), *(amount for amount in amounts(rng) if keeps(amount))]
        case "date":
            return [day for day in days(rng, field) if keeps(day)]
        case "datetime":
            times = [NOW + timedelta(minutes=15 * rng.randint(1, 240)) for _ in range(12)]
            return [time for time in times if keeps(time)]
        case "list":
            return [tuple(part for part in RECORD_PARTS if (part in value) != (part == odd)) for odd in RECORD_PARTS]
        case _ if field == "patient_id":
            return [rng.choice(clinic.patients)]
        case _ if field in ("clinician_id", "primary_clinician_id", "prescriber_id"):
            return [key for key in rng.sample(sorted(clinic.slots), 6) if key.startswith("C")]
        case _:
            return []


def amounts(rng: random.Random) -> list[Decimal]:
    """Amounts, more of them near what the handbook draws lines at."""
    near = [Decimal(rng.choice((40, 50, 100, 150, 200, 250))) + Decimal(rng.randint(-8, 8)) / 4 for _ in range(8)]
    return [*near, *(Decimal(rng.randrange(20, 1320)) / 4 for _ in range(12))]


def days(rng: random.Random, field: str) -> list[date]:
    """Days that make sense for a field."""
    match field:
        case "birth_date":
            return [date(2010, 1, 1) + timedelta(days=rng.randint(-1200, 1200)) for _ in range(8)]
        case "since":
            return [date(2024, 3, 12) + timedelta(days=rng.randint(-300, 300)) for _ in range(8)]
        case _:
            return [TODAY + timedelta(days=rng.randint(-120, 90)) for _ in range(16)]
