def appointment_owner(call: reschedule_appointment | cancel_appointment, facts):
    is_own = facts.Appointment(call.appointment_id).patient_id == call.patient_id
    return permit() if is_own else deny("the appointment is somebody else's")


def appointment_standing(call: reschedule_appointment | cancel_appointment, facts):
    stands = facts.Appointment(call.appointment_id).status in ("booked", "confirmed")
    return permit() if stands else deny("the appointment is neither booked nor confirmed")


def reschedule_notice(call: reschedule_appointment, facts):
    notice = facts.Appointment(call.appointment_id).starts_at - now()
    if notice >= hours(24):
        return permit()
    if notice < hours(2):
        return deny("the appointment starts in less than 2 hours")
    is_gold = facts.Membership(facts.Patient(call.patient_id).membership_id).tier == "gold"
    return permit() if is_gold else deny("only Gold members move an appointment with less than 24 hours to go")


def reschedule_limit(call: reschedule_appointment, facts):
    appointment = facts.Appointment(call.appointment_id)
    is_free = appointment.times_moved < 2 or appointment.moved_by_clinic
    return permit() if is_free else deny("the appointment has been moved twice")


def reschedule_clinician(call: reschedule_appointment, facts):
    clinician_id = facts.Appointment(call.appointment_id).clinician_id
    is_same = facts.Slot(call.slot_id).clinician_id == clinician_id
    return permit() if is_same else deny("the slot belongs to another clinician")


def late_cancel_fee(call: cancel_appointment, facts):
    due = fee(call, facts, facts.Patient(call.patient_id))
    return permit() if money(call.late_fee) == due else deny(f"the fee is ${due}, not ${call.late_fee}")


def fee(call, facts, patient):
    appointment = facts.Appointment(call.appointment_id)
    notice = hours(48) if appointment.specialist else hours(24)
    if appointment.starts_at - now() >= notice or facts.Request.reason in ("bereavement", "clinic_error"):
        return money("0.00")
    tier = facts.Membership(patient.membership_id).tier
    if tier == "standard":
        return money("40.00")
    return money("25.00") if tier == "silver" or patient.late_waivers_used >= 2 else money("0.00")
