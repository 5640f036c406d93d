def prescription_written_for_patient(call, facts):
    if facts.Prescription(call.prescription_id).patient_id != call.patient_id:
        return deny("written for another patient")
    return permit()


def prescription_active_not_expired(call, facts):
    prescription = facts.Prescription(call.prescription_id)
    if prescription.status != "active":
        return deny(f"the prescription is {prescription.status}")
    if date(now()) > prescription.expires_on:
        return deny(f"the prescription expired on {prescription.expires_on}")
    return permit()


def refills_left(call, facts):
    if facts.Prescription(call.prescription_id).refills_left < 1:
        return deny("no refill left")
    return permit()


def days_between_fills(call, facts):
    prescription = facts.Prescription(call.prescription_id)
    needed = days(28) if prescription.controlled else days(21)
    if date(now()) - prescription.last_filled_on < needed:
        return deny(f"last filled on {prescription.last_filled_on}, too recently")
    return permit()


def controlled_medicine_licence(call, facts):
    prescription = facts.Prescription(call.prescription_id)
    if not prescription.controlled:
        return permit()
    clinician = facts.Clinician(prescription.prescriber_id)
    if clinician.licence != "active":
        return deny(f"the prescriber's licence is {clinician.licence}")
    return permit()
