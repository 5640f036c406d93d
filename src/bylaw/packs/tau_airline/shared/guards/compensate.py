# A certificate names no reservation: one of the user's reservations must justify the amount. Each leg is checked
# separately, so that the status of the late flight is enough; of membership, cabin and insurance only the decisive ones
# are read. A leg that justifies the amount is enough, so all legs are in one `any`. The last one only chooses the
# wording and never permits.
def compensation(call: send_certificate, facts):
    if not any(
        facts.Flight(leg.flight_number, leg.date).status in ("delayed", "cancelled")
        and len(facts.Reservation(leg.reservation_id).passengers) > 0
        and (
            facts.Reservation(leg.reservation_id).cabin == "business"
            or facts.Reservation(leg.reservation_id).insurance == "yes"
            or facts.User(call.user_id).membership in ("regular", "silver", "gold")
        )
        for leg in facts.Leg.seen(user_id=call.user_id)
    ):
        return deny("no flight of the user's reservations is delayed or cancelled")
    if done("send_certificate", user_id=call.user_id, amount=call.amount) > 0:
        return deny("a certificate of this amount was already sent in this conversation")
    if any(
        (
            facts.Flight(leg.flight_number, leg.date).status == "cancelled"
            and call.amount == 100 * len(facts.Reservation(leg.reservation_id).passengers)
            or facts.Flight(leg.flight_number, leg.date).status == "delayed"
            and done("cancel_reservation", reservation_id=leg.reservation_id)
            + done("update_reservation_flights", reservation_id=leg.reservation_id)
            > 0
            and call.amount == 50 * len(facts.Reservation(leg.reservation_id).passengers)
        )
        and may_have(call, facts, facts.Reservation(leg.reservation_id))
        for leg in facts.Leg.seen(user_id=call.user_id)
    ):
        return permit()
    if any(
        facts.Flight(leg.flight_number, leg.date).status == "delayed"
        and call.amount == 50 * len(facts.Reservation(leg.reservation_id).passengers)
        and may_have(call, facts, facts.Reservation(leg.reservation_id))
        for leg in facts.Leg.seen(user_id=call.user_id)
    ):
        return deny("50 a passenger for a delay, but the delayed trip was neither changed nor cancelled before")
    return deny(
        "no late trip of the user justifies this amount: it is 100 a passenger for a cancelled flight, 50 for a delayed"
        " one once the trip is changed or cancelled, and nothing for a regular member without insurance or business"
    )


def may_have(call, facts, trip):
    is_insured = trip.cabin == "business" or trip.insurance == "yes"
    return is_insured or facts.User(call.user_id).membership != "regular"
