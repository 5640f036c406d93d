def voucher_on_flex(call: apply_voucher, facts):
    """Vouchers go on confirmed flex bookings only, at most 2 different vouchers to a booking."""
    booking = facts.Booking(call.booking_id)
    if booking.status != "confirmed":
        return deny(f"the booking is {booking.status}")
    if booking.rate != "flex":
        return deny("no vouchers on the saver rate")
    if call.voucher_code not in booking.vouchers and len(booking.vouchers) >= 2:
        return deny("two vouchers are on the booking already")
    return permit()


def voucher_valid(call: apply_voucher, facts):
    """A voucher must be active and may be used up to and including its expiry date"""
    voucher = facts.Voucher(call.voucher_code)
    if voucher.status != "active":
        return deny(f"the voucher is {voucher.status}")
    late = date(now()) - voucher.expires
    if late <= days(0):
        return permit()
    if late <= days(30) and facts.Guest(facts.Booking(call.booking_id).guest_id).membership == "canopy":
        return permit()
    return deny(f"the voucher expired on {voucher.expires}")


def voucher_for_cabins(call: apply_voucher, facts):
    """A voucher with valid_for "cabins" may be used for cabins and lodges only."""
    if facts.Voucher(call.voucher_code).valid_for == "any":
        return permit()
    kind = facts.Unit(facts.Booking(call.booking_id).unit_id).kind
    return permit() if kind in {"cabin", "lodge"} else deny(f"the voucher is for cabins, and this is a {kind}")


def voucher_sum(call: apply_voucher, facts):
    """The sum applied may exceed neither the voucher's balance nor what is still due on the booking."""
    booking = facts.Booking(call.booking_id)
    balance = facts.Voucher(call.voucher_code).balance
    due = booking.total - booking.paid_card - booking.paid_voucher
    if money(call.amount) > balance:
        return deny(f"the voucher holds {balance}")
    return permit() if money(call.amount) <= due else deny(f"{due} is due")
