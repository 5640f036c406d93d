def book_passenger_limit(call: book_reservation, facts):
    size = len(call.passengers)
    return permit() if size <= 5 else deny(f"{size} passengers, at most five may share a reservation")


def book_payment_mix(call: book_reservation, facts):
    certificates = len([p for p in call.payment_methods if p.payment_id.startswith("certificate")])
    cards = len([p for p in call.payment_methods if p.payment_id.startswith("credit_card")])
    gifts = len([p for p in call.payment_methods if p.payment_id.startswith("gift_card")])
    if certificates > 1:
        return deny(f"{certificates} travel certificates, at most one may be used")
    if cards > 1:
        return deny(f"{cards} credit cards, at most one may be used")
    if gifts > 3:
        return deny(f"{gifts} gift cards, at most three may be used")
    return permit()


def book_payment_on_profile(call: book_reservation, facts):
    methods = facts.User(call.user_id).payment_methods
    for payment in call.payment_methods:
        # A certificate sent earlier in this conversation is in the profile even if the profile was read before.
        if payment.payment_id not in methods and done("send_certificate", user_id=call.user_id) == 0:
            return deny(f"payment method {payment.payment_id} is not in the user's profile")
    return permit()


def book_flights_available(call: book_reservation, facts):
    for flight in call.flights:
        if facts.Flight(flight.flight_number, flight.date).status != "available":
            return deny(f"flight {flight.flight_number} on {flight.date} cannot be booked")
    return permit()
