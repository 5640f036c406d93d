"""Finds users, reservations and flights for a tool call, and refuses the call if they are missing."""

from typing import NamedTuple

from bylaw.packs.tau_airline.airline import Airline
from bylaw.packs.tau_airline.database import Record


class Refusal(NamedTuple):
    """The tool did not accept the call."""

    text: str


class Refused(Exception):
    """Raised in a tool to refuse the call."""


def require_user(world: Airline, user_id: str) -> Record:
    """Return the profile. Raises `Refused` if it is missing."""
    user = world.user(user_id)
    if user is None:
        raise Refused("user not found" if world.generation == "tau1" else f"User {user_id} not found")
    return user


def require_reservation(world: Airline, reservation_id: str) -> Record:
    """Return the reservation. Raises `Refused` if it is missing."""
    reservation = world.reservation(reservation_id)
    if reservation is None:
        tau1 = world.generation == "tau1"
        raise Refused("reservation not found" if tau1 else f"Reservation {reservation_id} not found")
    return reservation


def require_day(world: Airline, number: str, date: str) -> Record:
    """Return the flight on a date. Raises `Refused` if it is missing."""
    if world.flight(number) is None:
        raise Refused(f"flight {number} not found")
    day = world.day(number, date)
    if day is None:
        raise Refused(f"flight {number} not found on date {date}")
    return day


def only(records: list[Record], fields: tuple[str, ...]) -> list[Record]:
    """Drop the fields that the second generation's models lack."""
    return [{field: record[field] for field in fields} for record in records]


def shown(world: Airline, reservation: Record) -> Record:
    """Return the reservation in its generation's format."""
    return {"status": None, **reservation} if world.generation == "tau2" else reservation
