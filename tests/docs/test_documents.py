"""Every command in the README, the guides and the reference works as written."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.suite import Demo

from .walkthrough import ROOT, walk

REFERENCE = ROOT / "docs" / "reference"
DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "guides").glob("*.md")),
    *(REFERENCE / name for name in ("cli-models.md", "rules-in-a-pack.md")),
]
PACK_PAGES = [REFERENCE / name for name in ("pack.md", "tools-and-things.md", "cases-and-worlds.md")]
"""Together they make up one pack."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
@pytest.mark.usefixtures("quick_workers")
def test_every_command_of_a_document_runs_as_written(document: Path, tmp_path: Path, demo: Demo) -> None:
    assert walk(document, tmp_path, demo) > 0


def test_the_pages_on_packs_make_up_one_pack(tmp_path: Path, demo: Demo) -> None:
    assert sum(walk(page, tmp_path, demo) for page in PACK_PAGES) > 1


def test_every_relative_link_leads_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.relative_to(ROOT)}: {target}"


def test_every_link_to_a_heading_finds_it() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target, anchor in re.findall(r"\]\(([^)#\s]*)#([^)\s]+)\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                page = document if not target else document.parent / target
                assert anchor in _anchors(page), f"{document.relative_to(ROOT)}: {target}#{anchor}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/guides/*.md"), *ROOT.glob("docs/reference/*.md")]:
        if page.name != "README.md":
            assert page.relative_to(ROOT / "docs").as_posix() in index, page.name


def test_everything_the_architecture_names_is_where_it_says() -> None:
    text, source = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), ROOT / "src" / "bylaw"
    table = text.partition("## Where to look")[2].partition("\n## ")[0]
    files = re.findall(r"`([\w/]+\.py)`", table)
    assert len(files) > 20
    assert [file for file in files if not (source / file).is_file()] == []
    named = re.findall(r"`([\w.]+)`(?: and `([\w.]+)`)? in `([\w/]+\.py)`", table)
    assert len(named) > 10
    for *names, file in named:
        code = (source / file).read_text(encoding="utf-8")
        for name in filter(None, names):
            assert re.search(rf"(?:def|class) {name.rpartition('.')[2]}\b", code), f"{name} in {file}"


def test_the_reference_shows_the_help_of_every_command() -> None:
    check = [sys.executable, str(ROOT / "scripts" / "cli_reference.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_reference_names_every_key_that_an_audit_writes(demo: Demo) -> None:
    page = (REFERENCE / "audit-output.md").read_text(encoding="utf-8")
    out = demo.folder / "bylaw-demo"
    records: list[Any] = [json.loads((out / "summary.json").read_bytes())]
    for name in ("calls.jsonl", "findings.jsonl"):
        lines = (out / name).read_bytes().splitlines()
        assert lines
        records += [json.loads(line) for line in lines]
    for conversation in (out / "conversations.jsonl").read_bytes().splitlines():
        records.append(dict.fromkeys(json.loads(conversation)))
    missing = {key for record in records for key in _keys(record) if f"`{key}`" not in page and f'"{key}"' not in page}
    assert not missing


FREE = frozenset(
    (
        "by_tool",
        "by_lookup",
        "by_policy",
        "by_rule",
        "rules",
        "reasons",
        "answered",
        "args",
        "agents",
        "tools",
        "unmapped_fields",
        "outcome_from",
    )
)
"""Below these stand names of the logs and of the pack."""
VERDICTS = frozenset(("compliant", "violation", "near_miss", "uninformed", "inconclusive"))


def _keys(value: Any, *, free: bool = False) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _keys(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if not free and name not in VERDICTS:
                yield name
            yield from _keys(item, free=name in FREE)


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#{1,6}\s+(.*?)\s*$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
