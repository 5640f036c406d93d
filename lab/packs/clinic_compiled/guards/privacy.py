def who_may_receive_records(call, facts):
    if call.person_id == call.patient_id:
        return permit()
    proxy = facts.Proxy(call.patient_id, call.person_id)
    if not proxy.exists:
        return deny("the person is not listed as the patient's proxy")
    if proxy.valid_until < date(now()):
        return deny(f"the proxy listing ended on {proxy.valid_until}")
    if call.part not in proxy.scopes:
        return deny(f"the proxy listing does not cover {call.part}")
    return permit()


def identity_checked_for_privacy(call, facts):
    if not facts.Patient(call.patient_id).identity_checked:
        return deny("the patient's identity has not been checked")
    return permit()


def email_release_confirmed_contact(call, facts):
    if call.delivery == "counter":
        return permit()
    if not facts.Patient(call.patient_id).contact_confirmed:
        return deny("the patient's contact details are not confirmed")
    return permit()


def psychiatric_notes_release(call, facts):
    if call.part != "psychiatric_notes":
        return permit()
    consent = facts.Consent(call.patient_id, "psychiatric_release")
    if consent.status != "given":
        return deny(f"the consent to psychiatric release is {consent.status}")
    return permit()


def proxy_change_consent(call, facts):
    if len(call.scopes) == 0:
        return permit()
    consent = facts.Consent(call.patient_id, "data_sharing")
    if consent.status != "given":
        return deny(f"the data sharing consent is {consent.status}")
    return permit()
