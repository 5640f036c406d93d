"""Every policy of the handbook in plain Python, slow and obvious. The guards are tested against this.

Each function returns whether its clause permits a call. `look(entity, key, field)` is the only access to facts. Facts
are read in the order of the clause, and only if the clause needs them.
"""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple, Protocol

from bylaw_lab.clinic.simulator.tables import NOW, TODAY, Key

Arguments = Mapping[str, Any]


class Look(Protocol):
    """Reads facts. Facts that only the caller knows are under `Request`."""

    def __call__(self, entity: str, key: str | Key, field: str) -> Any: ...


Permits = Callable[[Arguments, Look], bool]


class Policy(NamedTuple):
    """A clause to check: its tools, and whether it permits a call."""

    id: str
    tools: tuple[str, ...]
    permits: Permits
    asks: tuple[str, ...]
    """The facts that an agent may have to ask the caller for under this policy."""


POLICIES: dict[str, Policy] = {}


def clause(id: str, *tools: str, asks: tuple[str, ...] = ()) -> Callable[[Permits], Permits]:
    """Register a function that decides policy `id` for `tools`."""

    def register(permits: Permits) -> Permits:
        POLICIES[id] = Policy(id, tools, permits, asks)
        return permits

    return register


@cache
def policies_of(tool: str) -> list[Policy]:
    """Return the policies for a tool in the order of the handbook."""
    return [policy for policy in POLICIES.values() if tool in policy.tools]


def tier(call: Arguments, look: Look) -> str:
    return look("Membership", look("Patient", call["patient_id"], "membership_id"), "tier")


BOOKING = ("book_visit", "book_specialist")
MOVING = ("reschedule_appointment", "cancel_appointment")


@clause("booking-active-patient", *BOOKING)
def clause_3_1(call: Arguments, look: Look) -> bool:
    return look("Patient", call["patient_id"], "status") == "active"


@clause("booking-balance", *BOOKING)
def clause_3_2(call: Arguments, look: Look) -> bool:
    if look("Patient", call["patient_id"], "balance_due") <= Decimal("150.00"):
        return True
    return look("Patient", call["patient_id"], "payment_plan")


@clause("booking-minor", *BOOKING)
def clause_3_3(call: Arguments, look: Look) -> bool:
    if look("Patient", call["patient_id"], "birth_date") < date(2010, 1, 1):
        return True
    return look("Patient", call["patient_id"], "guardian_on_file")


@clause("slot-open", *BOOKING, "reschedule_appointment")
def clause_3_4(call: Arguments, look: Look) -> bool:
    return look("Slot", call["slot_id"], "status") == "open"


@clause("booking-notice", *BOOKING)
def clause_3_5(call: Arguments, look: Look) -> bool:
    hours = 1 if look("Slot", call["slot_id"], "kind") == "telehealth" else 4
    return look("Slot", call["slot_id"], "starts_at") >= NOW + timedelta(hours=hours)


@clause("booking-weekly-cap", *BOOKING)
def clause_3_6(call: Arguments, look: Look) -> bool:
    booked = look("Patient", call["patient_id"], "booked_this_week")
    if booked < 3:
        return True
    if booked >= 5:
        return False
    return tier(call, look) == "gold"


@clause("closed-list", *BOOKING)
def clause_3_7(call: Arguments, look: Look) -> bool:
    clinician = look("Slot", call["slot_id"], "clinician_id")
    if look("Clinician", clinician, "accepts_new"):
        return True
    return look("Patient", call["patient_id"], "primary_clinician_id") == clinician


@clause("visit-copay", "book_visit")
def clause_3_8(call: Arguments, look: Look) -> bool:
    membership = look("Patient", call["patient_id"], "membership_id")
    if look("Membership", membership, "status") != "active":
        copay = "30.00"
    else:
        copay = {"gold": "0.00", "silver": "15.00", "standard": "30.00"}[look("Membership", membership, "tier")]
    return Decimal(call["copay"]) == Decimal(copay)


@clause("specialist-copay", "book_specialist")
def clause_3_9(call: Arguments, look: Look) -> bool:
    if look("Slot", call["slot_id"], "kind") == "telehealth":
        copay = "25.00"
    else:
        copay = {"gold": "20.00", "silver": "40.00", "standard": "60.00"}[tier(call, look)]
    return Decimal(call["copay"]) == Decimal(copay)


