"""Runs the tests that need their own environment, in lanes, and prints a table with results, versions and dates.

    uv run python lab/benchmarks/lanes.py [LANE...] [--folder DIR] [--page lab/results/pages/lanes.md] [--fresh]

`uv run pytest` runs all other tests. A lane is one framework that the shield supports, the trainings, a browser, a
small model, or a program that we compare with. Each has an environment with Bylaw and the packages that the lane needs,
without the project's pins, so that we test the versions that users get today. The first run creates it. If a lane's
program or model is missing on this machine, the lane does not run, and the table says so. On the page, other lanes keep
their rows. The exit status is 1 if a test fails or is unexpectedly skipped.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
TESTING = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "filelock", "openai")
HEAD = ("lane", "passed", "failed", "skipped", "versions", "day", "seconds", "remark")
INTRODUCTION = """# Lanes: tests that need an environment of their own

Written by `uv run python lab/benchmarks/lanes.py`; all other tests are run by `uv run pytest`. Each lane has the newest
versions that its extra allows, not the pinned ones.
"""


class Lane(NamedTuple):
    """A group of tests, and what they require."""

    tests: tuple[str, ...]
    extras: str = ""
    packages: tuple[str, ...] = ()
    """Packages that only the tests need."""
    versions: tuple[str, ...] = ()
    """Packages whose versions the table shows."""
    marks: str = ""
    program: str = ""
    """A program that must be on the path."""
    variable: str = ""
    """An environment variable that must name a file."""
    may_skip: str = ""
    """Part of the skip reason of a test that may be skipped here."""

    def lack(self) -> str:
        """Return why the lane cannot run on this machine, or an empty string if it can."""
        if self.variable and not Path(os.environ.get(self.variable, "")).is_file():
            return f"{self.variable} names no file"
        if self.program and not (os.environ.get(self.program.upper()) or shutil.which(self.program)):
            return f"`{self.program}` is not on the path"
        return ""


def framework(name: str, package: str, *packages: str) -> Lane:
    """Return the lane for a framework's adapter, with its own run call and a scripted model on loopback."""
    place = name.replace("-", "_")
    return Lane((f"integrations/{place}", f"integrations/test_{place}*.py"), name, packages, (package,))


LANES: dict[str, Lane] = {
    "mcp": framework("mcp", "fastmcp"),
    "langchain": framework("langchain", "langchain", "langchain-openai"),
    "openai-agents": framework("openai-agents", "openai-agents"),
    "pydantic-ai": framework("pydantic-ai", "pydantic-ai-slim", "pydantic-ai-slim[openai]"),
    "adk": framework("adk", "google-adk", "litellm", "mcp"),
    "claude": framework("claude", "claude-agent-sdk"),
    "agent-framework": framework("agent-framework", "agent-framework-core", "agent-framework-openai"),
    "litellm": framework("litellm", "litellm"),
    "loop": Lane(("integrations/test_loop.py",), versions=("openai",)),
    "verifiers": Lane(("align/test_adapters.py",), packages=("verifiers",), versions=("verifiers",)),
    "inspect": Lane(("align/test_inspect_task.py",), packages=("inspect-ai",), versions=("inspect-ai",)),
    "train": Lane(
        ("align/training",), "train", versions=("torch", "transformers", "trl", "peft"), may_skip="needs a GPU"
    ),
    "browser": Lane(
        ("report/browser", "console/browser", "reading/browser"), "serve", ("playwright",), ("playwright",),
        program="chromium"
    ),
    "model": Lane(("llm/test_small_model.py",), packages=("xllamacpp",), versions=("xllamacpp",),
                  variable="BYLAW_WEIGHTS"),
    "mona": Lane(("rule/temporal/test_mona.py",), program="mona"),
    "storm": Lane(("rule/temporal/test_risk.py",), packages=("stormpy",), versions=("stormpy",)),
    "ray": Lane(("audit/test_on_ray.py",), "ray", versions=("ray",)),
    "s3": Lane(
        ("audit/test_s3.py",), "parquet,zstd,remote", ("s3fs", "moto[server]", "boto3"), ("s3fs", "moto")
    ),
    "delta": Lane(("audit/test_delta.py",), "parquet", ("deltalake",), ("deltalake",)),
    "kubernetes": Lane(
        ("deploy/test_manifests.py",), packages=("kubernetes-validate",), versions=("kubernetes-validate",)
    ),
    "site": Lane(("docs/test_site.py",), packages=("mkdocs-material",), versions=("mkdocs-material",)),
    "slow": Lane(
        ("align/test_tasks.py", "audit", "bench", "clinic", "compile", "guard", "test_installing.py"),
        "serve,mcp,compile,learn,parquet",
        marks="slow",
    ),
}  # fmt: skip


