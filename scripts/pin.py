"""Writes requirements/*.txt: the packages for the tests and the container, with versions and hashes.

Run it after changing dependencies or constraints in pyproject.toml: python scripts/pin.py. With --check, it only says
whether the files are up to date. The files name no package index.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXPORT = ("uv", "export", "--quiet", "--no-header", "--no-annotate", "--no-emit-workspace", "--no-default-groups")
SERVICE = ("serve", "postgres", "parquet", "sql", "read-sql", "zstd", "otel")
FILES = {
    "build.txt": ("--only-group", "build"),
    "dev.txt": ("--group", "dev"),
    "service.txt": tuple(f"--extra={name}" for name in SERVICE),
}
"""The content of each file."""


def main() -> int:
    stale: list[str] = []
    for name, wanted in FILES.items():
        path = ROOT / "requirements" / name
        text = subprocess.run([*EXPORT, *wanted], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        if "://" in text:
            print(f"{name} would name a host", file=sys.stderr)
            return 1
        if "--check" in sys.argv:
            stale += [name] if not path.is_file() or path.read_text(encoding="utf-8") != text else []
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"out of date: {', '.join(stale)}; run python scripts/pin.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