@clause("referral-owner", "book_specialist")
def clause_4_1(call: Arguments, look: Look) -> bool:
    return look("Referral", call["referral_id"], "patient_id") == call["patient_id"]


@clause("referral-current", "book_specialist")
def clause_4_2(call: Arguments, look: Look) -> bool:
    if look("Referral", call["referral_id"], "status") != "active":
        return False
    return look("Referral", call["referral_id"], "expires_on") >= TODAY


@clause("referral-specialty", "book_specialist")
def clause_4_3(call: Arguments, look: Look) -> bool:
    specialty = look("Clinician", look("Slot", call["slot_id"], "clinician_id"), "specialty")
    if specialty == "physiotherapy":
        return True
    return look("Referral", call["referral_id"], "specialty") == specialty


@clause("telehealth-consent", *BOOKING)
def clause_5_1(call: Arguments, look: Look) -> bool:
    if look("Slot", call["slot_id"], "kind") != "telehealth":
        return True
    return look("Consent", (call["patient_id"], "telehealth"), "status") == "given"


@clause("telehealth-location", "book_visit", asks=("in_state",))
def clause_5_2(call: Arguments, look: Look) -> bool:
    if look("Slot", call["slot_id"], "kind") != "telehealth":
        return True
    return look("Request", (), "in_state")


@clause("psychiatry-consent", "book_specialist")
def clause_5_3(call: Arguments, look: Look) -> bool:
    clinician = look("Slot", call["slot_id"], "clinician_id")
    if look("Clinician", clinician, "specialty") != "psychiatry":
        return True
    return look("Consent", (call["patient_id"], "psychiatric_care"), "status") == "given"


@clause("consent-identity", "record_consent")
def clause_5_4(call: Arguments, look: Look) -> bool:
    if call["status"] == "withdrawn":
        return True
    return look("Patient", call["patient_id"], "identity_checked")


@clause("appointment-owner", *MOVING)
def clause_6_1(call: Arguments, look: Look) -> bool:
    return look("Appointment", call["appointment_id"], "patient_id") == call["patient_id"]


@clause("appointment-standing", *MOVING)
def clause_6_2(call: Arguments, look: Look) -> bool:
    return look("Appointment", call["appointment_id"], "status") in ("booked", "confirmed")


@clause("reschedule-notice", "reschedule_appointment")
def clause_6_3(call: Arguments, look: Look) -> bool:
    notice = look("Appointment", call["appointment_id"], "starts_at") - NOW
    if notice >= timedelta(hours=24):
        return True
    if notice < timedelta(hours=2):
        return False
    return tier(call, look) == "gold"


@clause("reschedule-limit", "reschedule_appointment")
def clause_6_4(call: Arguments, look: Look) -> bool:
    if look("Appointment", call["appointment_id"], "times_moved") < 2:
        return True
    return look("Appointment", call["appointment_id"], "moved_by_clinic")


@clause("reschedule-clinician", "reschedule_appointment")
def clause_6_5(call: Arguments, look: Look) -> bool:
    clinician = look("Appointment", call["appointment_id"], "clinician_id")
    return look("Slot", call["slot_id"], "clinician_id") == clinician


@clause("late-cancel-fee", "cancel_appointment", asks=("reason",))
def clause_6_6(call: Arguments, look: Look) -> bool:
    return Decimal(call["late_fee"]) == Decimal(late_fee(call, look))


def late_fee(call: Arguments, look: Look) -> str:
    """Return the cancellation fee under clause 6.6."""
    hours = 48 if look("Appointment", call["appointment_id"], "specialist") else 24
    if look("Appointment", call["appointment_id"], "starts_at") >= NOW + timedelta(hours=hours):
        return "0.00"
    if look("Request", (), "reason") in ("bereavement", "clinic_error"):
        return "0.00"
    match tier(call, look):
        case "standard":
            return "40.00"
        case "silver":
            return "25.00"
        case _:
            return "0.00" if look("Patient", call["patient_id"], "late_waivers_used") < 2 else "25.00"


@clause("invoice-owner", "issue_refund", "waive_invoice")
def clause_7_1(call: Arguments, look: Look) -> bool:
    return look("Invoice", call["invoice_id"], "patient_id") == call["patient_id"]


@clause("refund-paid", "issue_refund")
def clause_7_2(call: Arguments, look: Look) -> bool:
    return look("Invoice", call["invoice_id"], "status") == "paid"


