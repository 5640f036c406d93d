"""What others build on: the keys and meaning of `summary.json` and `calls.jsonl`."""

import gzip
import json
from typing import Any

import pytest

from bylaw import Pack
from bylaw.audit.counts import UnmappedFields
from bylaw.audit.run import read_calls
from bylaw.errors import UsageError
from bylaw.facts.evidence import rate
from bylaw.trace.event import Call, Result
from tests.audit.logs import CAREFUL, HASTY, NO_RESULT, OK, WRONG, Shop, call, look, record, ship, user

RATE = {"value", "low", "high", "count", "of"}


def test_the_summary_has_the_keys_it_promises(shop: Shop) -> None:
    report = shop.audit(shop.logs(record(*CAREFUL)))
    summary = json.loads((report.out / "summary.json").read_text())
    assert summary == report.summary
    assert summary["schema"] == "bylaw.audit/1"
    assert summary["pack"].keys() >= {"name", "version", "digest"}
    assert summary.keys() >= {"schema", "pack", "agents", "by_tool", "by_lookup", "outcome_from", "skipped"}
    (agent,) = summary["agents"]
    keys = {"agent", "trajectories", "with_write_calls", "outcome_known", "failure_rate", "strict", "determined"}
    assert agent.keys() >= keys
    assert agent["failure_rate"].keys() == RATE
    for criterion in ("strict", "determined"):
        for name in ("violation_rate", "near_miss_rate", "near_miss_rate_of_writing"):
            assert agent[criterion][name].keys() == RATE
    assert isinstance(summary["skipped"], list)
    assert isinstance(summary["by_tool"], dict)
    assert isinstance(summary["by_lookup"], dict)


def test_a_call_has_the_keys_it_promises(shop: Shop) -> None:
    (line,) = shop.calls(record(*HASTY, id="T1", agent="hasty"))
    assert next(iter(line)) == "trajectory"
    keys = {"trajectory", "agent", "step", "call_id", "tool", "executed", "strict", "determined", "policies"}
    assert line.keys() >= keys
    assert (line["trajectory"], line["agent"], line["step"], line["call_id"]) == ("T1", "hasty", 1, "c")
    (policy,) = line["policies"]
    assert policy.keys() >= {"id", "strict", "determined", "missing", "asks", "because"}
    (missing,) = policy["missing"]
    assert {key: missing[key] for key in ("entity", "key", "field", "lookup", "reason", "claimed_at", "decisive")} == {
        "entity": "Order",
        "key": ["PAID"],
        "field": "paid",
        "lookup": {"tool": "get_order", "args": {"order_id": "PAID"}},
        "reason": "never_seen",
        "claimed_at": None,
        "decisive": True,
    }
    assert (policy["strict"], policy["determined"], policy["because"]) == (
        "near_miss",
        "near_miss",
        "not looked up: Order[PAID].paid",
    )


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        (CAREFUL, "compliant"),
        (HASTY, "near_miss"),
        (WRONG, "violation"),
        ((look("OPEN", paid=False), ship("OPEN")), "violation"),
        ((look("PAID", paid=False), ship("PAID")), "near_miss"),
        ((look("OPEN", paid=True), ship("OPEN")), "violation"),
        ((call("ship", {}),), "inconclusive"),
        ((call("ship", "not json"),), "inconclusive"),
        ((call("ship", "[1]"),), "inconclusive"),
    ],
)
def test_each_verdict(parts: Any, verdict: str, shop: Shop) -> None:
    (line,) = shop.calls(record(*parts))
    assert (line["strict"], line["determined"]) == (verdict, verdict)


def test_without_a_world_and_without_hindsight_nothing_is_known(shop: Shop) -> None:
    later = record(*HASTY, look("PAID", paid=True))
    assert [line["strict"] for line in shop.calls(later, record(*HASTY), world=False)] == ["near_miss", "uninformed"]
    assert [line["strict"] for line in shop.calls(later, record(*HASTY), world=False, mode="none")] == [
        "uninformed"
    ] * 2
    assert shop.calls(record(*CAREFUL), world=False, mode="none")[0]["strict"] == "compliant"


