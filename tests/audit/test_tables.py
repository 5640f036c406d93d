"""Audit tables: the same rows as its lines, however the work was shared out, cut short and taken up again."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.batch.run import Outcome, audit_in_shards, code_digest
from bylaw.audit.batch.shard import Job
from bylaw.audit.batch.tables import TABLES, arrow_schema
from bylaw.audit.request import Request
from bylaw.audit.run import audit
from bylaw.errors import UsageError
from bylaw.pack import Criterion
from tests.audit.desk import SECRETS, everything, secretive, spellings, write_desk
from tests.audit.logs import CAREFUL, HASTY, WRONG, Shop, call, look, record, ship, user, write_logs
from tests.audit.sharded import LINES, Inline, Killed, rows, sharded, table, written
from tests.command import bylaw

pytest.importorskip("pyarrow")

TIMED = [message | {"timestamp": f"2025-05-0{day}T10:00:00Z"} for day, message in enumerate(user("Ship PAID."), 7)]


def talks() -> list[Any]:
    """Ids that come again, agents, days, outcomes, an unknown tool, a refusal, a line that cannot be read."""
    found: list[Any] = []
    for number in range(2):
        found += [
            record(*CAREFUL, id="same", agent="ann", outcome=True),
            record(*HASTY, id=f"h{number}", agent="bob", outcome=number % 2 == 0),
            record(*WRONG),
            record(TIMED, ship("PAID"), ship("OPEN"), ship("PAID"), id="same", agent="bob/2 (x)"),
            record(user("?"), call("nobody_knows", {"a": 1}), id="same~2", agent="ann"),
            record(user("?"), look("OPEN", paid=False), ship("OPEN", "Error: no"), agent="ann"),
            "{not JSON",
        ]
    return found


@pytest.fixture
def logs(shop: Shop) -> list[Path]:
    one = shop.logs(*talks(), name="one.jsonl")
    two = shop.root / "two.json"
    two.write_text(json.dumps([each for each in talks() if not isinstance(each, str)]))
    return [one, two]


def small(shop: Shop, logs: list[Path]) -> dict[str, bytes]:
    out = audit(Request(tuple(logs), str(shop.pack), shop.world), shop.root / "small").out
    return {name: (out / name).read_bytes() for name in LINES}


@pytest.mark.parametrize("size", [1, 1000, 5000, 1 << 30])
def test_lines_are_those_of_the_small_audit_to_the_byte(shop: Shop, logs: list[Path], size: int) -> None:
    want = small(shop, logs)
    out = sharded(logs, str(shop.pack), shop.root / "out", size=size, world=shop.world).out
    assert {name: (out / name).read_bytes() for name in LINES} == want
    assert b'"same~2~2"' in want["calls.jsonl"]


def test_rows_do_not_depend_on_shards_or_their_order(clinic: Path, tmp_path: Path) -> None:
    world = clinic.with_name("clinic.sqlite")
    want = sharded([clinic], "clinic", tmp_path / "whole", size=1 << 30, world=world).out
    got = sharded([clinic], "clinic", tmp_path / "parts", size=18000, world=world, engine=Inline(backwards=True)).out
    for name in TABLES:
        assert rows(got, name) == rows(want, name)
        assert rows(got, name), f"no row of {name} is compared"


def test_a_row_of_calls_tells_what_its_line_tells(shop: Shop, logs: list[Path]) -> None:
    out = sharded(logs, str(shop.pack), shop.root / "out", world=shop.world).out
    lines = [json.loads(line) for line in (out / "calls.jsonl").read_bytes().splitlines()]
    found = rows(out, "calls")
    assert len(found) == len(lines)
    for row, line in zip(found, lines, strict=True):
        named = {"trajectory": row["conversation"]} | ({"finding": row["finding"]} if row["finding"] else {})
        if line["strict"] == line["determined"] == "compliant" and not line["rules"] and not line["open_rules"]:
            assert row["record"] is None
        else:
            assert json.loads(row["record"]) | named == line
        assert row["open_rules"] == len(line["open_rules"])
        for name in ("agent", "step", "tool", "call_id", "executed", "strict", "determined"):
            assert row[name] == line[name]
        told = ("id", "severity", "strict", "determined")
        want = [[p[n] for n in told] for p in line["policies"]]
        assert [list(each.values()) for each in row["policies"]] == want
        assert json.loads(row["policies_json"]) == want


def test_a_killed_run_is_taken_up_where_it_was(shop: Shop, logs: list[Path]) -> None:
    everything = Inline()
    want = sharded(logs, str(shop.pack), shop.root / "whole", size=1800, world=shop.world, engine=everything).out
    out, judged = shop.root / "out", 0
    for ends_after in (2, 0, 3):
        engine = Inline(ends_after=ends_after)
        with pytest.raises(Killed):
            sharded(logs, str(shop.pack), out, size=1800, world=shop.world, engine=engine)
        judged += len(engine.judged)
        assert not (out / "summary.json").exists()
    engine = Inline()
    sharded(logs, str(shop.pack), out, size=1800, world=shop.world, engine=engine)
    assert judged == 5
    assert len(engine.judged) == len(everything.judged) - judged > 0
    assert written(out) == written(want)


def test_parts_of_another_pack_world_or_log_are_not_taken_up(shop: Shop, logs: list[Path]) -> None:
    out = shop.root / "out"
    with pytest.raises(Killed):
        sharded(logs, str(shop.pack), out, size=1800, world=shop.world, engine=Inline(ends_after=3))
    engine = Inline()
    sharded(logs, str(shop.pack), out, size=1800, engine=engine)
    assert len(engine.judged) > 3
    assert json.loads((out / "summary.json").read_bytes())["world"] == "hindsight"
    with pytest.raises(Killed):
        sharded(logs, str(shop.pack), out, size=1800, world=shop.world, engine=Inline(ends_after=3))
    logs[0].write_bytes(logs[0].read_bytes().replace(b"PAID", b"OPEN"))
    sharded(logs, str(shop.pack), out, size=1800, world=shop.world)
    fresh = sharded(logs, str(shop.pack), shop.root / "fresh", size=1800, world=shop.world).out
    assert written(out) == written(fresh)


def test_parts_that_other_code_judged_are_not_taken_up(
    shop: Shop, logs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Killed):
        sharded(logs, str(shop.pack), shop.root / "out", size=1800, engine=Inline(ends_after=3))
    package = shop.root / "edited"
    (package / "engine").mkdir(parents=True)
    (package / "engine" / "verdict.py").write_text("STRICT = True\n")
    before = code_digest(package)
    (package / "engine" / "verdict.py").write_text("STRICT = None\n")
    assert code_digest(package) != before
    monkeypatch.setattr("bylaw.audit.batch.run.own_code", lambda: code_digest(package))
    edited, whole = Inline(), Inline()
    sharded(logs, str(shop.pack), shop.root / "out", size=1800, engine=edited)
    sharded(logs, str(shop.pack), shop.root / "whole", size=1800, engine=whole)
    assert len(edited.judged) == len(whole.judged)


def test_a_bad_shard_is_named_the_rest_stands_and_only_it_is_tried_again(shop: Shop, logs: list[Path]) -> None:
    class Second(Inline):
        def run(self, job: Job, shards: Any) -> Any:
            kept: list[Any] = []
            every = (shard for shard in shards if shard.number != 1 or kept.append(shard))
            yield from super().run(job, every)
            yield from (Outcome(shard, why="its worker was lost") for shard in kept)

    out = shop.root / "out"
    report = sharded(logs, str(shop.pack), out, size=1800, world=shop.world, engine=Second())
    assert [fault for fault in report.skipped if "set aside: its worker was lost" in fault.message]
    assert "one.jsonl (bytes " in next(f.place for f in report.skipped if "aside" in f.message)
    engine = Inline()
    report = sharded(logs, str(shop.pack), out, size=1800, world=shop.world, engine=engine)
    assert [shard.number for shard in engine.judged] == [1]
    whole = sharded(logs, str(shop.pack), shop.root / "whole", size=1800, world=shop.world).out
    assert written(out) == written(whole)


def test_tables_are_typed_versioned_and_by_day(shop: Shop, logs: list[Path]) -> None:
    out = sharded(logs, str(shop.pack), shop.root / "out", world=shop.world).out
    note = json.loads((out / "tables" / "schema.json").read_bytes())
    assert note["schema"] == "bylaw.tables/1"
    assert note["partitioned_by"] == ["day"]
    for name, columns in TABLES.items():
        assert note["tables"][name] == {"rows": len(rows(out, name)), "columns": columns}
        found = table(out, name).schema
        want = arrow_schema(name)
        assert [f.name for f in found] == [f.name for f in want]
        assert all(f.type == found.field(f.name).type for f in want)
    assert (out / "tables" / "calls" / "day=2025-05-07").is_dir()
    assert {row["agent"] for row in rows(out, "calls")} == {"ann", "bob", "bob/2 (x)", "one", "two"}


def test_the_page_says_how_to_open_tables_without_days_and_with_agents_that_are_numbers(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = [record(*HASTY, id=f"t{n}", agent=name) for n, name in enumerate(("7", "007"))]
    sharded([write_logs(shop.root / "log.jsonl", talks)], str(shop.pack), shop.root / "out", world=shop.world)
    page = (Path(__file__).parents[2] / "docs" / "reference" / "tables.md").read_text(encoding="utf-8")
    (lines,) = re.findall(r"```python\n(import pyarrow as pa\n.*?)```", page, re.DOTALL)
    monkeypatch.chdir(shop.root)
    names: dict[str, Any] = {}
    exec(lines, names)
    assert sorted(names["calls"].column("agent").to_pylist()) == ["007", "7"]
    assert set(names["calls"].column("day").to_pylist()) == {None}


def test_an_audit_without_findings_has_tables_that_open(shop: Shop) -> None:
    logs = shop.logs(record(*CAREFUL))
    out = sharded([logs], str(shop.pack), shop.root / "out", world=shop.world).out
    assert rows(out, "findings") == rows(out, "missing_facts") == []
    assert len(rows(out, "calls")) == 1


def test_many_agents_are_a_column_and_no_folders(shop: Shop) -> None:
    logs = shop.logs(*(record(*HASTY, agent=f"a{number}") for number in range(60)))
    out = sharded([logs], str(shop.pack), shop.root / "out", world=shop.world).out
    assert json.loads((out / "tables" / "schema.json").read_bytes())["partitioned_by"] == ["day"]
    assert [row["agent"] for row in rows(out, "conversations")] == [f"a{number}" for number in range(60)]


def test_redacted_tables_hold_no_secret(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    logs = write_desk(tmp_path, secretive() * 2)
    out = tmp_path / "out"
    sharded([logs], str(tmp_path / "pack"), out, size=1500, world=tmp_path / "world.json", key=b"k" * 32)
    audit(Request((logs,), str(tmp_path / "pack"), tmp_path / "world.json", key=b"k" * 32), tmp_path / "small")
    for name in LINES:
        assert (out / name).read_bytes() == (tmp_path / "small" / name).read_bytes()
    texts = [str(pq.read_table(path).to_pylist()).encode() for path in (out / "tables").rglob("*.parquet")]
    texts += [str(path).encode() for path in out.rglob("*")] + list(everything(out).values())
    for secret in SECRETS:
        for spelt in spellings(secret):
            assert not any(spelt in text for text in texts), spelt
    assert not any(b"desk-bot" in text for text in texts)


def test_a_folder_of_somebody_elses_is_left_alone(shop: Shop) -> None:
    logs = shop.logs(record(*HASTY))
    mine = shop.root / "out" / "tables" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(UsageError, match="was not written by an audit"):
        sharded([logs], str(shop.pack), shop.root / "out")
    audit(Request((logs,), str(shop.pack)), shop.root / "out")
    audit(Request((logs,), str(shop.pack)), shop.root / "out")
    assert mine.read_text() == "mine"


def test_lines_take_the_place_of_tables_and_tables_of_lines(shop: Shop) -> None:
    logs, out = shop.logs(record(*HASTY)), shop.root / "out"
    audit(Request((logs,), str(shop.pack)), out)
    audit_in_shards(Request((logs,), str(shop.pack)), out, Inline())
    assert sorted(path.name for path in out.iterdir()) == ["policies.json", "summary.json", "tables"]
    audit(Request((logs,), str(shop.pack)), out)
    assert sorted(path.name for path in out.iterdir()) == sorted(LINES)


def test_the_status_counts_findings_of_tables(shop: Shop) -> None:
    from bylaw.audit.store import Store

    logs = shop.logs(*talks())
    out = sharded([logs], str(shop.pack), shop.root / "out", world=shop.world).out
    tables = audit_in_shards(Request((logs,), str(shop.pack), shop.world), shop.root / "tables", Inline()).out
    criteria: tuple[Criterion, ...] = ("strict", "determined")
    for criterion in criteria:
        want = {each.id: each for each in Store(out).findings(criterion)}
        found = {each.id: each for each in Store(tables).findings(criterion)}
        assert found
        assert found.keys() == want.keys()
        for id, each in found.items():
            assert each.record() == want[id].record()
            assert each.charges == want[id].charges


def test_the_reference_names_every_column() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "tables.md").read_text(encoding="utf-8")
    told: dict[str, dict[str, str]] = {}
    for line in page.partition("<!-- tables -->")[2].partition("<!-- end -->")[0].splitlines():
        if line.startswith("## "):
            told[line[3:]] = {}
        elif line.startswith("| `"):
            names, kinds = (cell.replace("`", "").strip().split(", ") for cell in line.split("|")[1:3])
            told[next(reversed(told))].update(zip(names, kinds, strict=True))
    assert {table: list(columns.items()) for table, columns in told.items()} == {
        table: list(columns.items()) for table, columns in TABLES.items()
    }


def test_a_pack_that_knows_none_of_the_tools_is_refused_in_shards_too(shop: Shop) -> None:
    logs = shop.logs(record(user("?"), call("nobody_knows", {})))
    with pytest.raises(UsageError, match="declares none of the tools"):
        sharded([logs], str(shop.pack), shop.root / "out")


def test_explain_says_the_same_of_tables_as_of_lines(shop: Shop) -> None:
    logs = shop.logs(record(*HASTY, id="t1"), record(*CAREFUL, id="t2"))
    audit(Request((logs,), str(shop.pack), shop.world), shop.root / "lines")
    audit_in_shards(Request((logs,), str(shop.pack), shop.world), shop.root / "tables", Inline())
    for named in ((), ("t1",)):
        told = [bylaw(shop.root, "explain", each, *named).stdout.replace(each, "OUT") for each in ("lines", "tables")]
        assert told[0] == told[1]
        assert told[0]
    assert "compliant" in bylaw(shop.root, "explain", "tables", "t2").stdout


def test_a_report_of_tables_is_that_of_lines(clinic: Path, tmp_path: Path) -> None:
    world = clinic.with_name("clinic.sqlite")
    out = sharded([clinic], "clinic", tmp_path / "out", world=world, size=5000).out
    assert bylaw(tmp_path, "report", "out", "--to", "lines.html").returncode == 0
    for name in ("calls.jsonl", "conversations.jsonl", "findings.jsonl"):
        (out / name).unlink()
    assert bylaw(tmp_path, "report", "out", "--to", "tables.html").returncode == 0
    assert (tmp_path / "tables.html").read_bytes() == (tmp_path / "lines.html").read_bytes()


@pytest.mark.usefixtures("quick_workers")
def test_the_command_writes_tables_and_says_where(shop: Shop) -> None:
    logs = shop.logs(*talks())
    done = bylaw(shop.root, "audit", logs.name, "--pack", "pack", "--world", "world.json", "--format", "parquet")
    assert done.returncode == 3, done.stderr
    assert "Wrote out/summary.json, tables/" in done.stdout
    for options, said in (
        (("--address", "here:1"), "add --engine ray"),
        (("--shard-size", "3"), "not a size of at least 1K"),
    ):
        done = bylaw(shop.root, "audit", logs.name, "--pack", "pack", *options)
        assert done.returncode == 2
        assert said in done.stderr


def test_tables_of_several_row_groups_open_and_hold_the_same(
    shop: Shop, logs: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    want = sharded(logs, str(shop.pack), shop.root / "want", size=1 << 30, world=shop.world).out
    # Row groups of parts and of tables whose words differ from one to the next.
    monkeypatch.setattr("bylaw.audit.batch.shard.HELD", 2)
    for size in ("MERGED", "GROUP"):
        monkeypatch.setattr(f"bylaw.audit.batch.tables.{size}", 2)
    out = sharded(logs, str(shop.pack), shop.root / "out", size=1 << 30, world=shop.world).out
    assert written(out) == written(want)
    groups = [pq.ParquetFile(file).num_row_groups for file in (out / "tables" / "calls").rglob("*.parquet")]
    assert max(groups) > 1
    for file in (out / "tables").rglob("*.parquet"):
        pq.read_table(file)