@clause("refund-remaining", "issue_refund")
def clause_7_3(call: Arguments, look: Look) -> bool:
    paid = look("Invoice", call["invoice_id"], "paid")
    return Decimal(call["amount"]) <= paid - look("Invoice", call["invoice_id"], "refunded")


@clause("refund-cap", "issue_refund")
def clause_7_4(call: Arguments, look: Look) -> bool:
    amount = Decimal(call["amount"])
    if amount <= Decimal("50.00"):
        return True
    return amount <= Decimal({"gold": "200.00", "silver": "100.00", "standard": "50.00"}[tier(call, look)])


@clause("refund-window", "issue_refund")
def clause_7_5(call: Arguments, look: Look) -> bool:
    if look("Invoice", call["invoice_id"], "issued_on") >= TODAY - timedelta(days=60):
        return True
    return look("Invoice", call["invoice_id"], "disputed")


@clause("waive-limit", "waive_invoice")
def clause_7_6(call: Arguments, look: Look) -> bool:
    amount = look("Invoice", call["invoice_id"], "amount")
    if amount <= Decimal("40.00"):
        return True
    if amount > Decimal("250.00"):
        return False
    return look("Patient", call["patient_id"], "hardship")


@clause("prescription-owner", "refill_prescription")
def clause_8_1(call: Arguments, look: Look) -> bool:
    return look("Prescription", call["prescription_id"], "patient_id") == call["patient_id"]


@clause("prescription-current", "refill_prescription")
def clause_8_2(call: Arguments, look: Look) -> bool:
    if look("Prescription", call["prescription_id"], "status") != "active":
        return False
    return look("Prescription", call["prescription_id"], "expires_on") >= TODAY


@clause("refills-left", "refill_prescription")
def clause_8_3(call: Arguments, look: Look) -> bool:
    return look("Prescription", call["prescription_id"], "refills_left") >= 1


@clause("refill-interval", "refill_prescription")
def clause_8_4(call: Arguments, look: Look) -> bool:
    days = 28 if look("Prescription", call["prescription_id"], "controlled") else 21
    return look("Prescription", call["prescription_id"], "last_filled_on") <= TODAY - timedelta(days=days)


@clause("controlled-prescriber", "refill_prescription")
def clause_8_5(call: Arguments, look: Look) -> bool:
    if not look("Prescription", call["prescription_id"], "controlled"):
        return True
    prescriber = look("Prescription", call["prescription_id"], "prescriber_id")
    return look("Clinician", prescriber, "licence") == "active"


@clause("records-recipient", "release_records")
def clause_9_1(call: Arguments, look: Look) -> bool:
    if call["person_id"] == call["patient_id"]:
        return True
    listing = (call["patient_id"], call["person_id"])
    if look("Proxy", listing, "valid_until") < TODAY:
        return False
    return call["part"] in look("Proxy", listing, "scopes")


@clause("identity-checked", "release_records", "update_contact", "update_proxy")
def clause_9_2(call: Arguments, look: Look) -> bool:
    return look("Patient", call["patient_id"], "identity_checked")


@clause("records-contact", "release_records")
def clause_9_3(call: Arguments, look: Look) -> bool:
    if call["delivery"] == "counter":
        return True
    return look("Patient", call["patient_id"], "contact_confirmed")


@clause("records-notes", "release_records")
def clause_9_4(call: Arguments, look: Look) -> bool:
    if call["part"] != "psychiatric_notes":
        return True
    return look("Consent", (call["patient_id"], "psychiatric_release"), "status") == "given"


@clause("proxy-consent", "update_proxy")
def clause_9_5(call: Arguments, look: Look) -> bool:
    if not call["scopes"]:
        return True
    return look("Consent", (call["patient_id"], "data_sharing"), "status") == "given"


@clause("upgrade-balance", "change_membership")
def clause_10_1(call: Arguments, look: Look) -> bool:
    if call["new_tier"] == "standard":
        return True
    return look("Patient", call["patient_id"], "balance_due") == Decimal("0.00")


@clause("gold-ladder", "change_membership")
def clause_10_2(call: Arguments, look: Look) -> bool:
    if call["new_tier"] != "gold":
        return True
    if look("Membership", call["membership_id"], "tier") != "standard":
        return True
    return look("Membership", call["membership_id"], "since") <= date(2024, 3, 12)
