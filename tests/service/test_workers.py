"""Several workers behind one port: a conversation moves between them, and nothing is spent twice or lost."""

import asyncio
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from bylaw import load_pack
from bylaw.record import Conflict, Draft, Log
from bylaw.record.log import LastWriter
from bylaw.record.verify import verify
from bylaw.service.desk import Desk
from bylaw.service.request import DecideAnswer, DecideRequest
from bylaw.service.request import Event as Happened
from bylaw.shield import Decision, LiveSession, Shield
from bylaw.shield.decision_service import DecisionService
from bylaw.shield.history import read_history
from bylaw.trace import Call, Message, Result, Trajectory
from bylaw_lab.clinic.simulator.generate import simulate
from tests.command import environment
from tests.engine.test_conversation import FILES
from tests.ready import PROCESS

pytestmark = pytest.mark.skipif(not hasattr(socket, "SO_REUSEPORT"), reason="needs a port that processes can share")
WORKERS = 3
AT_ONCE = 24


def tell(session: LiveSession, event: Message | Call | Result, step: int, refused: set[int]) -> Decision | None:
    match event:
        case Message(by="user"):
            session.user(event.text)
        case Message():
            session.agent(event.text)
        case Call():
            decision = session.decide(event.tool, event.arguments, id=f"k{step}")
            if not decision.allowed:
                refused.add(step)
            return decision
        case Result() if event.call is not None and event.call not in refused:
            session.result(event.value(), id=f"k{event.call}", error=event.error)
        case Result():
            pass
    return None


def said(decision: Decision | None) -> Any:
    return decision and (decision.id, decision.answer, decision.allowed, decision.feedback, decision.grounds)


def talk_through(trajectory: Trajectory, sessions: list[LiveSession], rng: random.Random) -> list[Any]:
    """What is said of each event, each told to one of the sessions."""
    found: list[Any] = []
    refused: set[int] = set()
    for step, event in enumerate(trajectory.events):
        session = rng.choice(sessions)
        found.append(said(tell(session, event, step, refused)))
        session.flush()
    return found


class Liar(LastWriter):
    """Says of everybody that it was they who wrote last."""

    def is_process(self, tenant: str, conversation: str, process: int) -> bool:
        return True


@pytest.mark.parametrize("last", [None, LastWriter, Liar])
def test_a_conversation_that_moves_between_workers_goes_as_in_one_and_is_read_once_by_each(
    where: str, monkeypatch: pytest.MonkeyPatch, last: type[LastWriter] | None
) -> None:
    pack, rng = load_pack("clinic"), random.Random(5)
    loads: list[str] = []
    load = DecisionService._load  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(DecisionService, "_load", lambda kept, **more: (loads.append(kept.id), load(kept, **more))[1])
    with ExitStack() as stack:
        hint = last() if last is not None else None
        logs = [stack.enter_context(Log(where, is_shared=True, last=hint, process=worker)) for worker in range(WORKERS)]
        shields = [stack.enter_context(Shield(pack, log=log, clock=lambda: 1e9)) for log in logs]
        alone = Shield(pack, clock=lambda: 1e9)
        decided = 0
        for trajectory, _ in simulate(3, 12):
            want = talk_through(trajectory, [alone.session(trajectory.id)], rng)
            sessions = [shield.session(trajectory.id) for shield in shields]
            found = talk_through(trajectory, sessions, rng)
            if last is Liar:
                # Words of two workers may cross, and nobody knows which came first: some calls are asked about.
                assert all(one == other or not (one and one[2]) for one, other in zip(found, want, strict=True))
            else:
                assert found == want
            decided += sum(each is not None for each in want)
    assert decided > 25
    # One for each worker, and the twin's: whoever goes on with a conversation reads only what is new.
    most = max(loads.count(name) for name in set(loads))
    assert most <= WORKERS + 1 if last is not Liar else most > WORKERS + 1


def requests_of(trajectory: Trajectory) -> Iterator[DecideRequest]:
    """One for each call, with what happened since the last; each may be sent again."""
    events: list[Happened] = []
    for step, event in enumerate(trajectory.events):
        match event:
            case Message(by="user"):
                events.append(Happened(user=event.text))
            case Message():
                events.append(Happened(agent=event.text))
            case Result() if event.call is not None:
                events.append(Happened(result=event.value(), call=f"k{event.call}", error=event.error))
            case Call():
                asked = {"tool": event.tool, "arguments": event.arguments, "id": f"k{step}", "request": f"r{step}"}
                yield DecideRequest(trajectory.id, events=events, **asked)
                events = []
            case Result():
                pass


