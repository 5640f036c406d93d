"""Packs may be read in several threads at once."""

import gc
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import bylaw
from bylaw.pack import load_pack
from bylaw.text.python import parse_python

SOURCES = Path(bylaw.__file__).parent
APART = ("text/python.py", "packs/")
"""What comes with a pack runs in a simulator of its own."""


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns while syntax trees are made: whenever garbage is collected."""
    before = gc.get_threshold()
    often: Callable[..., None] = lambda *_: time.sleep(0)  # noqa: E731
    gc.callbacks.append(often)
    gc.set_threshold(200)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(often)


@pytest.mark.usefixtures("hurried", "packs_read_anew")
def test_packs_are_read_in_several_threads_at_once() -> None:
    deep = f"x = {'(' * 40}1{' + 1)' * 40}"
    flat = "\n".join(f"x{number} = f(y.z > {number})" for number in range(100))
    with ThreadPoolExecutor(4) as threads:
        trees = list(threads.map(parse_python, [deep, flat] * 40))
        packs = list(threads.map(load_pack, ["clinic"] * 2))
    assert len(trees) == 80
    assert len({pack.pin for pack in packs}) == 1


def test_nothing_of_ours_parses_python_elsewhere() -> None:
    files = {str(path.relative_to(SOURCES)): path.read_text("utf-8") for path in SOURCES.rglob("*.py")}
    found = [name for name, text in files.items() if re.search(r"\bast\.(parse|literal_eval)\(", text)]
    assert [name for name in found if not name.startswith(APART)] == []
