"""Plants deliberate bugs, one at a time, and checks that the tests or the clinic's truth detect each of them.

    python lab/scripts/plant_bugs.py [NUMBER | FROM-TO ...] [--only WORD] [--own] [--kept FILE] [--list]

The script works on copies of `src` in a temporary folder and never changes the sources. For each bug, it first runs the
tests that should detect it. If they pass, it runs all others (not with `--own`). The first tests must pass without the
bug. With `--kept`, the script skips the bugs that FILE lists as detected, so that it can continue an interrupted run.
The exit status is 1 if a bug is not detected or no longer applies. The bugs are in `lab/scripts/planted`.
"""

import argparse
import compileall
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import cache_from_source
from pathlib import Path
from time import perf_counter

from planted import BUGS, Bug

ROOT = Path(__file__).resolve().parents[2]
OTHERS = ("facts", "guard", "rule", "policy", "record", "engine", "shield", "answering", "audit", "compile", "service")
"""The folders of tests to run if the tests for a bug pass, the fastest first."""
TRUTH = ("lab/benchmarks/clinic_truth.py", "--seeds", "1", "--count", "120", "--show", "1")
LIMIT_S = 900
SURVIVES = "NOT CAUGHT"


def main() -> int:
    """Try the given bugs, or all of them, and print a table."""
    parser = argparse.ArgumentParser(description="plant bugs and see that the tests catch each")
    parser.add_argument("numbers", nargs="*", metavar="NUMBER", help="the bugs to try: 3, or 7-12")
    parser.add_argument("--only", default="", help="only bugs whose name or file has this word")
    parser.add_argument("--own", action="store_true", help="run no tests but those that are for a bug")
    parser.add_argument("--kept", type=Path, help="a file of bugs caught so far, which are not tried again")
    parser.add_argument("--list", action="store_true", help="list the bugs and try none")
    options = parser.parse_args()
    asked = {number for each in options.numbers for number in _range(each)}
    chosen = [
        (number, bug)
        for number, bug in enumerate(BUGS, 1)
        if (not asked or number in asked) and (options.only in bug.name or options.only in bug.file)
    ]
    if options.list:
        print("\n".join(f"{number:3} {bug.name}  ({bug.file}; {' '.join(bug.tests)})" for number, bug in chosen))
        return 0
    caught = set(options.kept.read_text().splitlines()) if options.kept and options.kept.exists() else set[str]()
    left = [(number, bug) for number, bug in chosen if bug.name not in caught]
    return _try_all(left, options.kept, own=options.own) if left else 0


def _range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _try_all(chosen: list[tuple[int, Bug]], kept: Path | None, *, own: bool) -> int:
    started = perf_counter()
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        sound = Path(folder) / "src"
        shutil.copytree(ROOT / "src", sound, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(sound, quiet=2)
        tests = sorted({test for _, bug in chosen for test in bug.tests})
        if (failing := _failing(sound, tests)) is not None:
            print(f"the sound source fails: {failing}")
            return 2
        width = max(len(bug.name) for _, bug in chosen)
        print(f"{'':3} {'bug':{width}}  {'seconds':>7}  caught by", flush=True)
        for number, bug in chosen:
            since = perf_counter()
            caught = _caught(bug, sound, own=own)
            print(f"{number:3} {bug.name:{width}}  {perf_counter() - since:7.1f}  {caught}", flush=True)
            survived += caught.startswith("NOT")
            if kept and not caught.startswith("NOT"):
                with kept.open("a") as file:
                    file.write(f"{bug.name}\n")
    print(f"{len(chosen) - survived} of {len(chosen)} bugs caught in {perf_counter() - started:.0f} s")
    return 1 if survived else 0


def _caught(bug: Bug, sound: Path, *, own: bool) -> str:
    """Return what detects the bug: the first failing test or, if none fails, a difference from the truth about the
    clinic.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(sound, source)
        if (target := bug.place(source)) is None:
            return f"NOT PLANTED: neither `{bug.file}` nor one other file of its area has that text"
        text = target.read_text(encoding="utf-8")
        target.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
        # Bytecode is cached by file size and second, so a bug of the same length could be missed.
        Path(cache_from_source(target)).unlink()
        if (failing := _failing(source, bug.tests)) is not None or own:
            return failing or SURVIVES
        return _failing(source, [f"tests/{name}" for name in OTHERS]) or _untrue(source) or SURVIVES


def _failing(source: Path, tests: list[str] | tuple[str, ...]) -> str | None:
    """Return the first of these tests that fails with this source."""
    ran = _run(source, "-m", "pytest", "-x", "-q", "-n", "0", "--no-header", "-p", "no:cacheprovider", *tests)
    if ran is None:
        return f"it runs for more than {LIMIT_S} s"
    if ran.returncode == 0:
        return None
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].removeprefix("FAILED ").partition(" - ")[0] if failed else (ran.stdout + ran.stderr)[-200:].strip()


def _untrue(source: Path) -> str | None:
    """Return the differences between this source and the truth about the clinic."""
    ran = _run(source, *TRUTH)
    if ran is None or ran.returncode == 0:
        return None if ran else f"the clinic's truth takes more than {LIMIT_S} s"
    return next((line for line in ran.stdout.splitlines() if line.startswith("differences")), ran.stderr[-100:].strip())


def _run(source: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    """Run Python with this source. None if it does not end."""
    environment = {
        **os.environ,
        "PYTHONPATH": f"{source}{os.pathsep}{ROOT}",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(source.parent / "hypothesis"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        return subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return None


if __name__ == "__main__":
    sys.exit(main())
