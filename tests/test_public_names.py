"""The names the package promises, and what importing it costs."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import bylaw
import bylaw.audit

PROMISED = {
    "BylawError", "Call", "CallVerdict", "CheckReport", "Conversation", "Decision", "Judgement", "Message", "Pack",
    "Result", "Shield", "Trajectory", "Verdicts", "check", "load_pack", "read", "verdicts",
}  # fmt: skip


def test_the_public_names_are_those_promised() -> None:
    assert set(bylaw.__all__) == PROMISED
    for name in bylaw.__all__:
        assert getattr(bylaw, name).__name__ == name
    assert set(bylaw.audit.__all__) == {"Report", "Request", "audit", "read_calls"}
    assert all(callable(getattr(bylaw.audit, name)) for name in bylaw.audit.__all__)


def test_what_is_promised_has_its_name_to_itself() -> None:
    root = Path(bylaw.__file__).parent
    sources = [path for path in root.rglob("*.py") if not path.is_relative_to(root / "packs")]
    classes = Counter(re.findall(r"^class (\w+)", "\n".join(path.read_text() for path in sources), re.MULTILINE))
    assert [name for name in PROMISED if classes[name] > 1] == []
    assert classes["Session"] == 1


def test_importing_the_package_is_cheap() -> None:
    code = "import time; t = time.process_time(); import bylaw; print(time.process_time() - t)"
    command = [sys.executable, "-c", code]
    # The best of a few: on a busy machine processor time, too, is longer now and then.
    spent = (float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(5))
    assert any(seconds < 0.2 for seconds in spent)


def test_importing_the_package_brings_neither_terminal_nor_readers() -> None:
    code = "import sys, bylaw; print([m for m in ('click', 'rich', 'yaml', 'msgspec') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
