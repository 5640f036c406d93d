"""One conversation, event by event: judging, observing, settling."""

from pathlib import Path

import pytest

from bylaw.engine.session import Session
from bylaw.facts.world import Snapshot
from bylaw.pack import Pack
from bylaw.trace import Call, Message, Result
from tests.policy.shop import FILES, load

SHIP = Call("ship", {"order_id": "O1"}, turn=5)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    return load(tmp_path_factory.mktemp("shop"))


def world(pack: Pack, *, paid: bool) -> Snapshot:
    return Snapshot(pack.schema, lambda entity, key: {"order_id": key[0], "paid": paid, "gift": False, "state": "open"})


def seeing(pack: Pack, **options: object) -> Session:
    session = Session(pack, **options)  # pyright: ignore[reportArgumentType]
    session.observe(Message("user", "ship it", 1))
    session.observe(Call("get_order", {"order_id": "O1"}, turn=2))
    session.observe(Result(1, '{"paid": true}'))
    return session


def test_the_evidence_half_is_final_before_the_call_is_observed(pack: Pack) -> None:
    session = seeing(pack)
    (evidence,) = session.judge(SHIP).evidence
    assert [completion.outcome for completion in evidence.completions] == ["permit"]


def test_what_goes_wrong_when_a_result_is_read_ahead_is_told_at_the_call(
    pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> list[object]:
        raise KeyError("observation")

    with monkeypatch.context() as broken:
        broken.setattr("bylaw.facts.shown.sightings", fail)
        session = seeing(pack)
        assert session.judge(SHIP).outcome == "failed"
        assert [fault.error for fault in session.faults] == ["KeyError"]
    # The result is not lost for having gone wrong once.
    assert session.judge(SHIP).outcome == "permit"


def test_a_result_is_read_when_it_comes(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    session = seeing(pack)

    def fail(*_: object) -> None:
        pytest.fail("read again for the call")

    monkeypatch.setattr("bylaw.facts.shown.sightings", fail)
    assert session.judge(SHIP).outcome == "permit"


def test_judging_the_same_call_twice_counts_once(pack: Pack) -> None:
    session = seeing(pack)
    session.judge(SHIP)
    session.judge(SHIP)
    session.observe(SHIP)
    assert len(session.settle()) == 1


def test_settling_twice_says_the_same(pack: Pack) -> None:
    session = seeing(pack, world=world(pack, paid=False))
    session.judge(SHIP)
    session.observe(SHIP)
    first, second = session.settle(), session.settle()
    assert [v.strict for v in first] == [v.strict for v in second] == ["violation"]


def test_an_unknown_tool_is_inconclusive(pack: Pack) -> None:
    session = Session(pack)
    assert session.judge(Call("teleport", {}, turn=1)).fault == "unknown tool `teleport`"
    assert session.settle()[0].strict == "inconclusive"


def test_arguments_that_were_not_captured_are_inconclusive_under_every_policy(pack: Pack) -> None:
    session = seeing(pack, world=world(pack, paid=True))
    session.judge(Call("ship", {}, turn=5, fault="the arguments were not captured"))
    (verdict,) = session.settle()
    assert (verdict.strict, verdict.fault) == ("inconclusive", "the arguments were not captured")
    assert [(p.policy.id, p.strict, p.determined) for p in verdict.policies] == [
        ("only-paid", "inconclusive", "inconclusive")
    ]


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (Result(4, "ok"), "sent"),
        (Result(4, "Error: no", error=True), "open"),
        (Result(4, "", captured=False), "sent"),
        (None, "sent"),
    ],
)
def test_the_world_moves_with_what_may_have_happened(result: Result | None, state: str, tmp_path: Path) -> None:
    tools = FILES["tools.yaml"].replace(
        "changes: [Order.state]", "effects: [{as: Order, key: $args.order_id, set: {state: =sent}}]"
    )
    moving = load(tmp_path, {"tools.yaml": tools})
    session = seeing(moving, world=world(moving, paid=True))
    session.judge(SHIP)
    session.observe(Message("agent", "shipping", 4))
    session.observe(SHIP)
    if result is not None:
        session.observe(result)
    session.settle()
    assert session.world is not None
    record = session.world.record("Order", ("O1",))
    assert isinstance(record, dict)
    assert record["state"] == state


