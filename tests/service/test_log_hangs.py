"""While a log does not answer nobody is told that a call may run, and whoever asks is told that it does not."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.record import Log, database, flight, postgres
from bylaw.record.verify import verify
from bylaw.service import desk as desks
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from tests.record.test_server import held
from tests.service.asgi import ask
from tests.service.malformed import LOOK, REFUND
from tests.shield.test_decisions import shop

pytestmark = pytest.mark.parametrize("where", ["postgres"], indirect=True)


def request(name: str) -> bytes:
    import json

    return json.dumps({"conversation": name, **LOOK}).encode()


def test_health_says_that_the_log_is_not_written_and_decisions_wait(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desks, "PATIENCE", 0.1)

    async def talk(app: Any) -> None:
        assert (await ask(app, "GET", "/health")).status == 200
        with held(where):
            waiting = asyncio.create_task(ask(app, "POST", "/v1/decide", request("c")))
            await asyncio.sleep(0.2)
            health = await ask(app, "GET", "/health")
            assert (health.status, "asked to write" in health.json["error"]) == (503, True)
            assert not waiting.done()
        assert (await waiting).status == 200
        assert (await ask(app, "GET", "/health")).status == 200

    with Log(where, in_loop=True) as log:
        asyncio.run(talk(Service(Desk(shop(), log), {})))


def test_health_says_that_the_log_is_not_read_and_goes_on_answering(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    monkeypatch.setattr(desks, "PATIENCE", 0.1)

    async def talk(app: Any) -> None:
        with psycopg.connect(where) as other:
            other.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
            for _ in range(20):
                health = await ask(app, "GET", "/health")
                assert (health.status, "not been read" in health.json["error"]) == (503, True)
            other.rollback()
        await asyncio.sleep(0.2)
        assert (await ask(app, "GET", "/health")).status == 200

    with Log(where, in_loop=True) as log:
        asyncio.run(talk(Service(Desk(shop(), log), {})))


def test_a_decision_that_could_not_be_written_in_time_is_none_and_may_be_asked_for_again(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (database, flight, postgres):
        monkeypatch.setattr(module, "HANGS", 0.2)

    async def talk(app: Any) -> None:
        with held(where):
            answer = await ask(app, "POST", "/v1/decide", request("c"))
            assert (answer.status, answer.json["error"]["code"]) == (503, "BY701")
        again = await ask(app, "POST", "/v1/decide", request("c"))
        assert (again.status, again.json["decisions"][0]["id"]) == (200, "c/1")
        refund = request("c").replace(b'"get_order"', b'"refund"').replace(b'"id": "a"', b'"id": "b"')
        assert not (await ask(app, "POST", "/v1/decide", refund)).json["decisions"][0]["allowed"]

    with Log(where, in_loop=True) as log:
        asyncio.run(talk(Service(Desk(shop(), log), {})))
        assert verify(log.journal.store, "default").faults == ()
    assert REFUND["tool"] == "refund"


def test_a_read_that_hangs_is_given_up(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import psycopg

    from bylaw.record import wire
    from bylaw.record.journal import LogError

    monkeypatch.setattr(wire, "HANGS", 0.2)
    with Log(where) as log, psycopg.connect(where) as other:
        other.execute("LOCK TABLE entries IN ACCESS EXCLUSIVE MODE")
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