def test_executed_is_true_false_or_null(shop: Shop) -> None:
    lines = shop.calls(
        record(ship("PAID", OK)),
        record(ship("PAID", {"error": "no such order"})),
        record(ship("PAID", "Error: out of stock")),
        record(ship("PAID", NO_RESULT)),
        record(ship("PAID", "shipped")),
    )
    assert [line["executed"] for line in lines] == [True, False, False, None, True]


def test_refused_calls_are_listed_and_not_counted(shop: Shop) -> None:
    report = shop.audit(shop.logs(record(*WRONG[:1], ship("OPEN", {"error": "no"}))))
    (line,) = read_calls(report.out)
    assert (line["strict"], line["executed"]) == ("violation", False)
    (agent,) = report.summary["agents"]
    assert agent["with_write_calls"] == 0
    assert agent["strict"]["violation_rate"]["count"] == 0
    assert report.summary["by_tool"]["ship"]["calls"] == 1
    assert report.summary["by_tool"]["ship"]["executed"] == 0
    assert report.violations == 0


def test_a_result_that_was_not_captured_counts_as_executed_and_is_counted(shop: Shop) -> None:
    report = shop.audit(shop.logs(record(ship("OPEN", NO_RESULT))))
    assert report.violations == 1
    assert report.summary["by_tool"]["ship"]["result_not_captured"] == 1


def test_lines_stand_in_the_order_of_files_conversations_and_calls(shop: Shop) -> None:
    first = shop.logs(record(ship("A"), ship("B")), record(ship("C")), name="1.jsonl")
    second = shop.logs(record(user("hi")), record(ship("D")), name="2.jsonl")
    report = shop.audit(second, first)
    steps = [(line["trajectory"], line["step"]) for line in read_calls(report.out)]
    assert steps == [("2.jsonl#1", 1 - 1), ("1.jsonl#0", 0), ("1.jsonl#0", 2), ("1.jsonl#1", 0)]


def test_ids_are_the_sources_own_or_file_and_position_and_never_twice_the_same(shop: Shop) -> None:
    lines = shop.calls(
        record(ship("A"), id="x"),
        record(ship("A")),
        record(ship("A"), id="x"),
        record(ship("A"), id="x~2"),
        record(ship("A"), id="x"),
    )
    names = [line["trajectory"] for line in lines]
    assert names[:3] == ["x", "logs.jsonl#1", "x~2"]
    assert len(set(names)) == 5


def test_steps_count_every_message_call_and_result(shop: Shop) -> None:
    (line,) = shop.calls(record(user("a"), look("PAID", paid=True), user("b"), ship("PAID")))
    assert line["step"] == 4


def test_a_claim_names_the_message_it_stood_in(shop: Shop) -> None:
    (shop.pack / "entities.yaml").write_text(
        (shop.pack / "entities.yaml")
        .read_text()
        .replace("paid: boolean", 'paid: {type: boolean, claims: {true: ["paid for it"]}}')
    )
    (line,) = shop.calls(record(user("hello"), user("I have paid for it already"), ship("PAID")))
    (missing,) = line["policies"][0]["missing"]
    assert (missing["reason"], missing["claimed_at"]) == ("claimed", 1)


def test_a_stale_fact_is_missing_as_stale(shop: Shop) -> None:
    refund = call("refund", {"order_id": "PAID", "amount": "1"})
    (_, line) = shop.calls(record(look("PAID", paid=True, gift=False), refund, ship("PAID")))
    assert [missing["reason"] for missing in line["policies"][0]["missing"]] == ["stale"]


