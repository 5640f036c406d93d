"""The requests of a batch as pages that somebody can read and answer, and the answers back.

    python -m bylaw_lab.pages DIR      # DIR is the folder of --llm batch:DIR

Every request of DIR/requests that has no answer becomes a page DIR/pages/NNN.md; its answer belongs in
DIR/pages/NNN.answer.md, word for word and nothing else. The answers there are written to DIR/pages.jsonl, where
`bylaw compile` finds them.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from bylaw.llm.recorded import REQUESTS, Recordings

PAGES = "pages"
_HEAD = "<!-- request {key} -->\n"
_TOLD = "Write the answer, exactly what is asked for and nothing else, to `{name}` beside this file.\n"


def collect(folder: Path) -> int:
    """Write the answers from all pages to DIR/pages.jsonl. Return how many there are."""
    lines: list[str] = []
    for page in _pages(folder):
        answer = page.with_suffix(".answer.md")
        if answer.is_file() and (text := answer.read_text(encoding="utf-8").strip()):
            lines.append(json.dumps({"custom_id": _key(page), "text": text}))
    (folder / f"{PAGES}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def write(folder: Path) -> list[Path]:
    """Write a page for every request without an answer. Return all pages that wait for one."""
    answered = Recordings(folder).keys()
    pages = {_key(page): page for page in _pages(folder)}
    (folder / PAGES).mkdir(parents=True, exist_ok=True)
    for file in sorted((folder / REQUESTS).glob("*.jsonl")):
        for request in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            key = str(request["custom_id"])
            if key not in answered and key not in pages:
                page = folder / PAGES / f"{len(pages) + 1:03}.md"
                page.write_text(_page(key, request["body"], page), encoding="utf-8")
                pages[key] = page
    return [page for key, page in pages.items() if key not in answered]


def _pages(folder: Path) -> list[Path]:
    return [page for page in sorted((folder / PAGES).glob("*.md")) if not page.name.endswith(".answer.md")]


def _key(page: Path) -> str:
    return page.read_text(encoding="utf-8").split("\n", 1)[0].split()[2]


def _page(key: str, body: dict[str, Any], page: Path) -> str:
    told = _TOLD.format(name=page.with_suffix(".answer.md").name)
    messages = "\n\n".join(f"=== {each['role']} ===\n\n{each['content']}" for each in body["messages"])
    return f"{_HEAD.format(key=key)}{told}\n{messages}\n"


def main(folder: Path) -> int:
    """Collect answers and write pages. Return 1 while pages wait for answers."""
    answers, waiting = collect(folder), write(folder)
    print(f"{answers} answers in {folder / PAGES}.jsonl; {len(waiting)} pages wait")
    print("".join(f"{page}\n" for page in waiting), end="")
    return 1 if waiting else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    sys.exit(main(parser.parse_args().folder))
