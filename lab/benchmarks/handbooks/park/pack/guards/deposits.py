def release_when_due(call: release_deposit, facts):
    """
    You may release a deposit that is held once the booking is checked out
    Hand to a person whatever concerns partner bookings
    """
    booking = facts.Booking(call.booking_id)
    if booking.deposit_status != "held":
        return deny(f"the deposit is {booking.deposit_status}")
    if booking.status != "checked_out":
        return deny(f"the booking is {booking.status}")
    if now() - (time(booking.depart) + hours(11)) < hours(48):
        return deny("48 hours have not passed since 11:00 on the departure date")
    if damage_open(facts, call.booking_id):
        return deny("a damage report on the booking is open")
    return permit()


def release_sum(call: release_deposit, facts):
    """The sum released is exactly what is still held."""
    held = facts.Booking(call.booking_id).deposit_held
    return permit() if money(call.amount) == held else deny(f"{held} is held, not {call.amount}")


def charge_when_due(call: charge_damage, facts):
    """
    You may charge a damage report only when its status is "assessed"
    A report assessed above 250.00 is not charged by you at all.
    Hand to a person whatever concerns partner bookings
    """
    booking = facts.Booking(call.booking_id)
    if booking.status != "checked_out":
        return deny(f"the booking is {booking.status}")
    if date(now()) - booking.depart > days(14):
        return deny("more than 14 days after the departure")
    if done("charge_damage", report_id=call.report_id) > 0:
        return deny("the report was charged in this conversation")
    for report in facts.Damage(call.booking_id).reports:
        if report.report_id == call.report_id:
            if report.status != "assessed":
                return deny(f"the report is {report.status}")
            if report.category == "wear":
                return deny("wear is not charged")
            if money(report.assessed_cost) > money("250.00"):
                return deny("above 250.00 a person decides")
            return permit()
    return deny("the booking has no such report")


def charge_sum(call: charge_damage, facts):
    """The charge is the assessed cost, less 20.00 if the holder of the booking is a Canopy member"""
    booking = facts.Booking(call.booking_id)
    for report in facts.Damage(call.booking_id).reports:
        if report.report_id == call.report_id:
            cost = money(report.assessed_cost)
            if facts.Guest(booking.guest_id).membership == "canopy":
                cost = max(cost - money("20.00"), money("0.00"))
            cost = min(cost, booking.deposit_held)
            return permit() if money(call.amount) == cost else deny(f"the charge is {cost}, not {call.amount}")
    return deny("the booking has no such report")


def damage_open(facts, booking_id):
    return any(
        report.category != "wear"
        and report.status in {"under_review", "disputed", "assessed"}
        and done("charge_damage", report_id=report.report_id) == 0
        for report in facts.Damage(booking_id).reports
    )
