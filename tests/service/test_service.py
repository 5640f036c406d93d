"""The service answers what a shield in process answers, keeps tenants apart, and nothing sent to it makes it fall."""

import asyncio
import json
import random
import re
import socket
import sqlite3
import subprocess
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw.record import Log
from bylaw.record.verify import verify
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.openapi import document
from bylaw.shield.history import read_history
from tests.command import bylaw
from tests.ready import begin
from tests.service.asgi import ask, get, post
from tests.service.malformed import LOOK, REFUND, allowed_writes, malformed
from tests.shield.scenes import shop

RETURNED = {"result": {"order_id": "7", "returned": True}, "call": "a"}


def decide(app: Any, conversation: str = "c", **more: Any) -> Any:
    answer = post(app, "/v1/decide", {"conversation": conversation, **more})
    assert answer.status == 200, answer.body
    return answer.json["decisions"][0]


def test_a_conversation_over_http_goes_as_it_does_in_process(app: Any, log: Log) -> None:
    first = decide(app, **REFUND)
    assert (first["answer"], first["allowed"], first["policies"]) == ("look_up", False, ["returned-first"])
    assert first["look_ups"] == [{"tool": "get_order", "arguments": {"order_id": "7"}, "facts": ["Order[7].returned"]}]
    assert "Refund an order only after" in first["sentences"][0]["text"]
    assert decide(app, **LOOK)["allowed"]
    assert post(app, "/v1/events", {"conversation": "c", "events": [RETURNED]}).json == {
        "conversation": "c",
        "taken": 1,
        "position": 0,
    }
    last = decide(app, **REFUND, events=[{"agent": "Shall I?"}, {"user": "Yes."}])
    assert (last["answer"], last["allowed"], last["id"]) == ("allow", True, "c/3")
    assert last["pack"].startswith("shop 0 ")
    history = read_history(log.conversation("default", "c"))
    assert history is not None
    assert len(history.events) == 6
    assert verify(log.journal.store, "default").faults == ()


def test_a_refused_request_says_nothing_of_the_context_for_those_after_it(app: Any) -> None:
    manager = {"context": {"manager": True}}
    wrong = {"conversation": "c", "events": [{"result": "of nothing"}], **manager}
    assert post(app, "/v1/events", wrong).status == 422
    # Nothing was opened by it: the conversation begins without that context.
    decide(app, **LOOK)
    decide(app, **REFUND, context={})
    decide(app, **REFUND)
    assert post(app, "/v1/events", {"conversation": "c", "events": [RETURNED]}).status == 200


def nested(depth: int) -> Any:
    found: Any = []
    for _ in range(depth - 1):
        found = [found]
    return found


@pytest.mark.parametrize("depth", [150, 199, 200, 205, 215, 500, 900, 955, 960, 965, 970, 975, 980, 1100])
def test_what_is_nested_too_deep_to_be_read_again_is_not_taken(log: Log, depth: int) -> None:
    pack = shop()
    text = json.dumps(nested(min(depth, 900))).replace("[]", "[" * max(1, depth - 899) + "]" * max(1, depth - 899))
    told = (
        '"events": [{"result": %s, "call": "a"}]',
        '"context": {"x": %s}',
        '"events": [{"messages": [{"role": "tool", "tool_call_id": "a", "content": {"x": %s}}]}]',
        '"events": [{"agent": "x"}]',
    )
    for number, part in enumerate(told):
        name = f"c{number}"
        app = Service(Desk(pack, log), {})
        if number != 1:
            decide(app, name, **LOOK)
        arguments = text if number == 3 else '"7"'
        said = part.replace("%s", text)
        body = f'{{"conversation": "{name}", {said}, "tool": "refund", "arguments": {{"order_id": {arguments}}}}}'
        answer = post(app, "/v1/decide", body.encode())
        assert answer.status in (200, 400, 422)
        assert answer.status != 200 or (depth <= 205 or not answer.json["decisions"][0]["allowed"])
        # Whatever it was answered, the conversation goes on, also where it has to be read first.
        assert not decide(Service(Desk(pack, log), {}), name, **REFUND)["allowed"] or depth <= 205
    for entry in log.journal.store.entries("default"):
        assert (entry.body or b"").count(b"[") < 450


