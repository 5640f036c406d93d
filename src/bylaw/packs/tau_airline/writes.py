"""The six write tools and their effects in both generations.

The order and wording of checks match the published tools, quirks included. The first generation forgets a reservation's
new cabin and never takes seats.
"""

from bylaw.packs.tau_airline.airline import Airline
from bylaw.packs.tau_airline.database import Record
from bylaw.packs.tau_airline.lookup import Refused, only, require_day, require_reservation, require_user, shown

NOW = "2024-05-15T15:00:00"
NEW_RESERVATIONS = ("HATHAT", "HATHAU", "HATHAV")
NEW_CERTIFICATES = ("certificate_3221322", "certificate_3221323", "certificate_3221324")


def book_reservation(
    world: Airline,
    user_id: str,
    origin: str,
    destination: str,
    flight_type: str,
    cabin: str,
    flights: list[Record],
    passengers: list[Record],
    payment_methods: list[Record],
    total_baggages: int,
    nonfree_baggages: int,
    insurance: str,
) -> Record:
    user = require_user(world, user_id)
    tau2 = world.generation == "tau2"
    key = next((key for key in NEW_RESERVATIONS if world.reservation(key) is None), None)
    if key is None:
        if tau2:
            raise Refused("too many reservations")
        key = NEW_RESERVATIONS[-1]
    booked = [book_leg(world, flight, cabin, len(passengers)) for flight in flights]
    price = sum(leg["price"] * len(passengers) for leg in booked)
    if insurance == "yes":
        price += 30 * len(passengers)
    price += 50 * nonfree_baggages
    pay_for_booking(world, user, user_id, payment_methods, price)
    if tau2:
        for leg in booked:
            world.take_seats(leg["flight_number"], leg["date"], cabin, len(passengers))
    reservation = {
        "reservation_id": key,
        "user_id": user_id,
        "origin": origin,
        "destination": destination,
        "flight_type": flight_type,
        "cabin": cabin,
        "flights": booked,
        "passengers": only(passengers, ("first_name", "last_name", "dob")) if tau2 else passengers,
        "payment_history": only(payment_methods, ("payment_id", "amount")) if tau2 else list(payment_methods),
        "created_at": NOW,
        "total_baggages": total_baggages,
        "nonfree_baggages": nonfree_baggages,
        "insurance": insurance,
    }
    world.reservations[key] = reservation
    world.own_user(user, user_id)["reservations"].append(key)
    return shown(world, reservation)


def book_leg(world: Airline, flight: Record, cabin: str, seats: int) -> Record:
    """Return the flight as a leg at the current price. Raises `Refused` if it cannot be booked."""
    number, date = flight["flight_number"], flight["date"]
    day = require_day(world, number, date)
    if day["status"] != "available":
        raise Refused(f"flight {number} not available on date {date}")
    if day["available_seats"][cabin] < seats:
        raise Refused(f"not enough seats on flight {number}")
    timetable = world.flight(number) or {}
    kept = flight if world.generation == "tau1" else {"flight_number": number, "date": date}
    return {
        **kept,
        "price": day["prices"][cabin],
        "origin": timetable["origin"],
        "destination": timetable["destination"],
    }


def pay_for_booking(world: Airline, user: Record, user_id: str, payments: list[Record], price: int) -> None:
    """Check the payments and charge the user's gift cards and certificates."""
    methods: dict[str, Record] = user["payment_methods"]
    for payment in payments:
        key, amount = payment["payment_id"], payment["amount"]
        if key not in methods:
            raise Refused(f"payment method {key} not found")
        if methods[key]["source"] in ("gift_card", "certificate") and methods[key]["amount"] < amount:
            raise Refused(f"not enough balance in payment method {key}")
    paid = sum(payment["amount"] for payment in payments)
    if paid != price:
        raise Refused(f"payment amount does not add up, total price is {price}, but paid {paid}")
    methods = world.own_user(user, user_id)["payment_methods"]
    for payment in payments:
        key = payment["payment_id"]
        if methods[key]["source"] == "gift_card":
            methods[key]["amount"] -= payment["amount"]
        elif methods[key]["source"] == "certificate":
            del methods[key]


