def modify_basic_economy(call: update_reservation_flights, facts):
    reservation = facts.Reservation(call.reservation_id)
    if reservation.cabin != "basic_economy":
        return permit()
    if len(call.flights) == len(reservation.flights) and all(has(reservation, flight) for flight in call.flights):
        return permit()
    return deny("the flights of a basic economy reservation cannot be changed")


def modify_route(call: update_reservation_flights, facts):
    reservation = facts.Reservation(call.reservation_id)
    start = ""
    end = ""
    reached = False
    for flight in call.flights:
        origin = ""
        destination = ""
        # A flight's route depends on its number, not on the date.
        for leg in reservation.flights:
            if leg.flight_number == flight.flight_number:
                origin = leg.origin
                destination = leg.destination
        if origin == "":
            origin = facts.Route(flight.flight_number).origin
            destination = facts.Route(flight.flight_number).destination
        if start == "":
            start = origin
        end = destination
        if destination == reservation.destination:
            reached = True
    if start != reservation.origin:
        return deny(f"the trip would start in {start}, not in {reservation.origin}")
    if not reached:
        return deny(f"the trip would not go to {reservation.destination}")
    if reservation.flight_type == "one_way" and end != reservation.destination:
        return deny("a one-way trip would no longer end at its destination")
    if reservation.flight_type == "round_trip" and end != reservation.origin:
        return deny("a round trip would no longer end where it starts")
    return permit()


def modify_payment(call: update_reservation_flights, facts):
    reservation = facts.Reservation(call.reservation_id)
    if not is_known(call, facts, reservation):
        return deny(f"payment method {call.payment_id} is not in the user's profile")
    is_certificate = call.payment_id.startswith("certificate")
    return deny("changes are paid or refunded with a gift card or a credit card") if is_certificate else permit()


def modify_flights_available(call: update_reservation_flights, facts):
    reservation = facts.Reservation(call.reservation_id)
    for flight in call.flights:
        if not has(reservation, flight) and facts.Flight(flight.flight_number, flight.date).status != "available":
            return deny(f"flight {flight.flight_number} on {flight.date} cannot be booked")
    return permit()


def modify_cabin_price(call: update_reservation_flights, facts):
    reservation = facts.Reservation(call.reservation_id)
    if call.cabin != reservation.cabin:
        for flight in call.flights:
            if get(facts.Fare(flight.flight_number, flight.date).prices, call.cabin, 0) <= 0:
                return deny(f"flight {flight.flight_number} on {flight.date} has no price in {call.cabin}")
    return permit()


def modify_cabin_flown(call: update_reservation_flights, facts):
    reservation = facts.Reservation(call.reservation_id)
    flown = ""
    day = ""
    if call.cabin != reservation.cabin:
        for leg in reservation.flights:
            has_left = date(leg.date) <= date(now()) and facts.Flight(leg.flight_number, leg.date).status in ("landed", "flying")
            if has_left and flown == "":
                flown = leg.flight_number
                day = leg.date
    return permit() if flown == "" else deny(f"flight {flown} on {day} has already been flown")


def bags_payment(call: update_reservation_baggages, facts):
    if is_known(call, facts, facts.Reservation(call.reservation_id)):
        return permit()
    return deny(f"payment method {call.payment_id} is not in the user's profile")


def bags_kept(call: update_reservation_baggages, facts):
    booked = facts.Reservation(call.reservation_id).total_baggages
    return permit() if call.total_baggages >= booked else deny(f"checked bags can be added, not removed: {booked} are booked")


def passengers_count(call: update_reservation_passengers, facts):
    is_same = len(call.passengers) == len(facts.Reservation(call.reservation_id).passengers)
    return permit() if is_same else deny("the number of passengers cannot be changed")


def has(reservation, flight):
    return any(leg.flight_number == flight.flight_number and leg.date == flight.date for leg in reservation.flights)


# A certificate sent earlier in this conversation is in the profile even if the profile was read before.
def is_known(call, facts, reservation):
    is_listed = call.payment_id in facts.User(reservation.user_id).payment_methods
    return is_listed or done("send_certificate", user_id=reservation.user_id) > 0
