def booking_active_patient(call: book_visit | book_specialist, facts):
    is_active = facts.Patient(call.patient_id).status == "active"
    return permit() if is_active else deny(f"patient {call.patient_id} is not active")


def booking_balance(call: book_visit | book_specialist, facts):
    patient = facts.Patient(call.patient_id)
    is_fine = patient.balance_due <= money("150.00") or patient.payment_plan
    return permit() if is_fine else deny("more than $150.00 is owed and there is no payment plan")


def booking_minor(call: book_visit | book_specialist, facts):
    patient = facts.Patient(call.patient_id)
    is_fine = patient.birth_date < date("2010-01-01") or patient.guardian_on_file
    return permit() if is_fine else deny("a minor is booked only when a guardian is on file")


def slot_open(call: book_visit | book_specialist | reschedule_appointment, facts):
    return permit() if facts.Slot(call.slot_id).status == "open" else deny(f"slot {call.slot_id} is not open")


def booking_notice(call: book_visit | book_specialist, facts):
    slot = facts.Slot(call.slot_id)
    needed = hours(1) if slot.kind == "telehealth" else hours(4)
    return permit() if slot.starts_at - now() >= needed else deny("the slot starts too soon")


def booking_weekly_cap(call: book_visit | book_specialist, facts):
    patient = facts.Patient(call.patient_id)
    if patient.booked_this_week >= 5:
        return deny("five or more visits are booked this week already")
    has_room = patient.booked_this_week < 3 or facts.Membership(patient.membership_id).tier == "gold"
    return permit() if has_room else deny("three visits are booked this week and the patient is not Gold")


def closed_list(call: book_visit | book_specialist, facts):
    clinician_id = facts.Slot(call.slot_id).clinician_id
    if facts.Clinician(clinician_id).accepts_new:
        return permit()
    is_own = facts.Patient(call.patient_id).primary_clinician_id == clinician_id
    return permit() if is_own else deny("the clinician takes no new patients")


def visit_copay(call: book_visit, facts):
    fees = {"gold": money("0.00"), "silver": money("15.00"), "standard": money("30.00")}
    due = money("30.00") if membership(call, facts).status != "active" else fees[membership(call, facts).tier]
    return permit() if money(call.copay) == due else deny(f"the copay is ${due}, not ${call.copay}")


def specialist_copay(call: book_specialist, facts):
    fees = {"gold": money("20.00"), "silver": money("40.00"), "standard": money("60.00")}
    due = money("25.00") if facts.Slot(call.slot_id).kind == "telehealth" else fees[membership(call, facts).tier]
    return permit() if money(call.copay) == due else deny(f"the copay is ${due}, not ${call.copay}")


def referral_owner(call: book_specialist, facts):
    is_own = facts.Referral(call.referral_id).patient_id == call.patient_id
    return permit() if is_own else deny("the referral was written for somebody else")


def referral_current(call: book_specialist, facts):
    referral = facts.Referral(call.referral_id)
    if referral.status != "active":
        return deny("the referral is not active")
    return deny("the referral has expired") if referral.expires_on < date(now()) else permit()


def referral_specialty(call: book_specialist, facts):
    specialty = facts.Clinician(facts.Slot(call.slot_id).clinician_id).specialty
    fits = specialty == "physiotherapy" or facts.Referral(call.referral_id).specialty == specialty
    return permit() if fits else deny("the referral is for another specialty")


def telehealth_consent(call: book_visit | book_specialist, facts):
    if facts.Slot(call.slot_id).kind != "telehealth":
        return permit()
    is_given = facts.Consent(call.patient_id, "telehealth").status == "given"
    return permit() if is_given else deny("the patient has not consented to telehealth")


def telehealth_location(call: book_visit, facts):
    is_fine = facts.Slot(call.slot_id).kind != "telehealth" or facts.Request.in_state
    return permit() if is_fine else deny("the patient will be out of state")


def psychiatry_consent(call: book_specialist, facts):
    if facts.Clinician(facts.Slot(call.slot_id).clinician_id).specialty != "psychiatry":
        return permit()
    is_given = facts.Consent(call.patient_id, "psychiatric_care").status == "given"
    return permit() if is_given else deny("the patient has not consented to psychiatric care")


def membership(call, facts):
    return facts.Membership(facts.Patient(call.patient_id).membership_id)
