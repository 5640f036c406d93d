def book_bags_fee(call, facts):
    if call.total_baggages == 0:
        if call.nonfree_baggages != 0:
            return deny("no bag is booked, but bags are charged")
        return permit()
    membership = facts.User(call.user_id).membership
    free = 0
    if call.cabin == "economy":
        free = 1
    if call.cabin == "business":
        free = 2
    if membership == "silver":
        free = free + 1
    if membership == "gold":
        free = free + 2
    if free > 3:
        free = 3
    due = max(0, call.total_baggages - free * len(call.passengers))
    if call.nonfree_baggages != due:
        return deny(f"{due} of {call.total_baggages} bags are to be paid, not {call.nonfree_baggages}")
    return permit()


def bags_fee(call, facts):
    reservation = facts.Reservation(call.reservation_id)
    membership = facts.User(reservation.user_id).membership
    free = 0
    if reservation.cabin == "economy":
        free = 1
    if reservation.cabin == "business":
        free = 2
    if membership == "silver":
        free = free + 1
    if membership == "gold":
        free = free + 2
    if free > 3:
        free = 3
    due = max(0, call.total_baggages - free * len(reservation.passengers))
    if call.nonfree_baggages != due:
        return deny(f"{due} of {call.total_baggages} bags are to be paid, not {call.nonfree_baggages}")
    return permit()
