"""Nothing in a log stops the audit, loses a record or passes for compliant; and work is done only where it must be."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit import run
from bylaw.audit.counts import UnmappedFields
from bylaw.audit.request import Request
from bylaw.audit.run import audit, read_calls
from bylaw.engine.session import Session
from bylaw.facts.evidence import EvidenceCount
from bylaw.trace.event import Result
from tests.audit.desk import bylaw, talk, write_desk
from tests.audit.logs import CAREFUL, HASTY, WRONG, Shop, call, look, record, ship, user

OUTPUTS = ("summary.json", "calls.jsonl", "conversations.jsonl", "findings.jsonl", "policies.json")


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "nonsense",
        "5",
        '"text"',
        "null",
        '{"messages": 5}',
        '{"messages": [5]}',
        '{"messages": [{"role": "alien"}]}',
        "{}",
        '{"messages": [{"role": "assistant", "tool_calls": 7}]}',
        '{"messages": [{"role": "user", "content": {"a": 1}}]}',
        "\x00",
        '{"messages": [',
    ],
)
def test_a_malformed_record_is_reported_with_its_line_and_never_compliant(line: str, shop: Shop) -> None:
    logs = shop.logs(record(*HASTY, id="a"), line, record(*WRONG, id="b"))
    report = shop.audit(logs)
    assert [found["trajectory"] for found in read_calls(report.out)] == ["a", "b"]
    if report.skipped:
        (fault,) = report.skipped
        assert fault.place == f"{logs}:2"
        assert fault.message
        assert report.summary["skipped"] == [{"place": f"{logs}:2", "why": fault.message}]
        assert report.summary["agents"][0]["trajectories"] == 2
    else:
        # Odd, but a conversation: it is counted, and has no call that could pass for compliant.
        assert report.summary["agents"][0]["trajectories"] == 3


def test_what_follows_a_record_on_its_line_is_reported_and_the_record_read(shop: Shop) -> None:
    logs = shop.logs(json.dumps(record(*HASTY, id="a")) + " trailing", record(*WRONG, id="b"))
    report = shop.audit(logs)
    assert [found["trajectory"] for found in read_calls(report.out)] == ["a", "b"]
    (fault,) = report.skipped
    assert fault.place == f"{logs}:1"
    assert "trailing" in fault.message


def test_not_json_is_always_malformed(shop: Shop) -> None:
    report = shop.audit(shop.logs(record(*HASTY), "{", "nonsense", '{"messages": 5}', "5"))
    assert [fault.place.rpartition(":")[2] for fault in report.skipped] == ["2", "3", "4", "5"]


@pytest.mark.parametrize("content", [b"", b"\n\n  \n", b"[]", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_conversations(content: bytes, shop: Shop) -> None:
    (shop.root / "empty.jsonl").write_bytes(content)
    report = shop.audit(shop.root / "empty.jsonl")
    assert report.summary["agents"] == []
    assert (report.out / "calls.jsonl").read_bytes() == b""


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n" + bytes(100), b"hello there\n", b"\x1f\x8bnot gzip at all"])
def test_a_file_that_is_no_log_is_skipped_and_said(content: bytes, shop: Shop) -> None:
    (shop.root / "odd").write_bytes(content)
    report = shop.audit(shop.root / "odd", shop.logs(record(*HASTY)))
    assert len(report.skipped) >= 1
    assert all(str(shop.root / "odd") in fault.place for fault in report.skipped)
    assert len(list(read_calls(report.out))) == 1


NASTY = [
    "\x00\x01\x02\x1b[31m\x7f\x85",
    "\ud800 lone \udfff surrogates",
    "\u202e\u2066 turned \u200b\ufeff",
    "\r\n\t\u2028\u2029",
    "x" * 1_000_000,
    "(((((" * 2000 + "a" * 2000,
    '"}]}\\',
    "<script>alert(1)</script>",
    "%s %d {0} {name} $args.x [bold]x[/bold]",
    "",
]


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_hostile_text_in_every_field_loses_nothing(text: str, shop: Shop) -> None:
    records = [
        record(user(text), ship("PAID"), id=f"said {text}", agent=text),
        record(ship(text)),
        record(call(text, {"order_id": "PAID"})),
        record(call("ship", {"order_id": "PAID", text: text})),
        record(look("PAID", paid=True, **{text: text}), ship("PAID")),
        record(call("get_order", {"order_id": "PAID"}, text), ship("PAID", text)),
        record(ship("PAID"), id=text),
        record(call("ship", {"order_id": "PAID"}, id=text)),
        record(call("ship", text)),
        record(ship("PAID"), metadata={text: text}, outcome=text, model=text),
    ]
    report = shop.audit(shop.logs(*records))
    lines = list(read_calls(report.out))
    assert len(lines) + len(report.skipped) >= len(records)
    assert len({line["trajectory"] for line in lines}) == len(records) - len(report.skipped)
    for name in OUTPUTS:
        text = (report.out / name).read_text("utf-8")
        for line in text.split("\n")[:-1] if name.endswith("jsonl") else [text]:
            json.loads(line)


@pytest.mark.parametrize("depth", [50, 500, 5000, 100_000])
def test_deep_json_loses_nothing(depth: int, shop: Shop) -> None:
    deep = "[" * depth + "]" * depth
    nested = '{"a":' * depth + "1" + "}" * depth
    inline = json.dumps(record(ship("PAID"), id="inline")).replace('"inline"', f'"inline", "metadata": {{"x": {deep}}}')
    logs = shop.logs(
        record(call("get_order", {"order_id": "PAID"}, deep), ship("PAID"), id="result"),
        record(call("get_order", {"order_id": "PAID"}, nested), ship("PAID"), id="object"),
        record(call("ship", f'{{"order_id": "PAID", "note": {deep}}}'), id="argument"),
        record(ship("PAID", nested), id="answer"),
        inline,
        record(*HASTY, id="last"),
    )
    report = shop.audit(logs)
    found = {line["trajectory"] for line in read_calls(report.out)}
    assert len(found) + len(report.skipped) == 6
    assert "last" in found


@pytest.mark.parametrize(
    "arguments",
    [
        '{"order_id": null}',
        '{"order_id": {"a": [1]}}',
        '{"order_id": [1, 2]}',
        '{"order_id": 1e999}',
        '{"order_id": true}',
        '{"order_id": 123456789012345678901234567890}',
        '{"order_id": "PAID", "order_id": "OPEN"}',
        '{"ORDER_ID": "PAID"}',
        "null",
        "5",
        '""',
        '{"order_id": "' + "x" * 100_000 + '"}',
        '{"order_id": NaN}',
        '{"order_id": "\\ud800"}',
    ],
)
def test_odd_arguments_are_never_compliant(arguments: str, shop: Shop) -> None:
    report = shop.audit(shop.logs(record(look("PAID", paid=True), call("ship", arguments))))
    lines = list(read_calls(report.out))
    assert len(lines) + len(report.skipped) == 1
    assert all(line["strict"] != "compliant" for line in lines)


def test_an_order_that_is_not_there_is_a_violation(shop: Shop) -> None:
    (line,) = shop.calls(record(ship("NONE")))
    assert (line["strict"], line["policies"][0]["because"]) == ("violation", "no such Order `NONE`")


def audited(shop: Shop, files: list[Path], jobs: int) -> dict[str, bytes]:
    out = shop.root / f"out-{jobs}"
    audit(Request(tuple(files), str(shop.pack), shop.world, jobs=jobs), out)
    return {name: (out / name).read_bytes() for name in OUTPUTS}


@pytest.mark.parametrize("jobs", [2, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("quick_workers")
def test_the_results_are_the_same_bytes_whatever_the_number_of_workers(shop: Shop, jobs: int) -> None:
    kinds = [CAREFUL, HASTY, WRONG, (user("hi"),), (call("teleport", {}),), (ship("PAID", {"error": "no"}),)]
    first: list[Any] = [record(*kinds[n % 6], id=f"t{n % 10}", agent=f"a{n % 3}") for n in range(60)]
    first[7] = "{"
    first[30] = "nonsense"
    # Past the first few results of a tool: whether such a field is noticed may not depend on who reads it.
    second = [record(look("PAID", paid=True, **({f"new{n}": 1} if n > 6 else {}))) for n in range(40)]
    (shop.root / "bad").write_bytes(b"\x89PNG")
    files = [
        shop.logs(*first, name="1.jsonl"),
        shop.root / "bad",
        shop.logs(*second, name="2.jsonl"),
        shop.logs(name="3.jsonl"),
        shop.logs(record(*HASTY, id="t1"), name="4.jsonl"),
    ]
    one = audited(shop, files, 1)
    assert audited(shop, files, jobs) == one
    assert len(json.loads(one["summary.json"])["skipped"]) == 4


def test_a_conversation_without_writes_builds_no_session(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []

    class Counting(Session):
        def __init__(self, *args: Any, **options: Any) -> None:
            built.append(1)
            super().__init__(*args, **options)

    monkeypatch.setattr(run, "Session", Counting)
    report = shop.audit(shop.logs(record(user("hi"), look("PAID", paid=True)), record(user("hi")), record(*HASTY)))
    assert report.summary["agents"][0]["trajectories"] == 3
    assert len(built) == 1


def test_results_are_decoded_only_where_a_guard_asks_for_what_they_may_show(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[str] = []
    plain = Result.value

    def counting(self: Result) -> Any:
        decoded.append(str(self.content))
        return plain(self)

    filler = [record(user("hi"))] * 30
    other = call("list_shelves", {}, {"shelves": [1, 2, 3]})
    tools = shop.pack / "tools.yaml"
    tools.write_text(tools.read_text() + "  list_shelves: {effect: read, parameters: {}}\n")
    silent = record(look("PAID", paid=True), other, user("thanks"))
    asking = record(look("PAID", paid=True), other, look("OPEN", paid=False), ship("PAID"), look("PAID", paid=True))
    logs = shop.logs(*filler, silent, silent, asking)
    monkeypatch.setattr(Result, "value", counting)
    # These look at every result: how many could be read, and what no observation maps, is what they count.
    monkeypatch.setattr(EvidenceCount, "add", lambda *_: None)
    monkeypatch.setattr(UnmappedFields, "of", lambda *_: ())
    shop.audit(logs, world=False, mode="none")
    assert len(decoded) <= 3
    assert not any("shelves" in content for content in decoded)


def test_a_write_of_the_users_own_is_not_the_agents(shop: Shop) -> None:
    (line,) = shop.calls(record(*CAREFUL))
    assert line["strict"] == "compliant"


def test_private_parts_of_the_pack_do_not_leak_into_calls(shop: Shop) -> None:
    entities = shop.pack / "entities.yaml"
    entities.write_text(entities.read_text().replace("paid: boolean", "paid: {type: boolean, private: true}"))
    (line,) = shop.calls(record(look("PAID", paid=False), ship("PAID")))
    assert all("value" not in seen for policy in line["policies"] for seen in policy.get("seen", []))


def test_a_log_whose_calls_stand_in_an_unknown_shape_is_no_clean_audit(tmp_path: Path) -> None:
    hidden = {"role": "assistant", "content": "", "actions": [{"tool": "close_account", "with": {"customer_id": "C1"}}]}
    good = talk("good", "Hello.", "Hello!")
    odd = {"id": "odd", "messages": [{"role": "user", "content": "Close C1."}, hidden]}
    write_desk(tmp_path, [good, odd])
    said = bylaw(tmp_path, "audit", "logs.jsonl", "--pack", "pack", "--fail-on", "violation", status=3)
    assert "message 1 has a field that cannot be read: `actions`" in " ".join(said.split())
    (skipped,) = json.loads((tmp_path / "out/summary.json").read_text())["skipped"]
    assert "logs.jsonl:2" in skipped["place"]