def test_a_world_is_judged_as_of_execution_order(pack: Pack, tmp_path: Path) -> None:
    tools = FILES["tools.yaml"].replace(
        "parameters: {order_id: string, amount: string}",
        "parameters: {order_id: string, amount: string}\n"
        "    effects: [{as: Order, key: $args.order_id, set: {paid: false}}]",
    )
    moving = load(tmp_path, {"tools.yaml": tools})
    session = Session(moving, world=world(moving, paid=True))
    calls = [Call("ship", {"order_id": "O1"}, turn=1), Call("refund", {"order_id": "O1", "amount": "1"}, turn=2)]
    for call in [*calls, Call("ship", {"order_id": "O1"}, turn=3)]:
        session.judge(call)
        session.observe(call)
        session.observe(Result(session.ledger.writes[-1].step, "ok"))
    assert [(v.made.call.tool, v.strict) for v in session.settle()] == [
        ("ship", "near_miss"),
        ("refund", "near_miss"),
        ("ship", "violation"),
    ]


def guarded(condition: str) -> str:
    return f"def only_paid(call, facts):\n    if {condition}:\n        return permit()\n    return deny('no')\n"


def timed(root: Path, *, now: str) -> Pack:
    guard = guarded("now() >= facts.Order(call.order_id).opens")
    guards = guard + "\n\n" + FILES["guards/shop.py"].partition("\n\n\n")[2]
    return load(
        root,
        {
            "guards/shop.py": guards,
            "entities.yaml": FILES["entities.yaml"].replace("paid: boolean", "opens: datetime"),
            "pack.yaml": FILES["pack.yaml"].replace("now: 2025-01-01T10:00:00\n", now),
            "cases/shop.yaml": "",
        },
    )


@pytest.mark.parametrize(
    ("now", "time", "opens", "outcomes"),
    [
        ("now: 2025-01-01T10:00:00\n", None, "2025-01-01T10:00:00", ["permit"]),
        ("now: 2025-01-01T10:00:00\n", None, "2025-01-01T10:00:01", ["deny"]),
        ("", 1735725600.0, "2025-01-01T10:00:00+00:00", ["permit"]),
        ("", 1735725599.0, "2025-01-01T10:00:00+00:00", ["deny"]),
        ("", None, "2025-01-01T10:00:00+00:00", ["deny", "permit"]),
    ],
)
def test_the_time_of_the_call_is_the_packs_or_the_logs_or_not_known(
    now: str, time: float | None, opens: str, outcomes: list[str], tmp_path: Path
) -> None:
    session = Session(timed(tmp_path, now=now))
    session.observe(Call("get_order", {"order_id": "O1"}, turn=1))
    session.observe(Result(0, f'{{"opens": "{opens}"}}'))
    (evidence,) = session.judge(Call("ship", {"order_id": "O1"}, turn=2, time=time)).evidence
    assert sorted(completion.outcome for completion in evidence.completions) == outcomes


def test_what_the_host_says_is_known_and_what_it_does_not_say_is_asked(tmp_path: Path) -> None:
    guard = guarded("facts.context.principal == 'Ann'")
    guards = guard + "\n\n" + FILES["guards/shop.py"].partition("\n\n\n")[2]
    entities = FILES["entities.yaml"] + "context: {principal: string}\n"
    asking = load(tmp_path, {"guards/shop.py": guards, "entities.yaml": entities, "cases/shop.yaml": ""})
    for context, verdict in (
        ({"principal": "Ann"}, "compliant"),
        ({"principal": "Bob"}, "violation"),
        ({}, "inconclusive"),
    ):
        session = Session(asking, context=context)
        session.judge(SHIP)
        (settled,) = session.settle()
        assert settled.strict == verdict
