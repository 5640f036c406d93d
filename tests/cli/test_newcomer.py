"""What a newcomer types first, and what it tells them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bylaw.cli.app import COMMANDS, GROUPS, app
from bylaw.cli.audit import audit_command
from tests.command import bylaw, shell
from tests.docs.walkthrough import ROOT, blocks, run

GUIDE = ROOT / "docs" / "guides" / "one-policy.md"


@pytest.fixture
def hotel(tmp_path: Path) -> Path:
    """The folder the tutorial ends with."""
    for block in blocks(GUIDE):
        if "file" in block.marks:
            path = tmp_path / block.marks["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(block.lines) + "\n", encoding="utf-8")
    shutil.copytree(ROOT / "examples" / "hotel", tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_a_world_that_is_not_there_stops_the_audit(hotel: Path) -> None:
    done = run("bylaw audit logs.jsonl --pack hotel --world nothing.sqlite", hotel)
    assert done.returncode == 2
    assert "BY501 nothing.sqlite: cannot read the database" in done.stdout


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
        "bylaw: BY001 empty: no logs in this folder; name the files",
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
    assert "policy `late-checkout-fee` has no check" in done.stdout or "BY201" in done.stdout


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
        == "['bylaw.cli', 'bylaw.cli.app', 'bylaw.cli.group', 'bylaw.errors', 'bylaw.text', 'bylaw.text.visible']"
    )


def test_a_mistyped_command_is_put_right(hotel: Path) -> None:
    done = run("bylaw auditt", hotel)
    assert done.returncode == 2
    assert "Did you mean 'audit'?" in done.stdout


def test_an_audit_imports_nothing_for_what_it_was_not_asked() -> None:
    spared = ("multiprocessing", "urllib.request", "bylaw.scan", "bylaw.audit.export", "bylaw.audit.report")
    code = f"import sys, bylaw.cli.audit; print([name for name in {spared} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_help_is_grouped_by_what_one_wants_with_first_steps_first(tmp_path: Path) -> None:
    shown = bylaw(tmp_path, "--help").stdout
    titles = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Options:", *(f"{title}:" for title in GROUPS)]
    assert list(GROUPS["Start"]) == ["demo", "scan", "init", "check"]
    assert max(map(len, shown.splitlines())) <= 80


@pytest.mark.parametrize("command", [(), ("audit",), ("log",), ("log", "verify"), ("align", "data"), ("rules",)])
def test_h_is_help_everywhere(command: tuple[str, ...], tmp_path: Path) -> None:
    short, long = bylaw(tmp_path, *command, "-h"), bylaw(tmp_path, *command, "--help")
    assert short.returncode == 0
    assert short.stdout == long.stdout
    assert "Usage: bylaw" in short.stdout


@pytest.mark.process
def test_a_shell_completes_commands_and_options(tmp_path: Path) -> None:
    typed = "COMP_WORDS=({0}) COMP_CWORD={1}; _bylaw_completion bylaw; echo ${{COMPREPLY[@]}}"
    words = f'eval "$(bylaw --completion bash)"; {typed}'
    assert shell(words.format("bylaw che", 1), tmp_path).stdout.split() == ["check"]
    assert shell(words.format("bylaw explain --ver", 2), tmp_path).stdout.split() == ["--verdict"]


def test_init_takes_the_document_under_its_one_name_and_its_old_one(hotel: Path) -> None:
    for option in ("--document", "--policy"):
        assert run(f"bylaw init logs.jsonl {option} hotel/policy.md --out {option[2:]}", hotel).returncode == 0
    assert "--policy" not in run("bylaw init --help", hotel).stdout
    assert "no policy document; add --document FILE" in run("bylaw init logs.jsonl", hotel).stdout


def test_a_fresh_draft_is_told_from_a_pack_that_somebody_decided_on(hotel: Path) -> None:
    assert run("bylaw init logs.jsonl --document hotel/policy.md --out drafted", hotel).returncode == 0
    shown = " ".join(run("bylaw check drafted", hotel).stdout.split())
    assert "next: this is a draft from `bylaw init`, and nothing is enforced yet." in shown
    decided = run("bylaw check hotel", hotel).stdout
    assert "draft" not in decided


def test_an_audit_says_what_it_counts_and_a_shield_does_not_enforce(hotel: Path) -> None:
    command = "bylaw audit logs.jsonl --pack hotel --world hotel.json --out found"
    assert "not enforced" not in run(command, hotel).stdout
    policies = hotel / "hotel" / "policies.yaml"
    stated = policies.read_text().replace("spans:", "unenforced: {accepted_by: Ann, reason: on trial}\n    spans:", 1)
    policies.write_text(stated)
    told = (
        "This audit judges calls by late-checkout-fee, but a shield does not: the policy is `unenforced` in the pack."
    )
    assert told in " ".join(run(command, hotel).stdout.split())
    assert json.loads((hotel / "found/summary.json").read_text())["unenforced_policies"] == ["late-checkout-fee"]


def test_a_stray_file_among_logs_is_one_line(hotel: Path) -> None:
    good = (hotel / "logs.jsonl").read_text()
    (hotel / "mixed.jsonl").write_text(good + "".join(f'{{"row": {number}}}\n' for number in range(300)))
    shown = run("bylaw audit mixed.jsonl --pack hotel", hotel).stdout
    (told,) = [line for line in shown.splitlines() if "bylaw: " in line]
    assert told.endswith("(and 299 similar errors in this file)")
