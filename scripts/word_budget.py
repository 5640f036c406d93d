"""Fails if the documentation exceeds its word budget: python scripts/word_budget.py."""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
WORDS = {
    "README.md": 900,
    "docs/guides": 18_000,
    "docs/reference": 25_000,
    "docs/results": 2_500,
    "docs/decisions": 3_400,
    "docs": 65_000,
}
DECISIONS = 30


def words(path: Path) -> int:
    files = path.rglob("*.md") if path.is_dir() else [path]
    return sum(len(file.read_text(encoding="utf-8").split()) for file in files)


def main() -> int:
    over = [(name, words(ROOT / name), most) for name, most in WORDS.items() if words(ROOT / name) > most]
    for name, count, most in over:
        print(f"{name}: {count:,} words, {most:,} at most", file=sys.stderr)
    count = len(list((ROOT / "docs" / "decisions").glob("*.md")))
    if count > DECISIONS:
        print(f"docs/decisions: {count} decisions, {DECISIONS} at most", file=sys.stderr)
    return 1 if over or count > DECISIONS else 0


if __name__ == "__main__":
    sys.exit(main())
