def telehealth_consent(call, facts):
    if facts.Slot(call.slot_id).kind == "in_person":
        return permit()
    consent = facts.Consent(call.patient_id, "telehealth")
    if consent.status != "given":
        return deny(f"the telehealth consent is {consent.status}")
    return permit()


def telehealth_in_state(call, facts):
    if facts.Slot(call.slot_id).kind == "in_person":
        return permit()
    if facts.Request.in_state:
        return permit()
    return deny("for a telehealth visit the patient must be in the state")


def psychiatric_care_consent(call, facts):
    if facts.Clinician(facts.Slot(call.slot_id).clinician_id).specialty != "psychiatry":
        return permit()
    consent = facts.Consent(call.patient_id, "psychiatric_care")
    if consent.status != "given":
        return deny(f"the psychiatric care consent is {consent.status}")
    return permit()


def recording_consent(call, facts):
    if call.status == "withdrawn":
        return permit()
    if not facts.Patient(call.patient_id).identity_checked:
        return deny("the patient's identity has not been checked")
    return permit()
