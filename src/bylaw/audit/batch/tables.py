"""The Parquet tables of an audit: their columns, how they are read and written, and nightly updates.

docs/reference/tables.md describes the columns. The tables of a shard have one additional column.
"""

import heapq
import importlib
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from bylaw.audit.output import BUFFER, TABLES_SCHEMA, dump
from bylaw.audit.output import TABLES as FOLDER
from bylaw.audit.row import (
    FLAGGED,
    SEVERITIES,
    CallRow,
    Charge,
    Examined,
    Finding,
    JsonRecord,
    PolicyRow,
    RuleRow,
    encode,
    finding_id,
    named,
    writable,
)
from bylaw.errors import UsageError
from bylaw.pack import Criterion
from bylaw.trace import Identities
from bylaw.trace.recorded_value import utc

PARTITIONED = ("day",)
"""The columns that divide a table into folders. Dividing by agent too would create thousands of small files."""
KEY = "_key"
"""A column that only shards' tables have: the key of a finding's id, which is needed if the conversation is renamed."""
BATCH = 1 << 14
"""The number of rows read at a time."""
GROUP = 1 << 16
"""The maximum number of rows in a row group."""
FILE = 1 << 22
"""The maximum number of rows in a file."""
OPEN = 200
"""The maximum number of open files."""
MERGED = 512
"""The number of rows to hold in memory per open file."""
COUNTS = "counts"
"""An internal table of nightly runs: each conversation's counts, as JSON."""

_SHARED = {"conversation": "text", "ordinal": "long", "day": "day", "agent": "text", "step": "integer"}
_VERDICTS = {"strict": "word", "determined": "word"}
TABLES: Final[dict[str, dict[str, str]]] = {
    "conversations": {
        "conversation": "text",
        "ordinal": "long",
        "day": "day",
        "agent": "text",
        "file": "word",
        "position": "long",
        "pack": "word",
        "started": "time",
        "ended": "time",
        "outcome": "truth",
        "outcome_source": "word",
        "calls": "integer",
        "writes": "truth",
        "strict": "words",
        "determined": "words",
        "violated": "words",
        "violated_strict": "words",
        "rules": "words",
        "record": "text",
    },
    "calls": _SHARED
    | {"call_id": "text", "tool": "word", "executed": "truth"}
    | _VERDICTS
    | {"finding": "text", "because": "text", "policies": "policies", "record": "text", "policies_json": "word"}
    | {"open_rules": "integer", "settled_by": "word", "settled_because": "text"},
    "findings": {"finding": "text", "kind": "word", "name": "word"}
    | _SHARED
    | {"executed": "truth"}
    | _VERDICTS
    | {"severity": "word", "policies": "charges", "because": "text", "record": "text"},
    "open_questions": _SHARED
    | {"tool": "word", "executed": "truth", "kind": "word", "policy": "word", "rule": "word"}
    | {"fact": "text", "question": "text", "because": "text"},
    "missing_facts": _SHARED
    | {"tool": "word", "executed": "truth"}
    | _VERDICTS
    | {"policy": "word", "severity": "word", "policy_strict": "word", "policy_determined": "word"}
    | {"entity": "word", "key": "texts", "field": "word", "reason": "word", "lookup": "word", "lookup_args": "text"}
    | {"claim": "text", "claimed_at": "integer", "stale_by": "integer", "decisive": "truth"},
}
"""The columns of each table, in order, with the kind of each column."""
_COLUMNS = TABLES | {COUNTS: {"ordinal": "long", "day": "day", "counts": "text"}}
_NESTED: Final[dict[str, tuple[str, ...]]] = {
    "policies": ("policy", "severity", "strict", "determined"),
    "charges": ("policy", "severity", "strict", "determined", "because"),
}
"""The fields of each entry in the `policies` list."""
_UNIQUE = ("conversation", "ordinal", "position", "finding", "record")
"""Columns whose values rarely repeat. They have no dictionary, because it would double the size of the files."""


def _leaves(column: str, kind: str) -> list[str]:
    if kind in _NESTED:
        return [f"{column}.list.element.{member}" for member in _NESTED[kind]]
    return [f"{column}.list.element" if kind in ("texts", "words") else column]


