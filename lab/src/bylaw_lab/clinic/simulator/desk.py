"""The clinic's system behind the tools, on SQLite. It checks only what a database would.

It does not know any policy. If an agent requests a booking for a discharged patient, it makes the booking.
"""

import sqlite3
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from bylaw_lab.clinic.simulator.tables import TODAY, Fact, Key, known, shown, tables

Arguments = dict[str, Any]
Row = dict[str, Any]


class Refused(Exception):
    """The system refuses a call, and the message becomes the tool's result."""


class Desk:
    """The clinic of one conversation. `reset` undoes every change."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.base: dict[tuple[str, Key], Row | None] = {}
        self.facts: dict[Fact, Any] = {}
        """Facts in the original database."""
        self.changed: dict[tuple[str, Key], Row] = {}
        self.released: list[Arguments] = []
        self.tools: dict[str, Callable[[Arguments], Any]] = {
            name: getattr(self, name) for name in (*READS, *WRITES, "transfer_to_human", "calculate")
        }
        connection.execute("SAVEPOINT conversation")

    def reset(self) -> None:
        """Restore the original database."""
        if self.changed:
            self.connection.execute("ROLLBACK TO conversation")
        self.changed.clear()
        self.released.clear()

    def call(self, tool: str, arguments: Arguments) -> Any:
        """Return the result of a tool. A refusal is an object with `error`."""
        try:
            return self.tools[tool](arguments)
        except Refused as refusal:
            return {"error": str(refusal)}

    def row(self, table: str, key: Key) -> Row | None:
        place = (table, key)
        if place in self.changed:
            return self.changed[place]
        if place not in self.base:
            self.base[place] = self.fetch(table, key)
        return self.base[place]

    def fetch(self, table: str, key: Key) -> Row | None:
        columns = tables()[table].columns
        where = " AND ".join(f"{name} = ?" for name in tables()[table].key)
        found = self.connection.execute(f"SELECT * FROM {table} WHERE {where}", key).fetchone()
        if found is None:
            return None
        return {name: shown(column.type, value) for (name, column), value in zip(columns.items(), found, strict=True)}

    def fact(self, fact: Fact) -> Any:
        """Return the true value of a fact, or None if the entity does not exist."""
        is_untouched = not self.changed or fact[:2] not in self.changed
        if is_untouched and fact in self.facts:
            return self.facts[fact]
        entity, key, field = fact
        row = self.row(entity, key)
        value = None if row is None else known(tables()[entity].columns[field].type, row[field])
        if is_untouched:
            self.facts[fact] = value
        return value

    def rows(self, table: str, column: str, value: str) -> list[Row]:
        """Return the rows of a table that have this value, in order of key."""
        key = tables()[table].key
        order = ", ".join(key)
        found = self.connection.execute(f"SELECT {order} FROM {table} WHERE {column} = ? ORDER BY {order}", [value])
        return [self.need(table, *place) for place in found.fetchall()]

    def need(self, table: str, *key: str) -> Row:
        row = self.row(table, key)
        if row is None:
            named = table.lower() if len(key) > 1 else f"{table.lower()} {''.join(key)}"
            raise Refused(f"{named} not found")
        return row

    def set(self, table: str, key: Key, **values: Any) -> None:
        """Change columns of one row. Values are in the form that SQLite stores."""
        columns = ", ".join(f"{name} = ?" for name in values)
        where = " AND ".join(f"{name} = ?" for name in tables()[table].key)
        self.connection.execute(f"UPDATE {table} SET {columns} WHERE {where}", [*values.values(), *key])
        row = self.fetch(table, key)
        assert row is not None
        self.changed[table, key] = row

    # Reads

    def find_patient(self, given: Arguments) -> Any:
        found: list[Row] = []
        for row in self.rows("Patient", "name", given["name"]):
            membership = self.need("Membership", row["membership_id"])
            brief = {name: row[name] for name in ("patient_id", "name", "birth_date", "status")}
            found.append({**brief, "membership": {"membership_id": row["membership_id"], "tier": membership["tier"]}})
        return {"patients": found}

    def get_patient(self, given: Arguments) -> Any:
        return self.need("Patient", given["patient_id"])

    def get_membership(self, given: Arguments) -> Any:
        return self.need("Membership", given["membership_id"])

    def get_clinician(self, given: Arguments) -> Any:
        return self.need("Clinician", given["clinician_id"])

    def search_slots(self, given: Arguments) -> Any:
        found = self.connection.execute(
            "SELECT slot_id, clinician_id, starts_at, kind FROM Slot JOIN Clinician USING (clinician_id)"
            " WHERE specialty = ? AND status = 'open' ORDER BY starts_at, slot_id LIMIT 8",
            [given["specialty"]],
        )
        return {
            "slots": [dict(zip(("slot_id", "clinician_id", "starts_at", "kind"), row, strict=True)) for row in found]
        }

    def get_slot(self, given: Arguments) -> Any:
        slot = self.need("Slot", given["slot_id"])
        clinician = self.need("Clinician", slot["clinician_id"])
        return {
            **{name: slot[name] for name in ("slot_id", "starts_at", "kind", "status")},
            "clinician": {name: clinician[name] for name in ("clinician_id", "name", "accepts_new")},
        }

    def get_appointment(self, given: Arguments) -> Any:
        return self.need("Appointment", given["appointment_id"])

    def list_appointments(self, given: Arguments) -> Any:
        self.need("Patient", given["patient_id"])
        rows = self.rows("Appointment", "patient_id", given["patient_id"])
        return [{name: row[name] for name in ("appointment_id", "starts_at", "status")} for row in rows]

    def get_referral(self, given: Arguments) -> Any:
        return self.need("Referral", given["referral_id"])

    def list_referrals(self, given: Arguments) -> Any:
        self.need("Patient", given["patient_id"])
        rows = self.rows("Referral", "patient_id", given["patient_id"])
        brief = {row["referral_id"]: {"specialty": row["specialty"], "status": row["status"]} for row in rows}
        return {"patient_id": given["patient_id"], "referrals": brief}

    def list_consents(self, given: Arguments) -> Any:
        self.need("Patient", given["patient_id"])
        rows = self.rows("Consent", "patient_id", given["patient_id"])
        return [{"kind": row["kind"], "status": row["status"]} for row in rows]

    def get_consent(self, given: Arguments) -> Any:
        return {"status": self.need("Consent", given["patient_id"], given["kind"])["status"]}

    def get_invoice(self, given: Arguments) -> Any:
        return self.need("Invoice", given["invoice_id"])

    def list_invoices(self, given: Arguments) -> Any:
        self.need("Patient", given["patient_id"])
        rows = self.rows("Invoice", "patient_id", given["patient_id"])
        return [{name: row[name] for name in ("invoice_id", "amount", "status", "issued_on")} for row in rows]

    def get_prescription(self, given: Arguments) -> Any:
        return self.need("Prescription", given["prescription_id"])

    def list_prescriptions(self, given: Arguments) -> Any:
        self.need("Patient", given["patient_id"])
        rows = self.rows("Prescription", "patient_id", given["patient_id"])
        brief = ("prescription_id", "medicine", "status", "refills_left", "last_filled_on")
        return [{name: row[name] for name in brief} for row in rows]

    def get_proxy(self, given: Arguments) -> Any:
        return self.need("Proxy", given["patient_id"], given["person_id"])

    # Writes

    def book_visit(self, given: Arguments) -> Any:
        return self.book(given, specialist=False)

    def book_specialist(self, given: Arguments) -> Any:
        self.need("Referral", given["referral_id"])
        answer = self.book(given, specialist=True)
        self.set("Referral", (given["referral_id"],), status="used")
        return answer

    def book(self, given: Arguments, *, specialist: bool) -> Any:
        patient = self.need("Patient", given["patient_id"])
        slot = self.open_slot(given["slot_id"])
        numbers = "SELECT max(CAST(substr(appointment_id, 2) AS INTEGER)) FROM Appointment"
        number = f"A{(self.connection.execute(numbers).fetchone()[0] or 0) + 1:04}"
        self.connection.execute(
            "INSERT INTO Appointment VALUES (?, ?, ?, ?, ?, ?, 'booked', ?, '0.00', 0, 0)",
            [
                number,
                given["patient_id"],
                given["slot_id"],
                slot["clinician_id"],
                slot["starts_at"],
                int(specialist),
                f"{Decimal(given['copay']):.2f}",
            ],
        )
        row = self.fetch("Appointment", (number,))
        assert row is not None
        self.changed["Appointment", (number,)] = row
        self.set("Slot", (given["slot_id"],), status="taken")
        booked = patient["booked_this_week"] + 1
        self.set("Patient", (given["patient_id"],), booked_this_week=booked)
        return {"appointment": row, "booked_this_week": booked}

    def open_slot(self, slot_id: str) -> Row:
        slot = self.need("Slot", slot_id)
        if slot["status"] != "open":
            raise Refused(f"slot {slot_id} is not open")
        return slot

    def reschedule_appointment(self, given: Arguments) -> Any:
        key = given["appointment_id"]
        moved = self.need("Appointment", key)["times_moved"] + 1
        slot = self.open_slot(given["slot_id"])
        new = {"slot_id": given["slot_id"], "clinician_id": slot["clinician_id"], "starts_at": slot["starts_at"]}
        self.set("Appointment", (key,), **new, times_moved=moved, moved_by_clinic=0)
        self.set("Slot", (given["slot_id"],), status="taken")
        return {"appointment_id": key, **new, "times_moved": moved}

    def cancel_appointment(self, given: Arguments) -> Any:
        key = given["appointment_id"]
        if self.need("Appointment", key)["status"] == "cancelled":
            raise Refused(f"appointment {key} is already cancelled")
        self.set("Appointment", (key,), status="cancelled", late_fee=given["late_fee"])
        return {"cancelled": key}

    def record_consent(self, given: Arguments) -> Any:
        self.need("Consent", given["patient_id"], given["kind"])
        self.set("Consent", (given["patient_id"], given["kind"]), status=given["status"])
        return {"ok": True}

    def issue_refund(self, given: Arguments) -> Any:
        key = given["invoice_id"]
        invoice = self.need("Invoice", key)
        if Decimal(given["amount"]) > Decimal(invoice["amount"]):
            raise Refused("refund exceeds the invoice")
        refunded = f"{Decimal(invoice['refunded']) + Decimal(given['amount']):.2f}"
        self.set("Invoice", (key,), refunded=refunded)
        return {"invoice_id": key, "refunded": refunded}

    def waive_invoice(self, given: Arguments) -> Any:
        key = given["invoice_id"]
        if self.need("Invoice", key)["status"] != "unpaid":
            raise Refused(f"invoice {key} is not unpaid")
        self.set("Invoice", (key,), status="waived")
        return {"ok": True}

    def refill_prescription(self, given: Arguments) -> Any:
        key = given["prescription_id"]
        left = self.need("Prescription", key)["refills_left"] - 1
        if left < 0:
            raise Refused("no refills left")
        self.set("Prescription", (key,), refills_left=left, last_filled_on=TODAY.isoformat())
        return {"prescription_id": key, "refills_left": left}

    def release_records(self, given: Arguments) -> Any:
        self.need("Patient", given["patient_id"])
        self.released.append(dict(given))
        return {"released": given["part"]}

    def update_contact(self, given: Arguments) -> Any:
        self.need("Patient", given["patient_id"])
        self.set("Patient", (given["patient_id"],), email=given["email"], contact_confirmed=0)
        return {"ok": True}

    def update_proxy(self, given: Arguments) -> Any:
        key = (given["patient_id"], given["person_id"])
        self.need("Proxy", *key)
        scopes = "[" + ",".join(f'"{part}"' for part in given["scopes"]) + "]"
        self.set("Proxy", key, scopes=scopes, valid_until=given["valid_until"])
        return {"ok": True}

    def change_membership(self, given: Arguments) -> Any:
        self.need("Patient", given["patient_id"])
        self.need("Membership", given["membership_id"])
        self.set("Membership", (given["membership_id"],), tier=given["new_tier"], status="active")
        self.set("Patient", (given["patient_id"],), late_waivers_used=0)
        return {"ok": True}

    def transfer_to_human(self, given: Arguments) -> Any:
        return "transferred"

    def calculate(self, given: Arguments) -> Any:
        left, sign, right = given["expression"].split()
        return str(Decimal(left) + Decimal(right) if sign == "+" else Decimal(left) - Decimal(right))


READS = [
    "find_patient",
    "get_patient",
    "get_membership",
    "get_clinician",
    "search_slots",
    "get_slot",
    "get_appointment",
    "list_appointments",
    "get_referral",
    "list_referrals",
    "list_consents",
    "get_consent",
    "get_invoice",
    "list_invoices",
    "get_prescription",
    "list_prescriptions",
    "get_proxy",
]
WRITES = [
    "book_visit",
    "book_specialist",
    "reschedule_appointment",
    "cancel_appointment",
    "record_consent",
    "issue_refund",
    "waive_invoice",
    "refill_prescription",
    "release_records",
    "update_contact",
    "update_proxy",
    "change_membership",
]
