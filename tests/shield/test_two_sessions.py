"""Two sessions report one conversation. What one has not written yet may be older than what the other wrote."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bylaw import Pack, Shield
from bylaw.shield import LiveSession
from bylaw.trace.event import Call
from tests.engine.test_conversation import FILES as ORDERS
from tests.shield.cards import FILES, WANTED, ask, begun

ENFORCED = {
    **FILES,
    "pack.yaml": FILES["pack.yaml"] + "shield: {posture: enforce}\n",
    "tools.yaml": FILES["tools.yaml"] + "  get_balance: {effect: read, parameters: {to: string}}\n",
}
SHOP = {
    **ORDERS,
    "pack.yaml": ORDERS["pack.yaml"] + "shield: {posture: enforce, unguarded: allow}\n",
    "tools.yaml": ORDERS["tools.yaml"]
    + "  set_returned: {effect: write, parameters: {order_id: string}, changes: [Order]}\n",
}
GET = [{"id": "l", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "7"}'}}]
LOOK_UP = [
    {"role": "assistant", "content": None, "tool_calls": GET},
    {"role": "tool", "tool_call_id": "l", "content": json.dumps({"order_id": "7", "returned": True})},
]


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[Shield]:
    with Shield(Pack.from_files(ENFORCED), log=tmp_path / "log.db") as shield:
        yield shield


def asked(bank: Shield) -> tuple[LiveSession, str]:
    """The agent has shown a card, and the user's typed yes is not written yet."""
    chat = bank.session("c")
    chat.user("Send 250 to AC-22.")
    card = chat.decide("transfer", WANTED).card
    assert card is not None
    chat.agent(card.text)
    chat.flush()
    chat.user("yes")
    return chat, card.id


def test_a_no_pressed_elsewhere_is_not_older_than_a_yes_that_was_not_written(bank: Shield) -> None:
    chat, card = asked(bank)
    bank.session("c").confirm(card, False)
    assert not chat.decide("transfer", WANTED).allowed


def test_a_no_to_another_spelling_is_not_older_either(bank: Shield) -> None:
    chat, _ = asked(bank)
    button = bank.session("c")
    other = button.decide("transfer", {**WANTED, "to": "ac22"}).card
    assert other is not None
    button.confirm(other, False)
    assert not chat.decide("transfer", WANTED).allowed


def test_a_call_that_ran_elsewhere_may_have_used_the_yes(bank: Shield) -> None:
    chat, card = asked(bank)
    button = bank.session("c")
    button.confirm(card, True)
    assert button.decide("transfer", WANTED).allowed
    button.result("sent")
    button.flush()
    assert not chat.decide("transfer", WANTED).allowed


def test_a_look_up_elsewhere_leaves_a_yes_alone(bank: Shield) -> None:
    chat, _ = asked(bank)
    other = bank.session("c")
    assert other.decide("get_balance", {"to": "AC-22"}).allowed
    other.result("900")
    other.flush()
    assert chat.decide("transfer", WANTED).allowed


@pytest.mark.parametrize("writes", [True, False])
def test_a_look_up_that_was_not_written_may_be_older_than_a_write_elsewhere(tmp_path: Path, *, writes: bool) -> None:
    with Shield(Pack.from_files(SHOP), log=tmp_path / "log.db") as shield:
        chat = shield.session("c")
        chat.user("Refund 7.")
        chat.flush()
        chat.messages(LOOK_UP)
        other = shield.session("c")
        if writes:
            assert other.decide("set_returned", {"order_id": "7"}).allowed
            other.flush()
        assert chat.decide("refund", {"order_id": "7"}).allowed is not writes


class LateThreads(ThreadPoolExecutor):
    """Threads that begin a while after they were started."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(lambda: (time.sleep(0.1), fn(*args, **kwargs))[1])


def test_a_cancelled_request_that_a_thread_is_still_to_decide_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bylaw.shield.settling._threads", partial(LateThreads, 1))

    async def cancelled(session: LiveSession) -> None:
        request = asyncio.create_task(session.decide_async("transfer", WANTED, id="given up"))
        await asyncio.sleep(0.02)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        await asyncio.sleep(0.2)

    with Shield(Pack.from_files(ENFORCED), log=tmp_path / "log.db", answers=lambda *_: None) as shield:
        session, card = begun(shield)
        session.agent(card.text)
        session.user("Yes.")
        asyncio.run(cancelled(session))
        assert ask(session).allowed
        assert all(event.id != "given up" for event in session.trajectory().events if isinstance(event, Call))
