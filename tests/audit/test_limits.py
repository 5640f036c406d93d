"""Limits over all conversations, audited: what is surely too many is counted, and what nobody can tell is open."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.request import Request
from bylaw.audit.run import audit
from bylaw.audit.store import Store
from bylaw.audit.summary import notes as notes_of
from bylaw.engine.limited import LimitedCall, over_and_open
from bylaw.rule.rule import Limit
from tests.command import bylaw
from tests.shield.test_limits import FILES

HOUR = 3600.0
LIMIT = Limit("few", "few", frozenset({"refund"}), 2, HOUR)


def refund(at: float | None, customer: str = "C1", shown: Any = "done", **more: Any) -> dict[str, Any]:
    """A recorded conversation with one refund."""
    call = {"id": "k", "function": {"name": "refund", "arguments": '{"order_id": "O1", "amount": "5"}'}, **more}
    timed = {} if at is None else {"timestamp": 1.7e9 + at}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Refund O1.", **timed},
        {"role": "assistant", "content": None, "tool_calls": [call], **timed},
    ]
    if shown is not None:
        messages.append({"role": "tool", "tool_call_id": "k", "content": shown, **timed})
    return {"messages": messages, "context": {"signed_in_as": customer} if customer else {}}


def audited(folder: Path, talks: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """What the summary says of the limit of three refunds an hour for a customer."""
    pack = folder / "pack"
    for name, text in FILES.items():
        (pack / name).parent.mkdir(parents=True, exist_ok=True)
        (pack / name).write_text(text, encoding="utf-8")
    half = len(talks) // 2
    files = (folder / "a.jsonl", folder / "b.jsonl")
    for file, part in zip(files, (talks[:half], talks[half:]), strict=True):
        file.write_text("".join(json.dumps(each) + "\n" for each in part), encoding="utf-8")
    summary = audit(Request(files, str(pack), **more), folder / "out").summary
    (found,) = summary["limits"]
    told = [each for each in notes_of(summary) if "few-refunds" in each]
    assert bool(told) is bool(found["over"] or found["open"])
    return found


NUMBERS = ("1000", "1e3", "1,000", "1000.0")
FOUR = [refund(at) for at in (0, 600, 1200, 1800)]
CASES: dict[str, tuple[list[dict[str, Any]], tuple[int, int]]] = {
    "the fourth within the hour": (FOUR, (1, 0)),
    "three": (FOUR[:3], (0, 0)),
    "the first is an hour ago": ([*FOUR[:3], refund(HOUR)], (0, 0)),
    "just not an hour ago": ([*FOUR[:3], refund(HOUR - 1)], (1, 0)),
    "in whatever order they were recorded": (FOUR[::-1], (1, 0)),
    "another customer": ([*FOUR[:3], refund(1800, "C2")], (0, 0)),
    "only its text says that the tool refused one": ([*FOUR[1:], refund(0, shown="Error: the till is shut")], (0, 1)),
    "nobody knows the end of one": ([*FOUR[1:], refund(0, shown=None)], (0, 1)),
    "nobody knows the time of one": ([*FOUR[1:], refund(None)], (0, 2)),
    "nobody knows whose one is": ([*FOUR[1:], refund(0, "")], (0, 1)),
    "one may be the same customer's": ([*FOUR[:3], refund(1800, "C-1")], (0, 1)),
    "all are perhaps one customer's": ([refund(60 * at, to) for at, to in enumerate(NUMBERS)], (0, 1)),
    "nobody knows any time": ([refund(None)] * 4, (0, 4)),
    "too few to be too many": ([refund(None)] * 3, (0, 0)),
    "a shield refused it": ([*FOUR[:3], refund(1800, refused=True)], (0, 0)),
    "a person let it through": ([*FOUR[:3], refund(1800, approved={"by": "ann", "policies": ["few-refunds"]})], (0, 0)),
}


@pytest.mark.parametrize(("talks", "want"), CASES.values(), ids=CASES)
def test_calls_of_all_conversations_are_held_against_a_limit(
    tmp_path: Path, talks: list[dict[str, Any]], want: tuple[int, int]
) -> None:
    found = audited(tmp_path, talks)
    assert (found["over"], found["open"]) == want


@pytest.mark.usefixtures("quick_workers")
def test_the_call_is_named_and_a_redacted_audit_names_no_file(tmp_path: Path) -> None:
    found = audited(tmp_path, FOUR)
    assert (found["calls"], found["first"]) == (4, [{"file": "b.jsonl", "position": 2, "step": 1}])
    assert audited(tmp_path, FOUR, jobs=2) == found
    hidden = audited(tmp_path, FOUR, key=b"secret")
    assert (hidden["over"], "b.jsonl" in json.dumps(hidden)) == (1, False)


@pytest.mark.usefixtures("quick_workers")
def test_a_call_beyond_a_limit_is_a_finding_that_can_be_explained_and_fails_the_run(tmp_path: Path) -> None:
    audited(tmp_path, FOUR)
    findings = list(Store(tmp_path / "out").broken_rules())
    assert [(each.kind, each.name, each.charges[0].policy) for each in findings] == [
        ("rule", "few-refunds", "few-refunds")
    ]
    audited(tmp_path, FOUR, jobs=2)
    assert list(Store(tmp_path / "out").broken_rules()) == findings

    def run(*options: str, out: str = "again") -> int:
        return bylaw(tmp_path, "audit", "a.jsonl", "b.jsonl", "--pack", "pack", "--out", out, *options).returncode

    assert run("--report") == 0
    assert run("--fail-on", "rule") == 1
    assert run("--fail-on", "violation") == 1
    assert run("--fail-on", "violation", "--format", "parquet", out="tables") == 1
    assert run("--fail-on", "rule", "--min-severity", "high") == 0
    assert run("--fail-on", "rule", "--baseline", "again", out="later") == 0
    assert run("--fail-on", "rule", "--format", "parquet", out="tables") == 1
    assert run("--fail-on", "near_miss") == 1
    told = " ".join(bylaw(tmp_path, "explain", "again").stdout.split())
    assert "rule few-refunds" in told
    (shown,) = Store(tmp_path / "again").broken_rules()
    told = " ".join(bylaw(tmp_path, "explain", "again", shown.id).stdout.split())
    assert "few-refunds rule broken" in told
    assert "limit exceeded: at most 3 refund" in told


@pytest.mark.usefixtures("quick_workers")
def test_a_call_beyond_a_limit_is_a_violation_in_every_count(tmp_path: Path) -> None:
    for jobs in (1, 2):
        audited(tmp_path, FOUR, jobs=jobs)
        store = Store(tmp_path / "out")
        rows = [store.call(line) for line in store.raw("calls.jsonl")]
        assert [(row.strict, row.determined) for row in rows] == [("uninformed", "uninformed")] * 3 + [
            ("violation", "violation")
        ]
        summary = store.summary
        assert summary["counts"]["violations"] == 1
        assert summary["verdicts"]["strict"] == {"violation": 1, "uninformed": 3}
        assert summary["by_tool"]["refund"]["determined"]["violation"] == 1
        assert [row["determined"]["violation_rate"]["count"] for row in summary["agents"]] == [0, 1]


def test_three_calls_are_no_finding(tmp_path: Path) -> None:
    audited(tmp_path, FOUR[:3])
    assert list(Store(tmp_path / "out").broken_rules()) == []


def twin(calls: list[LimitedCall]) -> tuple[set[LimitedCall], set[LimitedCall]]:
    """The same, slow and obvious."""

    def is_before(one: LimitedCall, other: LimitedCall) -> bool:
        if one.time is None or other.time is None:
            return True
        first, then = ((each.time, each.file, each.position, each.step) for each in (one, other))
        return first < then and one.time > other.time - HOUR

    def kin(call: LimitedCall) -> str | None:
        return call.perhaps or call.whose

    over: set[LimitedCall] = set()
    is_open: set[LimitedCall] = set()
    for call in calls:
        others = [each for each in calls if each is not call and is_before(each, call)]
        sure = [
            each
            for each in others
            if each.is_sure and each.whose == call.whose and None not in (each.whose, each.time, call.time)
        ]
        maybe = [each for each in others if None in (call.whose, each.whose) or kin(each) == kin(call)]
        if call.is_approved:
            continue
        if call.is_sure and len(sure) >= LIMIT.most:
            over.add(call)
        elif len(maybe) >= LIMIT.most:
            is_open.add(call)
    return over, is_open


def test_it_says_what_the_obvious_way_says() -> None:
    rng, seen = random.Random(7), set[tuple[bool, bool]]()
    for _ in range(400):
        calls = [
            LimitedCall(
                "few",
                whose,
                rng.choice([None, *(rng.randrange(4) * 1800.0 for _ in range(5))]),
                rng.random() < 0.7,
                rng.random() < 0.1,
                "f",
                place,
                0,
                perhaps=rng.choice(["", "", "k"]) if whose else "",
            )
            for place in range(rng.randrange(8))
            for whose in [rng.choice(["a", "a", "b", None])]
        ]
        over, is_open = over_and_open(LIMIT, calls)
        assert (set(over), set(is_open)) == twin(calls)
        seen.add((bool(over), bool(is_open)))
    assert len(seen) == 4


def grown(id: str, at: float, *, key: str = "k") -> list[dict[str, Any]]:
    """The lines of a log of requests for one conversation with one refund: each has all messages so far."""
    told = refund(at, id=key)
    told["messages"][2]["tool_call_id"] = key
    thanks = [{"role": "user", "content": f"Thanks {n}.", "timestamp": 1.7e9 + at + n} for n in range(3)]
    return [{"id": id, **told, "messages": [*told["messages"], *thanks][:count]} for count in (2, 3, 4, 6)]


def mixed(*logs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for lines in zip(*logs, strict=True) for line in lines]


TOLD_AGAIN: dict[str, tuple[list[dict[str, Any]], tuple[int, int, int]]] = {
    "one, on four lines of two files": (grown("a", 0), (1, 0, 0)),
    "several users at the same time": (mixed(grown("a", 0), grown("b", 1), grown("c", 2)), (3, 0, 0)),
    "one too many": (mixed(grown("a", 0), grown("b", 1), grown("c", 2), grown("d", 3)), (4, 1, 0)),
    "a key after the messages": ([{**each, "tags": ["prod"]} for each in grown("a", 0)], (1, 0, 0)),
    "a key before the messages": ([{"time": n, **each} for n, each in enumerate(grown("a", 0))], (1, 0, 0)),
    "another conversation is another call": ([grown(id, 0)[-1] for id in "abcd"], (4, 1, 0)),
    "another time is another call": ([grown("a", at)[-1] for at in (0, 1, 2, 3)], (4, 1, 0)),
    "another id is another call": ([grown("a", 0, key=key)[-1] for key in "klmn"], (4, 1, 0)),
}


@pytest.mark.parametrize("case", TOLD_AGAIN)
def test_a_call_that_logs_tell_of_again_counts_once(case: str, tmp_path: Path) -> None:
    talks, expected = TOLD_AGAIN[case]
    found = audited(tmp_path, talks)
    assert (found["calls"], found["over"], found["open"]) == expected


def test_calls_of_one_turn_under_one_id_are_as_many_as_there_are(tmp_path: Path) -> None:
    told = grown("a", 0)[-1]
    told["messages"][1]["tool_calls"] *= 4
    told["messages"][2:3] *= 4
    assert audited(tmp_path, [told, told])["calls"] == 4
