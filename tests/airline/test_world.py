"""The airline's world: it answers and moves as the published tools do, and forks stay apart."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import UsageError, WorldError
from bylaw.facts.entity import ABSENT, UNSEEN
from bylaw.packs.tau_airline import open_tasks, open_world, tools
from bylaw.packs.tau_airline.lookup import Refusal
from bylaw.packs.tau_airline.world import AirlineWorld
from bylaw.trace import Call, Result, Trajectory
from tests.airline.small import USERS, write_tau1, write_tau2

LEG = {"flight_number": "HAT001", "date": "2024-05-20"}


@pytest.fixture
def first(tmp_path: Path) -> AirlineWorld:
    return next(iter(open_world(write_tau1(tmp_path)).named("tau1").values()))


@pytest.fixture
def second(tmp_path: Path) -> AirlineWorld:
    return next(iter(open_world(write_tau2(tmp_path)).named("tau2").values()))


def booking(**changes: Any) -> dict[str, Any]:
    return {
        "user_id": "ada", "origin": "SFO", "destination": "JFK", "flight_type": "one_way", "cabin": "economy",
        "flights": [LEG], "passengers": [{"first_name": "Bo", "last_name": "Li", "dob": "2000-01-01"}],
        "payment_methods": [{"payment_id": "gift_card_1", "amount": 100}],
        "total_baggages": 0, "nonfree_baggages": 0, "insurance": "no", **changes,
    }  # fmt: skip


@pytest.mark.parametrize("nested", ["", "tau1", "tau_bench/envs/airline/data"])
def test_first_generation_is_found_in_a_folder_or_a_checkout(tmp_path: Path, nested: str) -> None:
    write_tau1(tmp_path / nested)
    assert open_world(tmp_path).held == ["tau1"]


@pytest.mark.parametrize("nested", ["", "tau2", "data/tau2/domains/airline"])
def test_second_generation_is_found_in_a_folder_or_a_checkout(tmp_path: Path, nested: str) -> None:
    write_tau2(tmp_path / nested)
    assert open_world(tmp_path).held == ["tau2"]


def test_a_folder_without_a_database_is_an_error_with_advice(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="checkout"):
        open_world(tmp_path)


def altered(folder: Path, name: str) -> Path:
    """A copy of the folder's database under another name, in which Ada is a gold member."""
    text = (folder / "db.json").read_text().replace('"silver"', '"gold"')
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return file


@pytest.mark.parametrize("name", ["mydb.json", "mydb.json.gz", "of last week"])
def test_a_file_that_is_named_is_the_one_that_is_used(tmp_path: Path, name: str) -> None:
    worlds = open_world(altered(write_tau2(tmp_path), name))
    used, world = worlds.for_runs(tmp_path / "runs.json", "tau-airline/tau2")
    assert used == name
    assert world.user("ada")["membership"] == "gold"  # type: ignore[index]


@pytest.mark.parametrize(
    "content",
    [b"# Airline policy", b"[]", b'{"users": {}}', b"\x1f\x8bno", b'{"users": "\xff"}', b"[" * 5000,
     b'{"users": {}, "reservations": {"R1": {"items": []}}, "flights": {}}'],
)  # fmt: skip
def test_a_named_file_that_is_no_database_is_refused_whatever_lies_beside_it(tmp_path: Path, content: bytes) -> None:
    file = write_tau2(tmp_path) / "other.json"
    file.write_bytes(content)
    with pytest.raises(WorldError, match=r"other\.json: (not an airline database|cannot be read)"):
        open_world(file)


def test_a_part_of_a_first_generation_database_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="pass the database's folder"):
        open_world(write_tau1(tmp_path) / "users.json.gz")


def test_a_world_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match="no such file or folder"):
        open_world(tmp_path / "none")


def test_a_damaged_database_is_told_before_anything_is_read(tmp_path: Path) -> None:
    (write_tau2(tmp_path) / "db.json").write_text("{")
    with pytest.raises(WorldError, match=r"db\.json"):
        open_world(tmp_path)


