"""Runs SQL over an audit's tables with DuckDB, with convenient views and built-in queries."""

import importlib
import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.audit.batch.tables import TABLES
from bylaw.audit.output import TABLES as FOLDER
from bylaw.audit.output import has_tables
from bylaw.errors import UsageError

_QUERIES = Path(__file__).with_name("queries")
_PLACES = {"strict": 3, "determined": 4}
"""The 1-based position of each criterion's verdict in an entry of `policies_json`."""
_VERDICTS = "('near_miss', 'uninformed')"


class ReadyQuery(Struct, frozen=True):
    name: str
    about: str
    text: str

    @property
    def needs_base(self) -> bool:
        """Whether the query compares the audit with an earlier audit."""
        return "base." in self.text


def ready_queries() -> dict[str, ReadyQuery]:
    """Return all built-in queries, keyed by name. Each query begins with a line that describes it."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(_QUERIES.glob("*.sql"))}
    return {name: ReadyQuery(name, text.partition("\n")[0].removeprefix("-- "), text) for name, text in found.items()}


class Tables:
    """The tables of an audit and, for comparisons, of an earlier audit."""

    def __init__(self, out: Path, *, base: Path | None = None) -> None:
        self._duckdb = _duckdb()
        self._database: Any = self._duckdb.connect()
        if base is not None:
            self._database.execute("CREATE SCHEMA base")
            self._add(base, "base.")
        self._add(out, "")

    def query(self, text: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Run a query, and return the column names and the rows."""
        try:
            found = self._database.execute(text)
            return [column[0] for column in found.description or ()], found.fetchall() if found.description else []
        except self._duckdb.Error as error:
            why = " ".join([line for line in str(error).splitlines() if line.strip()][:2])
            hint = "`bylaw sql --list` shows the built-in queries"
            raise UsageError(f"the query failed: {why}", hint=hint) from None

    def _add(self, out: Path, schema: str) -> None:
        if not has_tables(out):
            raise UsageError(
                "this folder has no tables",
                place=str(out),
                hint="create them with `bylaw audit LOGS --pack PACK --format parquet`",
            )
        record: dict[str, Any] = json.loads((out / FOLDER / "schema.json").read_bytes())
        criterion = "strict" if record["criterion"] == "strict" else "determined"
        kinds = {"day": "DATE", "agent": "VARCHAR"}
        types = ", ".join(f"'{name}': {kinds[name]}" for name in record["partitioned_by"] if name in kinds)
        member = f"{{policy: x[1], severity: x[2], verdict: x[{_PLACES[criterion]}]}}"
        self._database.execute(
            f"CREATE MACRO {schema}policies_of(coded) AS"
            f""" list_transform(from_json(coded, '[["VARCHAR"]]'), lambda x: {member})"""
        )
        for table in TABLES:
            files = str((out / FOLDER / table / "**" / "*.parquet").absolute()).replace("'", "''")
            rows = f"read_parquet('{files}', hive_partitioning = true, hive_types = {{{types}}}, union_by_name = true)"
            lacking = TABLES[table].keys() - record["tables"][table]["columns"].keys()
            columns = _columns(table, criterion, lacking)
            self._database.execute(f"CREATE VIEW {schema}{table} AS SELECT {columns} FROM {rows}")


def _columns(table: str, criterion: str, lacking: Collection[str]) -> str:
    """Return the columns of a view: those of the table, and those that depend on the criterion.

    If the audit is older than a column, the column is null.
    """
    listed = ", ".join(f'NULL AS "{name}"' if name in lacking else f'"{name}"' for name in TABLES[table])
    match table:
        case "conversations":
            violated = "violated" if criterion == "determined" else "violated_strict"
            has = f"list_contains({criterion}, 'violation')"
            # Count a near-miss if the outcome was good. If the outcome is unknown, count it unless there was a
            # violation.
            return (
                f"{listed}, {has} AS violation,"
                f" list_contains({criterion}, 'near_miss') AND coalesce(outcome, NOT {has}) AS near_miss,"
                f" list_contains({criterion}, 'uninformed') AS uninformed, len(rules) > 0 AS broken_rule,"
                f" {violated} AS severities"
            )
        case "calls" | "findings":
            members = "{policy: x.policy, severity: x.severity, verdict: x." + criterion + "}"
            shown = listed.replace('"policies"', f"list_transform(policies, lambda x: {members}) AS policies")
            undecided = f", {criterion} = 'inconclusive' OR coalesce(open_rules, 0) > 0 AS undecided"
            return f"{shown}, {criterion} AS verdict{undecided if table == 'calls' else ''}"
        case "missing_facts":
            lacks = " AND ".join(f"{name} IN {_VERDICTS}" for name in (criterion, f"policy_{criterion}"))
            decides = " AND decisive IS NOT FALSE" if criterion == "determined" else ""
            return f"{listed}, executed IS NOT FALSE AND {lacks}{decides} AS counts, {criterion} AS verdict"
        case _:
            return listed


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ModuleNotFoundError:
        raise UsageError("queries need DuckDB", hint="install `bylaw[sql]`") from None
