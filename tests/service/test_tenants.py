"""What one tenant does changes nothing in what another is told, on any route."""
# pyright: basic

import asyncio
import json
import re
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

pytest.importorskip("starlette")

from hypothesis import given, settings
from hypothesis import strategies as st

from bylaw.record import Log
from bylaw.record.verify import verify
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.fairness import LARGE, SLOW, SPARE, Scheduler
from bylaw.service.keys import Key, hash_of
from bylaw.service.openapi import document
from bylaw.shield import Shield
from bylaw.shield.settling import LONG
from bylaw.text.cost import STEPS, Cost, TooCostly
from tests.service.asgi import ask
from tests.shield.scenes import shop

KEYS = {"ann": "bylaw_ann", "bob": "bylaw_bob"}
SECRET = "ann-only"
TIMES = re.compile(rb'"(seconds|asked|expires|since|until)":[0-9.e-]+|stop-[0-9a-f]{8}')
"""What differs from run to run."""

names = st.sampled_from(["c", "d"])
orders = st.sampled_from(["7", "8"])
told = st.sampled_from([{"user": "hello"}, {"agent": "ok"}, {"result": {"order_id": "7", "returned": True}},
                        {"result": {"order_id": "7"}, "call": "a"}])  # fmt: skip
calls = st.fixed_dictionaries(
    {"tool": st.sampled_from(["refund", "get_order"]), "arguments": st.fixed_dictionaries({"order_id": orders})},
    optional={"id": st.sampled_from(["a", "b"])},
)
events = st.lists(told, max_size=2)


def decide(conversation: str, call: Any, happened: Any, request: str) -> Any:
    return {"conversation": conversation, **call, "events": happened, "request": request}


decides = st.builds(decide, names, calls, events, st.sampled_from(["", "r1"]))
takes = st.builds(lambda name, happened: {"conversation": name, "events": happened}, names, events)
evaluations = st.builds(
    lambda name, call: {
        "subject": {"type": "agent", "id": "x"}, "resource": {"type": "order", "id": "7"},
        "action": {"name": call["tool"], "properties": call["arguments"]}, "context": {"conversation": name},
    },
    names, calls,
)  # fmt: skip
answers = st.builds(
    lambda name, number, answer: {"id": f"{name}/{number}", "answer": answer, "by": "someone"},
    names, st.integers(1, 4), st.sampled_from(["approve", "reject"]),
)  # fmt: skip

stops = st.builds(
    lambda what: {**what, "seconds": 600, "reason": "hello"},
    st.sampled_from([{"what": "all"}, {"what": "tool", "name": "refund", "answer": "ask"}]),
)


confirmations = st.builds(
    lambda name, number, answer: {"conversation": name, "card": f"{name}/{number}", "answer": answer},
    names, st.integers(1, 4), st.sampled_from(["yes", "no"]),
)  # fmt: skip


def batched(requests: Any) -> Any:
    return st.lists(requests, min_size=1, max_size=2).map(lambda several: {"requests": several})


POSTS = {
    "/v1/decide": decides,
    "/v1/decide/batch": batched(decides),
    "/v1/events": takes,
    "/v1/events/batch": batched(takes),
    "/v1/confirm": confirmations,
    "/v1/approvals": answers,
    "/v1/stops": stops,
    "/access/v1/evaluation": evaluations,
    "/access/v1/evaluations": st.lists(evaluations, max_size=2).map(lambda several: {"evaluations": several}),
}
GETS = ["/v1/instructions", "/v1/stops", "/v1/approvals", "/v1/approvals?status=waiting", "/metrics", "/health",
        "/openapi.json", "/.well-known/authzen-configuration"]  # fmt: skip
requests = st.one_of(
    *(st.tuples(st.just("POST"), st.just(path), body) for path, body in POSTS.items()),
    *(st.tuples(st.just("GET"), st.just(path), st.just(None)) for path in GETS),
)


def run(sent: list[tuple[str, Any]]) -> list[tuple[str, int, bytes]]:
    """Send requests, each with a tenant's key; what each was told."""
    with TemporaryDirectory() as folder, Log(str(Path(folder) / "log.db")) as log:
        keys = {hash_of(key): Key(tenant) for tenant, key in KEYS.items()}
        keys |= {hash_of(f"{key}-person"): Key(tenant, "approve") for tenant, key in KEYS.items()}
        app = Service(Desk(shop(), log, sessions=1), keys)

        async def go() -> list[tuple[str, int, bytes]]:
            heard: list[tuple[str, int, bytes]] = []
            for tenant, (method, path, body) in sent:
                text = json.dumps(body).encode() if body is not None else b""
                if tenant == "ann":
                    text = text.replace(b"hello", SECRET.encode()).replace(b"someone", SECRET.encode())
                key = KEYS[tenant] + ("-person" if method == "POST" and path in ("/v1/approvals", "/v1/stops") else "")
                answer = await ask(app, method, path, text, key=key)
                body = TIMES.sub(b"", answer.body)
                if path == "/metrics":
                    # The rest counts what the process does, whoever asked.
                    body = b"".join(line for line in body.splitlines() if b"tenant=" in line)
                heard.append((tenant, answer.status, body))
            return heard

        heard = asyncio.run(go())
        assert all(verify(log.journal.store, tenant).faults == () for tenant in KEYS)
        return heard


