"""Lists what each tool shows and changes, written by hand from `tools.yaml`."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bylaw_lab.clinic.simulator.tables import TODAY, Fact, Key, known, tables

Arguments = dict[str, Any]
Sight = tuple[Fact, Any]
"""A fact and its value in a result. `exists` is False if the result shows that the entity does not exist."""

ONE: dict[str, tuple[str, tuple[str, ...]]] = {
    "get_patient": ("Patient", ("patient_id",)),
    "get_membership": ("Membership", ("membership_id",)),
    "get_clinician": ("Clinician", ("clinician_id",)),
    "get_slot": ("Slot", ("slot_id",)),
    "get_appointment": ("Appointment", ("appointment_id",)),
    "get_referral": ("Referral", ("referral_id",)),
    "get_consent": ("Consent", ("patient_id", "kind")),
    "get_invoice": ("Invoice", ("invoice_id",)),
    "get_prescription": ("Prescription", ("prescription_id",)),
    "get_proxy": ("Proxy", ("patient_id", "person_id")),
}
"""Tools that read one record, with the arguments that name it."""

LISTS: dict[str, tuple[str, str]] = {
    "list_appointments": ("Appointment", "appointment_id"),
    "list_invoices": ("Invoice", "invoice_id"),
    "list_prescriptions": ("Prescription", "prescription_id"),
}
"""Tools that list some fields of the records of a patient."""

Change = Callable[[Mapping[str, Any], Any], Any]
"""Takes the arguments of a write and the old value of a field, and returns the new value.

