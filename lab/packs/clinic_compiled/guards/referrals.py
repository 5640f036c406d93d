def referral_written_for_patient(call, facts):
    if facts.Referral(call.referral_id).patient_id != call.patient_id:
        return deny("the referral was written for another patient")
    return permit()


def referral_active_not_expired(call, facts):
    referral = facts.Referral(call.referral_id)
    if referral.status != "active":
        return deny(f"the referral is {referral.status}")
    if date(now()) > referral.expires_on:
        return deny(f"the referral expired on {referral.expires_on}")
    return permit()


def referral_specialty_match(call, facts):
    specialty = facts.Clinician(facts.Slot(call.slot_id).clinician_id).specialty
    if specialty == "physiotherapy":
        return permit()
    referral = facts.Referral(call.referral_id)
    if referral.specialty != specialty:
        return deny(f"the referral is for {referral.specialty}, the clinician's specialty is {specialty}")
    return permit()