def test_every_route_is_among_those_tried() -> None:
    described = {(path, method) for path, methods in document()["paths"].items() for method in methods}
    assert described == {(path, "post") for path in POSTS} | {(path.partition("?")[0], "get") for path in GETS}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["ann", "bob"]), requests), min_size=1, max_size=14))
def test_a_tenant_is_told_the_same_whether_or_not_another_is_there(sent: list[tuple[str, Any]]) -> None:
    together = [each for each in run(sent) if each[0] == "bob"]
    alone = run([each for each in sent if each[0] == "bob"])
    assert together == alone
    assert not any(SECRET.encode() in body or b'"ann"' in body for _, _, body in together)


def test_without_a_key_the_counts_say_nothing_of_tenants(tmp_path: Path) -> None:
    with Log(str(tmp_path / "log.db")) as log:
        app = Service(Desk(shop(), log), {hash_of(key): Key(tenant) for tenant, key in KEYS.items()})
        body = json.dumps({"conversation": "c", "tool": "refund", "arguments": {"order_id": "7"}}).encode()
        asyncio.run(ask(app, "POST", "/v1/decide", body, key=KEYS["ann"]))
        page = {key: asyncio.run(ask(app, "GET", "/metrics", key=key)).body.decode() for key in ("", *KEYS.values())}
    assert "ann" not in page[""]
    assert 'bylaw_decisions_total{answer="look_up",allowed="false"} 1' in page[""]
    assert 'tenant="ann",answer="look_up",allowed="false"} 1' in page[KEYS["ann"]]
    assert "look_up" not in page[KEYS["bob"]]


def test_the_large_work_of_a_tenant_runs_beside_the_loop_one_tenant_after_the_other() -> None:
    asyncio.run(_large_work())


async def _large_work() -> None:
    scheduler, order = Scheduler(), list[str]()

    def work(name: str) -> str:
        order.append(name)
        begin = time.thread_time()
        while time.thread_time() - begin < 0.02:
            pass
        return threading.current_thread().name

    async def large(tenant: str, name: str) -> str:
        return await scheduler.request(tenant, LARGE, lambda: scheduler.run(tenant, lambda: work(name)))

    working = [asyncio.create_task(large("ann", f"ann {number}")) for number in range(4)]
    working.append(asyncio.create_task(large("bob", "bob")))
    await asyncio.sleep(0)
    assert await scheduler.run("eve", lambda: threading.current_thread().name) == threading.current_thread().name
    assert all(each.startswith("bylaw-beside") for each in await asyncio.gather(*working))
    assert order.index("bob") <= 2, "ann's other requests wait for bob's"
    assert (await scheduler.run("ann", lambda: threading.current_thread().name)).startswith("bylaw-beside"), "slow"


def test_the_work_of_a_tenant_leaves_the_loop_if_much_of_it_is_slow() -> None:
    async def go() -> None:
        scheduler, loop = Scheduler(), threading.current_thread().name

        def work(seconds: float) -> str:
            begin = time.thread_time()
            while time.thread_time() - begin <= seconds:
                pass
            return threading.current_thread().name

        async def thread_of(seconds: float) -> str:
            return await scheduler.request("ann", 1, lambda: scheduler.run("ann", lambda: work(seconds)))

        assert [await thread_of(each) for each in (SLOW, 0, 2 * SPARE)] == [loop] * 3
        assert await thread_of(0) != loop

    asyncio.run(go())


def test_small_work_that_waited_for_large_work_returns_to_the_loop() -> None:
    async def go() -> None:
        scheduler, begun = Scheduler(), threading.Event()

        async def small() -> str:
            return await scheduler.run("ann", lambda: threading.current_thread().name)

        def large() -> str:
            begun.wait()
            return threading.current_thread().name

        first = asyncio.create_task(scheduler.request("ann", LARGE, lambda: scheduler.run("ann", large)))
        await asyncio.sleep(0)
        waiting = [asyncio.create_task(scheduler.request("ann", 1, small)) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert not any(each.done() for each in waiting)
        begun.set()
        assert (await first).startswith("bylaw-beside")
        assert {await each for each in waiting} == {threading.current_thread().name}

    asyncio.run(go())


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"events": [{"messages": [{"role": "user", "content": "a"}] * 1001}]}, "more than 1000 messages"),
        ({"events": [{"user": "a" * 200_001}]}, "more than 200,000 characters"),
        ({"events": [{"messages": [{"role": "user", "content": "a" * 200_001}]}]}, "more than 200,000 characters"),
        (
            {"events": [{"messages": [{"role": "user", "content": [{"type": "text", "text": "a" * 200_001}]}]}]},
            "more than 200,000 characters",
        ),
    ],
)
def test_a_request_that_says_too_much_is_refused(said: dict[str, Any], why: str) -> None:
    with Log(":memory:") as log:
        app = Service(Desk(shop(), log), {hash_of(KEYS["ann"]): Key("ann")})
        body = json.dumps({"conversation": "c", **said}).encode()
        answer = asyncio.run(ask(app, "POST", "/v1/events", body, key=KEYS["ann"]))
    assert (answer.status, why in answer.body.decode()) == (400, True)


