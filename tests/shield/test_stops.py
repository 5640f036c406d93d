"""A person stops an agent, a tool, a policy or all: every session, in every process, obeys what it writes next."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from bylaw.record import Log
from bylaw.record.stop import Target
from bylaw.record.verify import verify
from bylaw.shield import Decision, LiveSession, Shield
from tests.command import environment
from tests.integrations.rental import CUSTOMER, EXTEND, PUT_EXTEND, Rentals, desk
from tests.ready import begin
from tests.shield.scenes import looked_up

HOUR = 3600.0


def agreed(shield: Shield, name: str = "c", agent: str = "") -> LiveSession:
    """A conversation in which the customer has agreed to the extension."""
    session = shield.session(name, context=CUSTOMER, agent=agent)
    session.user("Extend R1 to 2026-11-20.")
    looked_up(session, "get_rental", {"rental_id": "R1"}, Rentals().rental)
    session.agent(PUT_EXTEND)
    session.user("Yes, please.")
    return session


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("tool", "extend_rental"),
        ("agent", "night"),
        ("policy", "own-rental"),
        ("all", ""),
        ("tool", "Extend_Rental"),
        ("agent", " NIGHT "),
        ("policy", "OWN-rental"),
    ],
)
def test_a_write_that_was_stopped_is_not_made_and_is_made_once_that_is_lifted(
    what: Target, name: str, where: str, tmp_path: Path
) -> None:
    with Log(where) as log, desk(tmp_path, log=log) as shield:
        session = agreed(shield, agent="night")
        # The session knows of no stop: it has read and written before there was one.
        stop = log.stop(what, name, by="ann", reason="cars are recalled", until=time.time() + HOUR)
        stopped = session.decide("extend_rental", EXTEND)
        assert (stopped.answer, stopped.allowed) == ("deny", False)
        assert stopped.grounds[0].kind == "stop"
        assert "ann" in stopped.grounds[0].because
        assert "is stopped until" in stopped.feedback
        assert "cars are recalled" in stopped.feedback
        assert "ann" not in stopped.feedback
        assert session.decide("get_rental", {"rental_id": "R1"}).allowed
        session.result(Rentals().rental)
        log.lift(stop.id, by="bo")
        assert session.decide("extend_rental", EXTEND).allowed
        assert verify(log.journal.store, "default").faults == ()


@pytest.mark.parametrize(("what", "name"), [("tool", "refund"), ("agent", "day"), ("policy", "refund-left")])
def test_what_is_not_meant_goes_on(what: Target, name: str, tmp_path: Path) -> None:
    with Log(str(tmp_path / "log.db")) as log, desk(tmp_path, log=log) as shield:
        log.stop(what, name, by="ann", reason="why", until=time.time() + HOUR)
        assert agreed(shield, agent="night").decide("extend_rental", EXTEND).allowed


def test_another_tenants_stop_is_not_ours(tmp_path: Path) -> None:
    with Log(str(tmp_path / "log.db")) as log, desk(tmp_path, log=log) as shield:
        log.stop("all", by="ann", reason="why", until=time.time() + HOUR, tenant="other")
        assert agreed(shield).decide("extend_rental", EXTEND).allowed


def test_a_stop_ends_by_itself(tmp_path: Path) -> None:
    now = time.time()
    with Log(str(tmp_path / "log.db")) as log, desk(tmp_path, log=log, clock=lambda: now) as shield:
        log.stop("all", by="ann", reason="why", until=now + HOUR)
        session = agreed(shield)
        assert not session.decide("extend_rental", EXTEND).allowed
        now += HOUR
        assert session.decide("extend_rental", EXTEND).allowed


def test_a_stop_that_asks_lets_a_person_make_exceptions_and_only_for_itself(tmp_path: Path) -> None:
    with Log(str(tmp_path / "log.db")) as log, desk(tmp_path, log=log) as shield:
        log.stop("all", by="ann", reason="odd", until=time.time() + HOUR, answer="ask")
        session = agreed(shield)
        asked = session.decide("extend_rental", EXTEND)
        assert (asked.answer, asked.allowed) == ("ask", False)
        assert f"The request is `{asked.approval}`" in asked.feedback
        assert "Should this call be made anyway?" in asked.for_person
        log.approve(asked.approval, by="bo")
        log.stop("tool", "extend_rental", by="cy", reason="odder", until=time.time() + HOUR, answer="ask")
        again = session.decide("extend_rental", EXTEND)
        assert (again.answer, again.allowed) == ("ask", False)
        assert again.approval != asked.approval
        log.approve(again.approval, by="bo")
        assert session.decide("extend_rental", EXTEND).allowed


@pytest.mark.parametrize("lifted", ["before the answer", "after it"])
@pytest.mark.parametrize("keeps_history", [False, True])
def test_a_persons_no_holds_when_the_stop_is_lifted(lifted: str, keeps_history: bool, tmp_path: Path) -> None:
    with Log(str(tmp_path / "log.db")) as log, desk(tmp_path, log=log) as shield:
        stop = log.stop("tool", "extend_rental", by="ann", reason="odd", until=time.time() + HOUR, answer="ask")
        session = agreed(shield)
        messages = [
            {"role": "user", "content": "Extend R1 to 2026-11-20."},
            {"role": "assistant", "tool_calls": [asked_for("get_rental", {"rental_id": "R1"})]},
            {"role": "tool", "tool_call_id": "1", "content": json.dumps(Rentals().rental)},
            {"role": "assistant", "content": PUT_EXTEND},
            {"role": "user", "content": "Yes, please."},
        ]

        def decided() -> Decision:
            if keeps_history:
                return shield.decide(messages, "extend_rental", EXTEND, context=CUSTOMER)
            return session.decide("extend_rental", EXTEND)

        waits = decided()
        assert waits.answer == "ask"
        if lifted == "before the answer":
            log.lift(stop.id, by="bo")
        log.reject(waits.approval, by="cy", note="not this one")
        if lifted == "after it":
            assert decided().answer == "deny"
            log.lift(stop.id, by="bo")
        after = decided()
        assert (after.answer, after.allowed, after.approval) == ("deny", False, waits.approval)
        assert "a reviewer rejected this call: not this one" in after.feedback
        # Another call is none that they said no to.
        assert agreed(shield, "other").decide("extend_rental", EXTEND).allowed


def asked_for(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"id": "1", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}


def test_a_call_that_was_interrupted_does_not_go_on_under_a_stop(tmp_path: Path) -> None:
    with Log(str(tmp_path / "log.db")) as log, desk(tmp_path, log=log) as shield:
        session = agreed(shield)
        decision = session.decide("extend_rental", EXTEND, id="k1")
        assert decision.allowed
        session.interrupt("k1", decision)
        stop = log.stop("all", by="ann", reason="why", until=time.time() + HOUR)
        assert session.resume("k1", "extend_rental", EXTEND) is None
        log.lift(stop.id, by="ann")
        assert session.resume("k1", "extend_rental", EXTEND) is not None


WORKER = """
import json, sys, time
from pathlib import Path
from bylaw.record import Log
from tests.integrations.rental import CUSTOMER, EXTEND, desk
from tests.shield.test_stops import agreed

