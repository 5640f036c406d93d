def telehealth_consent(call, facts):
    if facts.Slot(call.slot_id).kind != "telehealth":
        return permit()
    status = facts.Consent(call.patient_id, "telehealth").status
    if status != "given":
        return deny(f"the telehealth consent is {status}")
    return permit()


def telehealth_in_state(call, facts):
    if facts.Slot(call.slot_id).kind != "telehealth":
        return permit()
    if facts.Request.in_state_during_visit:
        return permit()
    return deny("the patient will not be in the state during the telehealth visit")


def psychiatric_care_consent(call, facts):
    if facts.Clinician(facts.Slot(call.slot_id).clinician_id).specialty != "psychiatry":
        return permit()
    status = facts.Consent(call.patient_id, "psychiatric_care").status
    if status != "given":
        return deny(f"the psychiatric care consent is {status}")
    return permit()


def recording_consent(call, facts):
    if call.status == "withdrawn":
        return permit()
    if facts.Patient(call.patient_id).identity_checked:
        return permit()
    return deny("the patient's identity has not been checked")
