# A certificate names no reservation: one of the user's reservations must justify the amount.
def compensation(call, facts):
    if not any(
        any(facts.Flight(leg.flight_number, leg.date).status in ("delayed", "cancelled") for leg in trip.first_flights)
        for trip in facts.Reservation.seen(user_id=call.user_id)
    ):
        return deny("no flight of the user's reservations is delayed or cancelled")
    if done("send_certificate", user_id=call.user_id, amount=call.amount) > 0:
        return deny("a certificate of this amount was already sent in this conversation")
    if any(
        call.amount == 100 * len(trip.passengers)
        and (trip.cabin == "business" or trip.insurance == "yes" or facts.User(call.user_id).membership != "regular")
        and any(facts.Flight(leg.flight_number, leg.date).status == "cancelled" for leg in trip.first_flights)
        for trip in facts.Reservation.seen(user_id=call.user_id)
    ):
        return permit()
    if any(
        done("cancel_reservation", reservation_id=trip.reservation_id)
        + done("update_reservation_flights", reservation_id=trip.reservation_id)
        > 0
        and call.amount == 50 * len(trip.passengers)
        and (trip.cabin == "business" or trip.insurance == "yes" or facts.User(call.user_id).membership != "regular")
        and any(facts.Flight(leg.flight_number, leg.date).status == "delayed" for leg in trip.first_flights)
        for trip in facts.Reservation.seen(user_id=call.user_id)
    ):
        return permit()
    return deny("no reservation of the user justifies a certificate of this amount")
