"""Fills the clinic's database from a seed. Equal seeds give equal rows."""

import random
import sqlite3
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from bylaw_lab.clinic.simulator.tables import NOW, TODAY, schema, stored, tables

SEED = 2025
PATIENTS = 240
SPECIALTIES = ("cardiology", "dermatology", "physiotherapy", "psychiatry")
PARTS = ("visits", "billing", "medication", "psychiatric_notes")
CONSENTS = ("telehealth", "psychiatric_care", "psychiatric_release", "data_sharing")
FIRST = [
    "Amara",
    "Bruno",
    "Chiara",
    "Dmitri",
    "Elena",
    "Farid",
    "Greta",
    "Hassan",
    "Ingrid",
    "Jonas",
    "Keiko",
    "Liam",
    "Maya",
    "Nadia",
    "Oscar",
    "Priya",
    "Quentin",
    "Rosa",
    "Stefan",
    "Tomoko",
    "Ulrich",
    "Vera",
    "Walid",
    "Ximena",
    "Yusuf",
    "Zofia",
    "Anton",
    "Beatriz",
    "Carlos",
    "Dana",
]
LAST = [
    "Okafor",
    "Lindqvist",
    "Marino",
    "Petrov",
    "Haddad",
    "Nakamura",
    "Ferreira",
    "Kowalski",
    "Osei",
    "Brandt",
    "Moreau",
    "Castillo",
    "Ivanova",
    "Jensen",
    "Rahman",
    "Silva",
    "Turner",
    "Ueda",
    "Varga",
    "Weiss",
    "Yilmaz",
    "Zamora",
    "Abbott",
    "Doyle",
]
MEDICINES = ("lisinopril", "metformin", "sertraline", "atorvastatin", "levothyroxine", "salbutamol")
CONTROLLED = ("oxycodone", "lorazepam", "methylphenidate")
HOURS = (0.5, 1.5, 2, 3, 7.5, 23, 23.5, 24, 26, 31, 47, 47.5, 48, 55, 98, 170, 193)
"""How many hours from now appointments start."""


class Population(NamedTuple):
    """The people and values in a database. Two populations can be made without common people, numbers, days or
    amounts.
    """

    first: Sequence[str] = FIRST
    last: Sequence[str] = LAST
    shelf: int = 0
    """Selects the range of record numbers. Shelf 1 continues where shelf 0 ends."""
    keeps: Callable[[Any], bool] | None = None
    """Whether a day, time or amount may be used. None allows all."""


EVERYBODY = Population()


def build(path: str | Path = ":memory:", *, seed: int = SEED, population: Population = EVERYBODY) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(schema())
    connection.execute("BEGIN")
    Filler(connection, random.Random(seed), population).fill()
    connection.execute("COMMIT")
    return connection


