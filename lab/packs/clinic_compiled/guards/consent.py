def telehealth_consent(call, facts):
    if facts.Slot(call.slot_id).kind != "telehealth":
        return permit()
    status = facts.Consent(call.patient_id, "telehealth").status
    if status != "given":
        return deny(f"the patient's telehealth consent is {status}")
    return permit()


def telehealth_in_state(call, facts):
    if facts.Slot(call.slot_id).kind != "telehealth":
        return permit()
    if not facts.Request.in_state:
        return deny("the patient will be out of state during the telehealth visit")
    return permit()


def psychiatric_care_consent(call, facts):
    clinician = facts.Clinician(facts.Slot(call.slot_id).clinician_id)
    if clinician.specialty != "psychiatry":
        return permit()
    status = facts.Consent(call.patient_id, "psychiatric_care").status
    if status != "given":
        return deny(f"the patient's psychiatric care consent is {status}")
    return permit()


def recording_consent(call, facts):
    if call.status == "withdrawn":
        return permit()
    if not facts.Patient(call.patient_id).identity_checked:
        return deny("the patient's identity has not been checked")
    return permit()