def cancel_reservation(world: Airline, reservation_id: str) -> Record:
    """Cancel the whole trip and refund every payment."""
    reservation = world.own_reservation(require_reservation(world, reservation_id))
    history: list[Record] = reservation["payment_history"]
    refunds = [{"payment_id": payment["payment_id"], "amount": -payment["amount"]} for payment in history]
    reservation["payment_history"] = history + refunds
    reservation["status"] = "cancelled"
    return shown(world, reservation)


def update_reservation_flights(
    world: Airline, reservation_id: str, cabin: str, flights: list[Record], payment_id: str
) -> Record:
    """Replace the flights, the cabin, or both, and settle the price difference."""
    reservation = require_reservation(world, reservation_id)
    seats = len(reservation["passengers"])
    legs: list[Record] = []
    for flight in flights:
        kept = [
            leg
            for leg in reservation["flights"]
            if leg["flight_number"] == flight["flight_number"]
            and leg["date"] == flight["date"]
            and cabin == reservation["cabin"]
        ]
        if not kept:
            legs.append(book_leg(world, flight, cabin, seats))
        elif world.generation == "tau2":
            legs.append(kept[0])
        else:
            legs.append(flight | {key: kept[0][key] for key in ("price", "origin", "destination")})
    price = (sum(leg["price"] for leg in legs) - sum(leg["price"] for leg in reservation["flights"])) * seats
    paid = pay_for_update(world, reservation, payment_id, price)
    reservation = world.own_reservation(reservation)
    reservation["flights"] = legs
    reservation["payment_history"] = reservation["payment_history"] + paid
    if world.generation == "tau2":
        reservation["cabin"] = cabin
    return shown(world, reservation)


def update_reservation_baggages(
    world: Airline, reservation_id: str, total_baggages: int, nonfree_baggages: int, payment_id: str
) -> Record:
    """Set the number of bags and charge for those that are not free."""
    reservation = require_reservation(world, reservation_id)
    price = 50 * max(0, nonfree_baggages - reservation["nonfree_baggages"])
    paid = pay_for_update(world, reservation, payment_id, price)
    reservation = world.own_reservation(reservation)
    reservation["total_baggages"] = total_baggages
    reservation["nonfree_baggages"] = nonfree_baggages
    reservation["payment_history"] = reservation["payment_history"] + paid
    return shown(world, reservation)


def pay_for_update(world: Airline, reservation: Record, payment_id: str, price: int) -> list[Record]:
    """Charge or refund `price`. Return the new lines of the payment history."""
    user_id = reservation["user_id"]
    user = require_user(world, user_id)
    method = user["payment_methods"].get(payment_id)
    if method is None:
        raise Refused("payment method not found")
    if method["source"] == "certificate":
        raise Refused("certificate cannot be used to update reservation")
    if method["source"] == "gift_card":
        if method["amount"] < price:
            raise Refused("gift card balance is not enough")
        world.own_user(user, user_id)["payment_methods"][payment_id]["amount"] -= price
    return [{"payment_id": payment_id, "amount": price}] if price != 0 else []


def update_reservation_passengers(world: Airline, reservation_id: str, passengers: list[Record]) -> Record:
    reservation = require_reservation(world, reservation_id)
    if len(passengers) != len(reservation["passengers"]):
        raise Refused("number of passengers does not match")
    tau2 = world.generation == "tau2"
    reservation = world.own_reservation(reservation)
    reservation["passengers"] = only(passengers, ("first_name", "last_name", "dob")) if tau2 else passengers
    return shown(world, reservation)


def send_certificate(world: Airline, user_id: str, amount: int) -> str | None:
    user = world.own_user(require_user(world, user_id), user_id)
    for key in NEW_CERTIFICATES:
        if key not in user["payment_methods"]:
            user["payment_methods"][key] = {"source": "certificate", "amount": amount, "id": key}
            return f"Certificate {key} added to user {user_id} with amount {amount}."
    if world.generation == "tau2":
        raise Refused("too many certificates")
    return None
