"""The hand-made table of what each tool shows and alters, read off `tools.yaml`."""

from collections.abc import Iterator
from typing import Any

from bylaw.packs.clinic.simulator.tables import Fact, Key, known, tables

Arguments = dict[str, Any]
Sight = tuple[Fact, Any]
"""A fact and the value a result shows for it; the field `exists` with False where it shows that there is none."""

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
"""Tools that read one thing, and the arguments that name it."""

LISTS: dict[str, tuple[str, str]] = {
    "list_appointments": ("Appointment", "appointment_id"),
    "list_invoices": ("Invoice", "invoice_id"),
    "list_prescriptions": ("Prescription", "prescription_id"),
}
"""Tools that list a patient's things in short."""

ALTERS: dict[str, tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]] = {
    "book_visit": (("Slot", ("slot_id",), ("status",)), ("Patient", ("patient_id",), ("booked_this_week",))),
    "book_specialist": (
        ("Slot", ("slot_id",), ("status",)),
        ("Patient", ("patient_id",), ("booked_this_week",)),
        ("Referral", ("referral_id",), ("status",)),
    ),
    "reschedule_appointment": (
        (
            "Appointment",
            ("appointment_id",),
            ("slot_id", "clinician_id", "starts_at", "times_moved", "moved_by_clinic"),
        ),
        ("Slot", ("slot_id",), ("status",)),
    ),
    "cancel_appointment": (("Appointment", ("appointment_id",), ("status", "late_fee")),),
    "record_consent": (("Consent", ("patient_id", "kind"), ("status",)),),
    "issue_refund": (("Invoice", ("invoice_id",), ("refunded",)),),
    "waive_invoice": (("Invoice", ("invoice_id",), ("status",)),),
    "refill_prescription": (("Prescription", ("prescription_id",), ("refills_left", "last_filled_on")),),
    "release_records": (),
    "update_contact": (("Patient", ("patient_id",), ("email", "contact_confirmed")),),
    "update_proxy": (("Proxy", ("patient_id", "person_id"), ("scopes", "valid_until")),),
    "change_membership": (
        ("Membership", ("membership_id",), ("tier", "status")),
        ("Patient", ("patient_id",), ("late_waivers_used",)),
    ),
}
"""Write tools: entity, the arguments that name it, the fields altered."""


def alters(tool: str, arguments: Arguments) -> frozenset[Fact]:
    """The facts that an accepted write makes different."""
    return frozenset(
        (entity, tuple(arguments[name] for name in key), field)
        for entity, key, fields in ALTERS[tool]
        for field in fields
    )


def refused(result: Any) -> bool:
    """Whether a tool's answer is a refusal or a failure."""
    if isinstance(result, str):
        return result.lower().startswith("error")
    return isinstance(result, dict) and "error" in result


def shows(tool: str, arguments: Arguments, result: Any) -> list[Sight]:
    """The facts that a result shows."""
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
    """Every field of one thing that stands in `row`."""
    columns = tables()[entity].columns
    for name, value in row.items():
        yield (entity, key, name), known(columns[name].type, value)
