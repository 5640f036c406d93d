"""The findings of an audit, read back from its tables."""

import json
from collections.abc import Iterator
from pathlib import Path

from bylaw.audit.batch.schema import arrow
from bylaw.audit.finding import Charge, Finding
from bylaw.audit.line import FLAGGED
from bylaw.audit.output import TABLES
from bylaw.pack import Criterion

_READ = ("finding", "kind", "name", "conversation", "agent", "step", "executed", "strict", "determined", "policies")


def read_table_findings(out: Path, criterion: Criterion) -> Iterator[Finding]:
    """Every finding in the tables of an audit, by one criterion; not in the order of the logs."""
    pa, ds = arrow(), arrow("dataset")
    by = json.loads((out / TABLES / "schema.json").read_bytes())["partitioned_by"]
    keys = pa.schema([(name, pa.string()) for name in by])
    found = ds.dataset(out / TABLES / "findings", partitioning=ds.partitioning(keys, flavor="hive"))
    for batch in found.to_batches(columns=[*_READ, "because"], batch_size=4096):
        for row in batch.to_pylist():
            if row[criterion] not in FLAGGED:
                continue
            charges = tuple(
                Charge(each["policy"], each["severity"], each[criterion], each["because"])
                for each in row["policies"]
                if each[criterion] in FLAGGED
            )
            head = (row["finding"], row["kind"], row["name"], row["conversation"], row["agent"] or "", row["step"])
            yield Finding(*head, row[criterion], row["executed"], charges, row["because"] or "")
