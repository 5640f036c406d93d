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
    cabin = reservation.cabin
    # The first generation's tool forgets the cabin it was asked for and paid for: an earlier change of it counts.
    if done("update_reservation_flights", reservation_id=call.reservation_id) > 0:
        if done("update_reservation_flights", reservation_id=call.reservation_id, cabin="business") > 0:
            cabin = "business"
        elif done("update_reservation_flights", reservation_id=call.reservation_id, cabin="economy") > 0:
            cabin = "economy"
        else:
            cabin = "basic_economy"
    membership = facts.User(reservation.user_id).membership
    free = 0
    if cabin == "economy":
        free = 1
    if cabin == "business":
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
