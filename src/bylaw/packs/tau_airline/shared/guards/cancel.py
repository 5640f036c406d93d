# The status of every flight that may have left is needed, also after one that has.
def cancel_not_flown(call: cancel_reservation, facts):
    reservation = facts.Reservation(call.reservation_id)
    flown = ""
    day = ""
    for leg in reservation.flights:
        has_left = date(leg.date) <= date(now()) and facts.Flight(leg.flight_number, leg.date).status in ("landed", "flying")
        if has_left and flown == "":
            flown = leg.flight_number
            day = leg.date
    return permit() if flown == "" else deny(f"flight {flown} on {day} has already been flown")


# The reservation's own fields are read first, then the flights that may have left, and the others last:
# a ground that the reservation itself gives needs no flight status.
def cancel_ground(call: cancel_reservation, facts):
    reservation = facts.Reservation(call.reservation_id)
    if reservation.created_at >= now() - hours(24) or reservation.cabin == "business":
        return permit()
    if reservation.insurance == "yes" and facts.Request.reason_covered:
        return permit()
    for leg in reservation.flights:
        if date(leg.date) <= date(now()) and facts.Flight(leg.flight_number, leg.date).status == "cancelled":
            return permit()
    for leg in reservation.flights:
        if date(leg.date) > date(now()) and facts.Flight(leg.flight_number, leg.date).status == "cancelled":
            return permit()
    return deny("booked over 24 hours ago, not business, no covered insurance reason, and no flight cancelled by the airline")
