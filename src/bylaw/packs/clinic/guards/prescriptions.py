def prescription_owner(call, facts):
    if facts.Prescription(call.prescription_id).patient_id != call.patient_id:
        return deny("the prescription was written for somebody else")
    return permit()


def prescription_current(call, facts):
    prescription = facts.Prescription(call.prescription_id)
    if prescription.status != "active":
        return deny("the prescription is not active")
    if prescription.expires_on < date(now()):
        return deny("the prescription has expired")
    return permit()


def refills_left(call, facts):
    if facts.Prescription(call.prescription_id).refills_left < 1:
        return deny("no refill is left")
    return permit()


def refill_interval(call, facts):
    prescription = facts.Prescription(call.prescription_id)
    if prescription.controlled:
        needed = days(28)
    else:
        needed = days(21)
    if date(now()) - prescription.last_filled_on >= needed:
        return permit()
    return deny("the last fill is too recent")


def controlled_prescriber(call, facts):
    prescription = facts.Prescription(call.prescription_id)
    if not prescription.controlled:
        return permit()
    if facts.Clinician(prescription.prescriber_id).licence == "active":
        return permit()
    return deny("the prescriber's licence is not active")
