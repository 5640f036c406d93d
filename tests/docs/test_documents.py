"""Every command in the README and the guides works as written."""

from pathlib import Path

import pytest

from .walkthrough import ROOT, walk

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_command_of_a_document_runs_as_written(document: Path, tmp_path: Path) -> None:
    assert walk(document, tmp_path) > 0


def test_every_relative_link_leads_somewhere() -> None:
    import re

    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.relative_to(ROOT)}: {target}"
