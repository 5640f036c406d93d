def booking_active_patient(call, facts):
    if facts.Patient(call.patient_id).status != "active":
        return deny(f"patient {call.patient_id} is not active")
    return permit()


def booking_balance(call, facts):
    patient = facts.Patient(call.patient_id)
    if patient.balance_due <= money("150.00"):
        return permit()
    if patient.payment_plan:
        return permit()
    return deny("more than $150.00 is owed and there is no payment plan")


def booking_minor(call, facts):
    patient = facts.Patient(call.patient_id)
    if patient.birth_date < date("2010-01-01"):
        return permit()
    if patient.guardian_on_file:
        return permit()
    return deny("a minor is booked only when a guardian is on file")


def slot_open(call, facts):
    if facts.Slot(call.slot_id).status != "open":
        return deny(f"slot {call.slot_id} is not open")
    return permit()


def booking_notice(call, facts):
    slot = facts.Slot(call.slot_id)
    if slot.kind == "telehealth":
        needed = hours(1)
    else:
        needed = hours(4)
    if slot.starts_at - now() >= needed:
        return permit()
    return deny("the slot starts too soon")


def booking_weekly_cap(call, facts):
    patient = facts.Patient(call.patient_id)
    if patient.booked_this_week < 3:
        return permit()
    if patient.booked_this_week >= 5:
        return deny("five or more visits are booked this week already")
    if facts.Membership(patient.membership_id).tier == "gold":
        return permit()
    return deny("three visits are booked this week and the patient is not Gold")


def closed_list(call, facts):
    clinician_id = facts.Slot(call.slot_id).clinician_id
    if facts.Clinician(clinician_id).accepts_new:
        return permit()
    if facts.Patient(call.patient_id).primary_clinician_id == clinician_id:
        return permit()
    return deny("the clinician takes no new patients")


def visit_copay(call, facts):
    membership = facts.Membership(facts.Patient(call.patient_id).membership_id)
    if membership.status != "active":
        due = money("30.00")
    elif membership.tier == "gold":
        due = money("0.00")
    elif membership.tier == "silver":
        due = money("15.00")
    else:
        due = money("30.00")
    if money(call.copay) == due:
        return permit()
    return deny(f"the copay is ${due}, not ${call.copay}")


def specialist_copay(call, facts):
    if facts.Slot(call.slot_id).kind == "telehealth":
        due = money("25.00")
    else:
        tier = facts.Membership(facts.Patient(call.patient_id).membership_id).tier
        if tier == "gold":
            due = money("20.00")
        elif tier == "silver":
            due = money("40.00")
        else:
            due = money("60.00")
    if money(call.copay) == due:
        return permit()
    return deny(f"the copay is ${due}, not ${call.copay}")


def referral_owner(call, facts):
    if facts.Referral(call.referral_id).patient_id != call.patient_id:
        return deny("the referral was written for somebody else")
    return permit()


def referral_current(call, facts):
    referral = facts.Referral(call.referral_id)
    if referral.status != "active":
        return deny("the referral is not active")
    if referral.expires_on < date(now()):
        return deny("the referral has expired")
    return permit()


def referral_specialty(call, facts):
    specialty = facts.Clinician(facts.Slot(call.slot_id).clinician_id).specialty
    if specialty == "physiotherapy":
        return permit()
    if facts.Referral(call.referral_id).specialty == specialty:
        return permit()
    return deny("the referral is for another specialty")


def telehealth_consent(call, facts):
    if facts.Slot(call.slot_id).kind != "telehealth":
        return permit()
    if facts.Consent(call.patient_id, "telehealth").status == "given":
        return permit()
    return deny("the patient has not consented to telehealth")


def telehealth_location(call, facts):
    if facts.Slot(call.slot_id).kind != "telehealth":
        return permit()
    if facts.Request.in_state:
        return permit()
    return deny("the patient will be out of state")


def psychiatry_consent(call, facts):
    if facts.Clinician(facts.Slot(call.slot_id).clinician_id).specialty != "psychiatry":
        return permit()
    if facts.Consent(call.patient_id, "psychiatric_care").status == "given":
        return permit()
    return deny("the patient has not consented to psychiatric care")
