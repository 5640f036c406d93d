def book_bags_fee(call: book_reservation, facts):
    if call.total_baggages == 0:
        return permit() if call.nonfree_baggages == 0 else deny("no bag is booked, but bags are charged")
    due = to_pay(call, call.cabin, facts.User(call.user_id).membership, len(call.passengers))
    if call.nonfree_baggages == due:
        return permit()
    return deny(f"{due} of {call.total_baggages} bags are to be paid, not {call.nonfree_baggages}")


def bags_fee(call: update_reservation_baggages, facts):
    reservation = facts.Reservation(call.reservation_id)
    membership = facts.User(reservation.user_id).membership
    due = to_pay(call, reservation.cabin, membership, len(reservation.passengers))
    if call.nonfree_baggages == due:
        return permit()
    return deny(f"{due} of {call.total_baggages} bags are to be paid, not {call.nonfree_baggages}")


def to_pay(call, cabin, membership, passengers):
    free = {"basic_economy": 0, "economy": 1, "business": 2}[cabin]
    free += {"regular": 0, "silver": 1, "gold": 2}[membership]
    return max(0, call.total_baggages - min(free, 3) * passengers)
