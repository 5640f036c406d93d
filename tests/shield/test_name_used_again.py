"""A conversation that was removed from the log allows nothing, and its name stays taken."""

from pathlib import Path

import pytest

from bylaw.errors import BylawError
from bylaw.record import open_store
from bylaw.shield import LiveSession, Shield
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk
from tests.stores import KEY


def begin(shield: Shield) -> LiveSession:
    """A conversation in which the rental was looked up and a yes given; all of it is in the log."""
    rentals, session = Rentals(), shield.session("c1", context=CUSTOMER)
    session.user("Please keep the car until 2026-11-20.")
    assert session.decide("get_rental", {"rental_id": "R1"}).allowed
    session.result(rentals.get_rental("R1"))
    session.agent(PUT_EXTEND)
    session.user("Yes")
    session.flush()
    return session


def remove(log: Path) -> None:
    store = open_store(str(log))
    assert store.remove("default", key=KEY, conversation="c1")
    store.close()


def test_a_live_session_allows_nothing_once_its_conversation_is_removed(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    shield = desk(tmp_path, log=log)
    session = begin(shield)
    remove(log)
    with pytest.raises(BylawError, match="was removed"):
        session.decide("extend_rental", EXTEND)


def test_no_conversation_begins_under_the_name_of_a_removed_one(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    with desk(tmp_path, log=log) as shield:
        begin(shield)
    remove(log)
    shield = desk(tmp_path, log=log)
    with pytest.raises(BylawError, match="was removed"):
        begin(shield)
