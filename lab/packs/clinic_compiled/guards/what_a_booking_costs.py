def visit_copay(call, facts):
    membership = facts.Membership(facts.Patient(call.patient_id).membership_id)
    if membership.status != "active":
        if money(call.copay) != money("30.00"):
            return deny(f"the copay is 30.00 for a {membership.status} membership")
        return permit()
    copay = {"gold": money("0.00"), "silver": money("15.00"), "standard": money("30.00")}[membership.tier]
    if money(call.copay) != copay:
        return deny(f"the copay for this member is {copay}")
    return permit()


def specialist_visit_copay(call, facts):
    slot = facts.Slot(call.slot_id)
    if slot.kind == "telehealth":
        if money(call.copay) != money("25.00"):
            return deny("a telehealth visit with a specialist costs 25.00")
        return permit()
    membership = facts.Membership(facts.Patient(call.patient_id).membership_id)
    copay = {"gold": money("20.00"), "silver": money("40.00"), "standard": money("60.00")}[membership.tier]
    if money(call.copay) != copay:
        return deny(f"the copay for this member is {copay}")
    return permit()
