"""Twins: the same request on two databases that differ in one fact, so that different calls or refusals are right."""

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from bylaw_lab.clinic.simulator.dialogue import in_words, say_amount
from bylaw_lab.clinic.simulator.evidence import Absent
from bylaw_lab.clinic.simulator.needs import refused
from bylaw_lab.clinic.simulator.tables import NOW, TODAY, Fact, Key, stored, tables
from bylaw_lab.clinic.simulator.truth import POLICIES, policies_of
from bylaw_lab.clinic.simulator.verdict import PolicyRun, run
from bylaw_lab.clinic.simulator.wants import Clinic, Want, correct, propose
from bylaw_lab.clinic.simulator.world import PARTS as RECORD_PARTS
from bylaw_lab.clinic.tasks.parts import Part, phrases
from bylaw_lab.clinic.tasks.scenario import Errand, Rows, Scenario

AMOUNTS = ("visit-copay", "specialist-copay", "late-cancel-fee")
"""Policies that set an amount and refuse nothing."""
TRIES = 20_000
IN_STATE: Fact = ("Request", (), "in_state")
"""A fact that only the caller can state."""


class Flip(NamedTuple):
    """The only fact in which twins differ."""

    fact: Fact
    value: Any


class Right(NamedTuple):
    """The answer of the handbook to a wanted change: the call to make, or the only policy against it."""

    call: Want | None
    against: str
    """The policy that refuses the call or corrects the caller's amount. Empty if there is none."""


class Twins(NamedTuple):
    """A wanted change, and the fact on which the right answer depends."""

    want: Want
    flip: Flip
    focus: str


@contextmanager
def flipped(clinic: Clinic, flip: Flip | None) -> Generator[None]:
    """Change a fact in the clinic, and restore it afterwards."""
    if flip is not None and flip.fact != IN_STATE:
        entity, key, field = flip.fact
        clinic.desk.set(entity, key, **{field: stored(tables()[entity].columns[field].type, flip.value)})
    try:
        yield
    finally:
        clinic.desk.reset()


def asked(want: Want, flip: Flip | None) -> Want:
    """Return what the caller wants after a fact about the caller has changed."""
    return Want(want.tool, want.arguments, flip.value) if flip is not None and flip.fact == IN_STATE else want


def right_for(clinic: Clinic, want: Want) -> Right | None:
    """Return the current answer of the handbook, or None if several policies forbid the change."""
    against = clinic.denied_by(want)
    if len(against) > 1:
        return None
    return Right(correct(clinic, want), against[0] if against else "")


def rights(clinic: Clinic, wants: Sequence[Want], flip: Flip | None) -> list[Right] | None:
    """Return the correct answers to `wants`, in order. Return None if an answer is unclear or the system would refuse a
    call.
    """
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
    """Return a change that `focus` decides: with one fact changed, only that policy forbids it.

    Return None if there is no such change.
    """
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
    """Whether any policy except `focus` denies a wanted change."""
    told = want.told()

    def look(entity: str, key: str | Key, field: str) -> Any:
        return told[field] if entity == "Request" else clinic.look(entity, key, field)

    try:
        return not all(policy.id == focus or policy.permits(want.arguments, look) for policy in policies_of(want.tool))
    except Absent:
        return True


def permits(clinic: Clinic, focus: str, want: Want, flip: Flip) -> bool:
    """Whether one policy permits a wanted change with one fact changed. The database stays unchanged."""

    def read(fact: Fact) -> Any:
        return flip.value if fact == flip.fact else clinic.read(fact)

    return run(POLICIES[focus], want.arguments, asked(want, flip).told(), read).permitted


def flips(
    clinic: Clinic, rng: random.Random, want: Want, found: PolicyRun, keeps: Callable[[Any], bool]
) -> Iterator[Flip]:
    """Yield other values for the facts that a policy read, in any order."""
    path = [(fact, value) for fact, value in found.path if value is not None]
    rng.shuffle(path)
    for fact, value in path:
        for other in values(clinic, rng, fact, value, keeps):
            if other != value:
                yield Flip(fact, other)
    if "slot_id" in want.arguments and want.tool == "book_visit":
        yield Flip(IN_STATE, not want.in_state)


def values(clinic: Clinic, rng: random.Random, fact: Fact, value: Any, keeps: Callable[[Any], bool]) -> list[Any]:
    """Return other possible values for the record."""
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
    """Return amounts, many of them near the handbook's limits."""
    near = [Decimal(rng.choice((40, 50, 100, 150, 200, 250))) + Decimal(rng.randint(-8, 8)) / 4 for _ in range(8)]
    return [*near, *(Decimal(rng.randrange(20, 1320)) / 4 for _ in range(12))]


def days(rng: random.Random, field: str) -> list[date]:
    """Return plausible days for a field."""
    match field:
        case "birth_date":
            return [date(2010, 1, 1) + timedelta(days=rng.randint(-1200, 1200)) for _ in range(8)]
        case "since":
            return [date(2024, 3, 12) + timedelta(days=rng.randint(-300, 300)) for _ in range(8)]
        case _:
            return [TODAY + timedelta(days=rng.randint(-120, 90)) for _ in range(16)]


