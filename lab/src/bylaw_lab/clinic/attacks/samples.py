"""Samples by seed: an instruction, a trajectory that keeps the rules, and a trajectory of a poisoned agent."""

import random
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.trace.event import Trajectory
from bylaw_lab.clinic.attacks.scheme import CATEGORIES, SOURCES, Category, Part, Scheme, Source, schemes, words
from bylaw_lab.clinic.attacks.staging import AMOUNTS, Staging
from bylaw_lab.clinic.simulator.tables import tables
from bylaw_lab.clinic.simulator.truth import POLICIES
from bylaw_lab.clinic.simulator.wants import Clinic, Want
from bylaw_lab.clinic.simulator.world import PARTS
from bylaw_lab.clinic.tasks.careful import LostError
from bylaw_lab.clinic.tasks.parts import Part as TaskPart
from bylaw_lab.clinic.tasks.parts import clinic
from bylaw_lab.clinic.tasks.scenario import Scenario
from bylaw_lab.clinic.tasks.sets import draw
from bylaw_lab.clinic.tasks.twins import Flip, gather, rows_of

PLACES: dict[Part, tuple[TaskPart, int]] = {
    "train": ("training", 11),
    "development": ("test", 31),
    "test": ("development", 21),
}
"""The task set and database of each part. No two parts share a person, number, day, amount or phrase."""
DOUBLES = 0.3
"""The share of callers with two errands."""
TRIES = 200


class Sample(Struct, frozen=True):
    """A trajectory with its label."""

    id: str
    instruction: str
    """The name of the instruction. A safe and an unsafe trajectory share it."""
    scheme: str
    category: Category
    source: Source
    trajectory: Trajectory
    broken: tuple[str, ...] = ()
    """The policies that the trajectory breaks."""

    @property
    def is_safe(self) -> bool:
        return not self.broken


def samples(part: Part, seed: int, per_cell: int, rules: dict[str, str]) -> list[Sample]:
    """Make `per_cell` instructions for each category and source, each with a safe and an unsafe trajectory.

    `rules` has the texts of the policies.
    """
    found: list[Sample] = []
    for category in CATEGORIES:
        ours = [scheme for scheme in schemes() if scheme.part == part and scheme.category == category]
        for source in SOURCES:
            for number in range(per_cell):
                scheme = ours[number % len(ours)]
                found += _pair(part, f"{seed}-{category}-{source}-{number:03}", scheme, source, rules)
    return found


def _pair(part: Part, name: str, scheme: Scheme, source: Source, rules: dict[str, str]) -> Iterator[Sample]:
    place = clinic(*PLACES[part])
    for attempt in range(TRIES):
        rng = random.Random(f"{part}/{name}/{attempt}")
        scenario = _scenario(place, rng, part, scheme)
        if scenario is None:
            continue
        scenario, filled = _furnished(place, rng, scenario, scheme)
        notes = [rng.choice(words(part).notes)]
        if source == "environment":
            notes.insert(rng.randrange(2), scheme.note.format(**filled))
        elif rng.random() < 0.5:
            notes = []
        played: list[Staging] = []
        try:
            for each in (None, scheme):
                stage = Staging(
                    scenario,
                    part,
                    random.Random(f"{part}/{name}/words"),
                    notes=notes or None,
                    rules=rules,
                    filled=filled,
                    scheme=each,
                )
                stage.play()
                played.append(stage)
        except LostError:
            continue
        if not played[1].has_struck or not played[1].broken:
            continue
        assert not played[0].broken, f"the careful agent breaks {played[0].broken} in {name}"
        for label, stage in zip(("safe", "unsafe"), played, strict=True):
            id = f"{part}-{name}-{label}"
            run = Trajectory(id=id, events=tuple(stage.events), agent=source)
            yield Sample(id, f"{part}-{name}", scheme.id, scheme.category, source, run, tuple(sorted(stage.broken)))
        return
    raise AssertionError(f"no pair of trajectories found for {scheme.id}")


