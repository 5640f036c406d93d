def membership_change_balance(call, facts):
    if call.new_tier == "standard":
        return permit()
    patient = facts.Patient(call.patient_id)
    if patient.balance_due != money("0.00"):
        return deny(f"the patient owes {patient.balance_due}")
    return permit()


def change_to_gold(call, facts):
    if call.new_tier != "gold":
        return permit()
    membership = facts.Membership(call.membership_id)
    if membership.tier in {"silver", "gold"}:
        return permit()
    if membership.since > date("2024-03-12"):
        return deny("a Standard member since after 12 March 2024")
    return permit()
