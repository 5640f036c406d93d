"""A user's own logs for tests: a part of the demo's, and what became of them."""

import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from bylaw.align.dataset import read_rows
from bylaw.cli.app import app
from bylaw.errors import UsageError
from bylaw.packs.clinic import demo

AIRLINE = Path(__file__).parents[3] / "shared" / "data" / "tau-airline"
EMPTY = ("ok", "OK.", "<think></think>ok", "<think></think>ok?", "?", "<think></think>", "", "<think>ok</think>Done.")
"""What says nothing."""


def run(*said: object) -> str:
    done = CliRunner().invoke(app, [str(word) for word in said])
    if isinstance(done.exception, UsageError):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def audited_demo(folder: Path) -> Path:
    """Every eighth of the demo's logs and its database, and an audit of the one over the other."""
    demo.build_world(folder / "clinic.sqlite")
    demo.write_logs(folder / "all.jsonl.gz")
    with gzip.open(folder / "all.jsonl.gz") as whole:
        (folder / "logs.jsonl").write_bytes(b"".join(islice(whole, 0, None, 8)))
    (folder / "all.jsonl.gz").unlink()
    run(
        *("audit", folder / "logs.jsonl", "--pack", "clinic"),
        *("--world", folder / "clinic.sqlite", "--out", folder / "audit"),
    )
    return folder


def audited_airline(folder: Path) -> Path:
    """An audit of a model's recorded conversations with an airline's callers."""
    logs, world = AIRLINE / "tau2" / "runs" / "gpt-4.1.json.gz", AIRLINE / "tau2" / "db.json.gz"
    run("audit", logs, "--pack", "tau-airline/tau2", "--world", world, "--out", folder / "audit")
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def faulty(audit: Path) -> set[str]:
    """The conversations that an audit found anything in, or could not settle."""
    calls = lines(audit / "calls.jsonl")
    flagged = {call["trajectory"] for call in calls if call["determined"] != "compliant" or call["open_rules"]}
    return flagged | {finding["trajectory"] for finding in lines(audit / "findings.jsonl")}


def learned(data: Path) -> set[str]:
    """The conversations that any row comes from."""
    sets = [list(read_rows(data / f"{name}.jsonl")) for name in ("stage1", "stage2", "answers", "rl")]
    return {row.get("id") or row["task"] for rows in sets for row in rows}