_CODED = sorted(
    {
        path
        for columns in _COLUMNS.values()
        for column, kind in columns.items()
        if column not in _UNIQUE
        for path in _leaves(column, kind)
    }
)
WRITTEN: Final[JsonRecord] = {"compression": "zstd", "use_dictionary": _CODED}


def arrow(part: str = "") -> Any:
    """Return pyarrow or one of its modules. Raise UsageError if it is not installed."""
    name = f"pyarrow.{part}" if part else "pyarrow"
    try:
        return sys.modules.get(name) or importlib.import_module(name)
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow", hint="install `bylaw[parquet]`") from None


def arrow_schema(table: str, *, in_part: bool = False) -> Any:
    """Return the Arrow schema of a table."""
    pa = arrow()
    columns = _COLUMNS[table] | ({KEY: "text"} if in_part and "finding" in _COLUMNS[table] else {})
    return pa.schema([(name, _arrow_type(kind)) for name, kind in columns.items()])


def _arrow_type(kind: str) -> Any:
    """Return the Arrow type for a kind of column.

    Columns with few distinct strings are dictionary-encoded. Inside lists, only Parquet encodes the strings, because
    pyarrow cannot read lists whose dictionary changes between row groups.
    """
    pa = arrow()
    types = {
        "text": pa.string(),
        "word": pa.dictionary(pa.int32(), pa.string()),
        "integer": pa.int32(),
        "long": pa.int64(),
        "truth": pa.bool_(),
        "day": pa.date32(),
        "time": pa.timestamp("us", "UTC"),
        "texts": pa.list_(pa.string()),
        "words": pa.list_(pa.string()),
    }
    return types.get(kind) or pa.list_(pa.struct([(name, pa.string()) for name in _NESTED[kind]]))


_calls = msgspec.json.Decoder(CallRow)
_rules = msgspec.json.Decoder(RuleRow)


class Rows:
    """Collects the rows of conversations until they are written.

    The rows are made from the lines of `calls.jsonl`, so private values are already hidden.
    """

    def __init__(self, severities: Mapping[str, str]) -> None:
        self._severities = severities
        """The severity of each policy."""
        self._rows: dict[str, list[JsonRecord]] = {name: [] for name in _COLUMNS}

    def __len__(self) -> int:
        return len(self._rows["conversations"])

    def take(self, *, in_part: bool = True) -> Iterator[tuple[str, Any]]:
        """Yield the non-empty tables as Arrow tables, and clear them."""
        for name, rows in self._rows.items():
            if rows:
                yield name, arrow().Table.from_pylist(rows, schema=arrow_schema(name, in_part=in_part))
                self._rows[name] = []

    def add_counts(self, ordinal: int, day: date | None, counts: Mapping[str, Any]) -> None:
        """Add the counts of a conversation.

        Times are left out, so that the counts of similar conversations are equal.
        """
        text = json.dumps({**counts, "times": []}, separators=(",", ":"))
        self._rows[COUNTS].append({"ordinal": ordinal, "day": day, "counts": text})

    def add(self, part: Examined, ordinal: int) -> date | None:
        """Add a conversation, named as in its log. Return its day."""
        conversation, head = writable(part.id), asdict(part.head)
        started, ended = utc(part.head.started), utc(part.head.ended)
        day = started.date() if started is not None else None
        shared = {"conversation": conversation, "ordinal": ordinal, "day": day, "agent": part.head.agent}
        record = part.conversation.decode() if part.conversation is not None else None
        times = {"started": started, "ended": ended}
        self._rows["conversations"].append(shared | head | times | {"calls": len(part.calls), "record": record})
        for key, flagged, line in part.numbered_calls():
            finding = {"finding": finding_id(conversation, key) if flagged else None, KEY: key}
            self._add_call(shared, finding, line, flagged=flagged)
        for key, line in part.numbered_rules():
            rule = _rules.decode(line)
            charge = PolicyRow(
                id=rule.policy,
                severity=self._severities.get(rule.policy, "medium"),
                strict="violation",
                determined="violation",
                because=rule.because,
            )
            row = {"step": rule.step, "kind": "rule", "name": rule.rule, "strict": "violation"}
            row |= {"determined": "violation", "because": rule.because, "record": line.decode()}
            finding = {"finding": finding_id(conversation, key), KEY: key}
            self._rows["findings"].append(shared | finding | row | _charged([charge]))
        return day

    def _add_call(self, shared: JsonRecord, finding: JsonRecord, line: bytes, *, flagged: bool) -> None:
        call = _calls.decode(line)
        made = shared | {"step": call.step, "tool": call.tool, "executed": call.executed}
        verdicts = {"strict": call.strict, "determined": call.determined}
        policies = [_record(policy, "policies") for policy in call.policies]
        row = {
            "call_id": call.call_id,
            "because": call.because or None,
            "policies": policies,
            "policies_json": encode([[*policy.values()] for policy in policies]).decode(),
            "record": None if call.is_plain else line.decode(),
            "open_rules": len(call.open_rules),
            **_settled(call),
        }
        self._rows["calls"].append(made | verdicts | finding | row)
        if flagged:
            charged = [p for p in call.policies if p.strict in FLAGGED or p.determined in FLAGGED]
            because = call.because or "; ".join(filter(None, (p.because for p in charged)))
            row = {"kind": "call", "name": call.tool, "because": because}
            self._rows["findings"].append(made | verdicts | finding | row | _charged(charged))
        for policy in call.policies:
            self._rows["open_questions"] += (
                made | {"kind": "fact", "policy": policy.id, "because": policy.because} | asdict(ask)
                for ask in policy.asks
            )
            judged = {"policy_strict": policy.strict, "policy_determined": policy.determined}
            for fact in policy.missing:
                of_fact: JsonRecord = asdict(fact) | {
                    "key": None if fact.key is None else [str(part) for part in fact.key],
                    "lookup": fact.lookup.tool if fact.lookup is not None else None,
                    "lookup_args": encode(fact.lookup.args).decode() if fact.lookup is not None else None,
                    "claim": fact.claim or None,
                }
                of_policy = {"policy": policy.id, "severity": policy.severity}
                self._rows["missing_facts"].append(made | verdicts | of_policy | judged | of_fact)
        self._rows["open_questions"] += (
            made | {"kind": "rule", "policy": rule.policy, "rule": rule.rule, "because": rule.because}
            for rule in call.open_rules
        )


