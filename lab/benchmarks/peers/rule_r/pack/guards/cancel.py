def cancel_ground(call, facts):
    reservation = facts.Reservation(call.reservation_id)
    if reservation.cabin == "business" or reservation.insurance == "yes":
        return permit()
    if reservation.created_at > now() - hours(24):
        return permit()
    return deny("not business, not insured, and booked more than 24 hours ago")
