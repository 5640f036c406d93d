def upgrade_balance(call, facts):
    if call.new_tier == "standard":
        return permit()
    if facts.Patient(call.patient_id).balance_due == money("0.00"):
        return permit()
    return deny("a balance is owed")


def gold_ladder(call, facts):
    if call.new_tier != "gold":
        return permit()
    membership = facts.Membership(call.membership_id)
    if membership.tier in ("silver", "gold"):
        return permit()
    if membership.since <= date("2024-03-12"):
        return permit()
    return deny("a Standard member who joined after 12 March 2024 goes to Silver first")
