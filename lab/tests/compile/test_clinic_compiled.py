"""The clinic compiled from its recordings equals the shipped pack, byte for byte. Every recording is used and
unchanged.
"""

import subprocess
from pathlib import Path

import pytest

from bylaw.cli.logs import open_logs
from bylaw.compile.assemble import assemble
from bylaw.compile.desk import Desk
from bylaw.compile.pipeline import Source, Work, compile_pack
from bylaw.compile.reading import read_documents
from bylaw.compile.tools import read_tools, with_logs
from bylaw.llm.recorded import Recorded, Recordings
from bylaw.policy.folder import READY
from tests.docs.walkthrough import ROOT

CLINIC, PACK = READY / "clinic", ROOT / "lab" / "packs" / "clinic_compiled"
ANSWERS = PACK / "source" / "answers"


@pytest.fixture(scope="module")
def made() -> tuple[Source, Work, Desk]:
    reading = read_documents([CLINIC / "policy.md"])
    with open_logs([CLINIC / "demo" / "logs.jsonl.bz2"]) as opened:
        cards, trajectories = with_logs(read_tools([str(PACK / "source" / "tools.json")]), opened.trajectories())
    source = Source(reading.document, reading.title, cards, trajectories, "2025-03-12T09:00:00", refinements=8)
    return source, *compile_pack(source, Recorded(Recordings(ANSWERS)))


@pytest.mark.slow
def test_the_shipped_pack_is_what_the_recordings_make(made: tuple[Source, Work, Desk]) -> None:
    source, work, _ = made
    files = assemble(source, work, name="clinic-compiled")
    # A person's acceptance of unenforced policies is not part of the compile.
    shipped = {name: (PACK / name).read_text(encoding="utf-8") for name in files}
    lines = [line for line in shipped["policies.yaml"].split("\n") if not line.startswith("  unenforced: ")]
    assert "\n".join(lines) == files["policies.yaml"]
    assert {**shipped, "policies.yaml": ""} == {**files, "policies.yaml": ""}


@pytest.mark.slow
def test_every_recording_is_asked_for(made: tuple[Source, Work, Desk]) -> None:
    assert Recordings(ANSWERS).keys() == made[2].asked.keys()


def test_no_recording_has_changed_since_it_was_committed() -> None:
    for path in sorted(ANSWERS.glob("*.jsonl")):
        commits = _git("log", "--follow", "--format=", "--name-status", "--", path)
        changed = _git("status", "--porcelain", "--", path)
        edits = [line for line in commits if line and not line.startswith(("A", "R100"))]
        assert not edits, f"{path.name} was changed after it was first committed: {edits}"
        assert not [line for line in changed if not line.startswith(("??", "A "))], path.name


def _git(*arguments: str | Path) -> list[str]:
    try:
        done = subprocess.run(
            ["git", *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the history is not at hand")
    return done.stdout.splitlines()


def test_the_compiled_clinic_is_at_most_twice_as_long_as_the_one_written_by_hand() -> None:
    lines: dict[str, int] = {}
    for root in (CLINIC, PACK):
        files = [*root.glob("*.yaml"), root / "policy.md", *root.glob("guards/*.py"), *root.glob("cases/*.yaml")]
        lines[root.name] = sum(file.read_text(encoding="utf-8").count("\n") for file in files)
    assert lines["clinic_compiled"] <= 2 * lines["clinic"]
