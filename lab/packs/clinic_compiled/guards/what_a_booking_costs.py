def visit_copay(call, facts):
    membership = facts.Membership(facts.Patient(call.patient_id).membership_id)
    if membership.status in {"paused", "lapsed"}:
        due = money("30.00")
    elif membership.tier == "gold":
        due = money("0.00")
    elif membership.tier == "silver":
        due = money("15.00")
    else:
        due = money("30.00")
    if money(call.copay) != due:
        return deny(f"the copay is {due}")
    return permit()


def specialist_visit_copay(call, facts):
    slot = facts.Slot(call.slot_id)
    if slot.kind == "telehealth":
        due = money("25.00")
    else:
        tier = facts.Membership(facts.Patient(call.patient_id).membership_id).tier
        if tier == "gold":
            due = money("20.00")
        elif tier == "silver":
            due = money("40.00")
        else:
            due = money("60.00")
    if money(call.copay) != due:
        return deny(f"the copay is {due}")
    return permit()
