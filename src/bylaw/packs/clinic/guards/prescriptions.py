def prescription_owner(call: refill_prescription, facts):
    is_own = facts.Prescription(call.prescription_id).patient_id == call.patient_id
    return permit() if is_own else deny("the prescription was written for somebody else")


def prescription_current(call: refill_prescription, facts):
    prescription = facts.Prescription(call.prescription_id)
    if prescription.status != "active":
        return deny("the prescription is not active")
    return deny("the prescription has expired") if prescription.expires_on < date(now()) else permit()


def refills_left(call: refill_prescription, facts):
    return deny("no refill is left") if facts.Prescription(call.prescription_id).refills_left < 1 else permit()


def refill_interval(call: refill_prescription, facts):
    prescription = facts.Prescription(call.prescription_id)
    needed = days(28) if prescription.controlled else days(21)
    is_due = date(now()) - prescription.last_filled_on >= needed
    return permit() if is_due else deny("the last fill is too recent")


def controlled_prescriber(call: refill_prescription, facts):
    prescription = facts.Prescription(call.prescription_id)
    is_fine = not prescription.controlled or facts.Clinician(prescription.prescriber_id).licence == "active"
    return permit() if is_fine else deny("the prescriber's licence is not active")
