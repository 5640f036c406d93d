def visit_copay(call, facts):
    membership = facts.Membership(facts.Patient(call.patient_id).membership_id)
    if membership.status != "active":
        if money(call.copay) != money("30.00"):
            return deny("the copay must be $30.00 as the membership is not active")
        return permit()
    copays = {"gold": money("0.00"), "silver": money("15.00"), "standard": money("30.00")}
    copay = copays[membership.tier]
    if money(call.copay) != copay:
        return deny(f"the copay must be {copay}")
    return permit()


def specialist_visit_copay(call, facts):
    if facts.Slot(call.slot_id).kind == "telehealth":
        if money(call.copay) != money("25.00"):
            return deny("the copay of a telehealth specialist visit must be $25.00")
        return permit()
    membership = facts.Membership(facts.Patient(call.patient_id).membership_id)
    copays = {"gold": money("20.00"), "silver": money("40.00"), "standard": money("60.00")}
    copay = copays[membership.tier]
    if money(call.copay) != copay:
        return deny(f"the copay must be {copay}")
    return permit()