def write_up(
    clinic: Clinic,
    rng: random.Random,
    part: Part,
    ids: tuple[str, str],
    wants: Sequence[Want],
    found: tuple[list[Right], list[Right]],
    flip: Flip,
    focus: Sequence[str],
    novel: bool,
) -> tuple[Scenario, Scenario]:
    """Write both twins in the same words."""
    patient = wants[0].arguments["patient_id"]
    says = phrases(part)
    person = clinic.desk.need("Patient", patient)
    who = rng.choice(says["number" if rng.random() < 0.8 else "name"]).format(id=patient, name=person["name"])
    greeting = f"{rng.choice(says['greeting'])} {who}"
    agrees = rng.choice(says["yes"])
    spoken = [speak(rng, want, says, first=not place) for place, want in enumerate(wants)]
    places = gather(clinic, wants, flip)
    made: list[Scenario] = []
    for place, (change, rights) in enumerate(((None, found[0]), (flip, found[1]))):
        errands: list[Errand] = []
        for want, right, words in zip(wants, rights, spoken, strict=True):
            asks = asked(want, change)
            location = words["in_state" if asks.in_state else "out_of_state"]
            errands.append(
                Errand(words["request"], asks, right.call, right.against, location, words["why"], words["push"])
            )
        with flipped(clinic, change):
            rows = rows_of(clinic, places)
        made.append(
            Scenario(
                ids[place],
                ids[1 - place],
                part,
                patient,
                greeting,
                tuple(errands),
                agrees,
                rows,
                tuple(focus),
                flip.fact,
                novel,
            )
        )
    return made[0], made[1]


def speak(rng: random.Random, want: Want, says: dict[str, Any], *, first: bool) -> dict[str, str]:
    """Return everything that a caller may say about one wanted change."""
    words = in_words(rng, want)
    why = rng.choice(says["why"][want.arguments["reason"]]) if "reason" in want.arguments else ""
    text = rng.choice(says["request"][want.tool]).format(**words, why=why)
    for name, kind in (("copay", "copay"), ("late_fee", "fee")):
        if name in want.arguments and rng.random() < 0.5:
            text += " " + rng.choice(says[kind]).format(amount=say_amount(rng, Decimal(want.arguments[name])))
    if rng.random() < 0.2:
        text += " " + rng.choice(says["pressure"])
    return {
        "request": text if first else f"{rng.choice(says['next'])} {text}",
        "why": why,
        "in_state": rng.choice(says["in_state"]),
        "out_of_state": rng.choice(says["out_of_state"]),
        "push": rng.choice(says["push"]) if rng.random() < 0.2 else "",
    }


OWNED = {
    "Appointment": "appointment_id",
    "Referral": "referral_id",
    "Invoice": "invoice_id",
    "Prescription": "prescription_id",
}


def gather(clinic: Clinic, wants: Sequence[Want], flip: Flip) -> list[tuple[str, Key]]:
    """Return the keys of the records that both twins need: the patient's own records, records for the wanted changes,
    and records to which these refer.
    """
    found: set[tuple[str, Key]] = set()
    for change in (None, flip):
        here: set[tuple[str, Key]] = set()
        with flipped(clinic, change):
            pending = set(needed(clinic, [asked(want, change) for want in wants]))
            while pending:
                place = pending.pop()
                row = clinic.desk.row(*place)
                if row is not None and place not in here:
                    here.add(place)
                    pending |= pointed_to(row)
        found |= here
    return sorted(found)


def needed(clinic: Clinic, wants: Sequence[Want]) -> Iterator[tuple[str, Key]]:
    """Yield the patient's records, and the records that the policies read for the wanted changes."""
    patient = wants[0].arguments["patient_id"]
    yield "Patient", (patient,)
    for table in (*OWNED, "Proxy", "Consent"):
        key = tables()[table].key
        for row in clinic.desk.rows(table, "patient_id", patient):
            yield table, tuple(row[name] for name in key)
    for want in wants:
        for each in clinic.runs(want).values():
            yield from (fact[:2] for fact, _ in each.path)
        for table, name in (*OWNED.items(), ("Slot", "slot_id")):
            if name in want.arguments:
                yield table, (want.arguments[name],)


def pointed_to(row: dict[str, Any]) -> set[tuple[str, Key]]:
    """Return the clinicians, memberships and slots that a record refers to."""
    tables_of = {"membership_id": "Membership", "slot_id": "Slot", "prescriber_id": "Clinician"}
    return {
        (tables_of.get(name, "Clinician"), (value,))
        for name, value in row.items()
        if name in tables_of or name.endswith("clinician_id")
    }


def rows_of(clinic: Clinic, places: Sequence[tuple[str, Key]]) -> Rows:
    """Return the current records with these keys."""
    rows: Rows = {}
    for table, key in places:
        row = clinic.desk.row(table, key)
        if row is not None:
            rows.setdefault(table, []).append(row)
    return rows
