def own_appointment_only(call, facts):
    if facts.Appointment(call.appointment_id).patient_id != call.patient_id:
        return deny("another patient's appointment")
    return permit()


def movable_appointment_status(call, facts):
    status = facts.Appointment(call.appointment_id).status
    if status not in {"booked", "confirmed"}:
        return deny(f"the appointment is {status}")
    return permit()


def moving_notice(call, facts):
    notice = facts.Appointment(call.appointment_id).starts_at - now()
    if notice >= hours(24):
        return permit()
    if notice < hours(2):
        return deny("less than 2 hours to go")
    if facts.Membership(facts.Patient(call.patient_id).membership_id).tier != "gold":
        return deny("less than 24 hours to go, and only Gold members may still move it")
    return permit()


def number_of_moves(call, facts):
    appointment = facts.Appointment(call.appointment_id)
    if appointment.times_moved < 2:
        return permit()
    if not appointment.moved_by_clinic:
        return deny(f"moved {appointment.times_moved} times already, and not last by the clinic")
    return permit()


def same_clinician_move(call, facts):
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
        return deny(f"the fee must be {fee}")
    return permit()
