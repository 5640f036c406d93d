"""`bylaw` as people run it does what `tests.command.bylaw` does within the tests."""

from functools import partial
from pathlib import Path

import pytest

from tests.audit.logs import CAREFUL, HASTY, WRONG, Shop, record
from tests.command import Ran, bylaw, bylaw_process, shell

AUDIT = ("audit", "logs.jsonl", "--pack", "pack", "--world", "world.json")


@pytest.mark.process
@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ((), 2),
        (("--version",), 0),
        ((*AUDIT, "--fail-on", "violation"), 1),
        (("audit", "broken.jsonl", "--pack", "pack", "--jobs", "2"), 3),
        (("audit", "nowhere.jsonl", "--pack", "pack"), 2),
        (("audit", "logs.jsonl", "--pack", "pack", "--jobs", "many"), 2),
        (("check", "spoiled"), 2),
        (("scan", "logs.jsonl", "--json"), 0),
    ],
)
def test_a_command_in_a_process_of_its_own_says_the_same(
    arguments: tuple[str, ...], status: int, tmp_path: Path
) -> None:
    said: list[Ran] = []
    # What begins from nothing: no command, one that works by itself, and one that starts workers.
    from_nothing = status in (1, 3) or not arguments
    for name, run in (("here", bylaw), ("alone", partial(bylaw_process, from_nothing=from_nothing))):
        folder = tmp_path / name
        folder.mkdir()
        shop = Shop(folder)
        shop.logs(record(*CAREFUL), record(*HASTY), record(*WRONG))
        shop.logs(record(*HASTY), "{", name="broken.jsonl")
        (folder / "spoiled").mkdir()
        (folder / "spoiled" / "pack.yaml").write_text("format: 9\n")
        said.append(run(folder, *arguments))
    here, alone = said
    assert (here.returncode, here.stdout, here.stderr) == (alone.returncode, alone.stdout, alone.stderr)
    assert here.returncode == status
    assert here.stdout + here.stderr
    for path in (tmp_path / "here").rglob("*.jsonl"):
        assert path.read_bytes() == (tmp_path / "alone" / path.relative_to(tmp_path / "here")).read_bytes()


@pytest.mark.process
def test_the_installed_command_is_the_one_that_is_tested(tmp_path: Path) -> None:
    installed = shell("bylaw --version", tmp_path, from_nothing=True)
    assert (installed.returncode, installed.stdout) == (0, bylaw(tmp_path, "--version").stdout)
