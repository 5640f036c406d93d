"""What installing and importing Bylaw takes: megabytes, packs' data, and CPU seconds of `import bylaw`.

    uv run python lab/benchmarks/footprint.py

The package is built from this checkout and installed with its dependencies, and nothing else, into an environment
of its own.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTALL_MB, PACKS_MB, IMPORT_S = 25.0, 4.0, 0.2
TIMED = "import time; start = time.process_time(); import {}; print(time.process_time() - start)"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="bylaw-footprint-") as folder:
        home = Path(folder) / "env"
        venv.create(home, with_pip=True)
        python = str(home / "bin" / "python")
        packages = next((home / "lib").glob("python*")) / "site-packages"
        before = set(packages.iterdir())
        pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", str(ROOT)]
        subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
        added = sorted(set(packages.iterdir()) - before, key=size, reverse=True)
        installed = sum(size(path) for path in added)
        packs = size(packages / "bylaw" / "packs")
        print(f"{'installed':28} {installed:8.2f} MB  (goal {INSTALL_MB:.0f})")
        for path in added[:6]:
            print(f"  {path.name:26} {size(path):8.2f} MB")
        print(f"{'packs':28} {packs:8.2f} MB  (goal {PACKS_MB:.0f})")
        slow = 0.0
        for names in ("bylaw", "bylaw.audit.run", "bylaw.cli.app"):
            taken = statistics.median(import_time(python, names) for _ in range(9))
            print(f"{'import ' + names:28} {taken:8.3f} CPU s" + (f"  (goal {IMPORT_S})" if names == "bylaw" else ""))
            slow = taken if names == "bylaw" else slow
    return 0 if installed <= INSTALL_MB and packs <= PACKS_MB and slow <= IMPORT_S else 1


def size(path: Path) -> float:
    """Megabytes, compiled files included."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def import_time(python: str, names: str) -> float:
    """CPU seconds of an import in a new process, the compiled files being there."""
    done = subprocess.run(
        [python, "-c", TIMED.format(names)], capture_output=True, text=True, check=True, env={**os.environ}
    )
    return float(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