@pytest.mark.parametrize(
    ("parts", "outcome", "near", "violating"),
    [
        (HASTY, None, 1, 0),
        (HASTY, True, 1, 0),
        (HASTY, False, 0, 0),
        ((*HASTY, *WRONG), None, 0, 1),
        ((*HASTY, *WRONG), True, 1, 1),
        ((*HASTY, *WRONG), False, 0, 1),
        (WRONG, None, 0, 1),
        (CAREFUL, True, 0, 0),
    ],
)
def test_a_near_miss_counts_where_the_outcome_is_good_or_nothing_is_known_against_it(
    parts: Any, outcome: bool | None, near: int, violating: int, shop: Shop
) -> None:
    about = {} if outcome is None else {"outcome": outcome}
    (agent,) = shop.audit(shop.logs(record(*parts, **about))).summary["agents"]
    strict = agent["strict"]
    assert (strict["near_miss_rate"]["count"], strict["violation_rate"]["count"]) == (near, violating)
    assert agent["outcome_known"] == (outcome is not None)
    assert agent["failure_rate"]["count"] == (outcome is False)


def test_rates_count_trajectories_not_calls(shop: Shop) -> None:
    logs = shop.logs(record(*HASTY, *HASTY), record(user("hi")), record(*CAREFUL), record(*WRONG, *WRONG, *WRONG))
    (agent,) = shop.audit(logs).summary["agents"]
    assert (agent["trajectories"], agent["with_write_calls"]) == (4, 3)
    strict = agent["strict"]
    assert (strict["near_miss_rate"]["count"], strict["near_miss_rate"]["of"]) == (1, 4)
    assert strict["near_miss_rate_of_writing"]["of"] == 3
    assert (strict["violation_rate"]["count"], strict["violation_rate"]["of"]) == (1, 4)


def test_by_lookup_names_what_near_misses_lacked(shop: Shop) -> None:
    summary = shop.audit(shop.logs(record(*HASTY), record(*HASTY), record(*WRONG))).summary
    assert summary["by_lookup"]["get_order"]["strict"] == 2
    assert summary["by_tool"]["ship"]["strict"]["near_miss"] == 2
    assert summary["by_policy"]["no-gifts"]["applied"] == 0
    assert summary["by_policy"]["only-paid"] == summary["by_policy"]["only-paid"] | {"applied": 3, "could_deny": 3}


def test_outcomes_say_where_they_were_read(shop: Shop) -> None:
    logs = shop.logs(record(*HASTY, outcome=True), record(*HASTY, reward=1.0), record(*HASTY))
    assert shop.audit(logs).summary["outcome_from"] == {"outcome": 1, "reward": 1}


def test_agents_have_rows_of_their_own(shop: Shop) -> None:
    logs = shop.logs(record(*HASTY, agent="b"), record(*HASTY, agent="a"), record(*CAREFUL, model="openai/gpt-9"))
    assert [row["agent"] for row in shop.audit(logs).summary["agents"]] == ["a", "b", "gpt-9"]
    assert [row["agent"] for row in shop.audit(logs, agent="all").summary["agents"]] == ["all"]


def test_unknown_tools_are_inconclusive_and_named(shop: Shop) -> None:
    beamed = record(look("PAID", paid=True), call("teleport", {"order_id": "PAID"}))
    refused = call("teleport", {}, "no")
    refused[-1]["is_error"] = True
    report = shop.audit(shop.logs(beamed, record(refused)))
    lines = list(read_calls(report.out))
    assert [(line["tool"], line["strict"], line["because"]) for line in lines] == [
        ("teleport", "inconclusive", "unknown tool `teleport`")
    ]
    assert report.summary["unknown_tools"] == {"teleport": 2}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.usefixtures("quick_workers")
def test_a_pack_that_knows_no_tool_of_the_logs_is_an_error_and_leaves_the_earlier_audit(jobs: int, shop: Shop) -> None:
    before = shop.audit(shop.logs(record(*HASTY, id="t1")))
    summary = (before.out / "summary.json").read_bytes()
    with pytest.raises(UsageError, match=r"declares none of the tools in the logs \(`beam`, `teleport`\)"):
        shop.audit(shop.logs(record(call("teleport", {})), record(call("beam", {}))), jobs=jobs)
    assert (before.out / "summary.json").read_bytes() == summary


def test_a_calculator_that_both_have_makes_no_pack_the_right_one(shop: Shop) -> None:
    with (shop.pack / "tools.yaml").open("a", encoding="utf-8") as tools:
        tools.write("  calculate: {effect: none, parameters: {expression: string}}\n")
    with pytest.raises(UsageError, match=r"declares none of the tools in the logs \(`teleport`\)"):
        shop.audit(shop.logs(record(call("calculate", {"expression": "1 + 1"}), call("teleport", {}))))


