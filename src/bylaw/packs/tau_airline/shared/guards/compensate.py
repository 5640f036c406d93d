# A certificate names no reservation: one of the user's reservations must justify the amount.
def compensation(call, facts):
    if any(
        any(facts.Flight(leg.flight_number, leg.date).status == "cancelled" for leg in trip.first_flights)
        and (trip.cabin == "business" or trip.insurance == "yes" or facts.User(call.user_id).membership != "regular")
        and call.amount == 100 * len(trip.passengers)
        for trip in facts.Reservation.seen(user_id=call.user_id)
    ):
        return permit()
    if any(
        any(facts.Flight(leg.flight_number, leg.date).status == "delayed" for leg in trip.first_flights)
        and (trip.cabin == "business" or trip.insurance == "yes" or facts.User(call.user_id).membership != "regular")
        and call.amount == 50 * len(trip.passengers)
        and done("cancel_reservation", reservation_id=trip.reservation_id)
        + done("update_reservation_flights", reservation_id=trip.reservation_id)
        > 0
        for trip in facts.Reservation.seen(user_id=call.user_id)
    ):
        return permit()
    return deny("no reservation of the user justifies a certificate of this amount")