class Filler:
    """Fills empty tables with people, slots, documents and bills."""

    def __init__(self, connection: sqlite3.Connection, rng: random.Random, population: Population = EVERYBODY) -> None:
        self.connection = connection
        self.rng = rng
        self.people = population
        self.clinicians: dict[str, list[str]] = {}
        self.patients: list[str] = []
        self.rows: dict[str, list[list[Any]]] = {}

    def fill(self) -> None:
        self.add_clinicians()
        self.add_slots()
        self.add_patients()
        self.add_appointments()
        self.add_papers()
        self.add_bills()
        self.add_prescriptions()
        self.write()

    def insert(self, table: str, **row: Any) -> None:
        columns = tables()[table].columns
        self.rows.setdefault(table, []).append([stored(column.type, row[name]) for name, column in columns.items()])

    def write(self) -> None:
        for table, rows in self.rows.items():
            self.connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def weighted(self, **weights: int) -> str:
        return self.rng.choices(list(weights), list(weights.values()))[0]

    def kept(self, draw: Callable[[], Any]) -> Any:
        """Return the first draw that this population may use."""
        value = draw()
        while self.people.keeps is not None and not self.people.keeps(value):
            value = draw()
        return value

    def number(self, letter: str, count: int, on_a_shelf: int, digits: int) -> str:
        """Return the number of a record, given its kind and its position among records of that kind."""
        return f"{letter}{count + self.people.shelf * on_a_shelf:0{digits}}"

    def money(self, low: int, high: int) -> Decimal:
        return self.kept(lambda: Decimal(self.rng.randrange(low * 4, high * 4)) / 4)

    def day(self, earliest: int, latest: int) -> date:
        """Return a day between `earliest` and `latest` days from today."""
        return self.kept(lambda: TODAY + timedelta(days=self.rng.randint(earliest, latest)))

    def add_clinicians(self) -> None:
        names = [f"Dr. {last}" for last in self.rng.sample(self.people.last, 24)]
        for number, name in enumerate(names, start=1):
            specialty = "family" if number <= 8 else SPECIALTIES[number % 4]
            clinician = self.number("C", number, 24, 2)
            self.clinicians.setdefault(specialty, []).append(clinician)
            self.insert(
                "Clinician",
                clinician_id=clinician,
                name=name,
                specialty=specialty,
                accepts_new=self.chance(0.6),
                licence=self.weighted(active=6, restricted=2, expired=2),
            )

    def add_slots(self) -> None:
        number = 0
        for clinicians in self.clinicians.values():
            for clinician in clinicians:
                for _ in range(30):
                    number += 1
                    self.insert(
                        "Slot",
                        slot_id=self.number("S", number, 720, 4),
                        clinician_id=clinician,
                        starts_at=self.slot_time(),
                        kind="telehealth" if self.chance(0.4) else "in_person",
                        status=self.weighted(open=8, held=1, taken=1, blocked=1),
                    )

    def slot_time(self) -> datetime:
        return self.kept(self.any_time)

    def start_time(self) -> datetime:
        shift = 0 if self.people.keeps is None else self.rng.choice((0, 0.25, 0.75))
        return NOW + timedelta(hours=self.rng.choice(HOURS) + shift)

    def any_time(self) -> datetime:
        if self.chance(0.3):
            return NOW + timedelta(minutes=30 * self.rng.randint(1, 10))
        return datetime.combine(self.day(1, 25), NOW.time()) + timedelta(minutes=30 * self.rng.randrange(16))

    def add_patients(self) -> None:
        full_names = [f"{first} {last}" for first in self.people.first for last in self.people.last]
        names = self.rng.sample(full_names, PATIENTS)
        everyone = [clinician for group in self.clinicians.values() for clinician in group]
        memberships = self.rng.sample(range(100, 1000), PATIENTS)
        for number, name in enumerate(names, start=1):
            patient = self.number("P", number, PATIENTS, 3)
            membership = self.number("M", memberships[number - 1], 1000, 3)
            self.patients.append(patient)
            minor = self.chance(0.2)
            self.insert(
                "Patient",
                patient_id=patient,
                name=name,
                birth_date=self.day(-5540, -1000) if minor else self.day(-28000, -5560),
                phone=f"555-{self.rng.randrange(10000):04}",
                email=f"{name.lower().replace(' ', '.')}@example.org",
                status=self.weighted(active=8, suspended=1, discharged=1),
                membership_id=membership,
                primary_clinician_id=self.rng.choice(self.clinicians["family"] if self.chance(0.7) else everyone),
                balance_due=Decimal(0) if self.chance(0.5) else self.money(1, 320),
                payment_plan=self.chance(0.5),
                guardian_on_file=self.chance(0.55),
                identity_checked=self.chance(0.7),
                contact_confirmed=self.chance(0.7),
                hardship=self.chance(0.5),
                booked_this_week=self.rng.choices(range(7), [30, 12, 12, 16, 14, 6, 4])[0],
                late_waivers_used=self.rng.choices(range(4), [30, 20, 25, 10])[0],
            )
            self.insert(
                "Membership",
                membership_id=membership,
                patient_id=patient,
                tier=self.weighted(gold=4, silver=3, standard=4),
                status=self.weighted(active=7, paused=1, lapsed=2),
                since=self.day(-1500, -380) if self.chance(0.5) else self.day(-364, -20),
            )

    def add_appointments(self) -> None:
        slots = sorted((row[0], row[1]) for row in self.rows["Slot"])
        number = 0
        for patient in self.patients:
            for _ in range(3):
                number += 1
                slot, clinician = self.rng.choice(slots)
                moved = self.rng.choices(range(4), [5, 2, 3, 1])[0]
                starts = self.kept(self.start_time)
                self.insert(
                    "Appointment",
                    appointment_id=self.number("A", number, 3 * PATIENTS, 4),
                    patient_id=patient,
                    slot_id=slot,
                    clinician_id=clinician,
                    starts_at=starts,
                    specialist=clinician not in self.clinicians["family"],
                    status=self.weighted(booked=5, confirmed=4, completed=1, cancelled=1, no_show=1),
                    copay=self.rng.choice([Decimal(0), Decimal(15), Decimal(30)]),
                    late_fee=Decimal(0),
                    times_moved=moved,
                    moved_by_clinic=moved > 0 and self.chance(0.5),
                )

    def add_papers(self) -> None:
        number = 0
        for patient in self.patients:
            for kind in CONSENTS:
                self.insert(
                    "Consent", patient_id=patient, kind=kind, status=self.weighted(given=6, withdrawn=2, missing=2)
                )
            for _ in range(2):
                number += 1
                self.insert(
                    "Referral",
                    referral_id=self.number("R", number, 2 * PATIENTS, 3),
                    patient_id=patient,
                    specialty=self.rng.choice(SPECIALTIES),
                    status=self.weighted(active=8, used=1, withdrawn=1),
                    expires_on=self.day(0, 90) if self.chance(0.75) else self.day(-90, -1),
                )
            for person in sorted(self.rng.sample(range(1, 400), 2)):
                self.insert(
                    "Proxy",
                    patient_id=patient,
                    person_id=self.number("N", person, 400, 3),
                    relation=self.rng.choice(["sister", "son", "partner", "mother", "friend", "guardian"]),
                    scopes=[part for part in PARTS if self.chance(0.6)],
                    valid_until=self.day(0, 400) if self.chance(0.7) else self.day(-200, -1),
                )

    def add_bills(self) -> None:
        number = 0
        for patient in self.patients:
            for status in (self.weighted(paid=4, unpaid=1, waived=1), "paid", "unpaid"):
                number += 1
                amount = self.money(10, 60) if self.chance(0.35) else self.money(41, 330)
                paid = (
                    amount
                    if status == "paid"
                    else (amount / 2).quantize(Decimal("0.01"))
                    if self.chance(0.6)
                    else Decimal(0)
                )
                self.insert(
                    "Invoice",
                    invoice_id=self.number("I", number, 3 * PATIENTS, 4),
                    patient_id=patient,
                    amount=amount,
                    paid=paid,
                    refunded=(paid / 4).quantize(Decimal("0.01")) if self.chance(0.3) else Decimal(0),
                    status=status,
                    issued_on=self.day(-60, -1) if self.chance(0.65) else self.day(-300, -61),
                    disputed=self.chance(0.4),
                )

    def add_prescriptions(self) -> None:
        everyone = [clinician for group in self.clinicians.values() for clinician in group]
        number = 0
        for patient in self.patients:
            for _ in range(3):
                number += 1
                controlled = self.chance(0.4)
                self.insert(
                    "Prescription",
                    prescription_id=self.number("X", number, 3 * PATIENTS, 4),
                    patient_id=patient,
                    medicine=self.rng.choice(CONTROLLED if controlled else MEDICINES),
                    controlled=controlled,
                    prescriber_id=self.rng.choice(everyone),
                    status="active" if self.chance(0.85) else "stopped",
                    expires_on=self.day(0, 200) if self.chance(0.85) else self.day(-60, -1),
                    refills_left=self.rng.choices(range(4), [1, 3, 3, 1])[0],
                    last_filled_on=self.day(-90, -28) if self.chance(0.7) else self.day(-27, -5),
                )
