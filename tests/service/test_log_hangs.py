"""While a log does not answer nobody is told that a call may run, and whoever asks is told that it does not."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.record import Log
from bylaw.record.verify import verify
from bylaw.service import desk as desks
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from tests.record.test_server import hanging, held
from tests.service.asgi import ask
from tests.service.malformed import LOOK, REFUND
from tests.shield.scenes import shop

pytestmark = pytest.mark.parametrize("where", ["postgres"], indirect=True)


def request(name: str) -> bytes:
    import json

    return json.dumps({"conversation": name, **LOOK}).encode()


async def until(app: Any, status: int) -> Any:
    """What `/health` says once it has come to this."""
    async with asyncio.timeout(30):
        while (health := await ask(app, "GET", "/health")).status != status:
            await asyncio.sleep(0.05)
    return health


def test_health_says_that_the_log_is_not_written_and_decisions_wait(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:

    async def talk(app: Any) -> None:
        assert (await ask(app, "GET", "/health")).status == 200
        with held(where), monkeypatch.context() as patch:
            patch.setattr(desks, "PATIENCE", 0.1)
            waiting = asyncio.create_task(ask(app, "POST", "/v1/decide", request("c")))
            health = await until(app, 503)
            assert "not finished writing" in health.json["error"]
            assert not waiting.done()
        assert (await waiting).status == 200
        assert (await ask(app, "GET", "/health")).status == 200

    with Log(where) as log:
        asyncio.run(talk(Service(Desk(shop(), log), {})))


def test_health_says_that_the_log_is_not_read_and_goes_on_answering(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    async def talk(app: Any) -> None:
        with psycopg.connect(where) as other, monkeypatch.context() as patch:
            patch.setattr(desks, "PATIENCE", 0.1)
            other.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
            for _ in range(20):
                health = await ask(app, "GET", "/health")
                assert (health.status, "could not be read" in health.json["error"]) == (503, True)
            other.rollback()
        await until(app, 200)

    with Log(where) as log:
        asyncio.run(talk(Service(Desk(shop(), log), {})))


def test_a_decision_that_could_not_be_written_in_time_is_none_and_may_be_asked_for_again(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def talk(app: Any) -> None:
        with hanging(where, monkeypatch):
            answer = await ask(app, "POST", "/v1/decide", request("c"))
            assert (answer.status, answer.json["error"]["code"]) == (503, "BY701")
        again = await ask(app, "POST", "/v1/decide", request("c"))
        assert (again.status, again.json["decisions"][0]["id"]) == (200, "c/1")
        refund = request("c").replace(b'"get_order"', b'"refund"').replace(b'"id": "a"', b'"id": "b"')
        assert not (await ask(app, "POST", "/v1/decide", refund)).json["decisions"][0]["allowed"]

    with Log(where) as log:
        asyncio.run(talk(Service(Desk(shop(), log), {})))
        assert verify(log.journal.store, "default").faults == ()
    assert REFUND["tool"] == "refund"


def test_a_read_that_hangs_is_given_up(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    from bylaw.record import postgres as server
    from bylaw.record.journal import LogError

    with Log(where) as log, psycopg.connect(where) as other:
        other.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
        with monkeypatch.context() as patch:
            patch.setattr(server, "HANGS", 0.2)
            with pytest.raises(LogError, match="could not be read: the server has not answered"):
                log.conversation("t", "c")
        other.rollback()
        assert log.conversation("t", "c") == []


def test_a_password_is_not_shown(where: str) -> None:
    from bylaw.errors import UsageError
    from bylaw.record import open_store

    asked = where + "&password=secret&port=1"
    with pytest.raises(UsageError) as raised:
        open_store(asked)
    assert "secret" not in str(raised.value)
