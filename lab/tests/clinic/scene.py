"""Small handwritten conversations: a clinic with known rows, calls in turns, and the truth about the last write."""

import random
import sqlite3
from typing import Any

from bylaw_lab.clinic.simulator.conversation import Conversation, Mess
from bylaw_lab.clinic.simulator.tables import known, schema, stored, tables
from bylaw_lab.clinic.simulator.verdict import CallTruth, PolicyTruth
from bylaw_lab.clinic.simulator.wants import Clinic

PATIENT = {
    "status": "active",
    "membership_id": "M1",
    "primary_clinician_id": "C1",
    "balance_due": "0.00",
    "payment_plan": False,
    "birth_date": "1980-05-05",
    "guardian_on_file": False,
    "identity_checked": True,
    "contact_confirmed": True,
    "hardship": False,
    "booked_this_week": 0,
    "late_waivers_used": 0,
    "name": "Ada Stone",
    "phone": "555-0000",
    "email": "ada@example.org",
}
ROWS: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {
    "Patient": {("P1",): PATIENT, ("P2",): {**PATIENT, "name": "Ben Stone", "membership_id": "M2"}},
    "Membership": {
        ("M1",): {"patient_id": "P1", "tier": "gold", "status": "active", "since": "2020-01-01"},
        ("M2",): {"patient_id": "P2", "tier": "standard", "status": "active", "since": "2025-01-01"},
    },
    "Clinician": {
        ("C1",): {"name": "Dr. One", "specialty": "family", "accepts_new": True, "licence": "active"},
        ("C2",): {"name": "Dr. Two", "specialty": "psychiatry", "accepts_new": True, "licence": "expired"},
    },
    "Slot": {
        ("S1",): {"clinician_id": "C1", "starts_at": "2025-03-20T10:00:00", "kind": "in_person", "status": "open"},
        ("S2",): {"clinician_id": "C1", "starts_at": "2025-03-20T11:00:00", "kind": "telehealth", "status": "open"},
        ("S3",): {"clinician_id": "C2", "starts_at": "2025-03-20T12:00:00", "kind": "in_person", "status": "open"},
    },
    "Appointment": {
        ("A1",): {
            "patient_id": "P1",
            "slot_id": "S1",
            "clinician_id": "C1",
            "starts_at": "2025-03-13T08:00:00",
            "specialist": False,
            "status": "booked",
            "copay": "0.00",
            "late_fee": "0.00",
            "times_moved": 0,
            "moved_by_clinic": False,
        }
    },
    "Referral": {
        ("R1",): {"patient_id": "P1", "specialty": "psychiatry", "status": "active", "expires_on": "2025-03-12"}
    },
    "Consent": {
        ("P1", kind): {"status": "given"}
        for kind in ("telehealth", "psychiatric_care", "psychiatric_release", "data_sharing")
    },
    "Invoice": {
        ("I1",): {
            "patient_id": "P1",
            "amount": "120.00",
            "paid": "120.00",
            "refunded": "0.00",
            "status": "paid",
            "issued_on": "2025-03-01",
            "disputed": False,
        }
    },
    "Prescription": {
        ("X1",): {
            "patient_id": "P1",
            "medicine": "metformin",
            "controlled": False,
            "prescriber_id": "C1",
            "status": "active",
            "expires_on": "2025-04-01",
            "refills_left": 2,
            "last_filled_on": "2025-01-10",
        }
    },
    "Proxy": {("P1", "N1"): {"relation": "son", "scopes": ["visits"], "valid_until": "2025-12-31"}},
}


class Scene(Conversation):
    """Return a conversation on a clinic with only the rows above, changed by keywords: `Patient_P1={...}`."""

    def __init__(self, mess: Mess | None = None, **changes: dict[str, Any]) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(schema())
        for table, rows in ROWS.items():
            columns = tables()[table].columns
            for key, row in rows.items():
                full = {**dict(zip(tables()[table].key, key, strict=True)), **row}
                full |= changes.get("_".join((table, *key)), {})
                values = [stored(columns[name].type, known(columns[name].type, full[name])) for name in columns]
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)
        super().__init__(Clinic(connection), random.Random(0), mess or Mess())

    def call(self, tool: str, **arguments: Any) -> "Scene":
        """Return one turn with one call."""
        self.act([(tool, arguments)])
        return self

    def last(self) -> CallTruth:
        return self.truth()[-1]

    def under(self, policy: str) -> PolicyTruth:
        """Return the truth about the last write under one policy."""
        return next(found for found in self.last().policies if found.id == policy)

    def lacks(self, policy: str, mode: str = "snapshot") -> list[str]:
        """Return the facts that strict misses, as `Patient.status: reason`."""
        return [f"{lack.entity}.{lack.field}: {lack.reason}" for lack in self.under(policy).missing[mode]]

    def verdicts(self, policy: str) -> tuple[str, ...]:
        """Return the strict verdicts with snapshot, hindsight and none, then the determined ones."""
        found = self.under(policy)
        return (*found.strict.values(), *found.determined.values())
