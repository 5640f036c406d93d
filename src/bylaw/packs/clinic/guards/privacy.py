def consent_identity(call: record_consent, facts):
    is_fine = call.status == "withdrawn" or facts.Patient(call.patient_id).identity_checked
    return permit() if is_fine else deny("the patient's identity has not been checked")


def records_recipient(call: release_records, facts):
    if call.person_id == call.patient_id:
        return permit()
    proxy = facts.Proxy(call.patient_id, call.person_id)
    if proxy.valid_until < date(now()):
        return deny("the proxy listing has ended")
    return permit() if call.part in proxy.scopes else deny(f"the proxy listing does not cover {call.part}")


def identity_checked(call: release_records | update_contact | update_proxy, facts):
    is_checked = facts.Patient(call.patient_id).identity_checked
    return permit() if is_checked else deny("the patient's identity has not been checked")


def records_contact(call: release_records, facts):
    is_fine = call.delivery == "counter" or facts.Patient(call.patient_id).contact_confirmed
    return permit() if is_fine else deny("the patient's contact details are not confirmed")


def records_notes(call: release_records, facts):
    is_given = call.part != "psychiatric_notes" or consents(call, facts, "psychiatric_release")
    return permit() if is_given else deny("the patient has not consented to the release of psychiatric notes")


def proxy_consent(call: update_proxy, facts):
    is_given = len(call.scopes) == 0 or consents(call, facts, "data_sharing")
    return permit() if is_given else deny("the patient has not consented to data sharing")


def consents(call, facts, kind):
    return facts.Consent(call.patient_id, kind).status == "given"
