"""Packs that many tests ask for, each made once: nothing in a pack changes.

So it is with packs of texts (`made`), and in every test with those that come with Bylaw; the YAML files of any pack are
parsed once, and everybody gets a copy. Tests load packs thousands of times, and most of these are the same few.
"""

import pickle
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

import pytest

import bylaw.pack
import bylaw.pack.pack
from bylaw.pack import Pack, build_pack
from bylaw.policy import folder as folders
from bylaw.policy.folder import READY, PackFolder
from bylaw.policy.yaml import Located

_read_yaml = folders.read_yaml
_understood: dict[bytes, Pack] = {}


def _understand(folder: PackFolder, *, document: Path | None = None) -> Pack:
    if document is not None or folder.faults or not folder.root.is_relative_to(READY):
        return build_pack(folder, document=document)
    # All that was read, and not its digest: somebody may have changed it since.
    key = pickle.dumps(folder)
    if key not in _understood:
        _understood[key] = build_pack(folder)
    return _understood[key]


@lru_cache(maxsize=256)
def _parsed(text: str, file: str) -> tuple[Located, bytes]:
    found = _read_yaml(text, file=file)
    return found, pickle.dumps(found.data)


def _copied(text: str, *, file: str) -> Located:
    found, data = _parsed(text, file)
    return found.with_data(pickle.loads(data))


bylaw.pack.build_pack = bylaw.pack.pack.build_pack = _understand
folders.read_yaml = _copied


@pytest.fixture
def packs_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test of the reading itself, which may not find it done."""
    monkeypatch.setattr("bylaw.pack.pack.build_pack", build_pack)
    monkeypatch.setattr("bylaw.policy.folder.read_yaml", _read_yaml)


def made(files: Mapping[str, str]) -> Pack:
    """The pack of these texts."""
    return _made(tuple(files.items()))


@cache
def _made(files: tuple[tuple[str, str], ...]) -> Pack:
    return Pack.from_files(dict(files))