def test_conversations_without_a_call_say_nothing_of_the_pack(shop: Shop) -> None:
    assert shop.audit(shop.logs(record(user("Hello.")))).summary["agents"][0]["trajectories"] == 1


def test_fields_that_no_observation_maps_are_named(shop: Shop) -> None:
    summary = shop.audit(shop.logs(record(look("PAID", paid=True, colour="red")))).summary
    assert summary["unmapped_fields"] == {"get_order": ["colour"]}


def test_what_an_observation_goes_into_is_mapped() -> None:
    pack = Pack.from_files(
        {
            "pack.yaml": "format: 1\nname: rooms\ndocument: policy.md\n",
            "policy.md": "Be kind.\n",
            "tools.yaml": "tools:\n"
            "  search_slots: {effect: read, parameters: {room: string}}\n"
            "  move: {effect: write, parameters: {id: string}, changes: []}\n",
            "entities.yaml": "entities:\n"
            "  Slot: {key: [room, start], fields: {state: string}}\n"
            "  Booking: {key: id, fields: {guest: string}}\n"
            "observations:\n"
            '  search_slots: {each: "$.slots[*]", as: Slot, key: {room: $args.room, start: $.start}}\n'
            "  move: {as: Booking, fields: {guest: $.who.name}}\n",
        }
    )
    events = [
        Call("search_slots", {"room": "A"}, turn=1),
        Result(0, '{"slots": [{"start": "9", "state": "open"}], "page": 1}'),
        Call("move", {"id": "7"}, turn=2),
        Result(2, '{"id": "7", "who": {"name": "Jo"}, "fee": 3}'),
    ]
    assert [*UnmappedFields(pack, None).of(events)] == [("search_slots", "page"), ("move", "fee")]


def test_unmapped_fields_of_the_last_conversation_are_named_too(shop: Shop) -> None:
    early = [record(look("PAID", paid=True))] * 30
    summary = shop.audit(shop.logs(*early, record(look("PAID", paid=True, colour="red")))).summary
    assert summary["unmapped_fields"] == {"get_order": ["colour"]}


def bind(shop: Shop, tools: str, guard: str) -> None:
    """Gives `no-gifts` other tools and another guard."""
    policies, guards = shop.pack / "policies.yaml", shop.pack / "guards" / "shop.py"
    policies.write_text(policies.read_text().replace("tools: [refund]", f"tools: {tools}"))
    kept = guards.read_text().partition("def no_gifts")[0]
    guards.write_text(f"{kept}def no_gifts(call, facts):\n{guard}")


def test_a_guard_may_bind_a_read_and_is_then_judged(shop: Shop) -> None:
    own = '    return permit() if facts.Order(call.order_id).owner == "Ann" else deny("somebody else\'s")\n'
    bind(shop, "[get_order]", own)
    again = call("get_order", {"order_id": "PAID"}, {"order_id": "PAID", "owner": "Ann"}, id="again")
    lines = shop.calls(record(look("PAID", owner="Ann"), again, look("OPEN", owner="Bob")))
    assert [(line["tool"], line["strict"]) for line in lines] == [
        ("get_order", "near_miss"),
        ("get_order", "compliant"),
        ("get_order", "violation"),
    ]


def test_look_ups_that_a_guard_binds_are_counted_apart_from_writes(shop: Shop) -> None:
    own = '    return permit() if facts.Order(call.order_id).owner == "Ann" else deny("somebody else\'s")\n'
    bind(shop, "[get_order]", own)
    reads = record(look("PAID", owner="Ann"), look("OPEN", owner="Bob"), id="reads")
    writes = record(look("PAID", owner="Ann"), call("ship", {"order_id": "PAID"}), id="writes")
    summary = shop.audit(shop.logs(reads, writes)).summary
    assert [(row["trajectories"], row["with_write_calls"]) for row in summary["agents"]] == [(2, 1)]
    assert {name: row["effect"] for name, row in summary["by_tool"].items()} == {"get_order": "read", "ship": "write"}


