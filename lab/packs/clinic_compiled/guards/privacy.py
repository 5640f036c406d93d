def who_may_receive_records(call, facts):
    if call.person_id == call.patient_id:
        return permit()
    proxy = facts.Proxy(call.patient_id, call.person_id)
    if not proxy.exists:
        return deny("not listed as the patient's proxy")
    if proxy.valid_until < date(now()):
        return deny(f"the proxy listing ended on {proxy.valid_until}")
    if call.part not in proxy.scopes:
        return deny("the proxy listing does not cover this part")
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
    if facts.Consent(call.patient_id, "psychiatric_release").status != "given":
        return deny("the consent to psychiatric release is not given")
    return permit()


def proxy_change_consent(call, facts):
    if len(call.scopes) == 0:
        return permit()
    if facts.Consent(call.patient_id, "data_sharing").status != "given":
        return deny("the data sharing consent is not given")
    return permit()
