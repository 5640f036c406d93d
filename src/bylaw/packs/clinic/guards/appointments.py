def appointment_owner(call, facts):
    if facts.Appointment(call.appointment_id).patient_id != call.patient_id:
        return deny("the appointment is somebody else's")
    return permit()


def appointment_standing(call, facts):
    if facts.Appointment(call.appointment_id).status not in ("booked", "confirmed"):
        return deny("the appointment is neither booked nor confirmed")
    return permit()


def reschedule_notice(call, facts):
    notice = facts.Appointment(call.appointment_id).starts_at - now()
    if notice >= hours(24):
        return permit()
    if notice < hours(2):
        return deny("the appointment starts in less than 2 hours")
    if facts.Membership(facts.Patient(call.patient_id).membership_id).tier == "gold":
        return permit()
    return deny("only Gold members move an appointment with less than 24 hours to go")


def reschedule_limit(call, facts):
    appointment = facts.Appointment(call.appointment_id)
    if appointment.times_moved < 2:
        return permit()
    if appointment.moved_by_clinic:
        return permit()
    return deny("the appointment has been moved twice")


def reschedule_clinician(call, facts):
    clinician_id = facts.Appointment(call.appointment_id).clinician_id
    if facts.Slot(call.slot_id).clinician_id == clinician_id:
        return permit()
    return deny("the slot belongs to another clinician")


def late_cancel_fee(call, facts):
    appointment = facts.Appointment(call.appointment_id)
    patient = facts.Patient(call.patient_id)
    if appointment.specialist:
        notice = hours(48)
    else:
        notice = hours(24)
    if appointment.starts_at - now() >= notice:
        due = money("0.00")
    elif facts.Request.reason in ("bereavement", "clinic_error"):
        due = money("0.00")
    else:
        tier = facts.Membership(patient.membership_id).tier
        if tier == "standard":
            due = money("40.00")
        elif tier == "silver":
            due = money("25.00")
        elif patient.late_waivers_used < 2:
            due = money("0.00")
        else:
            due = money("25.00")
    if money(call.late_fee) == due:
        return permit()
    return deny(f"the fee is ${due}, not ${call.late_fee}")
