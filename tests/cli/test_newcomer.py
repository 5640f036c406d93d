"""What a newcomer types first, and what it tells them."""

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bylaw.cli.app import COMMANDS, app
from bylaw.cli.audit import audit_command
from tests.docs.walkthrough import ROOT, blocks, run

GUIDE = ROOT / "docs" / "guides" / "write-a-pack.md"


@pytest.fixture
def hotel(tmp_path: Path) -> Path:
    """The folder the tutorial ends with."""
    for block in blocks(GUIDE):
        if "file" in block.marks:
            path = tmp_path / block.marks["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(block.lines) + "\n", encoding="utf-8")
    return tmp_path


def test_a_world_that_is_not_there_stops_the_audit(hotel: Path) -> None:
    done = run("bylaw audit logs.jsonl --pack hotel --world nothing.sqlite", hotel)
    assert done.returncode == 2
    assert "BY501 nothing.sqlite: cannot read the world" in done.stdout


def test_a_folder_of_logs_is_audited_without_what_an_audit_wrote_there(hotel: Path) -> None:
    (hotel / "logs").mkdir()
    (hotel / "logs.jsonl").rename(hotel / "logs" / "monday.jsonl")
    command = "bylaw audit logs --pack hotel --out logs/out"
    assert run(command, hotel).returncode == 0
    done = run(command, hotel)
    assert done.returncode == 0, done.stdout
    assert json.loads((hotel / "logs" / "out" / "summary.json").read_bytes())["skipped"] == []


def test_a_folder_without_logs_is_a_fault(hotel: Path) -> None:
    (hotel / "empty").mkdir()
    done = run("bylaw audit empty --pack hotel", hotel)
    assert (done.returncode, done.stdout.strip()) == (
        2,
        "bylaw: BY001 empty: no logs in this folder; name the files themselves",
    )


def test_the_call_an_audit_points_at_can_be_explained(hotel: Path) -> None:
    shown = run("bylaw audit logs.jsonl --pack hotel --world hotel.json", hotel).stdout
    (hint,) = (line for line in shown.splitlines() if "bylaw explain" in line)
    done = run(hint.partition(": ")[2], hotel)
    assert done.returncode == 0
    assert "violation" in done.stdout


def test_a_guard_with_a_fault_is_not_reported_as_missing(hotel: Path) -> None:
    guard = hotel / "hotel" / "guards" / "late_checkout.py"
    guard.write_text(guard.read_text().replace("guest_id", "guest"))
    done = run("bylaw check hotel", hotel)
    assert "nothing enforces" not in done.stdout
    assert len(done.stdout.splitlines()) == 1


def test_a_guard_that_stands_in_a_text_only_enforces_nothing(hotel: Path) -> None:
    guard = hotel / "hotel" / "guards" / "late_checkout.py"
    guard.write_text(f'"""\n{guard.read_text()}"""\n')
    done = run("bylaw check hotel", hotel)
    assert done.returncode == 2
    assert "nothing enforces policy `late-checkout-fee`" in done.stdout or "BY201" in done.stdout


def test_a_pack_that_only_chooses_says_among_what(hotel: Path) -> None:
    done = run("bylaw rules list tau-airline", hotel)
    assert done.returncode == 2
    assert "tau-airline/tau1, tau-airline/tau2" in done.stdout


def test_every_option_of_audit_says_what_it_does() -> None:
    assert len(audit_command.params) > 15
    assert all(parameter.help for parameter in audit_command.params)


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    context = click.Context(app)
    for name, line in COMMANDS.items():
        command = app.get_command(context, name)
        assert command is not None
        assert command.get_short_help_str(limit=200) == line


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from bylaw.cli.app import app; app(['--help'], standalone_mode=False);"
        " print(sorted(m for m in sys.modules if m.startswith(('bylaw.', 'rich', 'msgspec', 'yaml'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stdout.splitlines()[-1]
        == "['bylaw.cli', 'bylaw.cli.app', 'bylaw.cli.group', 'bylaw.cli.visible', 'bylaw.errors']"
    )


def test_a_mistyped_command_is_put_right(hotel: Path) -> None:
    done = run("bylaw auditt", hotel)
    assert done.returncode == 2
    assert "Did you mean 'audit'?" in done.stdout


def test_an_audit_imports_nothing_for_what_it_was_not_asked() -> None:
    spared = ("multiprocessing", "urllib.request", "bylaw.scan", "bylaw.audit.sarif", "bylaw.audit.report")
    code = f"import sys, bylaw.cli.audit; print([name for name in {spared} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