def test_what_is_wrong_with_one_request_of_a_batch_is_told_of_that_one(
    app: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Desk.decide

    async def decide(desk: Desk, tenant: str, request: Any) -> Any:
        if request.conversation == "b":
            raise RecursionError("too deep for this part of the program")
        return await plain(desk, tenant, request)

    monkeypatch.setattr(Desk, "decide", decide)
    answer = post(app, "/v1/decide/batch", {"requests": [{"conversation": name, **LOOK} for name in "abc"]})
    # The first and the third are on disk: nobody may be told that nothing was decided.
    first, second, third = answer.json["responses"]
    assert [first["decisions"][0]["allowed"], third["decisions"][0]["allowed"]] == [True, True]
    assert "too deep" in second["error"]["message"]


def test_a_turn_and_a_batch(app: Any) -> None:
    answer = post(app, "/v1/decide", {"conversation": "c", "calls": [LOOK, {**REFUND, "id": "b"}]})
    # Side by side, the refund does not see what the look-up will show.
    assert [each["answer"] for each in answer.json["decisions"]] == ["allow", "look_up"]
    events = {"requests": [{"conversation": "c", "events": [RETURNED]}, {"conversation": "c", "events": [RETURNED]}]}
    first, second = post(app, "/v1/events/batch", events).json["responses"]
    assert first["taken"] == 1
    assert "no call `a` is waiting" in second["error"]["message"]
    both = {"requests": [{"conversation": "c", **REFUND}, {"conversation": "d", **REFUND}, {"conversation": "d"}]}
    told = post(app, "/v1/decide/batch", both).json["responses"]
    assert [each["decisions"][0]["answer"] for each in told[:2]] == ["allow", "look_up"]
    assert told[2]["error"]["code"] == "BY703"


def test_a_request_that_is_half_wrong_does_nothing(app: Any, log: Log) -> None:
    decide(app, **LOOK)
    before = len(log.conversation("default", "c"))
    wrong = {"conversation": "c", **REFUND, "events": [RETURNED, {"result": "again", "call": "a"}]}
    assert post(app, "/v1/decide", wrong).status == 422
    assert len(log.conversation("default", "c")) == before
    assert decide(app, **REFUND, events=[RETURNED])["allowed"]


def test_a_key_that_is_given_twice_is_refused(app: Any, log: Log) -> None:
    decide(app, **LOOK)
    post(app, "/v1/events", {"conversation": "c", "events": [RETURNED]})
    body = b'{"conversation": "c", "tool": "refund", "arguments": {"order_id": "8", "order_id": "7"}}'
    answer = asyncio.run(ask(app, "POST", "/v1/decide", body))
    assert answer.status in (400, 422)
    assert "`order_id` appears twice" in answer.json["error"]["message"]
    assert decide(app, **REFUND)["allowed"]


def test_without_a_conversation_nothing_that_a_policy_binds_is_allowed(app: Any) -> None:
    assert not decide(app, "", **REFUND)["allowed"]
    seen = [{"messages": [{"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "get_order",
             "arguments": '{"order_id": "7"}'}}]}]}, RETURNED]  # fmt: skip
    assert not decide(app, "", **REFUND, events=seen)["allowed"]
    assert decide(app, "c", **REFUND, events=seen)["allowed"]


