"""The records the airline's tools work on in one conversation; `world` implements them."""

from typing import Any, Protocol

from bylaw.packs.tau_airline.database import Database, Generation, Record


class Airline(Protocol):
    """Current users, reservations and flights, and the operations that change them."""

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
        """A modifiable copy of the user's profile."""
        ...

    def own_reservation(self, reservation: Record) -> Record:
        """A modifiable copy of the reservation; its lists are replaced, never changed in place."""
        ...

    def take_seats(self, number: str, date: str, cabin: str, seats: int) -> None:
        """Take `seats` from that cabin of the flight on that date."""
        ...
