"""The airline's true state during one conversation. Start at `open_world`.

All conversations share one database, which never changes. A fork copies each record before changing it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bylaw.errors import WorldError
from bylaw.facts.entity import ABSENT, UNSEEN, NoValue
from bylaw.packs.tau_airline import tools
from bylaw.packs.tau_airline.database import SHAPE, Database, Generation, Record, generations, open_database, open_file
from bylaw.packs.tau_airline.lookup import Refusal
from bylaw.trace import Call, Result, Trajectory, read, sniff


class AirlineWorld:
    """Users, reservations and flights in one conversation."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.generation: Generation = database.generation
        self.users: dict[str, Record] = {}
        self.reservations: dict[str, Record] = {}
        self.days: dict[tuple[str, str], Record] = {}
        self._unsettled: set[str] = set()
        """Users and reservations that a call may have changed in unknown ways."""

    def fork(self) -> "AirlineWorld":
        """Return a fork in the initial state, for one conversation."""
        return AirlineWorld(self.database)

    def user(self, user_id: Any) -> Record | None:
        if isinstance(user_id, str) and user_id in self.users:
            return self.users[user_id]
        return self.database.users.get(user_id)

    def reservation(self, reservation_id: Any) -> Record | None:
        if isinstance(reservation_id, str) and reservation_id in self.reservations:
            return self.reservations[reservation_id]
        return self.database.reservations.get(reservation_id)

    def flight(self, number: Any) -> Record | None:
        """Return the flight's timetable. For a date, use `day`."""
        return self.database.flights.get(number)

    def day(self, number: Any, date: Any) -> Record | None:
        flight = self.flight(number)
        if flight is None or not isinstance(date, str):
            return None
        return self.days.get((number, date)) or flight["dates"].get(date)

    def own_user(self, user: Record, user_id: str) -> Record:
        """Return a copy of the user's profile that may be changed."""
        if user_id not in self.users:
            methods = {key: dict(method) for key, method in user["payment_methods"].items()}
            self.users[user_id] = {**user, "payment_methods": methods, "reservations": list(user["reservations"])}
        return self.users[user_id]

    def own_reservation(self, reservation: Record) -> Record:
        """Return a copy of the reservation that may be changed. Replace its lists; never change them in place."""
        key = reservation["reservation_id"]
        if key not in self.reservations:
            self.reservations[key] = dict(reservation)
        return self.reservations[key]

    def take_seats(self, number: str, date: str, cabin: str, seats: int) -> None:
        day = self.day(number, date)
        assert day is not None
        left = {**day["available_seats"], cabin: day["available_seats"][cabin] - seats}
        self.days[number, date] = {**day, "available_seats": left}

    def record(self, entity: str, key: tuple[Any, ...]) -> Mapping[str, Any] | NoValue:
        """Return an entity's current record, or `ABSENT`."""
        if self._unsettled and entity in ("User", "Reservation", "Leg") and key[0] in self._unsettled:
            return UNSEEN
        match entity:
            case "User":
                found = self.user(key[0])
            case "Reservation":
                found = self.reservation(key[0])
            case "Leg":
                trip = self.reservation(key[0])
                found = {"user_id": trip["user_id"]} if trip is not None and key in self.legs(key[0]) else None
            case "Flight" | "Fare":
                found = self.day(*key)
                if found is not None:
                    bare: Record = {"prices": {}, "available_seats": {}}
                    found = {**bare, **found}
            case "Route":
                found = self.flight(key[0])
            case _:
                return UNSEEN
        return ABSENT if found is None else found

    def members(self, entity: str, match: Mapping[str, Any]) -> Sequence[tuple[Any, ...]] | None:
        """Return a user's reservations or legs; other entities are not listed.

        If any legs are delayed or cancelled, return only those, because a certificate can concern no others.
        """
        if entity not in ("Reservation", "Leg") or set(match) != {"user_id"}:
            return None
        if match["user_id"] in self._unsettled:
            return None
        user = self.user(match["user_id"])
        trips: list[str] = [] if user is None else user["reservations"]
        if entity == "Reservation":
            return [(trip,) for trip in trips]
        legs = [leg for trip in trips for leg in self.legs(trip)]
        late = [leg for leg in legs if (self.day(leg[1], leg[2]) or {}).get("status") in ("delayed", "cancelled")]
        return late or legs

    def legs(self, reservation_id: str) -> list[tuple[str, str, str]]:
        """Return a reservation's initial and current flights."""
        first, now = self.database.reservations.get(reservation_id), self.reservation(reservation_id)
        flights = (flight for trip in (first, now) if trip is not None for flight in trip["flights"])
        return list(dict.fromkeys((reservation_id, flight["flight_number"], flight["date"]) for flight in flights))

    def apply(self, call: Call, result: Result | None) -> None:
        """Apply an accepted call like the real database."""
        answer = tools.answer(self, call.tool, call.arguments)
        if isinstance(answer, Refusal) and result is not None:
            # The real database may differ, so the record in the log takes precedence.
            shown: dict[str, Any] | None = result.value()
            if isinstance(shown, dict) and "reservation_id" in shown:
                self.reservations[shown["reservation_id"]] = dict(shown)

    def unsettle(self, call: Call) -> None:
        """Record that a call may have changed the real database."""
        trip = self.reservation(call.arguments.get("reservation_id"))
        named = [call.arguments.get("reservation_id"), call.arguments.get("user_id"), trip and trip["user_id"]]
        self._unsettled.update(name for name in named if isinstance(name, str))


