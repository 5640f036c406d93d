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


# Read the reservation's own fields first, then flights that may have left, then the others, so that a ground in the
# reservation itself needs no flight status.
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