class Outcome(NamedTuple):
    """A row of the table."""

    lane: str
    passed: int
    failed: int
    skipped: int
    versions: str
    day: str
    seconds: int
    remark: str


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lanes", nargs="*", metavar="LANE", help=f"of {', '.join(LANES)}; all by default")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bylaw-lanes")
    parser.add_argument("--page", type=Path, help="where the table is kept")
    parser.add_argument("--fresh", action="store_true", help="make the environments anew, with today's versions")
    given = parser.parse_args()
    if unknown := sorted(set(given.lanes) - set(LANES)):
        parser.error(f"no such lane: {', '.join(unknown)}")
    rows = read_page(given.page)
    all_good = True
    for name in given.lanes or LANES:
        outcome, is_good = run(name, LANES[name], given.folder / name, fresh=given.fresh)
        all_good &= is_good
        if outcome.passed or outcome.failed or name not in rows:
            rows[name] = tuple(map(str, outcome))
        if given.page:
            given.page.write_text(f"{INTRODUCTION}\n{table(rows)}\n", encoding="utf-8")
    print(table(rows))
    return 0 if all_good else 1


def run(name: str, lane: Lane, environment: Path, *, fresh: bool) -> tuple[Outcome, bool]:
    """Run a lane. Return its row and whether it passed."""
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    if lack := lane.lack():
        print(f"{name}: not run: {lack}", flush=True)
        return Outcome(name, 0, 0, 0, "", day, 0, f"not run: {lack}"), True
    python = prepare(name, lane, environment, fresh=fresh)
    found = [path for pattern in lane.tests for path in sorted((ROOT / "tests").glob(pattern))]
    assert found, f"{name}: no such tests: {lane.tests}"
    report = environment / "report.xml"
    command = [python, "-m", "pytest", *found, "-q", "-n", "0", "-rs", "-m", lane.marks, f"--junitxml={report}"]
    print(f"{name}: {' '.join(str(path.relative_to(ROOT)) for path in found)}", flush=True)
    report.unlink(missing_ok=True)
    started = time.perf_counter()
    ran = subprocess.run(command, cwd=ROOT, check=False)
    seconds = round(time.perf_counter() - started)
    cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    skips = [skip.get("message") or "" for case in cases for skip in case.findall("skipped")]
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    passed = len(cases) - failed - len(skips)
    missed = [reason for reason in skips if not (lane.may_skip and lane.may_skip in reason)]
    outcome = Outcome(
        name, passed, failed, len(skips), versions(python, lane.versions), day, seconds, "; ".join(sorted(set(skips)))
    )
    return outcome, ran.returncode == 0 and passed > 0 and not missed


def prepare(name: str, lane: Lane, environment: Path, *, fresh: bool) -> Path:
    """Return the Python of the environment of the lane."""
    python = environment / "bin" / "python"
    if fresh:
        shutil.rmtree(environment, ignore_errors=True)
    if not python.exists():
        print(f"{name}: making its environment", flush=True)
        environment.parent.mkdir(parents=True, exist_ok=True)
        bylaw = f"{ROOT}[{lane.extras}]" if lane.extras else str(ROOT)
        subprocess.run(["uv", "venv", "-q", "--python", "3.11", environment], check=True)
        # The environment is outside the project's folder, because users do not have the project's version pins.
        install = ["uv", "pip", "install", "-q", "--python", python, "-e", bylaw, "-e", str(ROOT / "lab")]
        subprocess.run([*install, *lane.packages, *TESTING], check=True, cwd=environment.parent)
    return python


def versions(python: Path, packages: Iterable[str]) -> str:
    shown = "import sys, importlib.metadata as m; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep=', ')"
    return subprocess.run([python, "-c", shown, *packages], capture_output=True, text=True, check=True).stdout.strip()


def read_page(page: Path | None) -> dict[str, tuple[str, ...]]:
    """Return the rows of an earlier version of the page, by lane."""
    lines = page.read_text(encoding="utf-8").splitlines() if page and page.exists() else []
    cells = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("|")]
    return {row[0]: row for row in cells[2:]}


def table(rows: dict[str, tuple[str, ...]]) -> str:
    known = [rows[name] for name in LANES if name in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (HEAD, ("---",) * len(HEAD), *known))


if __name__ == "__main__":
    sys.exit(main())
