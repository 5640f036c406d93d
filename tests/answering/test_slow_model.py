"""A model that is slow or down: the call is asked about, with the reason, and nobody else waits for it."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("openai", reason="needs the extra `compile`")

from bylaw.answering import request
from bylaw.answering.request import RequestReader
from bylaw.engine.conversation import Mutation
from bylaw.llm.source import open_chat
from bylaw.pack import load_pack
from bylaw.shield import Decision, Shield
from tests.answering.sleepy import Sleepy, sleepy

PACK = load_pack("agentdojo/banking")
ACCOUNT = "GB29NWBK60161331926819"
PAYMENT = {"recipient": ACCOUNT, "amount": 10, "subject": "rent", "date": "2022-04-01"}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sleepy]:
    with sleepy() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.address)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield running


def asked(shield: Shield, text: str) -> Decision:
    session = shield.session()
    session.user(f"My account is {ACCOUNT}. {text}")
    return session.decide("send_money", PAYMENT)


@pytest.mark.usefixtures("model")
def test_a_slow_model_makes_the_call_wait_so_long_and_no_longer() -> None:
    shield = Shield(PACK, requests=RequestReader(open_chat("m"), patience=0.3))
    decision = asked(shield, "hold")
    assert (decision.answer, decision.allowed) == ("ask", False)
    assert "the model gave no answer within 0.3 seconds" in decision.feedback


def test_an_answer_that_comes_late_is_there_for_the_next_call(model: Sleepy) -> None:
    reader = RequestReader(open_chat("m"), patience=0.2)
    session = Shield(PACK, requests=reader).session()
    session.user(f"My account is {ACCOUNT}. hold")
    assert "no answer within" in session.decide("send_money", PAYMENT).feedback
    model.may_answer.set()
    while not reader.known:
        time.sleep(0.05)
    told = session.decide("send_money", {**PAYMENT, "amount": 11})
    assert "the request does not ask for this" in told.feedback
    assert reader.queries == 1


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("how", ["babble", "fail"])
def test_a_model_that_fails_makes_the_call_asked_about(how: str) -> None:
    shield = Shield(PACK, requests=RequestReader(open_chat("m"), patience=3.0))
    decision = asked(shield, how)
    assert decision.answer == "ask"
    assert "the request could not be read: the model gave no answer" in decision.feedback


def test_a_model_that_is_down_is_not_waited_for_again_and_again(model: Sleepy, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = RequestReader(open_chat("m"), patience=0.2)
    shield = Shield(PACK, requests=reader)
    for number in range(request.FAILURES):
        asked(shield, f"hold {number}")
    known = reader.queries
    assert "has not answered recently" in asked(shield, "hold again").feedback
    assert reader.queries == known, "asked although it is down"
    monkeypatch.setattr(request.time, "monotonic", lambda: time.perf_counter() + 1e9)
    asking = reader._asking  # pyright: ignore[reportPrivateUsage]
    assert asking is not None
    asking._patience = 60.0  # pyright: ignore[reportPrivateUsage]
    assert "the request does not ask for this" in asked(shield, "quick").feedback, "asked again after a while"
    assert "quick" in model.asked[-1]


@pytest.mark.parametrize("with_log", [False, True])
def test_nobody_else_waits(model: Sleepy, tmp_path: Path, with_log: bool) -> None:
    reader = RequestReader(open_chat("m", concurrency=1), patience=120.0)
    log = tmp_path / "log.db" if with_log else None

    async def decided(shield: Shield, name: str, text: str) -> None:
        session = shield.session(name)
        (decision,) = await session.take_async(
            [Mutation("user", {"text": f"My account is {ACCOUNT}. {text}"})], [("send_money", PAYMENT)]
        )
        assert decision.answer == "ask"

    async def all_of(shield: Shield) -> None:
        slow = [asyncio.create_task(decided(shield, f"slow{number}", f"hold {number}")) for number in range(40)]
        while len(model.asked) < len(slow):
            await asyncio.sleep(0.01)
        for number in range(5):
            await decided(shield, f"quick{number}", f"quick {number}")
        assert not any(task.done() for task in slow)
        model.may_answer.set()
        await asyncio.gather(*slow)

    with Shield(PACK, requests=reader, log=log) as shield:
        asyncio.run(all_of(shield))
