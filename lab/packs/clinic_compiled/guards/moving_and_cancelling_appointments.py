def own_appointments_only(call, facts):
    if facts.Appointment(call.appointment_id).patient_id != call.patient_id:
        return deny("another patient's appointment")
    return permit()


def booked_or_confirmed_only(call, facts):
    appointment = facts.Appointment(call.appointment_id)
    if appointment.status not in {"booked", "confirmed"}:
        return deny(f"the appointment is {appointment.status}")
    return permit()


def notice_for_moving(call, facts):
    left = facts.Appointment(call.appointment_id).starts_at - now()
    if left >= hours(24):
        return permit()
    if left < hours(2):
        return deny("less than 2 hours before the appointment")
    if facts.Membership(facts.Patient(call.patient_id).membership_id).tier != "gold":
        return deny("less than 24 hours before the appointment only Gold members may move it")
    return permit()


def limit_on_moves(call, facts):
    appointment = facts.Appointment(call.appointment_id)
    if appointment.times_moved < 2:
        return permit()
    if not appointment.moved_by_clinic:
        return deny("moved two or more times already")
    return permit()


def same_clinician_when_moved(call, facts):
    appointment = facts.Appointment(call.appointment_id)
    if appointment.clinician_id != facts.Slot(call.slot_id).clinician_id:
        return deny("the slot belongs to another clinician")
    return permit()


def cancellation_fee(call, facts):
    appointment = facts.Appointment(call.appointment_id)
    notice = hours(48) if appointment.specialist else hours(24)
    if appointment.starts_at - now() >= notice:
        fee = money("0.00")
    elif facts.Request.reason in {"bereavement", "clinic_error"}:
        fee = money("0.00")
    else:
        patient = facts.Patient(call.patient_id)
        tier = facts.Membership(patient.membership_id).tier
        if tier == "standard":
            fee = money("40.00")
        elif tier == "silver":
            fee = money("25.00")
        elif patient.late_waivers_used < 2:
            fee = money("0.00")
        else:
            fee = money("25.00")
    if money(call.late_fee) != fee:
        return deny(f"the fee is {fee}")
    return permit()
