def telehealth_consent(call, facts):
    if facts.Slot(call.slot_id).kind == "in_person":
        return permit()
    if facts.Consent(call.patient_id, "telehealth").status != "given":
        return deny("the telehealth consent is not given")
    return permit()


def telehealth_in_state(call, facts):
    if facts.Slot(call.slot_id).kind == "in_person":
        return permit()
    if facts.Request.in_state == None:
        return deny("the caller has not said that the patient will be in the state")
    if not facts.Request.in_state:
        return deny("the patient will be out of state")
    return permit()


def psychiatric_care_consent(call, facts):
    clinician = facts.Clinician(facts.Slot(call.slot_id).clinician_id)
    if clinician.specialty != "psychiatry":
        return permit()
    if facts.Consent(call.patient_id, "psychiatric_care").status != "given":
        return deny("the psychiatric care consent is not given")
    return permit()


def recording_consent(call, facts):
    if call.status == "withdrawn":
        return permit()
    if not facts.Patient(call.patient_id).identity_checked:
        return deny("the patient's identity has not been checked")
    return permit()
