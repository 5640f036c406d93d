"""Builds the release, tries it, and uploads it only if asked: python scripts/publish.py [--upload]

The version must be the same in pyproject.toml, in the package and at the top of CHANGELOG.md. The wheel is installed
into an empty environment, where its demo runs. `--upload` also needs a clean working tree and the version's tag, and
takes its token from UV_PUBLISH_TOKEN. Without it, the files for upload are only listed.
"""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main() -> int:
    is_real = "--upload" in sys.argv
    version, notes = checked_version(ROOT)
    faults = untidy(version)
    for fault in faults:
        print(f"{'refused' if is_real else 'before an upload'}: {fault}")
    if is_real and faults:
        return 1
    with tempfile.TemporaryDirectory(prefix="bylaw-publish-") as folder:
        built = build(Path(folder))
        try_out(Path(folder), version)
        for file in built:
            print(f"{file.name}  {file.stat().st_size:,} bytes  sha256 {hashlib.sha256(file.read_bytes()).hexdigest()}")
        print(f"\n{notes}")
        if is_real:
            uv("publish", *map(str, built))
    print(f"bylaw {version} was {'uploaded' if is_real else 'built and tried; nothing was uploaded (--upload does)'}")
    return 0


def checked_version(root: Path) -> tuple[str, str]:
    """Return the version and its notes. Raises an error if the versions differ."""
    told = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    package = (root / "src" / "bylaw" / "__init__.py").read_text(encoding="utf-8")
    held = re.search(r'^__version__ = "(.*)"$', package, re.MULTILINE)
    first = re.search(r"^## (\S+)\n(.*?)(?=^## |\Z)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M | re.S)
    found = {"pyproject.toml": told, "bylaw": held and held[1], "CHANGELOG.md": first and first[1]}
    if first is None or len({*found.values()}) > 1:
        sys.exit(f"versions differ: {', '.join(f'{place} {version}' for place, version in found.items())}")
    return told, f"{first[0].strip()}\n"


def untidy(version: str) -> list[str]:
    """Return the reasons to refuse an upload."""
    changed = git("status", "--porcelain")
    is_tagged = f"v{version}" in git("tag", "--points-at", "HEAD").split()
    return [
        *(["the working tree has changes"] if changed else []),
        *([] if is_tagged else [f"HEAD has no tag v{version}"]),
    ]


def build(folder: Path) -> list[Path]:
    """Build the source distribution, and the wheel from it."""
    uv("build", "--quiet", "--out-dir", str(folder / "dist"), str(ROOT))
    return sorted(file for file in (folder / "dist").iterdir() if file.name.endswith((".whl", ".tar.gz")))


def try_out(folder: Path, version: str) -> None:
    """Install the wheel into an empty environment, and run it there."""
    environment = folder / "environment"
    programs = environment / ("Scripts" if os.name == "nt" else "bin")
    (wheel,) = (folder / "dist").glob("*.whl")
    uv("venv", "--quiet", "--no-project", "--python", sys.executable, str(environment))
    uv("pip", "install", "--quiet", "--python", str(programs / "python"), str(wheel))
    alone = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    for arguments, said in ((["--version"], version), (["demo"], "NEAR-MISS")):
        told = subprocess.run(
            [programs / "bylaw", *arguments], cwd=folder, env=alone, capture_output=True, text=True, check=True
        )
        if said not in told.stdout:
            sys.exit(f"`bylaw {arguments[0]}` of the wheel does not say {said}")


def uv(*arguments: str) -> None:
    subprocess.run([os.environ.get("UV", "uv"), *arguments], check=True)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    sys.exit(main())