@pytest.mark.parametrize("last", [None, LastWriter])
def test_desks_that_take_a_conversation_for_new_find_out_and_answer_as_one_that_knows_it(
    where: str, last: type[LastWriter] | None
) -> None:
    pack, rng = load_pack("clinic"), random.Random(9)
    conversations = [list(requests_of(trajectory)) for trajectory, _ in simulate(4, 8)]

    def told(answer: DecideAnswer) -> Any:
        return [
            replace(each, seconds=0, card=each.card and replace(each.card, expires=None)) for each in answer.decisions
        ]

    async def ask(desks: list[Desk], *, again: bool) -> list[Any]:
        found: list[Any] = []
        for requests in conversations:
            for request in requests:
                answer = told(await rng.choice(desks).decide("t", request))
                if again:
                    assert told(await rng.choice(desks).decide("t", request)) == answer
                found.append(answer)
        return found

    with ExitStack() as stack:
        hint = last() if last is not None else None
        logs = [stack.enter_context(Log(where, is_shared=True, last=hint, process=worker)) for worker in range(WORKERS)]
        # Each knows one conversation at a time: of most it has never heard.
        found = asyncio.run(ask([Desk(pack, log, sessions=1) for log in logs], again=True))
        want = asyncio.run(ask([Desk(pack, stack.enter_context(Log(":memory:")))], again=False))
        assert found == want
        assert len({each["answer"] for answer in to_builtins(found) for each in answer}) > 2
        assert verify(logs[0].journal.store, "t").faults == ()


def test_a_worker_that_wrote_last_does_not_look_what_others_wrote(where: str) -> None:
    last = LastWriter()
    with Log(where, is_shared=True, last=last) as one, Log(where, is_shared=True, last=last, process=1) as other:
        assert one.others_may_have_written("t", "c")
        one.append([Draft("t", "c", "event", b"1", position=0)])
        assert (one.others_may_have_written("t", "c"), other.others_may_have_written("t", "c")) == (False, True)
        (refused,) = other.append([Draft("t", "c", "event", b"2", position=0)])
        assert isinstance(refused, Conflict)
        assert not one.others_may_have_written("t", "c"), "nothing was written"
        other.append([Draft("t", "c", "event", b"2", position=1)])
        assert (one.others_may_have_written("t", "c"), other.others_may_have_written("t", "c")) == (True, False)


