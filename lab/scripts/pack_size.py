"""Says how long the packs are that come with Bylaw, now and at a commit: lines, and characters.

`python lab/scripts/pack_size.py [COMMIT]` counts the lines that a pack's author writes: `pack.yaml`, `tools.yaml`,
`entities.yaml`, `policies.yaml`, `rules.yaml`, `guards/*.py`, `cases/*.yaml`. Not counted are the policy document,
worlds in Python, simulators and tasks. The default commit is the last before packs had short forms. Characters are
counted beside lines, so that a pack does not pass for short because its lines grew long.
"""

import re
import subprocess
import sys
from pathlib import Path

BEFORE = "a820bb8"
PACKS = ("clinic", "tau_airline")
_WRITTEN = re.compile(r"(/(pack|tools|entities|policies|rules)\.yaml|/guards/\w+\.py|/cases/[\w-]+\.yaml)$")


def main() -> None:
    """Print a line for each pack."""
    before = sys.argv[1] if len(sys.argv) > 1 else BEFORE
    for pack in PACKS:
        then, now = size(pack, before), size(pack, "")
        told = zip(then, now, ("lines", "characters"), strict=True)
        shares = [f"{was:,} to {counted:,} {what} ({counted / was - 1:+.1%})" for was, counted, what in told]
        print(f"{pack}: {', '.join(shares)}")


def size(pack: str, commit: str) -> tuple[int, int]:
    """Lines and characters of a pack at a commit, or in the working tree."""
    folder = f"src/bylaw/packs/{pack}/"
    listing = ("ls-tree", "-r", "--name-only", commit) if commit else ("ls-files", "-co", "--exclude-standard")
    files = [name for name in git(*listing, folder).splitlines() if _WRITTEN.search(name)]
    texts = [git("show", f"{commit}:{name}") if commit else Path(name).read_text(encoding="utf-8") for name in files]
    return sum(text.count("\n") for text in texts), sum(map(len, texts))


def git(*arguments: str) -> str:
    """What a git command prints."""
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
