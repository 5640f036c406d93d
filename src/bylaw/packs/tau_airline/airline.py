"""The records that the airline's tools use in one conversation; `world` implements them."""

from typing import Any, Protocol

from bylaw.packs.tau_airline.database import Database, Generation, Record


class Airline(Protocol):
    """Current users, reservations and flights, and the operations that change them."""

    database: Database
    generation: Generation
    reservations: dict[str, Record]

    def user(self, user_id: Any) -> Record | None:
        """Return the user's current profile."""
        ...

    def reservation(self, reservation_id: Any) -> Record | None:
        """Return the current reservation."""
        ...

    def flight(self, number: Any) -> Record | None:
        """Return the flight's timetable. For a date, use `day`."""
        ...

    def day(self, number: Any, date: Any) -> Record | None:
        """Return the current state of a flight on a date."""
        ...

    def own_user(self, user: Record, user_id: str) -> Record:
        """Return a copy of the user's profile that may be changed."""
        ...

    def own_reservation(self, reservation: Record) -> Record:
        """Return a copy of the reservation that may be changed. Replace its lists; never change them in place."""
        ...

    def take_seats(self, number: str, date: str, cabin: str, seats: int) -> None:
        """Take `seats` from a cabin of the flight on a date."""
        ...
