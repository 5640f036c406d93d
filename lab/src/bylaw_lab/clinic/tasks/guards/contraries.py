# The contraries of `tasks/contraries.py` once more, as guards: thoughts under a changed policy are made from these.


def booking_balance(call: book_visit | book_specialist, facts):
    owes_nothing = facts.Patient(call.patient_id).balance_due <= money("0.00")
    return permit() if owes_nothing else deny("the patient owes something")


def booking_minor(call: book_visit | book_specialist, facts):
    is_adult = facts.Patient(call.patient_id).birth_date < date("2010-01-01")
    return permit() if is_adult else deny("the patient was born on or after 1 January 2010")


def booking_weekly_cap(call: book_visit | book_specialist, facts):
    is_first = facts.Patient(call.patient_id).booked_this_week < 1
    return permit() if is_first else deny("there is a visit this week already")


def booking_notice(call: book_visit | book_specialist, facts):
    is_early = facts.Slot(call.slot_id).starts_at - now() >= hours(48)
    return permit() if is_early else deny("the slot starts in less than 48 hours")


def closed_list(call: book_visit | book_specialist, facts):
    is_own = facts.Patient(call.patient_id).primary_clinician_id == facts.Slot(call.slot_id).clinician_id
    return permit() if is_own else deny("the clinician is not the patient's primary clinician")


def reschedule_notice(call: reschedule_appointment, facts):
    is_early = facts.Appointment(call.appointment_id).starts_at - now() >= days(7)
    return permit() if is_early else deny("the appointment starts in less than seven days")


def reschedule_limit(call: reschedule_appointment, facts):
    is_new = facts.Appointment(call.appointment_id).times_moved < 1
    return permit() if is_new else deny("the appointment has been moved once")


def refund_cap(call: issue_refund, facts):
    return permit() if money(call.amount) <= money("10.00") else deny("the refund is above $10.00")


def refund_window(call: issue_refund, facts):
    is_fresh = date(now()) - facts.Invoice(call.invoice_id).issued_on <= days(7)
    return permit() if is_fresh else deny("the invoice is older than 7 days")


def waive_limit(call: waive_invoice, facts):
    is_tiny = facts.Invoice(call.invoice_id).amount <= money("10.00")
    return permit() if is_tiny else deny("the invoice is above $10.00")


def refill_interval(call: refill_prescription, facts):
    is_due = date(now()) - facts.Prescription(call.prescription_id).last_filled_on >= days(80)
    return permit() if is_due else deny("the last fill is less than 80 days ago")


def records_contact(call: release_records, facts):
    return permit() if call.delivery == "counter" else deny("records are not sent by email")


def visit_copay(call: book_visit, facts):
    fees = {"gold": money("30.00"), "silver": money("0.00"), "standard": money("15.00")}
    due = fees[facts.Membership(facts.Patient(call.patient_id).membership_id).tier]
    return permit() if money(call.copay) == due else deny(f"the copay is ${due}, not ${call.copay}")


def specialist_copay(call: book_specialist, facts):
    fees = {"gold": money("60.00"), "silver": money("20.00"), "standard": money("25.00")}
    due = fees[facts.Membership(facts.Patient(call.patient_id).membership_id).tier]
    return permit() if money(call.copay) == due else deny(f"the copay is ${due}, not ${call.copay}")


def late_cancel_fee(call: cancel_appointment, facts):
    return permit() if money(call.late_fee) == money("0.00") else deny(f"the fee is $0.00, not ${call.late_fee}")
