def change_confirmed_only(call: change_dates | update_party, facts):
    """Only confirmed bookings may be changed."""
    status = facts.Booking(call.booking_id).status
    return permit() if status == "confirmed" else deny(f"the booking is {status}")


def dates_in_time(call: change_dates, facts):
    """Dates of a flex booking may be changed until 72 hours before the arrival that stands in the booking"""
    booking = facts.Booking(call.booking_id)
    if booking.rate == "saver":
        return deny("saver bookings keep their dates")
    if until_arrival(booking) < hours(72):
        return deny("less than 72 hours before arrival")
    return permit()


def change_fee(call: change_dates, facts):
    """The first change of dates is free and each later one costs 15.00"""
    booking = facts.Booking(call.booking_id)
    fee = money("15.00")
    if booking.date_changes == 0 or facts.Guest(booking.guest_id).membership == "canopy":
        fee = money("0.00")
    return permit() if money(call.change_fee) == fee else deny(f"the fee is {fee}, not {call.change_fee}")


def three_changes(call: change_dates, facts):
    """A booking's dates are changed 3 times at most."""
    changes = facts.Booking(call.booking_id).date_changes
    return permit() if changes < 3 else deny(f"the dates were changed {changes} times already")


def party_in_time(call: update_party, facts):
    """The party (people, pets, vehicles, caravan) may be changed on either rate until 24 hours before arrival"""
    if until_arrival(facts.Booking(call.booking_id)) < hours(24):
        return deny("less than 24 hours before arrival")
    return permit()


def partner_untouched(call: change_dates | update_party | cancel_booking | issue_refund | apply_voucher, facts):
    """
    Bookings whose channel is "partner" belong to the partner
    Hand to a person whatever concerns partner bookings
    What is handed to a person you leave untouched.
    """
    return deny("the booking belongs to a partner") if facts.Booking(call.booking_id).channel == "partner" else permit()


def until_arrival(booking):
    return time(booking.arrive) + hours(15) - now()
