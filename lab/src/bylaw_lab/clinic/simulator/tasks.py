"""Tasks: the changes that a caller wants, and the database after an agent has acted correctly."""

import random
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bylaw_lab.clinic.simulator.desk import Desk
from bylaw_lab.clinic.simulator.needs import alters, refused
from bylaw_lab.clinic.simulator.truth import POLICIES
from bylaw_lab.clinic.simulator.wants import Clinic, Want, correct, propose

UNSETTLING = ("record_consent", "change_membership", "update_proxy", "update_contact")
"""Writes that silently change facts which other policies use."""


FOCUS = [*POLICIES, "late-cancel-fee", "upgrade-balance", "gold-ladder", "telehealth-location", "controlled-prescriber"]
"""The policies for tasks. Policies that rarely decide a task are listed twice."""


class Task(Struct, frozen=True):
    """The changes that a caller wants, in order, each with the corrected change."""

    id: str
    patient_id: str
    wants: tuple[Want, ...]
    goal: tuple[Want | None, ...]
    """The careful agent's action for each change. None is a refusal."""

    def reached(self, desk: Desk) -> bool:
        """Whether the database has reached the goal. Resets the desk."""
        got = state(desk)
        desk.reset()
        for want in self.goal:
            if want is not None:
                desk.call(want.tool, want.arguments)
        wanted = state(desk)
        desk.reset()
        return got == wanted


def state(desk: Desk) -> tuple[Any, ...]:
    """Return how the desk differs from the original database, and the documents that were released."""
    rows = {place: row for place, row in desk.changed.items() if row != desk.base.get(place)}
    return rows, sorted(msgspec.json.encode(release, order="sorted") for release in desk.released)


def make(clinic: Clinic, rng: random.Random, id: str) -> Task:
    """Return a task about one policy: a change that it denies, or permits after a look-up. A second request often
    follows.
    """
    policy = rng.choice(FOCUS)
    store = clinic.store
    draw = rng.random()
    if draw < 0.15:
        wants = [rng.choice(store.clean[rng.choice(UNSETTLING)])]
        wants += sequel(clinic, rng, wants[0])
    elif draw < 0.53:
        wants = [rng.choice(store.denied[policy])]
    else:
        wants = [rng.choice(store.permitted[policy])]
        if rng.random() < 0.6:
            wants += sequel(clinic, rng, wants[0])
    goal: list[Want | None] = []
    for want in wants:
        right = correct(clinic, want)
        goal.append(right)
        if right is not None:
            clinic.desk.call(right.tool, right.arguments)
    clinic.desk.reset()
    return Task(id, wants[0].arguments["patient_id"], tuple(wants), tuple(goal))


def sequel(clinic: Clinic, rng: random.Random, first: Want) -> list[Want]:
    """Return a second request that depends on the first change. The list is empty if there is none."""
    if refused(clinic.desk.call(first.tool, first.arguments)):
        clinic.desk.reset()
        return []
    changed = alters(first.tool, first.arguments)
    good = rng.random() < 0.7
    found: list[Want] = []
    for tool, fixed in [*follow_ups(rng, first)] * 10:
        want = propose(clinic, rng, tool, first.arguments["patient_id"], **fixed)
        want = Want(want.tool, want.arguments, first.in_state)
        runs = clinic.runs(want)
        touched = not changed or any(fact in changed for run in runs.values() for fact, _ in run.path)
        if touched and all(run.permitted for run in runs.values()) == good:
            found = [want]
            break
    clinic.desk.reset()
    return found


def follow_ups(rng: random.Random, first: Want) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield tools whose policies read facts that the first change affects, with some fixed arguments."""
    given = first.arguments
    match first.tool:
        case "change_membership":
            tools = ["book_visit", "issue_refund", "cancel_appointment", "book_specialist", "reschedule_appointment"]
            rng.shuffle(tools)
            for tool in tools:
                yield tool, {}
        case "record_consent":
            match given["kind"]:
                case "telehealth":
                    yield "book_visit", {}
                case "psychiatric_care":
                    yield "book_specialist", {}
                case "psychiatric_release":
                    yield "release_records", {"part": "psychiatric_notes"}
                case _:
                    yield "update_proxy", {}
        case "update_contact":
            yield "release_records", {"delivery": "email"}
            yield "release_records", {}
        case "update_proxy":
            yield "release_records", {"person_id": given["person_id"]}
        case "book_visit":
            yield "book_visit", {}
            yield "book_visit", {"slot_id": given["slot_id"]}
        case "book_specialist":
            yield "book_specialist", {"referral_id": given["referral_id"]}
            yield "book_visit", {}
        case "reschedule_appointment" | "cancel_appointment":
            yield "cancel_appointment", {"appointment_id": given["appointment_id"]}
            yield "reschedule_appointment", {"appointment_id": given["appointment_id"]}
        case "refill_prescription":
            yield "refill_prescription", {"prescription_id": given["prescription_id"]}
        case "issue_refund" | "waive_invoice":
            yield "issue_refund", {"invoice_id": given["invoice_id"]}
        case _:
            yield rng.choice(["record_consent", "update_contact", "refill_prescription"]), {}
