"""A conversation that was removed while it was live, and another begun under its name by somebody else."""

from pathlib import Path

import pytest

from bylaw.engine.context import AnotherPrincipal
from bylaw.errors import UsageError
from bylaw.policy.posture import ApprovalTerms, Postures
from bylaw.record import open_store
from bylaw.shield import LiveSession, Shield
from bylaw.trace import Message
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk

OTHER = {"signed_in_as": "C2"}


def begin(shield: Shield, context: dict[str, str], *, yes: bool) -> LiveSession:
    """A conversation in which the rental was looked up, and perhaps a yes given that is in the log."""
    rentals, session = Rentals(), shield.session("c1", context=context)
    rentals.rental["customer_id"] = context["signed_in_as"]
    session.user("Please keep the car until 2026-11-20.")
    assert session.decide("get_rental", {"rental_id": "R1"}).allowed
    session.result(rentals.get_rental("R1"))
    session.agent(PUT_EXTEND)
    session.user("Yes" if yes else "Let me think about it.")
    session.flush()
    return session


def remove(log: Path) -> None:
    store = open_store(str(log))
    assert store.remove("default", conversation="c1")
    store.close()


@pytest.mark.parametrize("says", [False, True])
def test_a_yes_of_the_first_is_none_of_the_second(tmp_path: Path, says: bool) -> None:
    log = tmp_path / "log.db"
    here, elsewhere = desk(tmp_path, log=log), desk(tmp_path, log=log)
    first = begin(here, CUSTOMER, yes=True)
    remove(log)
    # So many entries as the first one had.
    second = begin(elsewhere, OTHER, yes=False)
    if says:
        first.user("Yes")
    with pytest.raises(AnotherPrincipal):
        first.decide("extend_rental", EXTEND)
    assert not second.decide("extend_rental", EXTEND).allowed
    if says:
        with pytest.raises(AnotherPrincipal):
            here.close()
    elsewhere.close()
    with desk(tmp_path, log=log) as shield:
        again = shield.session("c1")
        assert not again.decide("extend_rental", EXTEND).allowed
        assert again.context == OTHER
        assert "Yes" not in [event.text for event in again.trajectory().events if isinstance(event, Message)]


def test_nor_is_an_approval_or_a_card(tmp_path: Path) -> None:
    log, terms = tmp_path / "log.db", Postures(approval=ApprovalTerms(stands_in=("confirm",)))
    with desk(tmp_path, log=log, postures=terms) as shield:
        assert shield.log is not None
        first = begin(shield, CUSTOMER, yes=False)
        card = first.decide("extend_rental", EXTEND).card
        assert card is not None
        first.unheard()
        approval = first.decide("extend_rental", EXTEND).approval
        assert approval
        shield.log.approve(approval, by="lena")
        remove(log)
        for context in (OTHER, CUSTOMER):
            # The same person begins anew too: what was removed is not known any more.
            second = begin(shield, context, yes=False)
            with pytest.raises(UsageError):
                shield.log.approve(approval, by="lena")
            with pytest.raises(UsageError):
                second.confirm(card.id, True)
            assert not second.decide("extend_rental", EXTEND).allowed
            second.unheard()
            assert not second.decide("extend_rental", EXTEND).allowed
            remove(log)


def test_the_same_principal_goes_on_with_what_was_begun_anew(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    with desk(tmp_path, log=log) as shield:
        first = begin(shield, CUSTOMER, yes=True)
        remove(log)
        begin(shield, CUSTOMER, yes=False)
        assert not first.decide("extend_rental", EXTEND).allowed
        first.agent(PUT_EXTEND)
        first.user("Yes")
        assert first.decide("extend_rental", EXTEND).allowed


def test_nor_is_a_yes_of_the_second_one_of_the_first(tmp_path: Path) -> None:
    log = tmp_path / "log.db"
    with desk(tmp_path, log=log) as shield:
        first = begin(shield, CUSTOMER, yes=False)
        remove(log)
        second = begin(shield, OTHER, yes=True)
        second.decide("get_rental", {"rental_id": "R1"})
        second.result("{}")
        second.flush()
        with pytest.raises(AnotherPrincipal):
            first.decide("extend_rental", EXTEND)
