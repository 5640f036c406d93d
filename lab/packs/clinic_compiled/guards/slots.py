def open_slots_only(call, facts):
    slot = facts.Slot(call.slot_id)
    if slot.status != "open":
        return deny(f"the slot is {slot.status}")
    return permit()


def booking_lead_time(call, facts):
    slot = facts.Slot(call.slot_id)
    if slot.kind == "telehealth":
        if slot.starts_at - now() < hours(1):
            return deny("a telehealth slot is booked at least 1 hour ahead")
        return permit()
    if slot.starts_at - now() < hours(4):
        return deny("an in-person slot is booked at least 4 hours ahead")
    return permit()


def weekly_visit_limit(call, facts):
    patient = facts.Patient(call.patient_id)
    booked = patient.booked_this_week
    if booked < 3:
        return permit()
    if booked >= 5:
        return deny("five or more visits booked this week")
    if facts.Membership(patient.membership_id).tier != "gold":
        return deny("three or more visits booked this week, more only for Gold members")
    return permit()


def closed_clinician_lists(call, facts):
    slot = facts.Slot(call.slot_id)
    if facts.Clinician(slot.clinician_id).accepts_new:
        return permit()
    if facts.Patient(call.patient_id).primary_clinician_id != slot.clinician_id:
        return deny("the clinician takes no new patients and is not the patient's primary clinician")
    return permit()