where, number, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
with Log(where, is_shared=True) as log, desk(folder, log=log) as shield:
    print("ready", flush=True)
    for turn in range(10_000):
        session = agreed(shield, f"w{number}-{turn}")
        begun = time.time()
        decision = session.decide("extend_rental", EXTEND)
        print(json.dumps([begun, decision.allowed]), flush=True)
        if (folder / "end").exists():
            break
        time.sleep(0.02)
"""


def test_every_process_obeys_at_once(where: str, tmp_path: Path) -> None:
    processes: list[subprocess.Popen[str]] = []
    root = Path(__file__).parents[2]
    for number in range(3):
        folder = tmp_path / f"worker{number}"
        folder.mkdir()
        command = [*begin("-c"), WORKER, where, str(number), str(folder)]
        processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root, env=environment()))
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            # All of them are at work.
            assert json.loads(process.stdout.readline())[1] is True
        with Log(where) as log:
            stop = log.stop("tool", "extend_rental", by="ann", reason="recall", until=time.time() + HOUR)
            stopped = time.time()
            # Whatever was begun after the stop was made is held to it; no second of grace is needed.
            assert [decided_after(stopped, process) for process in processes] == [[False] * 5] * 3
            log.lift(stop.id, by="ann")
            lifted = time.time()
            assert [decided_after(lifted, process) for process in processes] == [[True] * 5] * 3
    finally:
        for number in range(3):
            (tmp_path / f"worker{number}" / "end").touch()
        for process in processes:
            process.communicate(timeout=250)


def decided_after(moment: float, process: subprocess.Popen[str]) -> list[bool]:
    """Whether a process allowed the call, the first five times that it asked for it after that moment."""
    found: list[bool] = []
    assert process.stdout is not None
    while len(found) < 5:
        begun, allowed = json.loads(process.stdout.readline())
        if begun > moment:
            found.append(allowed)
    return found
