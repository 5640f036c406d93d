"""What the airline's tools work on: the records as of now in one conversation. `world` has them."""

from typing import Any, Protocol

from bylaw.packs.tau_airline.database import Database, Generation, Record


class Airline(Protocol):
    """Users, reservations and flights as of now, and the ways to change them."""

    database: Database
    generation: Generation
    reservations: dict[str, Record]

    def user(self, user_id: Any) -> Record | None:
        """The user's profile as of now."""
        ...

    def reservation(self, reservation_id: Any) -> Record | None:
        """The reservation as of now."""
        ...

    def flight(self, number: Any) -> Record | None:
        """The flight's timetable; the state of a date is `day`."""
        ...

    def day(self, number: Any, date: Any) -> Record | None:
        """One flight on one date as of now."""
        ...

    def own_user(self, user: Record, user_id: str) -> Record:
        """The user's profile, ours to change."""
        ...

    def own_reservation(self, reservation: Record) -> Record:
        """The reservation, ours to change (its lists are replaced, never changed)."""
        ...

    def take_seats(self, number: str, date: str, cabin: str, seats: int) -> None:
        """`seats` fewer in that cabin of the flight on that date."""
        ...
