"""A reader who has had enough, as in `bylaw scan LOGS | head -3`, is no finding."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.audit.logs import HASTY, Shop, record
from tests.ready import PROCESS, begin


@pytest.mark.process
@pytest.mark.parametrize(
    "command",
    [
        ("scan", "logs.jsonl"),
        ("scan", "logs.jsonl", "--json"),
        ("audit", "logs.jsonl", "--pack", "{pack}"),
        ("audit", "logs.jsonl", "--pack", "{pack}", "--fail-on", "near_miss"),
        ("check", "{pack}"),
        ("--version",),
        ("audit", "--help"),
    ],
)
def test_a_closed_pipe_ends_quietly_and_not_with_the_status_of_a_finding(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    shop = Shop(tmp_path)
    shop.logs(record(*HASTY))
    reading, writing = os.pipe()
    os.close(reading)
    arguments = [each.format(pack=shop.pack) for each in command]
    ran = subprocess.run(
        # One begins as the installed command does.
        [*(PROCESS if command[0] == "check" else begin("bylaw")), *arguments],
        cwd=shop.root,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, "")


@pytest.mark.process
def test_a_closed_pipe_loses_nothing_that_an_audit_writes(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.logs(record(*HASTY))
    reading, writing = os.pipe()
    os.close(reading)
    arguments = ["audit", "logs.jsonl", "--pack", str(shop.pack), "--report", "--sarif", "bylaw.sarif"]
    subprocess.run([*begin("bylaw"), *arguments], cwd=shop.root, stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert {"audited.json", "report.html", "summary.json"} <= {each.name for each in (shop.root / "out").iterdir()}
    assert (shop.root / "bylaw.sarif").is_file()