Both values are in the form that policies compare.
"""
UNTOLD = None
"""Used in place of a change if the arguments do not determine the new value."""
Altered = tuple[str, tuple[str, ...], dict[str, Change | None]]


def to(value: Any) -> Change:
    """Set the field to a value."""
    return lambda arguments, old: value


def to_argument(name: str, kind: str = "text") -> Change:
    """Set the field to an argument."""
    return lambda arguments, old: known(kind, arguments[name])


def by(amount: int) -> Change:
    """Increase the field by a number, which may be negative."""
    return lambda arguments, old: old + amount


def by_argument(name: str) -> Change:
    """Increase the field by an amount of money in the arguments."""
    return lambda arguments, old: old + known("money", arguments[name])


BOOKED: tuple[Altered, ...] = (
    ("Slot", ("slot_id",), {"status": to("taken")}),
    ("Patient", ("patient_id",), {"booked_this_week": by(1)}),
)
ALTERS: dict[str, tuple[Altered, ...]] = {
    "book_visit": BOOKED,
    "book_specialist": (*BOOKED, ("Referral", ("referral_id",), {"status": to("used")})),
    "reschedule_appointment": (
        (
            "Appointment",
            ("appointment_id",),
            {
                "slot_id": to_argument("slot_id"),
                "clinician_id": UNTOLD,
                "starts_at": UNTOLD,
                "times_moved": by(1),
                "moved_by_clinic": to(False),
            },
        ),
        ("Slot", ("slot_id",), {"status": to("taken")}),
    ),
    "cancel_appointment": (
        (
            "Appointment",
            ("appointment_id",),
            {"status": to("cancelled"), "late_fee": to_argument("late_fee", "money")},
        ),
    ),
    "record_consent": (("Consent", ("patient_id", "kind"), {"status": to_argument("status")}),),
    "issue_refund": (("Invoice", ("invoice_id",), {"refunded": by_argument("amount")}),),
    "waive_invoice": (("Invoice", ("invoice_id",), {"status": to("waived")}),),
    "refill_prescription": (
        ("Prescription", ("prescription_id",), {"refills_left": by(-1), "last_filled_on": to(TODAY)}),
    ),
    "release_records": (),
    "update_contact": (("Patient", ("patient_id",), {"email": to_argument("email"), "contact_confirmed": to(False)}),),
    "update_proxy": (
        (
            "Proxy",
            ("patient_id", "person_id"),
            {"scopes": to_argument("scopes", "list"), "valid_until": to_argument("valid_until", "date")},
        ),
    ),
    "change_membership": (
        ("Membership", ("membership_id",), {"tier": to_argument("new_tier"), "status": to("active")}),
        ("Patient", ("patient_id",), {"late_waivers_used": to(0)}),
    ),
}
"""For each write tool, the entities that it changes, the arguments that name them, and the change to each field."""


def changes(tool: str, arguments: Arguments) -> dict[Fact, Change | None]:
    """Return the facts that an accepted write changes, and how."""
    return {
        (entity, tuple(arguments[name] for name in key), field): change
        for entity, key, fields in ALTERS[tool]
        for field, change in fields.items()
    }


def alters(tool: str, arguments: Arguments) -> frozenset[Fact]:
    """Return the facts that an accepted write changes."""
    return frozenset(changes(tool, arguments))


def refused(result: Any) -> bool:
    """Whether the result of a tool is a refusal or a failure."""
    if isinstance(result, str):
        return result.lower().startswith("error")
    return isinstance(result, dict) and "error" in result


def shows(tool: str, arguments: Arguments, result: Any) -> list[Sight]:
    if refused(result):
        if tool in ONE and isinstance(result, dict) and "not found" in result["error"]:
            entity, names = ONE[tool]
            return [((entity, tuple(arguments[name] for name in names), "exists"), False)]
        return []
    return list(sights(tool, arguments, result))


def sights(tool: str, arguments: Arguments, result: Any) -> Iterator[Sight]:
    match tool:
        case "get_slot":
            clinician = result["clinician"]["clinician_id"]
            slot = {name: value for name, value in result.items() if name != "clinician"}
            yield from record("Slot", (result["slot_id"],), {**slot, "clinician_id": clinician})
            yield from record("Clinician", (clinician,), result["clinician"])
        case "get_consent":
            yield from record("Consent", (arguments["patient_id"], arguments["kind"]), result)
        case _ if tool in ONE:
            entity, names = ONE[tool]
            yield from record(entity, tuple(result[name] for name in names), result)
        case "find_patient":
            for row in result["patients"]:
                membership = row["membership"]
                patient = {name: value for name, value in row.items() if name != "membership"}
                patient["membership_id"] = membership["membership_id"]
                yield from record("Patient", (row["patient_id"],), patient)
                yield from record("Membership", (membership["membership_id"],), {"tier": membership["tier"]})
        case "search_slots":
            for row in result["slots"]:
                yield from record("Slot", (row["slot_id"],), {**row, "status": "open"})
                yield from record("Clinician", (row["clinician_id"],), {"specialty": arguments["specialty"]})
        case _ if tool in LISTS:
            entity, name = LISTS[tool]
            for row in result:
                yield from record(entity, (row[name],), {**row, "patient_id": arguments["patient_id"]})
        case "list_referrals":
            for number, row in result["referrals"].items():
                yield from record("Referral", (number,), {**row, "patient_id": arguments["patient_id"]})
        case "list_consents":
            for row in result:
                yield from record("Consent", (arguments["patient_id"], row["kind"]), {"status": row["status"]})
        case "book_visit" | "book_specialist":
            yield from record("Appointment", (result["appointment"]["appointment_id"],), result["appointment"])
            booked = {"booked_this_week": result["booked_this_week"]}
            yield from record("Patient", (arguments["patient_id"],), booked)
        case "reschedule_appointment":
            yield from record("Appointment", (result["appointment_id"],), result)
        case "issue_refund":
            yield from record("Invoice", (result["invoice_id"],), {"refunded": result["refunded"]})
        case "refill_prescription":
            yield from record("Prescription", (result["prescription_id"],), {"refills_left": result["refills_left"]})
        case _:
            return


def record(entity: str, key: Key, row: dict[str, Any]) -> Iterator[Sight]:
    """Yield the fields of the record in `row`."""
    columns = tables()[entity].columns
    for name, value in row.items():
        yield (entity, key, name), known(columns[name].type, value)