def test_a_caller_may_keep_the_history_itself(app: Any) -> None:
    call = {"id": "a", "function": {"name": "get_order", "arguments": '{"order_id": "7"}'}}
    shown = {"role": "tool", "tool_call_id": "a", "content": '{"order_id": "7", "returned": true}'}
    history = [{"role": "user", "content": "Refund 7."}, {"role": "assistant", "tool_calls": [call]}, shown]
    assert decide(app, "", **REFUND, messages=history)["allowed"]
    assert decide(app, "", **REFUND, messages=history[:1])["answer"] == "look_up"
    assert post(app, "/v1/decide", {"conversation": "c", **REFUND, "messages": history}).status == 400
    assert post(app, "/v1/decide", {**REFUND, "messages": [{"role": "nobody"}]}).status == 422


def test_another_worker_takes_a_conversation_over(log: Log) -> None:
    one, two = Service(Desk(shop(), log), {}), Service(Desk(shop(), log, sessions=1), {})
    assert decide(one, **LOOK)["allowed"]
    assert decide(two, **REFUND, events=[RETURNED])["allowed"]
    decide(two, "other", **LOOK)
    assert decide(one, **LOOK | {"id": "b"})["id"] == "c/3"
    assert decide(two, **LOOK | {"id": "d"})["id"] == "c/4"


def test_requests_at_once_are_all_answered_and_all_kept(app: Any, log: Log) -> None:
    async def many() -> list[Any]:
        bodies = [json.dumps({"conversation": f"c{number % 5}", **REFUND}).encode() for number in range(40)]
        return await asyncio.gather(*(ask(app, "POST", "/v1/decide", body) for body in bodies))

    answers = asyncio.run(many())
    assert {answer.status for answer in answers} == {200}
    ids = {answer.json["decisions"][0]["id"] for answer in answers}
    assert len(ids) == 40
    assert verify(log.journal.store, "default").entries == 5 + 80
    assert log.journal.commits < 40


def test_health_metrics_and_sizes(log: Log) -> None:
    app = Service(Desk(shop(), log), {}, largest=500)
    decide(app, **REFUND)
    assert get(app, "/health").json["status"] == "ok"
    page = get(app, "/metrics").body.decode()
    assert 'bylaw_decisions_total{tenant="default",answer="look_up",allowed="false"} 1' in page
    assert "bylaw_decide_seconds_count 1" in page
    assert "bylaw_log_commits_total 1" in page
    assert post(app, "/v1/decide", {"conversation": "c", **REFUND, "agent": "x" * 500}, parts=5).status == 413
    assert post(app, "/v1/decide", {"conversation": "c" * 301, **REFUND}).status == 400
    assert get(app, "/nowhere").status == 404
    assert get(app, "/v1/decide").status == 405


def test_where_the_log_cannot_be_written_nothing_is_decided(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "decisions.db"))
    app = Service(Desk(shop(), log), {})
    decide(app, **REFUND)
    log.close()
    answer = post(app, "/v1/decide", {"conversation": "c", **REFUND})
    assert (answer.status, answer.json["error"]["code"]) == (503, "BY701")
    assert get(app, "/health").status == 503


def test_the_document_names_every_route_and_only_those(app: Any) -> None:
    routes = {(route.path, method.lower()) for route in app.routes for method in route.methods - {"HEAD"}}
    described = {(path, method) for path, methods in document()["paths"].items() for method in methods}
    assert described == routes
    assert get(app, "/openapi.json").json == json.loads(json.dumps(document()))
    text = json.dumps(document())
    for reference in set(text.split('"#/components/schemas/')[1:]):
        assert reference.partition('"')[0] in document()["components"]["schemas"]


def fuzz(app: Any, seed: int, count: int) -> dict[int, int]:
    rng = random.Random(seed)
    statuses: dict[int, int] = {}

    async def go() -> None:
        for _ in range(count):
            path, body = malformed(rng)
            method = rng.choice(["POST", "POST", "POST", "GET", "PUT"])
            answer = await ask(app, method, path, body, parts=rng.choice([1, 3]))
            statuses[answer.status] = statuses.get(answer.status, 0) + 1
            assert answer.status < 500, (path, body, answer.body)
            assert path == "/metrics" or not allowed_writes(answer.status, answer.body), (path, body)

    asyncio.run(go())
    return statuses


