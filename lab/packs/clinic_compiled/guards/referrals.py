def referral_written_for_patient(call, facts):
    if facts.Referral(call.referral_id).patient_id != call.patient_id:
        return deny("the referral was written for another patient")
    return permit()


def referral_active_not_expired(call, facts):
    referral = facts.Referral(call.referral_id)
    if referral.status != "active":
        return deny(f"the referral is {referral.status}")
    if referral.expires_on < date(now()):
        return deny(f"the referral expired on {referral.expires_on}")
    return permit()


def referral_specialty_match(call, facts):
    clinician = facts.Clinician(facts.Slot(call.slot_id).clinician_id)
    if clinician.specialty == "physiotherapy":
        return permit()
    if facts.Referral(call.referral_id).specialty != clinician.specialty:
        return deny(f"the referral is not for {clinician.specialty}")
    return permit()
