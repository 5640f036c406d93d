def own_appointments_only(call, facts):
    if facts.Appointment(call.appointment_id).patient_id != call.patient_id:
        return deny("the appointment is another patient's")
    return permit()


def booked_or_confirmed_only(call, facts):
    status = facts.Appointment(call.appointment_id).status
    if status not in {"booked", "confirmed"}:
        return deny(f"the appointment is {status}")
    return permit()


def notice_for_moving(call, facts):
    left = facts.Appointment(call.appointment_id).starts_at - now()
    if left >= hours(24):
        return permit()
    if left < hours(2):
        return deny("less than 2 hours to go, or already started")
    membership_id = facts.Patient(call.patient_id).membership_id
    if facts.Membership(membership_id).tier == "gold":
        return permit()
    return deny("less than 24 hours to go and not a Gold member")


def limit_on_moves(call, facts):
    appointment = facts.Appointment(call.appointment_id)
    if appointment.times_moved < 2:
        return permit()
    if appointment.moved_by_clinic:
        return permit()
    return deny("already moved two or more times, and not last by the clinic")


def same_clinician_when_moved(call, facts):
    clinician_id = facts.Appointment(call.appointment_id).clinician_id
    if facts.Slot(call.slot_id).clinician_id != clinician_id:
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
        return deny(f"the fee for this cancellation is {fee}")
    return permit()
