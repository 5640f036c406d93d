def visit_copay(call, facts):
    membership = facts.Membership(facts.Patient(call.patient_id).membership_id)
    if membership.status != "active":
        due = money("30.00")
    else:
        due = {"gold": money("0.00"), "silver": money("15.00"), "standard": money("30.00")}[membership.tier]
    if money(call.copay) != due:
        return deny(f"the copay is {due}")
    return permit()


def specialist_visit_copay(call, facts):
    if facts.Slot(call.slot_id).kind == "telehealth":
        due = money("25.00")
    else:
        membership = facts.Membership(facts.Patient(call.patient_id).membership_id)
        due = {"gold": money("20.00"), "silver": money("40.00"), "standard": money("60.00")}[membership.tier]
    if money(call.copay) != due:
        return deny(f"the copay is {due}")
    return permit()