def test_malformed_requests_are_refused_and_allow_no_write(app: Any, log: Log) -> None:
    statuses = fuzz(app, 1, 1500)
    assert {200, 400, 405} <= statuses.keys()
    assert verify(log.journal.store, "default").faults == ()


def test_a_request_that_is_sent_again_happens_once_and_is_answered_as_it_was(log: Log) -> None:
    one, two = Service(Desk(shop(), log), {}), Service(Desk(shop(), log), {})
    look = {"conversation": "c", **LOOK, "request": "r1"}
    refund = {"conversation": "c", **REFUND, "events": [RETURNED], "request": "r2"}
    told = [post(one, "/v1/decide", each) for each in (look, refund)]
    before = len(log.conversation("default", "c"))
    # By the same worker, by another that has never heard of it, and after later requests were taken.
    for app in (one, two, one):
        for request, answer in zip((look, refund), told, strict=True):
            again = post(app, "/v1/decide", request)
            (now,), (then,) = again.json["decisions"], answer.json["decisions"]
            # The look-up has had its result since.
            assert (again.status, now) == (200, {**then, "is_over": request is look})
    assert len(log.conversation("default", "c")) == before
    events = {"conversation": "c", "events": [{"user": "Thanks."}], "request": "r3"}
    assert [post(app, "/v1/events", events).status for app in (one, two, one)] == [200, 200, 200]
    assert len(log.conversation("default", "c")) == before + 1
    other = post(two, "/v1/decide", {"conversation": "c", **LOOK, "id": "z", "request": "r2"})
    assert (other.status, "was already used for a different request" in other.json["error"]["message"]) == (422, True)
    assert post(two, "/v1/decide", {**REFUND, "request": "r2"}).status == 400


def test_a_request_that_comes_again_after_its_result_says_so(log: Log) -> None:
    one, two = Service(Desk(shop(), log), {}), Service(Desk(shop(), log), {})
    decide(one, **LOOK)
    refund = {"conversation": "c", **REFUND, "events": [RETURNED], "request": "r"}
    (first,) = post(one, "/v1/decide", refund).json["decisions"]
    (waiting,) = post(two, "/v1/decide", refund).json["decisions"]
    assert first == waiting
    assert (first["allowed"], first["is_over"]) == (True, False)
    assert post(one, "/v1/events", {"conversation": "c", "events": [{"result": {"refunded": True}}]}).status == 200
    for app in (one, two, Service(Desk(shop(), log), {})):
        (again,) = post(app, "/v1/decide", refund).json["decisions"]
        assert (again["answer"], again["allowed"], again["is_over"]) == ("allow", False, True)
        assert "Do not make it again" in again["feedback"]


