"""`bylaw sql`: what it counts is what the summary counts."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.batch.query import Tables, ready_queries
from bylaw.audit.batch.tables import TABLES
from tests.audit.logs import CAREFUL, HASTY, Shop, record
from tests.audit.sharded import rows, sharded
from tests.command import bylaw

pytest.importorskip("duckdb")
pytest.importorskip("pyarrow")
CRITERIA = ("determined", "strict")


@pytest.fixture(scope="module", params=CRITERIA)
def out(request: pytest.FixtureRequest, clinic: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The clinic's demo conversations, audited by one criterion."""
    folder = tmp_path_factory.mktemp("out")
    world = clinic.with_name("clinic.sqlite")
    return sharded([clinic], "clinic", folder, size=30_000, world=world, criterion=request.param).out


def summary(out: Path) -> dict[str, Any]:
    return json.loads((out / "summary.json").read_bytes())


def answered(out: Path, query: str, **options: Any) -> list[dict[str, Any]]:
    names, found = Tables(out, **options).query(ready_queries()[query].text if " " not in query else query)
    return [dict(zip(names, row, strict=True)) for row in found]


def test_rates_by_agent_are_those_of_the_summary(out: Path) -> None:
    found = summary(out)
    want = {
        row["agent"]: (
            row["trajectories"],
            row[found["criterion"]]["violation_rate"]["count"],
            row[found["criterion"]]["near_miss_rate"]["count"],
            row["rule_rate"]["count"],
        )
        for row in found["agents"]
    }
    names = ("conversations", "violations", "near_misses", "broken_rules")
    assert {row["agent"]: tuple(row[name] for name in names) for row in answered(out, "rates-by-agent")} == want
    assert sum(count for _, count, _, _ in want.values()) > 0


def test_verdicts_by_tool_and_policy_are_those_of_the_summary(out: Path) -> None:
    found = summary(out)
    criterion = found["criterion"]
    verdicts = ("violation", "near_miss", "uninformed", "inconclusive", "compliant")
    by_tool = {row["tool"]: {name: row[name] for name in verdicts} for row in answered(out, "rates-by-tool")}
    assert by_tool == {tool: row[criterion] for tool, row in found["by_tool"].items() if row["executed"]}
    by_policy: dict[str, list[int]] = {}
    for row in answered(out, "rates-by-policy"):
        counts = by_policy.setdefault(row["policy"], [0, 0])
        counts[0] += row["calls"]
        counts[1] += row["violations"] or 0
    want = {name: [row["applied"], row[criterion]["violation"]] for name, row in found["by_policy"].items()}
    assert by_policy == {name: counts for name, counts in want.items() if counts[0]}


@pytest.mark.parametrize("written", ["all", "half"])
def test_tables_from_before_policies_had_a_word_count_the_same(out: Path, tmp_path: Path, written: str) -> None:
    """Those of an earlier version, and those that a newer one has added to."""
    want = answered(out, "rates-by-policy")
    older = Path(shutil.copytree(out, tmp_path / "older"))
    (file,) = (older / "tables" / "calls").rglob("*.parquet")
    parquet = pytest.importorskip("pyarrow.parquet")
    whole = parquet.ParquetFile(file).read()
    half = whole.num_rows if written == "all" else whole.num_rows // 2
    parquet.write_table(whole.slice(0, half).drop_columns(["policies_json"]), file)
    parquet.write_table(whole.slice(half), file.with_name("part-1.parquet"))
    if written == "all":
        note = json.loads((older / "tables" / "schema.json").read_bytes())
        del note["tables"]["calls"]["columns"]["policies_json"]
        (older / "tables" / "schema.json").write_text(json.dumps(note))
    assert answered(older, "rates-by-policy") == want
    assert answered(out, "new-findings", base=older) == []


def test_the_word_for_policies_tells_the_same_as_their_list(out: Path) -> None:
    query = "SELECT policies_of(policies_json) AS told, policies FROM calls"
    assert all(row["told"] == row["policies"] for row in answered(out, query))


def test_missing_look_ups_are_those_of_the_summary(out: Path) -> None:
    found = summary(out)
    want = {name: row[found["criterion"]] for name, row in found["by_lookup"].items() if row[found["criterion"]]}
    assert {row["lookup"]: row["calls"] for row in answered(out, "missing-look-ups")} == want


@pytest.mark.parametrize("name", ready_queries())
def test_every_ready_query_runs_and_says_what_it_is_about(out: Path, name: str) -> None:
    query = ready_queries()[name]
    assert query.about.endswith(".")
    answered(out, name, base=out)


def test_new_findings_are_those_that_the_base_lacks(shop: Shop) -> None:
    logs = shop.logs(record(*HASTY, id="old"), record(*CAREFUL, id="fine"))
    base = sharded([logs], str(shop.pack), shop.root / "base", world=shop.world).out
    logs = shop.logs(record(*HASTY, id="new"), record(*HASTY, id="old"))
    now = sharded([logs], str(shop.pack), shop.root / "now", world=shop.world).out
    assert [row["conversation"] for row in answered(now, "new-findings", base=base)] == ["new"]
    assert [row["conversation"] for row in answered(base, "new-findings", base=now)] == []


def test_views_hold_the_rows_of_the_tables(out: Path) -> None:
    for name in TABLES:
        assert answered(out, f"SELECT count(*) AS n FROM {name}") == [{"n": len(rows(out, name))}]


def test_the_command_prints_tables_csv_and_lines(out: Path) -> None:
    query = (
        "SELECT agent, count(*) AS n, list(DISTINCT tool ORDER BY tool) AS tools FROM calls GROUP BY agent ORDER BY 1"
    )
    want = answered(out, query)
    done = bylaw(out, "sql", ".", query, "--to", "jsonl")
    assert [json.loads(line) for line in done.stdout.splitlines()] == want
    done = bylaw(out, "sql", ".", query, "--to", "csv")
    assert [row["n"] for row in csv.DictReader(io.StringIO(done.stdout))] == [str(row["n"]) for row in want]
    done = bylaw(out, "sql", ".", "rates-by-agent")
    assert done.returncode == 0
    assert all(row["agent"] in done.stdout for row in want)
    listed = bylaw(out, "sql", "--list").stdout
    assert all(name in listed for name in ready_queries())
    assert bylaw(out, "sql", "--list", "rates-by-tool").stdout.startswith("-- Per tool")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((".", "SELECT nothing FROM calls"), "the query failed: Binder Error"),
        ((".", "no-such"), "no built-in query `no-such`; known:"),
        ((".", "new-findings"), "pass the folder of the earlier audit with --base"),
        (("nowhere", "rates-by-tool"), "this folder has no tables"),
        ((), "pass the folder of an audit and a query"),
    ],
)
def test_what_cannot_be_asked_is_told_in_a_line(out: Path, arguments: tuple[str, ...], said: str) -> None:
    done = bylaw(out, "sql", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
