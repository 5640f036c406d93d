def membership_change_balance(call, facts):
    if call.new_tier == "standard":
        return permit()
    balance = facts.Patient(call.patient_id).balance_due
    if balance != money("0.00"):
        return deny(f"the patient's balance is {balance}, not 0.00")
    return permit()


def change_to_gold(call, facts):
    if call.new_tier != "gold":
        return permit()
    membership = facts.Membership(call.membership_id)
    if membership.tier in {"silver", "gold"}:
        return permit()
    if membership.since > date("2024-03-12"):
        return deny("a Standard member who joined after 12 March 2024 may not go straight to Gold")
    return permit()
