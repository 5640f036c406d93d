def consent_identity(call, facts):
    if call.status == "withdrawn":
        return permit()
    if facts.Patient(call.patient_id).identity_checked:
        return permit()
    return deny("the patient's identity has not been checked")


def records_recipient(call, facts):
    if call.person_id == call.patient_id:
        return permit()
    proxy = facts.Proxy(call.patient_id, call.person_id)
    if proxy.valid_until < date(now()):
        return deny("the proxy listing has ended")
    if call.part in proxy.scopes:
        return permit()
    return deny(f"the proxy listing does not cover {call.part}")


def identity_checked(call, facts):
    if facts.Patient(call.patient_id).identity_checked:
        return permit()
    return deny("the patient's identity has not been checked")


def records_contact(call, facts):
    if call.delivery == "counter":
        return permit()
    if facts.Patient(call.patient_id).contact_confirmed:
        return permit()
    return deny("the patient's contact details are not confirmed")


def records_notes(call, facts):
    if call.part != "psychiatric_notes":
        return permit()
    if facts.Consent(call.patient_id, "psychiatric_release").status == "given":
        return permit()
    return deny("the patient has not consented to the release of psychiatric notes")


def proxy_consent(call, facts):
    if len(call.scopes) == 0:
        return permit()
    if facts.Consent(call.patient_id, "data_sharing").status == "given":
        return permit()
    return deny("the patient has not consented to data sharing")