class Running:
    """`bylaw serve` with several workers."""

    def __init__(self, folder: Path, pack: str, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [*PROCESS, "serve", "--pack", pack, "--store", str(log), "--port", str(self.port)]
        self.process = subprocess.Popen(
            [*command, "--workers", str(WORKERS)], cwd=folder, env=environment(), stdout=subprocess.DEVNULL
        )
        self.wait(lambda: len(self.workers()) == WORKERS and self.get("/health")[0] == 200)

    def wait(self, is_so: Any) -> None:
        for _ in range(4000):
            try:
                if is_so():
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise AssertionError("it does not come about")

    def workers(self) -> list[int]:
        pid = self.process.pid
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()

    def post(self, path: str, content: Any) -> tuple[int, Any]:
        """Each time over a connection of its own, which any worker may take; again after a 503, as a client should.

        On a busy machine a worker may stand still for two seconds, and says so; nothing was decided then.
        """
        status, told = 503, b"{}"
        for _ in range(20):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
            connection.request("POST", path, json.dumps(content), {"content-type": "application/json"})
            answer = connection.getresponse()
            status, told = answer.status, answer.read()
            if status != 503:
                break
            time.sleep(0.2)
        return status, json.loads(told)

    def all_at_once(self, requests: list[Any]) -> list[Any]:
        """One decision for each request, sent at the same moment over connections of their own."""
        ready = threading.Barrier(len(requests))
        answers: list[Any] = [None] * len(requests)

        def send(place: int) -> None:
            ready.wait()
            answers[place] = self.post("/v1/decide", requests[place])

        threads = [threading.Thread(target=send, args=(place,)) for place in range(len(requests))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [told for status, told in answers if status != 200] == []
        return [told["decisions"][0] for _, told in answers]


@contextmanager
def running(folder: Path, pack: str, where: str = "") -> Iterator[tuple[Running, str]]:
    log = where or str(folder / "decisions.db")
    service = Running(folder, pack, log)
    try:
        yield service, log
    finally:
        service.process.terminate()
        service.process.wait(120)


def shop(folder: Path) -> str:
    for name, text in FILES.items():
        path = folder / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder / "shop")


@pytest.mark.process
def test_workers_that_decide_at_once_spend_an_approval_once_and_a_yes_once(tmp_path: Path, where: str) -> None:
    refund: dict[str, Any] = {"tool": "refund", "arguments": {"order_id": "7"}}
    look = {"conversation": "c", "tool": "get_order", "arguments": {"order_id": "7"}, "id": "look"}
    with running(tmp_path, shop(tmp_path), where) as (service, log):
        for round in range(2):
            name = f"c{round}"
            assert service.post("/v1/decide", {**look, "conversation": name})[1]["decisions"][0]["allowed"]
            blind = [{"result": {"order_id": "7"}, "call": "look"}]
            _, told = service.post("/v1/decide", {"conversation": name, **refund, "events": blind})
            waits = told["decisions"][0]["approval"]
            assert waits
            answered = {"id": waits, "answer": "approve", "by": "ann"}
            assert service.post("/v1/approvals", answered)[1]["status"] == "approved"
            asked = [{"conversation": name, **refund, "id": f"r{place}"} for place in range(AT_ONCE)]
            decisions = service.all_at_once(asked)
            assert sum(each["allowed"] for each in decisions) == 1
            assert len({each["id"] for each in decisions}) == AT_ONCE
        service.wait(lambda: counted(service) == 2 * (AT_ONCE + 2))
    with Log(log) as kept:
        assert verify(kept.journal.store, "default").faults == ()
        history = read_history(kept.conversation("default", "c0"))
        assert history is not None
        assert [each.status for each in history.approvals].count("used") == 1
        assert [each.id for each in history.decisions] == [f"c0/{number}" for number in range(1, AT_ONCE + 3)]


@pytest.mark.process
def test_a_yes_is_spent_by_one_of_the_changes_that_workers_are_asked_for_at_once(tmp_path: Path) -> None:
    call = {"patient_id": "P121", "appointment_id": "A0362", "late_fee": "0.00", "reason": "illness"}
    patient = {"patient_id": "P121", "status": "active", "membership_id": "M878", "late_waivers_used": 0}
    starts = {"specialist": False, "starts_at": "2025-03-12T16:00:00"}
    looks = [
        ("get_patient", {"patient_id": "P121"}, patient),
        ("get_membership", {"membership_id": "M878"}, {"membership_id": "M878", "tier": "gold"}),
        ("get_appointment", {"appointment_id": "A0362"},
         {"appointment_id": "A0362", "patient_id": "P121", "status": "booked", **starts}),
    ]  # fmt: skip
    with running(tmp_path, "clinic") as (service, log):
        for round in range(2):
            events: list[dict[str, Any]] = [{"user": "I'm ill and can't make A0362. I'm P121."}]
            for place, (tool, arguments, shown) in enumerate(looks):
                made = {"tool": tool, "arguments": arguments, "id": f"l{place}", "events": events}
                assert service.post("/v1/decide", {"conversation": f"d{round}", **made})[1]["decisions"][0]["allowed"]
                events = [{"result": shown, "call": f"l{place}"}]
            events += [
                {"agent": "I'll cancel appointment A0362 of patient P121 with a fee of $0.00. Shall I?"},
                {"user": "Yes, please."},
            ]
            assert service.post("/v1/events", {"conversation": f"d{round}", "events": events})[0] == 200
            asked = [
                {"conversation": f"d{round}", "tool": "cancel_appointment", "arguments": call, "id": f"c{place}"}
                for place in range(AT_ONCE)
            ]
            assert sum(each["allowed"] for each in service.all_at_once(asked)) == 1
    with Log(str(log)) as kept:
        assert verify(kept.journal.store, "default").faults == ()


def counted(service: Running) -> int:
    """Decisions that any worker says all of them have made."""
    _, page = service.get("/metrics")
    return sum(int(count) for count in re.findall(rb"bylaw_decisions_total\{.*\} (\d+)", page))


@pytest.mark.process
def test_a_worker_that_falls_is_started_again_and_none_outlives_the_service(tmp_path: Path) -> None:
    look = {"tool": "get_order", "arguments": {"order_id": "7"}}
    with running(tmp_path, shop(tmp_path)) as (service, log):
        for place in range(12):
            assert service.post("/v1/decide", {"conversation": "c", **look, "id": f"a{place}"})[0] == 200
        service.wait(lambda: counted(service) == 12)
        fallen = service.workers()[0]
        os.kill(fallen, signal.SIGKILL)
        service.wait(lambda: fallen not in service.workers() and len(service.workers()) == WORKERS)
        for place in range(12, 24):
            service.wait(
                lambda place=place: (
                    service.post("/v1/decide", {"conversation": "c", **look, "id": f"a{place}"})[0] in (200, 422)
                )
            )
        # The one in its place counts on.
        service.wait(lambda: counted(service) >= 24)
        workers = service.workers()
        service.process.kill()
        service.process.wait(120)
        service.wait(lambda: not any(Path(f"/proc/{each}").exists() for each in workers))
    with Log(log) as kept:
        assert verify(kept.journal.store, "default").faults == ()
        history = read_history(kept.conversation("default", "c"))
        assert history is not None
        assert len({each.id for each in history.decisions}) == len(history.decisions) >= 24
