def cancel_confirmed_only(call: cancel_booking, facts):
    """Only a confirmed booking may be cancelled."""
    status = facts.Booking(call.booking_id).status
    return permit() if status == "confirmed" else deny(f"the booking is {status}")


def cancel_refund(call: cancel_booking, facts):
    """
    A flex booking cancelled 14 days or more before arrival gets back all that was paid
    From 7 days up to 14 days before arrival half of what was paid goes back
    A saver booking gets nothing back.
    Whatever the rate, a booking cancelled within 24 hours of being made
    If the park has closed the unit, the guest gets back all that was paid
    A refund goes first to the voucher, up to what was paid by voucher
    Bad weather is no ground for more than the scale allows.
    """
    booking = facts.Booking(call.booking_id)
    refund = refund_due(facts, booking)
    to_voucher = min(refund, booking.paid_voucher)
    to_card = refund - to_voucher
    if abs(money(call.refund_to_voucher) - to_voucher) >= money("0.01"):
        return deny(f"{to_voucher} goes back to the voucher, not {call.refund_to_voucher}")
    if abs(money(call.refund_to_card) - to_card) >= money("0.01"):
        return deny(f"{to_card} goes back to the card, not {call.refund_to_card}")
    return permit()


def refund_due(facts, booking):
    paid = booking.paid_card + booking.paid_voucher
    left = until_arrival(booking)
    if paid == 0:
        return money("0.00")
    if now() - booking.created_at <= hours(24) and left >= hours(72):
        return paid
    if facts.Unit(booking.unit_id).status == "closed":
        return paid
    if booking.rate == "saver" or left < days(7):
        return money("0.00")
    if left < days(14):
        return paid / 2
    if facts.Guest(booking.guest_id).membership == "canopy":
        return paid
    return max(paid - money("10.00"), money("0.00"))


def goodwill_ground(call: issue_refund, facts):
    """For a fault during the stay you may give a goodwill refund with issue_refund, once per booking"""
    booking = facts.Booking(call.booking_id)
    if booking.status not in {"checked_in", "checked_out"}:
        return deny(f"the booking is {booking.status}")
    if len(booking.faults) == 0:
        return deny("no fault is logged on the booking")
    if booking.goodwill_refunded > 0:
        return deny(f"{booking.goodwill_refunded} was given before")
    if date(now()) - booking.depart > days(7):
        return deny("more than 7 days after the departure")
    return permit()


def goodwill_limit(call: issue_refund, facts):
    """
    A goodwill refund is at most 20 percent of the booking's total
    Hand to a person whatever concerns partner bookings
    """
    most = min(facts.Booking(call.booking_id).total * 0.2, money("75.00"))
    return permit() if money(call.amount) <= most else deny(f"at most {most}")


def goodwill_no_open_damage(call: issue_refund, facts):
    """No goodwill refund is given while a damage report on the booking is open"""
    if damage_open(facts, call.booking_id):
        return deny("a damage report on the booking is open")
    return permit()