def test_a_database_is_refused_for_runs_of_the_other_generation(tmp_path: Path) -> None:
    first, second = write_tau1(tmp_path / "tau1"), write_tau2(tmp_path / "tau2")
    for folder, pack in ((first, "tau-airline/tau2"), (second / "db.json", "tau-airline/tau1")):
        with pytest.raises(WorldError, match=r"requires a tau\d database, but .* contains only a tau"):
            open_world(folder).check(pack)
    for pack in ("tau-airline/tau1", "tau-airline/tau2", "a pack of their own"):
        open_world(tmp_path).check(pack)


def test_a_file_of_runs_gets_the_users_it_first_shows(tmp_path: Path) -> None:
    moved = {"ada": {**USERS["ada"], "address": {"province": "CA"}}}
    worlds = open_world(write_tau1(tmp_path, **{"users-moved": moved}))
    assert worlds.choose("tau1", {})[0] == "users.json"
    assert worlds.choose("tau1", moved)[0] == "users-moved.json"
    talk = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "1",
                    "type": "function",
                    "function": {"name": "get_user_details", "arguments": '{"user_id": "ada"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "1", "name": "get_user_details", "content": json.dumps(moved["ada"])},
    ]
    runs = tmp_path / "runs.json"
    runs.write_text(json.dumps([{"task_id": 0, "trial": 0, "reward": 0.0, "info": {}, "traj": talk}]))
    assert worlds.for_runs(runs)[0] == "users-moved.json"


def test_forks_do_not_see_each_other(second: AirlineWorld) -> None:
    one, other = second.fork(), second.fork()
    tools.answer(one, "book_reservation", booking())
    tools.answer(one, "cancel_reservation", {"reservation_id": "R1"})
    assert one.reservation("R1")["status"] == "cancelled"  # type: ignore[index]
    assert "status" not in (other.reservation("R1") or {})
    assert other.user("ada")["payment_methods"]["gift_card_1"]["amount"] == 300  # type: ignore[index]
    assert other.day("HAT001", "2024-05-20")["available_seats"]["economy"] == 2  # type: ignore[index]
    assert one.day("HAT001", "2024-05-20")["available_seats"]["economy"] == 1  # type: ignore[index]


def test_a_booking_pays_takes_seats_and_joins_the_profile(second: AirlineWorld) -> None:
    world = second.fork()
    booked = tools.answer(world, "book_reservation", booking())
    assert booked["reservation_id"] == "HATHAT"
    assert booked["status"] is None
    assert world.user("ada")["payment_methods"]["gift_card_1"]["amount"] == 200  # type: ignore[index]
    assert world.members("Reservation", {"user_id": "ada"}) == [("R1",), ("HATHAT",)]


def test_a_certificate_is_used_up_whole(second: AirlineWorld) -> None:
    world = second.fork()
    tools.answer(world, "book_reservation", booking(payment_methods=[{"payment_id": "certificate_1", "amount": 100}]))
    assert "certificate_1" not in world.user("ada")["payment_methods"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"user_id": "bob"}, "User bob not found"),
        ({"payment_methods": [{"payment_id": "x", "amount": 100}]}, "Payment method x not found"),
        ({"payment_methods": [{"payment_id": "gift_card_1", "amount": 400}]}, "Not enough balance"),
        ({"payment_methods": [{"payment_id": "gift_card_1", "amount": 99}]}, "total price is 100, but paid 99"),
        ({"flights": [{"flight_number": "HAT001", "date": "2024-05-14"}]}, "not available on date 2024-05-14"),
        ({"flights": [{"flight_number": "HAT009", "date": "2024-05-20"}]}, "Flight HAT009 not found"),
        ({"flights": [{"flight_number": "HAT001", "date": "2024-06-20"}]}, "HAT001 not found on date"),
        ({"passengers": [{}, {}, {}]}, "Not enough seats"),
    ],
)
def test_a_refused_booking_changes_nothing(second: AirlineWorld, changes: dict[str, Any], text: str) -> None:
    world = second.fork()
    answer = tools.answer(world, "book_reservation", booking(**changes))
    assert isinstance(answer, Refusal)
    assert text in answer.text
    assert not world.users
    assert not world.reservations


