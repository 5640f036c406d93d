"""Kinds of agents: how much they look up, what they believe, and whether they obey policies."""

import random
from typing import Any

from msgspec import Struct

from bylaw_lab.clinic.simulator.desk import Desk
from bylaw_lab.clinic.simulator.needs import LISTS, ONE
from bylaw_lab.clinic.simulator.tables import Fact, tables
from bylaw_lab.clinic.simulator.wants import Want

Read = tuple[str, dict[str, Any]]


class Agent(Struct, frozen=True):
    """A kind of agent. All shares are between 0 and 1."""

    name: str
    skips: float = 0.0
    """The share of entities that the agent does not look up."""
    trusts: bool = False
    """Whether the agent believes the user's statements."""
    forgets: float = 0.0
    """The share of conversations in which the agent looks everything up at the start, but nothing again
    after a write.
    """
    obeys: float = 1.0
    """The share of forbidden calls that the agent refuses."""
    confirms: float = 1.0
    asks: float = 1.0
    """The share of conversations in which the agent asks for facts that only the caller knows."""
    rushes: float = 0.0
    """The share of writes in the same turn as another call."""


AGENTS = (
    Agent("careful"),
    Agent("hasty", skips=0.55, forgets=0.3, obeys=0.35, confirms=0.4, asks=0.5, rushes=0.3),
    Agent("trusting", skips=0.2, trusts=True, forgets=0.3, obeys=0.6, confirms=0.8, asks=0.7),
    Agent("forgetful", forgets=1.0, obeys=0.7, confirms=0.9, asks=0.9),
    Agent("over-eager", skips=0.15, forgets=0.3, obeys=0.15, confirms=0.5, asks=0.4, rushes=0.4),
)


def reader(rng: random.Random, desk: Desk, want: Want, fact: Fact) -> Read:
    """Return a read that shows the fact: usually the plain one, sometimes another."""
    entity, key, field = fact
    plain = plain_read(fact)
    if rng.random() < 0.6:
        return plain
    row = desk.row(entity, key)
    patient = want.arguments["patient_id"]
    if row is None:
        return plain
    match entity:
        case "Patient" if field in ("birth_date", "status", "membership_id"):
            return "find_patient", {"name": row["name"]}
        case "Membership" if field == "tier":
            owner = desk.need("Patient", row["patient_id"])
            return "find_patient", {"name": owner["name"]}
        case "Clinician" if field == "accepts_new" and "slot_id" in want.arguments:
            slot = desk.row("Slot", (want.arguments["slot_id"],))
            if slot is not None and slot["clinician_id"] == key[0]:
                return "get_slot", {"slot_id": want.arguments["slot_id"]}
        case "Slot" if row["status"] == "open":
            return "search_slots", {"specialty": desk.need("Clinician", row["clinician_id"])["specialty"]}
        case "Referral" if row["patient_id"] == patient and field != "expires_on":
            return "list_referrals", {"patient_id": patient}
        case "Consent":
            return "list_consents", {"patient_id": patient}
        case _ if entity in BRIEF and row["patient_id"] == patient and field in BRIEF[entity][1]:
            return BRIEF[entity][0], {"patient_id": patient}
        case _:
            pass
    return plain


BRIEF = {
    "Appointment": ("list_appointments", ("patient_id", "starts_at", "status")),
    "Invoice": ("list_invoices", ("patient_id", "amount", "status", "issued_on")),
    "Prescription": ("list_prescriptions", ("patient_id", "status", "refills_left", "last_filled_on")),
}
"""For each entity, the tool that lists the records of a patient, and the fields in the list."""
assert {entry[0] for entry in BRIEF.values()} == set(LISTS)


def plain_read(fact: Fact) -> Read:
    """Return the call that reads the whole record."""
    entity, key, _ = fact
    tool = next(tool for tool, (read, _) in ONE.items() if read == entity)
    return tool, dict(zip(tables()[entity].key, key, strict=True))
