def stay_nights(call: create_booking | change_dates, facts):
    """
    A stay is at least 1 night and at most 21 nights.
    New dates must meet the rules on nights, season, arrival days
    """
    nights = nights_between(call.arrive, call.depart)
    if nights < 1 or nights > 21:
        return deny(f"a stay of {nights} nights")
    return permit()


def high_season(call: create_booking | change_dates, facts):
    """
    Cabins and lodges with an arrival date in July or August are let for at least 3 nights
    New dates must meet the rules on nights, season, arrival days
    """
    arrive = date(call.arrive)
    nights = nights_between(call.arrive, call.depart)
    least = 2 if arrive - date(now()) <= days(3) else 3
    if arrive.month not in {7, 8} or nights >= least:
        return permit()
    if unit_of(call, facts).kind in {"cabin", "lodge"}:
        return deny(f"{nights} nights in July or August, and at least {least} are asked for")
    return permit()


def lodge_arrival_day(call: create_booking | change_dates, facts):
    """
    Lodges are let with arrival on a Monday or a Friday only.
    New dates must meet the rules on nights, season, arrival days
    """
    if date(call.arrive).weekday() in {0, 4}:
        return permit()
    return deny("a lodge, and no Monday or Friday") if unit_of(call, facts).kind == "lodge" else permit()


def how_far_ahead(call: create_booking | change_dates, facts):
    """
    The arrival date may not be in the past nor more than 365 days after today
    New dates must meet the rules on nights, season, arrival days
    """
    arrive = date(call.arrive)
    today = date(now())
    if arrive < today:
        return deny("the arrival is in the past")
    if arrive - today > days(365):
        return deny("the arrival is more than 365 days ahead")
    if arrive == today and now().hour >= 18:
        return deny("an arrival for today is booked only before 18:00")
    return permit()


def unit_open(call: create_booking | change_dates, facts):
    """
    A unit whose record says "closed" is not to be booked
    New dates must meet the rules on nights, season, arrival days
    """
    return deny("the unit is closed") if unit_of(call, facts).status == "closed" else permit()


def unit_free(call: create_booking | change_dates, facts):
    """
    A unit is free for a stay if no confirmed or checked-in booking has a night in common with it
    New dates must meet the rules on nights, season, arrival days
    """
    for other in unit_of(call, facts).taken:
        ours = other.booking_id == get(call, "booking_id", "")
        gone = done("cancel_booking", booking_id=other.booking_id) > 0
        overlaps = date(other.arrive) < date(call.depart) and date(call.arrive) < date(other.depart)
        if overlaps and not ours and not gone:
            return deny(f"the unit is taken by {other.booking_id}")
    return permit()


def guest_may_book(call: create_booking, facts):
    """A guest marked do_not_book gets no new booking."""
    return deny("the guest is marked do_not_book") if facts.Guest(call.guest_id).do_not_book else permit()


def few_bookings(call: create_booking, facts):
    """A guest may hold at most 3 confirmed bookings at one time"""
    held = count(booking.status == "confirmed" for booking in facts.Found(call.guest_id).bookings)
    most = 5 if facts.Guest(call.guest_id).membership == "canopy" else 3
    if held + 1 > most:
        return deny(f"the guest holds {held} confirmed bookings, and may hold {most}")
    return permit()


def saver_in_time(call: create_booking, facts):
    """The saver rate is offered only if the arrival date is 14 or more days after today"""
    if call.rate == "saver" and date(call.arrive) - date(now()) < days(14):
        return deny("the saver rate needs 14 days")
    return permit()


def quoted_total(call: create_booking, facts):
    """
    The saver rate is offered only if the arrival date is 14 or more days after today
    Canopy members get 10 percent off the nightly rate on the flex rate
    The total you quote and book is the nights at the nightly rate after any such discount
    The pet fee is 6.00 per pet and night.
    Where the record of the guest who holds the booking shows an assistance dog
    One vehicle is included in every booking
    """
    nights = nights_between(call.arrive, call.depart)
    guest = facts.Guest(call.guest_id)
    nightly = facts.Unit(call.unit_id).nightly_rate
    if call.rate == "saver":
        nightly = nightly * 0.85
    elif guest.membership == "canopy":
        nightly = nightly * 0.9
    pets = pets_that_count(call.pets, guest)
    vehicles = max(call.vehicles - 1, 0)
    total = nights * (nightly + money("6.00") * pets + money("8.00") * vehicles)
    if abs(money(call.quoted_total) - total) >= money("0.01"):
        return deny(f"the total is {total}, not {call.quoted_total}")
    return permit()


def nights_between(arrive, depart):
    return (date(depart) - date(arrive)).days


def unit_of(call, facts):
    if call.tool == "create_booking":
        return facts.Unit(call.unit_id)
    return facts.Unit(facts.Booking(call.booking_id).unit_id)
