# ruff: noqa: F821
# The airline's document as the majority of its readers understands it. Each function replaces one in the pack.


# "Cabin changes require the user to pay for the difference" says who pays. The price is not a condition of the change.
def modify_cabin_price(call: update_reservation_flights, facts):
    return permit()


# "All payment methods must already be in user profile": a reservation's payment method is therefore one of them.
def is_known(call, facts, reservation):
    if any(paid.payment_id == call.payment_id for paid in reservation.payment_history):
        return True
    is_listed = call.payment_id in facts.User(reservation.user_id).payment_methods
    return is_listed or done("send_certificate", user_id=reservation.user_id) > 0


# Without an additional paid bag, no payment method is used.
def bags_payment(call: update_reservation_baggages, facts):
    reservation = facts.Reservation(call.reservation_id)
    if call.nonfree_baggages <= reservation.nonfree_baggages or is_known(call, facts, reservation):
        return permit()
    return deny(f"payment method {call.payment_id} is not in the user's profile")


# Bags that are free at the lowest level are free at every level.
def bags_fee(call: update_reservation_baggages, facts):
    reservation = facts.Reservation(call.reservation_id)
    lowest = {"basic_economy": 0, "economy": 1, "business": 2}[reservation.cabin] * len(reservation.passengers)
    if call.total_baggages <= lowest and call.nonfree_baggages == 0:
        return permit()
    membership = facts.User(reservation.user_id).membership
    return charged(call, reservation.cabin, membership, len(reservation.passengers))