def test_while_others_are_active_a_tenant_has_two_requests_answered_at_once() -> None:
    async def most_together(*, others: bool) -> int:
        scheduler, together = Scheduler(), list[int]()
        running = 0

        async def answer() -> None:
            nonlocal running
            running += 1
            together.append(running)
            await asyncio.sleep(0.001)
            running -= 1

        if others:
            await scheduler.request("bob", 1, lambda: asyncio.sleep(0))
        await asyncio.gather(*(scheduler.request("ann", 1, answer) for _ in range(10)))
        return max(together)

    assert asyncio.run(most_together(others=True)) == 2
    assert asyncio.run(most_together(others=False)) == 10


def test_a_request_that_is_given_up_while_it_waits_keeps_nobody_waiting() -> None:
    async def go() -> None:
        scheduler = Scheduler(1)
        await scheduler.request("bob", 1, lambda: asyncio.sleep(0))

        async def ask() -> None:
            await scheduler.request("ann", 1, lambda: asyncio.sleep(0.01))

        asked = [asyncio.create_task(ask()) for _ in range(3)]
        await asyncio.sleep(0)
        asked[1].cancel()
        outcomes = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 1)
        assert [type(each) for each in outcomes] == [type(None), asyncio.CancelledError, type(None)]
        await asyncio.wait_for(ask(), 1)

    asyncio.run(go())


@pytest.mark.parametrize(("steps", "messages"), [(1, 1), (60, 9), (250, 0)])
def test_a_request_that_costs_too_much_decides_nothing_and_writes_nothing(
    steps: int, messages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It ends where messages are read, where they are taken in, and where the call is judged.
    monkeypatch.setattr("bylaw.service.fairness.Cost", lambda: Cost(steps))
    said = [{"messages": [{"role": "user", "content": "Refund order 7."}] * messages}]
    call = {"tool": "refund", "arguments": {"order_id": "7"}}
    with Log(":memory:") as log:
        app = Service(Desk(shop(), log), {hash_of(KEYS["ann"]): Key("ann")})
        body = json.dumps({"conversation": "c", **call, "events": said}).encode()
        answer = asyncio.run(ask(app, "POST", "/v1/decide", body, key=KEYS["ann"]))
        assert (answer.status, log.length_of("ann", "c")) == (413, 0)
        assert f"the request takes more than {steps} steps" in answer.body.decode()
        monkeypatch.undo()
        assert asyncio.run(ask(app, "POST", "/v1/decide", body, key=KEYS["ann"])).status == 200


@pytest.mark.parametrize(("messages", "thread"), [(LONG // 2, "MainThread"), (LONG, "bylaw-beside_0")])
def test_a_long_conversation_is_read_outside_the_loop(
    messages: int, thread: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Log(str(tmp_path / "decisions.db")) as log:
        told = {"conversation": "c", "events": [{"user": "hello"}] * messages}
        body = json.dumps(told).encode()
        assert asyncio.run(ask(Service(Desk(shop(), log), {}), "POST", "/v1/events", body)).status == 200
        readers, read = list[str](), log.conversation

        def reading(*of: Any, **how: Any) -> Any:
            readers.append(threading.current_thread().name)
            return read(*of, **how)

        monkeypatch.setattr(log, "conversation", reading)
        call = {"conversation": "c", "tool": "get_order", "arguments": {"order_id": "7"}}
        assert (
            asyncio.run(ask(Service(Desk(shop(), log), {}), "POST", "/v1/decide", json.dumps(call).encode())).status
            == 200
        )
        assert readers == [thread]


def test_a_turn_of_very_many_calls_costs_too_much() -> None:
    call = {"appointment_id": "A1", "patient_id": "P1", "late_fee": 0, "reason": "illness"}
    with Shield("clinic").session("c") as session, Cost(STEPS):
        assert len(session.decide_turn("", [("cancel_appointment", call)] * 50)) == 50
    with Shield("clinic").session("c") as session, Cost(STEPS), pytest.raises(TooCostly):
        session.decide_turn("", [("cancel_appointment", {**call, "appointment_id": f"A{n}"}) for n in range(500)])
