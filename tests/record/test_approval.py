"""An approval moves one way, is used once, and its table says what the log's entries add up to."""

import pytest

from bylaw.record import Conflict, Entry, open_store
from bylaw.record.approval import Change, Status, draft, fingerprint
from bylaw.record.verify import verify
from tests.stores import KEY

ASKED = Change("a1", "waiting", expires=4e9, question="May it?", call="k", facts="f")


def test_an_approval_is_used_once(where: str) -> None:
    store = open_store(where)
    steps: list[Status] = ["approved", "used"]
    answers = store.append([draft("t", "c", ASKED), *(draft("t", "c", Change("a1", to)) for to in steps)])
    assert all(isinstance(answer, Entry) for answer in answers)
    (found,) = store.approvals("t")
    assert (found.status, found.request.question) == ("used", "May it?")
    (again,) = store.append([draft("t", "c", Change("a1", "used", by="another"))])
    assert isinstance(again, Conflict)
    assert len(store.conversation("t", "c")) == 3
    assert verify(store, "t", key=KEY).faults == ()
    store.close()


@pytest.mark.parametrize(
    ("steps", "then"),
    [
        (["rejected"], "approved"),
        (["rejected"], "used"),
        (["expired"], "approved"),
        (["approved", "expired"], "used"),
        (["approved", "used"], "expired"),
        ([], "used"),
    ],
)
def test_what_is_over_stays_over(where: str, steps: list[Status], then: Status) -> None:
    store = open_store(where)
    store.append([draft("t", "c", ASKED), *(draft("t", "c", Change("a1", to)) for to in steps)])
    (answer,) = store.append([draft("t", "c", Change("a1", then))])
    assert isinstance(answer, Conflict)
    assert f"cannot become {then}" in answer.message
    store.close()


def test_nobody_can_approve_what_was_not_asked_or_is_another_tenants(where: str) -> None:
    store = open_store(where)
    store.append([draft("t", "c", ASKED)])
    (unasked,) = store.append([draft("t", "c", Change("a2", "approved"))])
    (other,) = store.append([draft("u", "c", Change("a1", "approved"))])
    assert isinstance(unasked, Conflict)
    assert isinstance(other, Conflict)
    assert store.approvals("u") == []
    store.close()


def test_a_removed_conversation_leaves_no_approval(where: str) -> None:
    store = open_store(where)
    store.append([draft("t", "c", ASKED)])
    store.remove("t", key=KEY, conversation="c")
    assert store.approvals("t") == []
    assert verify(store, "t", key=KEY).faults == ()
    store.close()


def test_a_fingerprint_does_not_depend_on_the_order_of_keys() -> None:
    assert fingerprint({"a": 1, "b": [2]}) == fingerprint({"b": [2], "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": "1"})