def test_a_busy_port_is_told_in_one_line_and_nothing_is_promised(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ran = bylaw(tmp_path, "serve", "--pack", "clinic", "--port", str(port))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"cannot listen on 127.0.0.1:{port}" in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(("anchors", "warns"), [((), True), (("--anchors", "elsewhere/anchors"), False)])
def test_anchors_next_to_the_log_are_warned_of(tmp_path: Path, anchors: tuple[str, ...], warns: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    serve = [*begin("bylaw"), "serve", "--pack", "clinic", "--port", "0", "--store", "log.db", *anchors]
    with subprocess.Popen(serve, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as service:
        assert service.stdout is not None
        for line in service.stdout:
            if address := re.search(r"http://[\d.]+:\d+", line):
                with urlopen(f"{address[0]}/health") as answer:
                    assert answer.status == 200
                break
        service.terminate()
        assert ("anchors in log.db.anchors are next to the log" in service.stdout.read()) is warns


def test_a_name_belongs_to_one_request_whole(log: Log) -> None:
    one, two = Service(Desk(shop(), log), {}), Service(Desk(shop(), log), {})
    taken = {"conversation": "c", **LOOK, "request": "r"}
    assert decide(one, **LOOK, request="r")["allowed"]
    before = len(log.conversation("default", "c"))
    others: list[tuple[str, dict[str, Any]]] = [
        ("/v1/decide", {**taken, "arguments": {"order_id": "8"}}),
        ("/v1/decide", {**taken, "events": [{"user": "Hello."}]}),
        ("/v1/decide", {**taken, "id": "z"}),
        ("/v1/events", {"conversation": "c", "events": [RETURNED], "request": "r"}),
    ]
    for app in (one, two, Service(Desk(shop(), log), {})):
        for path, other in others:
            answer = post(app, path, other)
            assert (answer.status, "`r` was already used for a different request" in str(answer.json)) == (422, True), (
                other
            )
        assert post(app, "/v1/decide", dict(reversed(taken.items()))).status == 200
    assert len(log.conversation("default", "c")) == before
    # What was refused under a name can be sent under another.
    assert decide(two, **REFUND, events=[RETURNED], request="r/2")["allowed"]
    assert post(one, "/v1/decide", {"conversation": "c", **REFUND, "request": "r/2"}).status == 422


def test_two_workers_that_get_the_same_request_at_once_take_it_once(log: Log) -> None:
    workers = [Service(Desk(shop(), log), {}) for _ in range(4)]
    body = json.dumps({"conversation": "c", **REFUND, "request": "r"}).encode()

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(ask(each, "POST", "/v1/decide", body) for each in workers))

    answers = [answer.json["decisions"] for answer in asyncio.run(all_at_once())]
    assert answers == [answers[0]] * 4
    history = read_history(log.conversation("default", "c"))
    assert history is not None
    assert len(history.decisions) == 1


def test_an_approval_that_no_entry_bears_out_is_shown_as_such_and_cannot_be_answered(
    app: Any, log: Log, tmp_path: Path
) -> None:
    decide(app, **LOOK)
    blind = {"result": {"order_id": "7"}, "call": "a"}
    waits = decide(app, **REFUND, events=[blind])["approval"]
    listed = get(app, "/v1/approvals").json
    assert ([each["id"] for each in listed["approvals"]], listed["unsupported"]) == ([waits], {})
    with sqlite3.connect(tmp_path / "decisions.db") as database:
        database.execute("UPDATE approvals SET body = replace(CAST(body AS TEXT), '\"7\"', '\"8\"')")
        row = "tenant, 'forged', conversation, 'approved', asked, expires, body"
        database.execute(f"INSERT INTO approvals SELECT {row} FROM approvals")
    listed = get(app, "/v1/approvals").json
    assert listed["approvals"] == []
    assert listed["unsupported"] == {
        waits: "the log has a different request",
        "forged": "no entry requests it",
    }
    answer = post(app, "/v1/approvals", {"id": waits, "answer": "approve", "by": "ann"})
    assert (answer.status, "contradicts the log" in answer.json["error"]["message"]) == (422, True)
    assert not decide(app, **REFUND)["allowed"]


def test_a_result_without_an_id_is_of_the_one_call_that_waits_or_of_the_tool_that_it_names(app: Any) -> None:
    decide(app, tool="get_order", arguments={"order_id": "7"})
    decide(app, tool="get_order", arguments={"order_id": "7"}, events=[{"result": {"order_id": "7", "returned": True}}])
    assert decide(app, **REFUND)["allowed"]
    paid = {"result": "refunded"}
    both = post(app, "/v1/events", {"conversation": "c", "events": [paid]})
    assert (both.status, "calls of `get_order` and `refund` are waiting" in both.json["error"]["message"]) == (
        422,
        True,
    )
    assert post(app, "/v1/events", {"conversation": "c", "events": [{**paid, "tool": "refund"}]}).status == 200
    assert post(app, "/v1/events", {"conversation": "c", "events": [{**paid, "tool": "refund"}]}).status == 422
    assert post(app, "/v1/events", {"conversation": "c", "events": [{"result": {"order_id": "7"}}]}).status == 200