class AirlineWorlds:
    """The databases below a folder, or the database in a file. Each file of runs uses one."""

    def __init__(self, path: Path, held: Sequence[Generation]) -> None:
        self.path = path
        self.held = held
        self.opened: dict[Generation, dict[str, AirlineWorld]] = {}

    def check(self, pack: str) -> None:
        """Raise if the pack and the database belong to different generations."""
        generation = generation_of(pack)
        if generation is not None and generation not in self.held:
            raise WorldError(
                f"pack `{pack}` requires a {generation} database, but `{self.path}` contains only a {self.held[0]} one",
                hint=f"pass the database of {generation}, or a folder with both databases",
            )

    def named(self, generation: Generation) -> dict[str, AirlineWorld]:
        """Return one generation's worlds by the name of their users file."""
        if generation not in self.opened:
            found = open_database(self.path, generation)
            self.opened[generation] = {name: AirlineWorld(database) for name, database in found.items()}
        return self.opened[generation]

    def for_runs(self, file: Path, pack: str = "") -> tuple[str, AirlineWorld]:
        """Return the world of a file of runs, with the name of its users file."""
        generation = generation_of(pack) or self.held[0]
        if not pack and len(self.held) > 1:
            generation = "tau1" if sniff(file) == "tau1" else "tau2"
        worlds = self.named(generation)
        return self.choose(generation, first_profiles(file) if len(worlds) > 1 else {})

    def choose(self, generation: Generation, profiles: Mapping[str, Any]) -> tuple[str, AirlineWorld]:
        """Return the world with most of `profiles` (by user id), or the default."""
        worlds = self.named(generation)
        return max(worlds.items(), key=lambda item: sum(item[1].user(key) == profiles[key] for key in profiles))


def open_world(path: Path) -> AirlineWorlds:
    """Open the databases in `path`: a folder laid out like tau-bench or tau2-bench, a checkout of either, or one
    file.
    """
    if not path.exists():
        raise WorldError("there is no such file or folder", place=str(path))
    if not path.is_dir():
        worlds = AirlineWorlds(path, ["tau2"])
        worlds.opened["tau2"] = {path.name: AirlineWorld(open_file(path))}
        return worlds
    held = generations(path)
    if not held:
        raise WorldError(f"no airline database in `{path}`", hint=SHAPE)
    worlds = AirlineWorlds(path, held)
    if len(held) == 1:
        # Report this database's errors now. With two generations, one may never be opened.
        worlds.named(held[0])
    return worlds


def generation_of(pack: str) -> Generation | None:
    match pack:
        case "tau-airline/tau1":
            return "tau1"
        case "tau-airline/tau2":
            return "tau2"
        case _:
            return None


def first_profiles(file: Path) -> dict[str, Any]:
    """Return the profiles in the first conversation of a file of runs that shows any, by user id."""
    found: dict[str, Any] = {}
    for trajectory in read(file):
        if isinstance(trajectory, Trajectory):
            for event in trajectory.events:
                if isinstance(event, Result) and event.call is not None:
                    call = trajectory.events[event.call]
                    if isinstance(call, Call) and call.tool == "get_user_details":
                        profile = event.value()
                        if isinstance(profile, dict):
                            found.setdefault(str(call.arguments.get("user_id")), profile)
        if found:
            break
    return found
