"""The changes that callers want: possible calls for a patient, sorted by the policies that would deny them."""

import random
import sqlite3
from collections import defaultdict
from decimal import Decimal
from functools import cached_property
from typing import Any

from msgspec import Struct

from bylaw_lab.clinic.simulator.desk import WRITES, Desk
from bylaw_lab.clinic.simulator.evidence import Absent
from bylaw_lab.clinic.simulator.tables import TODAY, Fact, Key
from bylaw_lab.clinic.simulator.truth import POLICIES, late_fee, policies_of
from bylaw_lab.clinic.simulator.verdict import PolicyRun, run
from bylaw_lab.clinic.simulator.world import CONSENTS, PARTS, SPECIALTIES

REASONS = ("illness", "bereavement", "clinic_error", "other")
DRAWS = {"book_specialist": 6000, "book_visit": 4000, "reschedule_appointment": 4000}


class Want(Struct, frozen=True):
    """A change that a caller wants: the call, and the facts that only the caller knows."""

    tool: str
    arguments: dict[str, Any]
    in_state: bool = True

    def told(self) -> dict[str, Any]:
        """Return the caller's answer."""
        return {"in_state": self.in_state, "reason": self.arguments.get("reason", "other")}


class Clinic:
    """The database of the clinic, an index of each patient's records, and a store of possible changes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.desk = Desk(connection)
        self.patients = [row[0] for row in connection.execute("SELECT patient_id FROM Patient ORDER BY 1")]
        self.own: dict[tuple[str, str], list[str]] = defaultdict(list)
        for table, key in (
            ("Appointment", "appointment_id"),
            ("Referral", "referral_id"),
            ("Invoice", "invoice_id"),
            ("Prescription", "prescription_id"),
            ("Proxy", "person_id"),
        ):
            for patient, thing in connection.execute(
                f"SELECT patient_id, {key} FROM {table} ORDER BY patient_id, {key}"
            ):
                self.own[table, patient].append(thing)
        self.slots: dict[str, list[str]] = defaultdict(list)
        for slot, clinician, specialty in connection.execute(
            "SELECT slot_id, clinician_id, specialty FROM Slot JOIN Clinician USING (clinician_id) ORDER BY slot_id"
        ):
            self.slots[specialty].append(slot)
            self.slots[clinician].append(slot)

    def read(self, fact: Fact) -> Any:
        value = self.desk.fact(fact)
        if value is None:
            raise Absent
        return value

    def look(self, entity: str, key: str | Key, field: str) -> Any:
        return self.read((entity, (key,) if isinstance(key, str) else key, field))

    def runs(self, want: Want) -> dict[str, PolicyRun]:
        """Return the results of all policies for the change, on the current database."""
        told = want.told()
        return {policy.id: run(policy, want.arguments, told, self.read) for policy in policies_of(want.tool)}

    def denied_by(self, want: Want) -> list[str]:
        """Return the policies that deny the change now."""
        return [id for id, found in self.runs(want).items() if not found.permitted]

    @cached_property
    def store(self) -> "Store":
        """Return possible changes on the original database."""
        return Store(self)


class Store:
    """Possible changes, grouped by the one policy that denies them or by the policies that read facts before permitting
    them.
    """

    def __init__(self, clinic: Clinic) -> None:
        rng = random.Random(7)
        self.denied: dict[str, list[Want]] = defaultdict(list)
        self.permitted: dict[str, list[Want]] = defaultdict(list)
        self.clean: dict[str, list[Want]] = defaultdict(list)
        for tool in WRITES:
            for _ in range(DRAWS.get(tool, 1500)):
                want = propose(clinic, rng, tool, rng.choice(clinic.patients))
                told, runs, against = want.told(), dict[str, PolicyRun](), list[str]()
                for policy in policies_of(tool):
                    found = runs[policy.id] = run(policy, want.arguments, told, clinic.read)
                    against += () if found.permitted else (policy.id,)
                    if len(against) == 2:
                        break  # Drop a want that two policies deny.
                if len(against) == 1:
                    self.denied[against[0]].append(want)
                elif not against:
                    self.clean[tool].append(want)
                    for id, seen in runs.items():
                        if seen.path:
                            self.permitted[id].append(want)
        for id in POLICIES:
            assert self.denied[id], f"no want is denied by {id} alone"
            assert self.permitted[id], f"no want is permitted by {id} after a look"


def propose(clinic: Clinic, rng: random.Random, tool: str, patient: str, **fixed: Any) -> Want:
    """Return a plausible call of `tool` for `patient`, or sometimes an implausible one."""
    own: dict[str, Any] = {"patient_id": patient}
    match tool:
        case "book_visit":
            own["slot_id"] = rng.choice(clinic.slots["family"])
            own |= fixed
            membership = clinic.look("Patient", patient, "membership_id")
            active = clinic.look("Membership", membership, "status") == "active"
            right = VISIT[clinic.look("Membership", membership, "tier")] if active else "30.00"
            own["copay"] = right if rng.random() < 0.85 else rng.choice(["0.00", "15.00", "30.00"])
        case "book_specialist":
            own["referral_id"] = thing(clinic, rng, "Referral", patient)
            matching = rng.random() < 0.88
            own |= fixed
            specialty = clinic.look("Referral", own["referral_id"], "specialty")
            own.setdefault("slot_id", rng.choice(clinic.slots[specialty if matching else rng.choice(SPECIALTIES)]))
            tier = clinic.look("Membership", clinic.look("Patient", patient, "membership_id"), "tier")
            remote = clinic.look("Slot", own["slot_id"], "kind") == "telehealth"
            right = "25.00" if remote else SPECIALIST[tier]
            own["copay"] = right if rng.random() < 0.85 else rng.choice(["20.00", "25.00", "40.00", "60.00"])
        case "reschedule_appointment":
            own["appointment_id"] = thing(clinic, rng, "Appointment", patient)
            own |= fixed
            clinician = clinic.look("Appointment", own["appointment_id"], "clinician_id")
            pool = clinic.slots[clinician] if rng.random() < 0.88 else clinic.slots["family"]
            own.setdefault("slot_id", rng.choice(pool))
        case "cancel_appointment":
            own["appointment_id"] = thing(clinic, rng, "Appointment", patient)
            own["reason"] = rng.choices(REASONS, [4, 2, 2, 3])[0]
            own |= fixed
            own["late_fee"] = right_fee(clinic, own)
            if rng.random() < 0.2:
                own["late_fee"] = rng.choice(["0.00", "25.00", "40.00"])
        case "record_consent":
            own["kind"] = rng.choice(CONSENTS)
            own["status"] = "given" if rng.random() < 0.75 else "withdrawn"
            own |= fixed
        case "issue_refund":
            own["invoice_id"] = thing(clinic, rng, "Invoice", patient)
            own |= fixed
            row = clinic.desk.need("Invoice", own["invoice_id"])
            left = Decimal(row["paid"]) - Decimal(row["refunded"])
            choices = [left, left, left / 2, left + 5, Decimal(20), Decimal(50), Decimal(95), Decimal(180)]
            own["amount"] = f"{max(rng.choice(choices), Decimal(5)):.2f}"
        case "waive_invoice":
            owed = [key for key in clinic.own["Invoice", patient] if clinic.look("Invoice", key, "status") == "unpaid"]
            own["invoice_id"] = rng.choice(owed) if rng.random() < 0.8 else thing(clinic, rng, "Invoice", patient)
            own |= fixed
        case "refill_prescription":
            own["prescription_id"] = thing(clinic, rng, "Prescription", patient)
            own |= fixed
        case "release_records":
            proxies = clinic.own["Proxy", patient]
            own["person_id"] = rng.choices([patient, rng.choice(proxies), f"N{rng.randint(400, 499)}"], [5, 9, 1])[0]
            own["part"] = rng.choice(PARTS)
            own["delivery"] = "email" if rng.random() < 0.65 else "counter"
            own |= fixed
        case "update_contact":
            name = clinic.desk.need("Patient", patient)["name"].split()[0].lower()
            own["email"] = f"{name}{rng.randrange(10, 99)}@example.com"
        case "update_proxy":
            own["person_id"] = rng.choice(clinic.own["Proxy", patient])
            own["scopes"] = [part for part in PARTS if rng.random() < 0.5] if rng.random() < 0.88 else []
            own["valid_until"] = TODAY.replace(year=2026, month=rng.randint(1, 12), day=rng.randint(10, 28)).isoformat()
            own |= fixed
        case _:
            own["membership_id"] = clinic.desk.need("Patient", patient)["membership_id"]
            own["new_tier"] = rng.choices(["gold", "silver", "standard"], [5, 3, 1])[0]
            own |= fixed
    return Want(tool, own, in_state=rng.random() < 0.85)


VISIT = {"gold": "0.00", "silver": "15.00", "standard": "30.00"}
SPECIALIST = {"gold": "20.00", "silver": "40.00", "standard": "60.00"}


def thing(clinic: Clinic, rng: random.Random, table: str, patient: str) -> str:
    """Return one of the patient's own records or, rarely, another patient's."""
    owner = patient if rng.random() < 0.93 else rng.choice(clinic.patients)
    return rng.choice(clinic.own[table, owner])


def right_fee(clinic: Clinic, arguments: dict[str, Any]) -> str:
    """Return the cancellation fee under clause 6.6."""

    def look(entity: str, key: str | Key, field: str) -> Any:
        return arguments["reason"] if entity == "Request" else clinic.look(entity, key, field)

    return late_fee(arguments, look)


def correct(clinic: Clinic, want: Want) -> Want | None:
    """Return the change with the amount from the handbook, or None if the change must be refused."""
    against = clinic.denied_by(want)
    if not against:
        return want
    for policy, name, amounts in (
        ("visit-copay", "copay", VISIT.values()),
        ("specialist-copay", "copay", (*SPECIALIST.values(), "25.00")),
        ("late-cancel-fee", "late_fee", ("0.00", "25.00", "40.00")),
    ):
        if against == [policy]:
            for amount in amounts:
                put_right = Want(want.tool, {**want.arguments, name: amount}, want.in_state)
                if not clinic.denied_by(put_right):
                    return put_right
    return None
