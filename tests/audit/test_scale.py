"""Faults that large and nightly audits had: paths, URLs, many small files, and the guides' own queries."""

import os
import re
import shlex
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from bylaw.audit.batch.run import audit_in_shards
from bylaw.audit.request import Request
from bylaw.cli.logs import open_logs
from tests.audit.logs import CAREFUL, HASTY, WRONG, Shop, record, write_logs
from tests.audit.sharded import Inline
from tests.audit.test_update import add, talk
from tests.command import bylaw

pytest.importorskip("pyarrow")
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "audit-at-scale.md"


def test_a_log_by_another_spelling_of_its_path_is_the_same_log(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop.root / "logs").mkdir()
    (shop.root / "cron").mkdir()
    os.symlink(shop.root / "logs", shop.root / "link")
    write_logs(shop.root / "logs" / "a.jsonl", [talk("t1", "hasty", 1), talk("t2", "wrong", 1)])
    monkeypatch.chdir(shop.root)
    assert add(shop, Path("logs/a.jsonl")).conversations == 2
    monkeypatch.chdir(shop.root / "cron")
    assert (add(shop, Path("../logs/a.jsonl")).read, add(shop, Path("../link/a.jsonl")).read) == (0, 0)
    write_logs(shop.root / "logs" / "a.jsonl", [talk("t1", "hasty", 1)])
    monkeypatch.chdir(shop.root)
    added = add(shop, Path("logs/a.jsonl"))
    assert (added.removed, added.held) == (1, 1)


@pytest.mark.parametrize("options", [(), ("--format", "parquet"), ("--update",)])
def test_an_audit_is_not_written_to_a_url(shop: Shop, options: tuple[str, ...]) -> None:
    logs = shop.logs(record(*HASTY))
    done = bylaw(shop.root, "audit", logs.name, "--pack", "pack", *options, "--out", "s3://bucket/audit")
    assert done.returncode == 2
    assert "is a URL; copy the files to this machine" in " ".join(done.stderr.split())
    assert not (shop.root / "s3:").exists()


def test_a_log_that_is_named_by_several_paths_is_read_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop.root / "logs").mkdir()
    (shop.root / "link").symlink_to("logs")
    for name in "ab":
        write_logs(shop.root / "logs" / f"{name}.jsonl", [talk(name, "hasty", 1)])
    monkeypatch.chdir(shop.root)
    with open_logs([Path("link/b.jsonl"), Path("logs"), Path("link"), Path("logs/../logs/a.jsonl")]) as opened:
        assert opened.files == (Path("link/b.jsonl"), Path("logs/a.jsonl"))


def test_many_agents_and_days_make_a_file_for_each_day_and_table(shop: Shop) -> None:
    days = [f"2025-01-{day:02}T09:00:00Z" for day in range(1, 11)]
    made = (record(*(HASTY if n % 2 else CAREFUL), id=f"t{n}", agent=f"bot-{n % 49:02}") for n in range(200))
    talks = [deepcopy(each) for each in made]
    for n, each in enumerate(talks):
        each["messages"][0]["time"] = days[n % 10]
    logs = write_logs(shop.root / "wide.jsonl", talks)
    out = audit_in_shards(Request((logs,), str(shop.pack), shop.world), shop.root / "out", Inline()).out
    assert len(list((out / "tables").rglob("*.parquet"))) <= 5 * 10


@pytest.mark.parametrize(
    ("options", "dated", "kinds"),
    [
        ("--format parquet", True, (HASTY, WRONG)),
        ("--format parquet", False, (CAREFUL,)),
        ("--format both", True, (HASTY, WRONG)),
        ("--format parquet --redact", True, (HASTY, WRONG)),
        ("--update", True, (HASTY, WRONG)),
        ("--update", False, (CAREFUL,)),
    ],
    ids=["tables", "no days, no findings", "tables and lines", "redacted", "nights", "nights without days or findings"],
)
def test_the_queries_and_the_python_of_the_docs_run_on_every_kind_of_output(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, options: str, dated: bool, kinds: tuple[Any, ...]
) -> None:
    pytest.importorskip("duckdb")
    for day in (1, 2):
        made = [deepcopy(record(*steps, id=f"{n}-{day}")) for n, steps in enumerate(kinds)]
        for each in made if dated else ():
            each["messages"][0]["time"] = f"2025-04-0{day}T09:00:00Z"
        write_logs(shop.root / f"day-{day}.jsonl", made)
        logs = [f"day-{n}.jsonl" for n in range(1, day + 1)]
        for out in ("out",) if day == 2 else ("out", "last-week"):
            done = bylaw(shop.root, "audit", *logs, "--pack", "pack", *options.split(), "--out", out)
            assert done.returncode == 0, done.stderr
    commands = re.findall(r"^ +bylaw (sql out .*?)(?: > .*)?$", GUIDE.read_text(), re.MULTILINE)
    assert len(commands) >= 5
    for command in commands:
        done = bylaw(shop.root, *shlex.split(command))
        assert done.returncode == 0, f"{command}: {done.stderr}"
    page = (GUIDE.parents[1] / "reference" / "tables.md").read_text()
    (lines,) = re.findall(r"```python\n(import pyarrow as pa\n.*?)```", page, re.DOTALL)
    monkeypatch.chdir(shop.root)
    names: dict[str, Any] = {}
    exec(lines, names)
    assert set(names["calls"].column("day").to_pylist()) == ({"2025-04-01", "2025-04-02"} if dated else {None})


def test_redaction_is_imported_with_redact_only(shop: Shop) -> None:
    logs = shop.logs(record(*HASTY))
    code = (
        "import sys; from pathlib import Path; import bylaw.cli.audit;"
        "from bylaw.audit.request import Request; from bylaw.audit.run import audit;"
        f"audit(Request((Path({str(logs)!r}),), {str(shop.pack)!r}), Path('out'));"
        "print('bylaw.audit.redaction' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=shop.root, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
