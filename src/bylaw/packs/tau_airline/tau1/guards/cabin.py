# The first generation's tool forgets the cabin it was asked for and paid for: an earlier change of it counts.
def modify_basic_economy(call, facts):
    reservation = facts.Reservation(call.reservation_id)
    cabin = reservation.cabin
    if done("update_reservation_flights", reservation_id=call.reservation_id) > 0:
        if done("update_reservation_flights", reservation_id=call.reservation_id, cabin="business") > 0:
            cabin = "business"
        elif done("update_reservation_flights", reservation_id=call.reservation_id, cabin="economy") > 0:
            cabin = "economy"
        else:
            cabin = "basic_economy"
    if cabin != "basic_economy":
        return permit()
    if len(call.flights) != len(reservation.flights):
        return deny("the flights of a basic economy reservation cannot be changed")
    for flight in call.flights:
        if not any(leg.flight_number == flight.flight_number and leg.date == flight.date for leg in reservation.flights):
            return deny("the flights of a basic economy reservation cannot be changed")
    return permit()


def modify_cabin_price(call, facts):
    reservation = facts.Reservation(call.reservation_id)
    cabin = reservation.cabin
    if done("update_reservation_flights", reservation_id=call.reservation_id) > 0:
        if done("update_reservation_flights", reservation_id=call.reservation_id, cabin="business") > 0:
            cabin = "business"
        elif done("update_reservation_flights", reservation_id=call.reservation_id, cabin="economy") > 0:
            cabin = "economy"
        else:
            cabin = "basic_economy"
    if call.cabin != cabin:
        for flight in call.flights:
            if get(facts.Fare(flight.flight_number, flight.date).prices, call.cabin, 0) <= 0:
                return deny(f"flight {flight.flight_number} on {flight.date} has no price in {call.cabin}")
    return permit()


def modify_cabin_flown(call, facts):
    reservation = facts.Reservation(call.reservation_id)
    cabin = reservation.cabin
    if done("update_reservation_flights", reservation_id=call.reservation_id) > 0:
        if done("update_reservation_flights", reservation_id=call.reservation_id, cabin="business") > 0:
            cabin = "business"
        elif done("update_reservation_flights", reservation_id=call.reservation_id, cabin="economy") > 0:
            cabin = "economy"
        else:
            cabin = "basic_economy"
    if call.cabin != cabin:
        for leg in reservation.flights:
            if date(leg.date) <= date(now()):
                if facts.Flight(leg.flight_number, leg.date).status in ("landed", "flying"):
                    return deny(f"flight {leg.flight_number} on {leg.date} has already been flown")
    return permit()


def cancel_ground(call, facts):
    reservation = facts.Reservation(call.reservation_id)
    cabin = reservation.cabin
    if done("update_reservation_flights", reservation_id=call.reservation_id) > 0:
        if done("update_reservation_flights", reservation_id=call.reservation_id, cabin="business") > 0:
            cabin = "business"
        elif done("update_reservation_flights", reservation_id=call.reservation_id, cabin="economy") > 0:
            cabin = "economy"
        else:
            cabin = "basic_economy"
    if reservation.created_at >= now() - hours(24):
        return permit()
    if cabin == "business":
        return permit()
    if reservation.insurance == "yes" and facts.Request.reason_covered:
        return permit()
    for leg in reservation.flights:
        if date(leg.date) <= date(now()):
            if facts.Flight(leg.flight_number, leg.date).status == "cancelled":
                return permit()
    for leg in reservation.flights:
        if date(leg.date) > date(now()):
            if facts.Flight(leg.flight_number, leg.date).status == "cancelled":
                return permit()
    return deny("booked over 24 hours ago, not business, no covered insurance reason, and no flight cancelled by the airline")
