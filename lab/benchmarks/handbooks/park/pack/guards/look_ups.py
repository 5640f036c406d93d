def guest_found_first(call: write, facts):
    """Find the guest's record by email in the conversation before you write anything."""
    if not any(True for guest in facts.Found.seen()):
        return deny("no guest's record was found before this write")
    return permit()


def booking_opened_first(call: write(booking_id), facts):
    """Open a booking with get_booking before you make any write on it"""
    if facts.Opened(call.booking_id).exists:
        return permit()
    if done("create_booking") == 0:
        return deny(f"{call.booking_id} was not opened with get_booking")
    booking = facts.Booking(call.booking_id)
    if done("create_booking", guest_id=booking.guest_id, unit_id=booking.unit_id) > 0:
        return permit()
    return deny(f"{call.booking_id} was neither opened with get_booking nor made here")


def unit_opened_before_booking(call: create_booking, facts):
    """Open the unit with get_unit before you create a booking on it"""
    if not facts.Opened(call.unit_id).exists:
        return deny(f"{call.unit_id} was not opened with get_unit")
    return permit()


def unit_opened_before_change(call: change_dates | update_party, facts):
    """Open the unit with get_unit before you create a booking on it"""
    unit_id = facts.Booking(call.booking_id).unit_id
    if not facts.Opened(unit_id).exists:
        return deny(f"{unit_id} was not opened with get_unit")
    return permit()


def voucher_opened_first(call: apply_voucher, facts):
    """Open a voucher with get_voucher before you apply it."""
    if not facts.Opened(call.voucher_code).exists:
        return deny(f"{call.voucher_code} was not opened with get_voucher")
    return permit()


def reports_read_first(call: charge_damage | release_deposit, facts):
    """Read the damage reports of the booking before you charge damage or release a deposit."""
    if not facts.ReportsRead(call.booking_id).exists:
        return deny(f"the damage reports of {call.booking_id} were not read")
    return permit()


def own_booking(call: write(booking_id), facts):
    """
    Act only on bookings held by a guest whose record you have found in the conversation
    A found guest who is listed under "authorised" on somebody else's booking
    """
    booking = facts.Booking(call.booking_id)
    if facts.Found(booking.guest_id).exists:
        return permit()
    if call.tool == "cancel_booking":
        return deny("only the holder may cancel, and the holder was not found")
    for guest_id in booking.authorised:
        if facts.Found(guest_id).exists:
            return permit()
    return deny("neither the holder nor anyone authorised was found")


def own_name(call: create_booking, facts):
    """Act only on bookings held by a guest whose record you have found in the conversation"""
    if not facts.Found(call.guest_id).exists:
        return deny(f"{call.guest_id} was not found in this conversation")
    return permit()


def do_not_book_untouched(call: write, facts):
    """
    Hand to a person whatever concerns partner bookings
    What is handed to a person you leave untouched.
    """
    if any(guest.do_not_book for guest in facts.Found.seen()):
        return deny("the guest is marked do_not_book: hand it to a person")
    return permit()
