"""Finds the users, reservations and flights of a tool call, and refuses the call if they are missing."""

from typing import NamedTuple

from bylaw.packs.tau_airline.airline import Airline
from bylaw.packs.tau_airline.database import Record


class Refusal(NamedTuple):
    """The tool did not accept the call."""

    text: str


class Refused(Exception):
    """Raised inside a tool to refuse the call."""


def require_user(world: Airline, user_id: str) -> Record:
    """The profile, or a refusal that says what is missing."""
    user = world.user(user_id)
    if user is None:
        raise Refused("user not found" if world.generation == "tau1" else f"User {user_id} not found")
    return user


def require_reservation(world: Airline, reservation_id: str) -> Record:
    """The reservation, or a refusal that says what is missing."""
    reservation = world.reservation(reservation_id)
    if reservation is None:
        tau1 = world.generation == "tau1"
        raise Refused("reservation not found" if tau1 else f"Reservation {reservation_id} not found")
    return reservation


def require_day(world: Airline, number: str, date: str) -> Record:
    """The flight on that date, or a refusal that says what is missing."""
    if world.flight(number) is None:
        raise Refused(f"flight {number} not found")
    day = world.day(number, date)
    if day is None:
        raise Refused(f"flight {number} not found on date {date}")
    return day


def only(records: list[Record], fields: tuple[str, ...]) -> list[Record]:
    """The records without fields that the second generation's models lack."""
    return [{field: record[field] for field in fields} for record in records]


def shown(world: Airline, reservation: Record) -> Record:
    """The reservation in its generation's output format."""
    return {"status": None, **reservation} if world.generation == "tau2" else reservation
