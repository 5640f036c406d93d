"""The airline's pack with another reading of its document. The guards in `settled.py` replace those of the pack."""

import ast
import shutil
from pathlib import Path

from bylaw.policy.folder import find_folder

SETTLED = Path(__file__).parent / "settled.py"


ARTICLES = "  get_article, list_articles: {effect: read, description: Articles about the airline.}"
"""Tools that some recorded agents had in addition to those of the airline."""


def copied_pack(folder: Path) -> Path:
    """Copy the airline pack to the folder in `BYLAW_OUTSIDE`, and declare the additional tools."""
    pack = folder / "tau_airline"
    shutil.copytree(find_folder("tau-airline"), pack)
    tools = pack / "shared" / "tools.yaml"
    text = tools.read_text(encoding="utf-8")
    tools.write_text(text.replace("\ntools:\n", f"\ntools:\n{ARTICLES}\n"), encoding="utf-8")
    return pack


def settled_pack(folder: Path) -> Path:
    """Return this pack with the readings on which its readers agree."""
    pack = copied_pack(folder)
    given = _functions(SETTLED)
    replaced: set[str] = set()
    for file in pack.glob("*/guards/*.py"):
        text = file.read_text(encoding="utf-8")
        for name, own in _functions(file).items():
            if name in given:
                text = text.replace(own, given[name])
                replaced.add(name)
        file.write_text(text, encoding="utf-8")
    assert replaced == set(given), f"no guard of the pack is called {set(given) - replaced}"
    return pack


def _functions(file: Path) -> dict[str, str]:
    text = file.read_text(encoding="utf-8")
    found = (each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef))
    return {each.name: ast.get_source_segment(text, each) or "" for each in found}