def test_only_the_second_generation_remembers_a_new_cabin(first: AirlineWorld, second: AirlineWorld) -> None:
    change = {"reservation_id": "R1", "cabin": "economy", "flights": [LEG], "payment_id": "credit_card_1"}
    assert tools.answer(first.fork(), "update_reservation_flights", change)["cabin"] == "basic_economy"
    assert tools.answer(second.fork(), "update_reservation_flights", change)["cabin"] == "economy"


def test_a_kept_flight_keeps_its_price_and_a_refund_goes_to_the_gift_card(second: AirlineWorld) -> None:
    world = second.fork()
    change = {"reservation_id": "R1", "cabin": "business", "flights": [LEG], "payment_id": "credit_card_1"}
    assert tools.answer(world, "update_reservation_flights", change)["payment_history"][-1]["amount"] == 350
    back = {**change, "cabin": "basic_economy", "payment_id": "gift_card_1"}
    assert tools.answer(world, "update_reservation_flights", back)["payment_history"][-1]["amount"] == -350
    assert world.user("ada")["payment_methods"]["gift_card_1"]["amount"] == 650  # type: ignore[index]
    assert tools.answer(world, "update_reservation_flights", back)["flights"][0]["price"] == 50


def test_bags_cost_fifty_each_beyond_the_free_ones(second: AirlineWorld) -> None:
    world = second.fork()
    bags = {"reservation_id": "R1", "total_baggages": 3, "nonfree_baggages": 2, "payment_id": "gift_card_1"}
    assert tools.answer(world, "update_reservation_baggages", bags)["total_baggages"] == 3
    assert world.user("ada")["payment_methods"]["gift_card_1"]["amount"] == 200  # type: ignore[index]


def test_certificates_pay_for_no_change(second: AirlineWorld) -> None:
    bags = {"reservation_id": "R1", "total_baggages": 3, "nonfree_baggages": 2, "payment_id": "certificate_1"}
    answer = tools.answer(second.fork(), "update_reservation_baggages", bags)
    assert answer == Refusal("Error: Certificate cannot be used to update reservation")


def test_the_second_leg_of_a_one_stop_trip_may_leave_the_next_day(second: AirlineWorld) -> None:
    (pair,) = tools.answer(
        second, "search_onestop_flight", {"origin": "SFO", "destination": "JFK", "date": "2024-05-20"}
    )
    assert [leg["date"] for leg in pair] == ["2024-05-20", "2024-05-21"]


def test_things_are_known_absent_or_not_known(second: AirlineWorld) -> None:
    assert second.record("User", ("bob",)) is ABSENT
    assert second.record("Flight", ("HAT001", "2024-06-01")) is ABSENT
    assert second.record("Airport", ("SFO",)) is UNSEEN
    assert second.record("Flight", ("HAT001", "2024-05-14")) == {
        "status": "landed",
        "prices": {},
        "available_seats": {},
    }
    route = second.record("Route", ("HAT001",))
    assert isinstance(route, dict)
    assert (route["origin"], route["destination"]) == ("SFO", "JFK")
    assert second.record("Route", ("HAT009",)) is ABSENT
    assert second.members("Flight", {}) is None


def test_an_accepted_write_that_our_database_refuses_is_taken_from_its_result(second: AirlineWorld) -> None:
    world = second.fork()
    shown = {"reservation_id": "R9", "user_id": "ada", "cabin": "economy", "flights": []}
    call = Call("update_reservation_passengers", {"reservation_id": "R9", "passengers": []})
    world.apply(call, Result(0, json.dumps(shown)))
    assert world.reservation("R9") == shown