def _settled(call: CallRow) -> JsonRecord:
    """Return who settled an undecided call, and the reason given. A reviewer takes precedence over a model."""
    answers = [each for each in call.answered or () if each["value"] is not None and each["by"] != "host"]
    last = max(answers, key=lambda each: each["by"] == "person", default=None)
    return {"settled_by": last["by"], "settled_because": last.get("because")} if last is not None else {}


def _charged(policies: Sequence[PolicyRow]) -> JsonRecord:
    gravest = min((policy.severity for policy in policies), key=SEVERITIES.index, default=None)
    return {"severity": gravest, "policies": [_record(policy, "charges") for policy in policies]}


def _record(policy: PolicyRow, kind: str) -> JsonRecord:
    return {name: policy.id if name == "policy" else getattr(policy, name) for name in _NESTED[kind]}


class PlacedPart(Struct, frozen=True):
    """The output of a shard, and its position among all shards."""

    folder: Path
    first: int
    """The number of conversations in earlier shards."""
    renamed: dict[int, str] = {}
    """New names for conversations whose names are already in use, keyed by the conversation's position in the shard."""

    def batches(self, table: str, columns: Sequence[str] | None = None) -> Iterator[Any]:
        path = self.folder / f"{table}.parquet"
        if path.is_file():
            with arrow("parquet").ParquetFile(path) as file:
                yield from file.iter_batches(BATCH, columns=list(columns) if columns is not None else None)

    def placed(self, table: str) -> Iterator[Any]:
        """Yield the rows of a table, with their final ordinals and conversation names."""
        pc, schema = arrow("compute"), arrow_schema(table)
        for batch in self.batches(table):
            rows = arrow().Table.from_batches([batch])
            if self.renamed:
                rows = self._renamed(rows)
            ordinals = pc.add(rows.column("ordinal"), self.first)
            rows = rows.set_column(rows.schema.get_field_index("ordinal"), "ordinal", ordinals)
            yield rows.select(schema.names).cast(schema)

    def _renamed(self, rows: Any) -> Any:
        names: list[str] = rows.column("conversation").to_pylist()
        changed = [(at, self.renamed.get(n)) for at, n in enumerate(rows.column("ordinal").to_pylist())]
        findings, keys = (
            rows.column(each).to_pylist() if each in rows.column_names else None for each in ("finding", KEY)
        )
        for at, name in changed:
            if name is not None:
                names[at] = name
                if findings is not None and keys is not None and findings[at] is not None:
                    findings[at] = finding_id(name, keys[at])
        for column, values in (("conversation", names), ("finding", findings)):
            if values is not None:
                values = arrow().array(values, arrow().string())
                rows = rows.set_column(rows.schema.get_field_index(column), column, values)
        return rows


