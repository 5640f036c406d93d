def book_bags_fee(call: book_reservation, facts):
    if call.total_baggages == 0:
        return permit() if call.nonfree_baggages == 0 else deny("no bag is booked, but bags are charged")
    return charged(call, call.cabin, facts.User(call.user_id).membership, len(call.passengers))


def bags_fee(call: update_reservation_baggages, facts):
    reservation = facts.Reservation(call.reservation_id)
    membership = facts.User(reservation.user_id).membership
    return charged(call, reservation.cabin, membership, len(reservation.passengers))


def charged(call, cabin, membership, passengers):
    free = {"basic_economy": 0, "economy": 1, "business": 2}[cabin]
    free += {"regular": 0, "silver": 1, "gold": 2}[membership]
    due = max(0, call.total_baggages - free * passengers)
    if call.nonfree_baggages == due:
        return permit()
    return deny(f"{due} of {call.total_baggages} bags are to be paid, not {call.nonfree_baggages}")
