"""A scenario: one task made whole, with the records it needs, the caller's words, and what is right."""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from bylaw.packs.clinic.simulator.desk import Desk
from bylaw.packs.clinic.simulator.dialogue import in_words, say_amount
from bylaw.packs.clinic.simulator.tables import Key, known, schema, stored, tables
from bylaw.packs.clinic.simulator.tasks import Task
from bylaw.packs.clinic.simulator.wants import Clinic, Want
from bylaw.packs.clinic.tasks.parts import Part, phrases
from bylaw.packs.clinic.tasks.twins import Flip, Right, asked, flipped

Rows = dict[str, list[dict[str, Any]]]
"""By table the records as tools show them."""


class Errand(Struct, frozen=True):
    """One thing the caller wants, in words and as the call it comes to."""

    words: str
    want: Want
    right: Want | None
    """The call that should be made; None where it should be refused."""
    against: str
    """The policy that refuses it, or sets another amount than the caller named; empty where none does."""
    location: str
    """What the caller says when asked where they will be."""
    why: str
    """What the caller says when asked for the reason."""
    push: str
    """What the caller says to a refusal before giving in; empty for one who gives in at once."""


class Scenario(Struct, frozen=True):
    """A caller with one or two errands, over a small database of their own."""

    id: str
    twin: str
    """The scenario that differs in one fact, for which something else is right."""
    part: Part
    patient_id: str
    greeting: str
    """Who is calling."""
    errands: tuple[Errand, ...]
    agrees: str
    """How the caller says yes."""
    rows: Rows
    focus: tuple[str, ...]
    """For each errand the policy it turns on."""
    flip: tuple[str, Key, str]
    """The fact in which the twins differ."""
    novel: bool
    """Its errands come from groups of policies that never stand together in training."""
    pack: str = "clinic"

    @property
    def turns(self) -> int:
        """How many turns an agent may take: the careful one needs at most twelve for an errand."""
        return 15 * len(self.errands)

    def scene(self) -> Any:
        """A fresh conversation about it."""
        from bylaw.packs.clinic.tasks.scene import Scene

        return Scene(self)

    def task(self) -> Task:
        """The goal as the simulator has it."""
        wants = tuple(errand.want for errand in self.errands)
        return Task(self.id, self.patient_id, wants, tuple(errand.right for errand in self.errands))

    def open(self) -> Desk:
        """A desk over the scenario's own database."""
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(schema())
        for table, rows in self.rows.items():
            columns = tables()[table].columns
            marks = ", ".join("?" * len(columns))
            connection.executemany(
                f"INSERT INTO {table} VALUES ({marks})",
                [[stored(kind.type, known(kind.type, row[name])) for name, kind in columns.items()] for row in rows],
            )
        return Desk(connection)


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
    """Both twins in the same words."""
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
    """Everything a caller may say about one want."""
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
    """Where the patient's own records lie, those the wants need with or without the flip, and what these point to."""
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
    """What the patient has, and what the policies look at for the wants."""
    patient = wants[0].arguments["patient_id"]
    yield "Patient", (patient,)
    for table in (*OWNED, "Proxy", "Consent"):
        key = tables()[table].key
        for row in clinic.desk.rows(table, "patient_id", patient):
            yield table, tuple(row[name] for name in key)
    for want in wants:
        for run in clinic.runs(want).values():
            yield from (fact[:2] for fact, _ in run.path)
        for table, name in (*OWNED.items(), ("Slot", "slot_id")):
            if name in want.arguments:
                yield table, (want.arguments[name],)


def pointed_to(row: dict[str, Any]) -> set[tuple[str, Key]]:
    """The clinicians, memberships and slots whose numbers stand in a record."""
    tables_of = {"membership_id": "Membership", "slot_id": "Slot", "prescriber_id": "Clinician"}
    return {
        (tables_of.get(name, "Clinician"), (value,))
        for name, value in row.items()
        if name in tables_of or name.endswith("clinician_id")
    }


def rows_of(clinic: Clinic, places: Sequence[tuple[str, Key]]) -> Rows:
    """The records at some places, as they are now."""
    rows: Rows = {}
    for table, key in places:
        row = clinic.desk.row(table, key)
        if row is not None:
            rows.setdefault(table, []).append(row)
    return rows