def test_near_misses_of_look_ups_are_none_of_writing(shop: Shop) -> None:
    own = '    return permit() if facts.Order(call.order_id).owner == "Ann" else deny("somebody else\'s")\n'
    bind(shop, "[get_order]", own)
    reads = [record(look("PAID", owner="Ann"), id=f"reads {number}") for number in range(3)]
    writes = record(
        look("PAID", owner="Ann"), look("PAID", owner="Ann"), call("ship", {"order_id": "PAID"}), id="writes"
    )
    (agent,) = shop.audit(shop.logs(*reads, writes)).summary["agents"]
    assert agent["strict"]["near_miss_rate"]["count"] == 4
    assert agent["strict"]["near_miss_rate_of_writing"] == rate(0, 1)


def test_look_ups_lacked_are_those_of_near_misses_not_of_violations(shop: Shop) -> None:
    bind(shop, "[ship]", '    return deny("closed") if call.order_id == "OPEN" else permit()\n')
    shipped = [call("ship", {"order_id": order}) for order in ("PAID", "OPEN")]
    summary = shop.audit(shop.logs(record(*shipped))).summary
    assert summary["verdicts"]["determined"] == {"violation": 1, "near_miss": 1}
    assert summary["by_lookup"]["get_order"]["determined"] == 1


@pytest.mark.parametrize(
    "condition", ['call.amount == "1"', 'done("ship", order_id=call.order_id) == 0', 'call.tool == "refund"']
)
def test_a_guard_that_the_call_alone_decides_counts_as_exercised(shop: Shop, condition: str) -> None:
    bind(shop, "[refund]", f'    return permit() if {condition} else deny("no")\n')
    logs = shop.logs(record(call("refund", {"order_id": "PAID", "amount": "1"})))
    summary = shop.audit(logs).summary
    assert summary["by_policy"]["no-gifts"] == summary["by_policy"]["no-gifts"] | {"applied": 1, "could_deny": 1}


def test_gzip_reads_like_plain(shop: Shop) -> None:
    plain = shop.logs(record(*HASTY, id="x"), record(*WRONG, id="y"))
    first = (shop.audit(plain).out / "calls.jsonl").read_bytes()
    packed = shop.root / "logs.jsonl.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert (shop.audit(packed, agent="logs").out / "calls.jsonl").read_bytes() == first


@pytest.mark.parametrize(
    ("count", "of", "low", "high"),
    [
        (0, 10, 0.0, 0.27753),
        (5, 10, 0.23659, 0.76341),
        (10, 10, 0.72247, 1.0),
        (1, 1, 0.20654, 1.0),
        (3, 50, 0.02062, 0.16219),
    ],
)
def test_rates_have_wilson_intervals(count: int, of: int, low: float, high: float) -> None:
    found = rate(count, of)
    assert (found["count"], found["of"], found["value"]) == (count, of, count / of)
    assert found["low"] == pytest.approx(low, abs=1e-4)
    assert found["high"] == pytest.approx(high, abs=1e-4)


def test_nothing_of_nothing_is_null() -> None:
    assert rate(0, 0) == {"value": None, "low": None, "high": None, "count": 0, "of": 0}


def test_a_log_without_conversations_has_no_rates(shop: Shop) -> None:
    report = shop.audit(shop.logs(record(user("hi")), record()))
    (agent,) = report.summary["agents"]
    assert agent["failure_rate"]["value"] is None
    assert agent["strict"]["near_miss_rate_of_writing"] == rate(0, 0)
    assert agent["strict"]["violation_rate"]["of"] == 2


def test_conversations_without_times_are_counted_where_facts_grow_old(shop: Shop) -> None:
    talks = shop.logs(record(*HASTY), record(*CAREFUL), record(look("PAID", paid=True)))
    assert shop.audit(talks).summary["untimed"] == 0
    entities = shop.pack / "entities.yaml"
    entities.write_text(
        entities.read_text().replace("    read: get_order\n", "    fresh_for: 60\n    read: get_order\n", 1)
    )
    assert shop.audit(talks).summary["untimed"] == 2