def place_parts(folders: Sequence[Path], counts: Sequence[int], names: Identities) -> Iterator[PlacedPart]:
    """Yield the shards in order, with a unique name for each conversation."""
    first = 0
    for folder, count in zip(folders, counts, strict=True):
        batches = PlacedPart(folder, 0).batches("conversations", ["conversation"])
        own = [name for batch in batches for name in batch[0].to_pylist()]
        given = enumerate(map(names.unique, own))
        yield PlacedPart(folder, first, {at: name for at, name in given if name != own[at]})
        first += count


def write_table(table: str, rows: Iterator[Any], target: Path) -> None:
    """Write the batches of a table in the given order. An empty table becomes one file without rows."""
    schema = arrow_schema(table)
    write_batches(rows, schema, target)
    if not any(target.rglob("*.parquet")):
        folder = target / day_of(None)
        folder.mkdir(parents=True, exist_ok=True)
        kept = arrow().schema([field for field in schema if field.name not in PARTITIONED])
        arrow("parquet").write_table(kept.empty_table(), folder / "part-0.parquet")


def write_batches(rows: Iterator[Any], schema: Any, target: Path) -> None:
    pa, ds = arrow(), arrow("dataset")
    ds.write_dataset(
        pa.RecordBatchReader.from_batches(schema, rows),
        target,
        format=ds.ParquetFileFormat(),
        file_options=ds.ParquetFileFormat().make_write_options(**WRITTEN),
        partitioning=_by_day(),
        basename_template="part-{i}.parquet",
        existing_data_behavior="overwrite_or_ignore",
        preserve_order=True,
        max_partitions=1 << 30,
        max_open_files=OPEN,
        max_rows_per_file=FILE,
        min_rows_per_group=MERGED,
        max_rows_per_group=GROUP,
    )


def _by_day() -> Any:
    pa, ds = arrow(), arrow("dataset")
    return ds.partitioning(pa.schema([("day", pa.date32())]), flavor="hive")


def day_of(day: date | None) -> str:
    """Return the name of a day's folder. Conversations without a time share a separate folder."""
    return f"day={day or '__HIVE_DEFAULT_PARTITION__'}"


def is_before(folder: str, first: date) -> bool:
    """Whether a folder's day is earlier than another day."""
    try:
        return date.fromisoformat(folder.removeprefix("day=")) < first
    except ValueError:
        return False


def held_rows(tables: Path, table: str, *, day: str = "*", columns: Sequence[str] = ()) -> Any:
    """Return the rows of a table as an Arrow dataset: all rows, or only those in a day's folder."""
    ds, folder, schema = arrow("dataset"), tables / table, arrow_schema(table)
    schema = arrow().schema([each for each in schema if not columns or each.name in columns])
    files = sorted(folder.glob(f"{day}/*.parquet"), key=lambda file: int(file.stem.rpartition("-")[2]))
    if not files:
        return ds.dataset(schema.empty_table())
    return ds.dataset(
        list(map(str, files)),
        schema=schema,
        format="parquet",
        partitioning=_by_day(),
        partition_base_dir=str(folder),
    )


