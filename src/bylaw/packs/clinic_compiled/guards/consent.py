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
    if not facts.Request.in_state:
        return deny("the patient will not be in the state during the telehealth visit")
    return permit()


def recording_consent(call, facts):
    if call.status == "withdrawn":
        return permit()
    if not facts.Patient(call.patient_id).identity_checked:
        return deny("the patient's identity has not been checked")
    return permit()
