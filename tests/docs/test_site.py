"""The documentation as a site: links lead somewhere, pages are in the navigation, nothing comes from elsewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("material", reason="needs mkdocs-material")

ROOT = Path(__file__).parent.parent.parent
_LOADED = re.compile(
    r'<(?:script|img|iframe)[^>]*\ssrc="(?:https?:)?//|<link[^>]*\shref="(?:https?:)?//|url\((?:https?:)?//'
)


def test_the_site_is_whole_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert {"index.html", "guides/audit.html", "front/ARCHITECTURE.html"} <= {
        page.relative_to(tmp_path).as_posix() for page in pages
    }
    for page in [*pages, *tmp_path.rglob("*.css")]:
        found = _LOADED.search(page.read_text(encoding="utf-8"))
        assert found is None, f"{page.name}: {found}"
    assert "consent" in (tmp_path / "search" / "search_index.json").read_text(encoding="utf-8")