def write_days(
    before: Path,
    made: Path,
    table: str,
    parts: Sequence[PlacedPart],
    *,
    days: Collection[str],
    without: Any,
    earliest: date,
) -> None:
    """Write a table.

    The files of the given `days` are written again from the tables and the new shards. Files of other days are
    hard-linked. Leave out the days before `earliest`, and rows whose ordinal is in the Arrow array `without`.
    """
    for file in (before / table).glob("*/*.parquet"):
        if file.parent.name in days or is_before(file.parent.name, earliest):
            continue
        target = made / table / file.parent.name / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(file, target)
        except OSError:
            shutil.copy2(file, target)
    is_kept = ~arrow("compute").field("ordinal").isin(without)

    def rows() -> Iterator[Any]:
        for day in sorted(days):
            if not is_before(day, earliest):
                held = held_rows(before, table, day=day)
                yield from held.to_batches(filter=is_kept, batch_size=BATCH, batch_readahead=2, fragment_readahead=1)
        for part in parts:
            for placed in part.placed(table):
                yield from placed.filter(is_kept).to_batches()

    write_table(table, rows(), made / table)


def write_schema(folder: Path, criterion: str) -> dict[str, int]:
    """Write `schema.json`, which lists the tables in a folder with their columns and row counts.

    Return the row counts.
    """
    read = arrow("parquet").read_metadata
    rows = {table: sum(read(file).num_rows for file in (folder / table).rglob("*.parquet")) for table in TABLES}
    tables = {table: {"rows": rows[table], "columns": columns} for table, columns in TABLES.items()}
    record = {"schema": TABLES_SCHEMA, "criterion": criterion, "partitioned_by": list(PARTITIONED), "tables": tables}
    dump(folder / "schema.json", record)
    return rows


def table_findings(out: Path, criterion: Criterion) -> Iterator[Finding]:
    """Yield every finding in an audit's tables under one criterion, in no particular order."""
    pa, ds = arrow(), arrow("dataset")
    by = json.loads((out / FOLDER / "schema.json").read_bytes())["partitioned_by"]
    keys = ds.partitioning(pa.schema([(name, pa.string()) for name in by]), flavor="hive")
    read = [name for name in TABLES["findings"] if name not in ("record", "day")]
    for batch in ds.dataset(out / FOLDER / "findings", partitioning=keys).to_batches(columns=read, batch_size=4096):
        for row in batch.to_pylist():
            if row[criterion] in FLAGGED:
                charges = tuple(
                    Charge(each["policy"], each["severity"], each[criterion], each["because"])
                    for each in row["policies"]
                    if each[criterion] in FLAGGED
                )
                head = (row["finding"], row["kind"], row["name"], row["conversation"], row["agent"] or "", row["step"])
                yield Finding(*head, row[criterion], row["executed"], charges, row["because"] or "")


def write_lines_of(out: Path, target: Path) -> None:
    """Write a table as JSON lines, in the order of the logs."""
    files = sorted((out / FOLDER / target.stem).rglob("*.parquet"))
    with target.open("wb", BUFFER) as lines:
        # Within each file, the rows are in the order of the logs.
        for *_, name, finding, line in heapq.merge(*(_lines_of(file, target.stem, n) for n, file in enumerate(files))):
            lines.write(named(line, name, finding))


def _lines_of(file: Path, table: str, number: int) -> Iterable[tuple[int, int, int, str, str | None, bytes]]:
    """Yield each line with its sort key (ordinal, file, row)."""
    at = 0
    with arrow("parquet").ParquetFile(file) as opened:
        wanted = {"ordinal", "conversation", "finding", "record"}
        if table == "calls":
            wanted |= {"agent", "step", "call_id", "tool", "executed", "strict", "determined", "policies_json"}
        for batch in opened.iter_batches(MERGED, columns=sorted(wanted & {*opened.schema_arrow.names})):
            for row in batch.to_pylist():
                at += 1
                if row["record"] is not None:
                    line = row["record"].encode()
                elif table == "calls":
                    line = _plain_line(row)
                else:
                    continue
                yield row["ordinal"], number, at, row["conversation"], row.get("finding"), line


def _plain_line(row: JsonRecord) -> bytes:
    """Return the line for a compliant call.

    It is built from columns, because the tables do not store the record of such a call.
    """
    policies = [
        PolicyRow(id=id, severity=severity, strict=strict, determined=determined, evidence="permit", world="unknown")
        for id, severity, strict, determined in json.loads(row["policies_json"])
    ]
    for policy in policies:
        policy.reason = {"kind": "none", "words": ""}
    head = {name: row[name] for name in ("agent", "step", "call_id", "tool", "executed", "strict", "determined")}
    return encode(CallRow(**head, policies=policies))
