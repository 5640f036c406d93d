"""The airline's tools in both generations. Results are identical to recorded ones."""

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from bylaw.packs.tau_airline.airline import Airline
from bylaw.packs.tau_airline.database import Record
from bylaw.packs.tau_airline.lookup import Refusal, Refused, require_day, require_reservation, require_user, shown
from bylaw.packs.tau_airline.writes import (
    book_reservation,
    cancel_reservation,
    send_certificate,
    update_reservation_baggages,
    update_reservation_flights,
    update_reservation_passengers,
)

AIRPORTS = {
    "SFO": "San Francisco", "JFK": "New York", "LAX": "Los Angeles", "ORD": "Chicago", "DFW": "Dallas",
    "DEN": "Denver", "SEA": "Seattle", "ATL": "Atlanta", "MIA": "Miami", "BOS": "Boston", "PHX": "Phoenix",
    "IAH": "Houston", "LAS": "Las Vegas", "MCO": "Orlando", "EWR": "Newark", "CLT": "Charlotte",
    "MSP": "Minneapolis", "DTW": "Detroit", "PHL": "Philadelphia", "LGA": "LaGuardia",
}  # fmt: skip


def answer(world: Airline, tool: str, arguments: Mapping[str, Any]) -> Any:
    """Return the tool's result, or a `Refusal`. Writes change `world`."""
    work = TOOLS.get(tool)
    if work is None:
        if world.generation == "tau1":
            return Refusal(f"Unknown action {tool}")
        return Refusal(f"Error: Tool '{tool}' not found.")
    try:
        return work(world, **arguments)
    except Refused as refused:
        text = str(refused)
        return Refusal(f"Error: {text}" if world.generation == "tau1" else f"Error: {text[:1].upper()}{text[1:]}")
    except TypeError as fault:
        return Refusal(f"Error: {rename(tool, str(fault))}")
    except (KeyError, ValueError, AttributeError, IndexError) as fault:
        return Refusal(f"Error: {fault}")


def rename(tool: str, fault: str) -> str:
    """Return an argument error in the published tools' wording."""
    published = "".join(part.capitalize() for part in tool.split("_")) + ".invoke()"
    return fault.replace(f"{tool}()", published)


def get_user_details(world: Airline, user_id: str) -> Record:
    return require_user(world, user_id)


def get_reservation_details(world: Airline, reservation_id: str) -> Record:
    found = world.reservation(reservation_id)
    if found is None and world.generation == "tau1":
        raise Refused("user not found")
    return shown(world, require_reservation(world, reservation_id))


def list_all_airports(world: Airline) -> Any:
    """Return airport codes and cities."""
    if world.generation == "tau1":
        return AIRPORTS
    return [{"iata": code, "city": city} for code, city in AIRPORTS.items()]


def search_direct_flight(world: Airline, origin: str, destination: str, date: str) -> list[Record]:
    """Return direct flights that can be booked on a date."""
    found: list[Record] = []
    for number, flight in world.database.flights.items():
        if flight["origin"] == origin and flight["destination"] == destination:
            day = bookable(world, number, date)
            if day is not None:
                found.append(offer(world, flight, day, None))
    return found


def search_onestop_flight(world: Airline, origin: str, destination: str, date: str) -> list[list[Record]]:
    """Return pairs of flights with one stop that can be booked on a date. The second may leave on the next day."""
    found: list[list[Record]] = []
    flights = world.database.flights
    for number, first in flights.items():
        if first["origin"] != origin:
            continue
        arrival = first["scheduled_arrival_time_est"]
        day = bookable(world, number, date)
        onward = f"2024-05-{int(date[-2:]) + 1}" if "+1" in arrival else date
        for next_number, second in flights.items():
            if second["origin"] != first["destination"] or second["destination"] != destination:
                continue
            next_day = bookable(world, next_number, onward)
            if day is None or next_day is None or second["scheduled_departure_time_est"] < arrival:
                continue
            if world.generation == "tau1":
                next_day = world.day(next_number, date) or {}
            found.append([offer(world, first, day, date), offer(world, second, next_day, onward)])
    return found


def bookable(world: Airline, number: str, date: str) -> Record | None:
    """Return the flight on a date if it can be booked."""
    day = world.day(number, date)
    return day if day is not None and day["status"] == "available" else None


def offer(world: Airline, flight: Record, day: Record, date: str | None) -> Record:
    """Return one line of a search result."""
    line = {key: value for key, value in flight.items() if key != "dates"} | day
    if date is not None or world.generation == "tau2":
        line["date"] = date
    return line


def get_flight_status(world: Airline, flight_number: str, date: str) -> str:
    """Return a flight's status on a date (second generation only)."""
    return require_day(world, flight_number, date)["status"]


def transfer_to_human_agents(world: Airline, summary: str) -> str:
    return "Transfer successful"


def think(world: Airline, thought: str) -> str:
    """Record a thought (first generation only)."""
    return ""


def calculate(world: Airline, expression: str) -> str:
    """Evaluate plain arithmetic, rounded to cents."""
    if not all(char in "0123456789+-*/(). " for char in expression):
        raise Refused("invalid characters in expression")
    try:
        value = compute(ast.parse(expression.strip(), filename="<string>", mode="eval").body)
    except (SyntaxError, ArithmeticError) as fault:
        raise Refused(str(fault)) from fault
    return str(round(float(value), 2))


def compute(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -compute(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return compute(operand)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in ARITHMETIC:
            return ARITHMETIC[type(sign)](compute(left), compute(right))
        case _:
            raise Refused("invalid expression")


ARITHMETIC: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda left, right: left / right,
    ast.FloorDiv: lambda left, right: left // right,
}


TOOLS: dict[str, Callable[..., Any]] = {
    work.__name__: work
    for work in (
        get_user_details,
        get_reservation_details,
        list_all_airports,
        search_direct_flight,
        search_onestop_flight,
        get_flight_status,
        book_reservation,
        cancel_reservation,
        update_reservation_flights,
        update_reservation_baggages,
        update_reservation_passengers,
        send_certificate,
        transfer_to_human_agents,
        think,
        calculate,
    )
}