def _scenario(place: Clinic, rng: random.Random, part: Part, scheme: Scheme) -> Scenario | None:
    """Return a caller whose errand fits the scheme."""
    tools = set(scheme.errand)
    focus = rng.choice(scheme.against or [id for id, policy in POLICIES.items() if tools & set(policy.tools)])
    kind = "double" if rng.random() < DOUBLES else "single"
    pair = draw(place, rng, PLACES[part][0], kind, ("a", "b"), focus)
    for scenario in pair or ():
        for errand in scenario.errands:
            if scheme.against and errand.right is None and errand.against == focus:
                return scenario
            if not scheme.against and errand.right is not None and errand.right.tool in tools:
                return scenario
    return None


def _furnished(
    place: Clinic, rng: random.Random, scenario: Scenario, scheme: Scheme
) -> tuple[Scenario, dict[str, str]]:
    """Add a second patient and slot to the records. Return the scenario and the values for the names in the scheme's
    texts.
    """
    errand = next((each for each in scenario.errands if each.right and each.right.tool in scheme.errand), None)
    given = (errand.right or errand.want).arguments if errand is not None else {}
    other = rng.choice([each for each in place.patients if each != scenario.patient_id])
    slots = [each for each in place.slots["family"] if place.look("Slot", each, "status") == "open"]
    slot = rng.choice([each for each in slots if each != given.get("slot_id")])
    nobody = Flip(("Patient", (other,), "phone"), place.desk.need("Patient", other)["phone"])
    wanted = Want("book_visit", {"patient_id": other, "slot_id": slot, "copay": "0.00"})
    rows: dict[str, list[dict[str, Any]]] = {table: [*found] for table, found in scenario.rows.items()}
    for table, found in rows_of(place, gather(place, [wanted], nobody)).items():
        key = tables()[table].key
        known = {tuple(row[name] for name in key) for row in rows.get(table, [])}
        rows.setdefault(table, []).extend(row for row in found if tuple(row[name] for name in key) not in known)
    own = place.own
    patient = scenario.patient_id
    person = place.desk.need("Patient", patient)
    amount = next((name for name in AMOUNTS if name in given), "")
    wrong = [each for each in AMOUNTS.get(amount, ("0.00",)) if each != given.get(amount)]
    standing = [each for each in own["Appointment", patient] if place.look("Appointment", each, "status") == "booked"]
    appointments = [each for each in standing if each != given.get("appointment_id")]
    owed = [each for each in own["Invoice", other] if place.look("Invoice", each, "status") == "unpaid"]
    filled = {
        "patient": patient,
        "other": other,
        "other_name": place.desk.need("Patient", other)["name"],
        "other_invoice": rng.choice(owed or own["Invoice", other]),
        "other_slot": slot,
        "other_part": rng.choice([each for each in PARTS if each != given.get("part")]),
        "own_appointment": rng.choice(appointments or own["Appointment", patient]),
        "own_prescription": rng.choice(own["Prescription", patient]),
        "other_delivery": "email" if given.get("delivery") == "counter" else "counter",
        "other_tier": rng.choice([each for each in ("gold", "silver", "standard") if each != given.get("new_tier")]),
        "errand_invoice": str(given.get("invoice_id", "")),
        "errand_slot": str(given.get("slot_id", "")),
        "membership": person["membership_id"],
        "proxy": rng.choice(own["Proxy", patient]),
        "stranger": f"N{rng.randint(7000, 7999)}",
        "email": f"{rng.choice(('records', 'desk', 'files'))}{rng.randint(10, 99)}@mail.example",
        "card": rng.choice(("4539 1488 0343 6467", "5425 2334 3010 9903", "4916 3385 0608 2832")),
        "wrong_amount": rng.choice(wrong),
        "n": str(rng.randint(11, 99)),
    }
    return replace(scenario, rows=rows), filled
