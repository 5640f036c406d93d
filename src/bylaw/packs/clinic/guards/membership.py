def upgrade_balance(call: change_membership, facts):
    is_fine = call.new_tier == "standard" or facts.Patient(call.patient_id).balance_due == money("0.00")
    return permit() if is_fine else deny("a balance is owed")


def gold_ladder(call: change_membership, facts):
    if call.new_tier != "gold":
        return permit()
    membership = facts.Membership(call.membership_id)
    is_ready = membership.tier in ("silver", "gold") or membership.since <= date("2024-03-12")
    return permit() if is_ready else deny("a Standard member who joined after 12 March 2024 goes to Silver first")
