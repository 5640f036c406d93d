"""Confirmations of hosts that send the whole history with each request: the card and its answer are found again."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.record import Log
from bylaw.record.verify import verify
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from tests.service.asgi import post
from tests.shield.cards import WANTED, write

ASKED: list[dict[str, Any]] = [{"role": "user", "content": "Send 250 to AC-22."}]
CUSTOMER = {"signed_in_as": "C1"}
CALL = {"id": "k", "type": "function", "function": {"name": "transfer", "arguments": '{"to": "AC-22", "amount": 250}'}}
REFUSED = [
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "k", "content": "Not done yet: ask first (transfer)."},
]
"""What such a host's history says of the first try."""


@pytest.fixture(name="log")
def opened(where: str) -> Iterator[Log]:
    with Log(where) as log:
        yield log


@pytest.fixture
def app(tmp_path: Path, log: Log) -> Any:
    (tmp_path / "bank").mkdir()
    return Service(Desk(write(tmp_path / "bank"), log), {})


def decide(app: Any, messages: list[dict[str, Any]], **more: Any) -> Any:
    asked = {"messages": messages, "tool": "transfer", "arguments": WANTED, "context": CUSTOMER, **more}
    answer = post(app, "/v1/decide", asked)
    assert answer.status == 200, answer.body
    return answer.json["decisions"][0]


def confirm(app: Any, asked: Any, answer: str = "yes", **more: Any) -> int:
    return post(app, "/v1/confirm", {"card": asked["card"]["id"], "answer": answer, **more}).status


@pytest.mark.parametrize("since", [[], REFUSED])
def test_the_answer_lets_the_call_run_once(app: Any, log: Log, since: list[dict[str, Any]]) -> None:
    asked = decide(app, ASKED)
    assert (asked["answer"], asked["allowed"]) == ("ask", False)
    waits = decide(app, ASKED + since)
    assert waits["card"] == asked["card"], "one prompt for one write"
    assert confirm(app, waits, conversation=waits["conversation"]) == 200
    assert confirm(app, waits) == 200, "said twice it is said once"
    done = decide(app, ASKED + since)
    assert (done["answer"], done["allowed"]) == ("allow", True)
    again = decide(app, ASKED + since)
    assert (again["allowed"], again["card"]["id"] != asked["card"]["id"]) == (False, True)
    assert confirm(app, asked) == 422, "it was used"
    assert verify(log.journal.store, "default").faults == ()


OTHERS: dict[str, dict[str, Any]] = {
    "another principal": {"context": {"signed_in_as": "C2"}},
    "nobody signed in": {"context": {}},
    "another call": {"arguments": {**WANTED, "amount": 251}},
    "the user spoke since": {"messages": [*ASKED, {"role": "user", "content": "No, wait."}]},
    "another history": {"messages": [{"role": "user", "content": "What is my balance?"}]},
    "a shorter one": {"messages": []},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_it_counts_for_nothing_else(app: Any, other: dict[str, Any]) -> None:
    asked = decide(app, ASKED)
    assert confirm(app, asked) == 200
    given = {"messages": ASKED, **other}
    assert not decide(app, given.pop("messages"), **given)["allowed"]
    assert decide(app, ASKED)["allowed"], "it stands for its own"


@pytest.mark.parametrize("nobody", ["", "  ", None])
def test_two_whom_nobody_names_are_not_one(app: Any, nobody: Any) -> None:
    whose = {"signed_in_as": nobody}
    asked = decide(app, ASKED, context=whose)
    confirm(app, asked)
    assert not decide(app, ASKED, context=whose)["allowed"]


def test_another_tenants_yes_is_nobodys(tmp_path: Path, log: Log) -> None:
    from bylaw.service.keys import Key, hash_of

    (tmp_path / "bank").mkdir()
    app = Service(Desk(write(tmp_path / "bank"), log), {hash_of("one"): Key("t"), hash_of("two"): Key("u")})
    asked = {"messages": ASKED, "tool": "transfer", "arguments": WANTED, "context": CUSTOMER}
    card = post(app, "/v1/decide", asked, key="one").json["decisions"][0]["card"]["id"]
    assert post(app, "/v1/confirm", {"card": card, "answer": "yes"}, key="two").status == 422
    assert post(app, "/v1/confirm", {"card": card, "answer": "yes"}, key="one").status == 200
    assert not post(app, "/v1/decide", asked, key="two").json["decisions"][0]["allowed"]
    assert post(app, "/v1/decide", asked, key="one").json["decisions"][0]["allowed"]


def test_a_no_is_no_yes_and_the_next_try_gets_a_card_of_its_own(app: Any) -> None:
    asked = decide(app, ASKED)
    assert confirm(app, asked, "no") == 200
    assert confirm(app, asked) == 422
    again = decide(app, ASKED)
    assert (again["allowed"], again["card"]["id"] != asked["card"]["id"]) == (False, True)


def test_of_requests_at_once_one_uses_it(tmp_path: Path, where: str) -> None:
    from bylaw.service.request import ConfirmRequest, DecideRequest

    (tmp_path / "bank").mkdir()
    pack = write(tmp_path / "bank")
    with Log(where, is_shared=True) as one, Log(where, is_shared=True) as two:
        desks = [Desk(pack, one), Desk(pack, two)]
        asked = DecideRequest(messages=ASKED, tool="transfer", arguments=WANTED, context=CUSTOMER)

        async def ask() -> tuple[int, int]:
            first = await asyncio.gather(*(desks[each % 2].decide("t", asked) for each in range(6)))
            cards = {each.decisions[0].card.id for each in first if each.decisions[0].card is not None}
            await desks[0].confirm("t", ConfirmRequest(cards.copy().pop(), "yes"))
            answers = await asyncio.gather(*(desks[each % 2].decide("t", asked) for each in range(8)))
            return len(cards), sum(each.decisions[0].allowed for each in answers)

        assert asyncio.run(ask()) == (1, 1)
        assert verify(one.journal.store, "t").faults == ()