def test_the_flights_of_the_first_hour_stay_on_record_when_they_are_changed(second: AirlineWorld) -> None:
    world = second.fork()
    later = [{"flight_number": "HAT001", "date": "2024-05-21"}]
    change = {"reservation_id": "R1", "cabin": "economy", "flights": later, "payment_id": "credit_card_1"}
    world.apply(Call("update_reservation_flights", change), None)
    legs = [("R1", "HAT001", "2024-05-20"), ("R1", "HAT001", "2024-05-21")]
    assert world.members("Leg", {"user_id": "ada"}) == legs
    assert [world.record("Leg", leg) for leg in legs] == [{"user_id": "ada"}] * 2
    assert world.record("Leg", ("R1", "HAT001", "2024-05-22")) is ABSENT
    record: Any = world.record("Reservation", ("R1",))
    assert [leg["date"] for leg in record["flights"]] == ["2024-05-21"]


def test_a_conversation_went_well_if_it_left_what_the_gold_actions_leave(second: AirlineWorld, tmp_path: Path) -> None:
    actions = [{"name": "cancel_reservation", "arguments": {"reservation_id": "R1"}}]
    file = tmp_path / "tasks.json"
    file.write_text(json.dumps([{"id": "7", "evaluation_criteria": {"actions": actions}}]))
    tasks = open_tasks(file)
    run = Trajectory("a", (), format="tau2", details={"task_id": "7"})
    still, moved = second.fork(), second.fork()
    moved.apply(Call("cancel_reservation", {"reservation_id": "R1"}), None)
    assert tasks.outcome(run, still).good is False  # type: ignore[union-attr]
    assert tasks.outcome(run, moved).good is True  # type: ignore[union-attr]
    assert tasks.outcome(Trajectory("b", (), format="tau1", details={"task_id": "7"}), moved) is None


def test_tasks_may_be_packed(tmp_path: Path) -> None:
    file = tmp_path / "tasks.json.gz"
    file.write_bytes(gzip.compress(b'[{"id": 7}]'))
    assert list(open_tasks(file).tasks) == ["7"]


def test_tasks_that_cannot_be_read_are_told_from_what_are_no_tasks(tmp_path: Path) -> None:
    with pytest.raises(WorldError, match=r"none\.json: cannot be read: No such file"):
        open_tasks(tmp_path / "none.json")
    other = tmp_path / "other.json"
    other.write_text('[{"name": "a tool"}]')
    with pytest.raises(WorldError, match=r"other\.json: not a list of tasks"):
        open_tasks(other)


def test_tasks_are_refused_where_no_database_of_theirs_is_given(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="remove --tasks"):
        open_tasks(tmp_path / "tasks.json", open_world(write_tau1(tmp_path)))


def test_of_a_users_legs_those_that_are_late_are_listed_where_there_are_any(second: AirlineWorld) -> None:
    world = second.fork()
    assert world.members("Leg", {"user_id": "ada"}) == [("R1", "HAT001", "2024-05-20")]
    tools.answer(world, "book_reservation", booking(flights=[{"flight_number": "HAT001", "date": "2024-05-21"}]))
    assert len(world.members("Leg", {"user_id": "ada"}) or ()) == 2
    world.days["HAT001", "2024-05-21"] = {"status": "delayed"}
    assert world.members("Leg", {"user_id": "ada"}) == [("HATHAT", "HAT001", "2024-05-21")]


def test_arithmetic_is_rounded_and_nothing_else_is_computed(first: AirlineWorld) -> None:
    assert tools.answer(first, "calculate", {"expression": "2 * (10 - 0.5) / 3"}) == "6.33"
    assert tools.answer(first, "calculate", {"expression": "__import__"}) == Refusal(
        "Error: invalid characters in expression"
    )
