"""Which files a pack may have us read: those of its own folder, of a bounded size, unless whoever runs us allows more.

A pack may come from anybody, and what it names is read, cited and shown: `document: ../../.ssh/id_rsa` would put a key
into a report. So a path that leads out of the pack's folder, by itself or by a link, is a fault of the pack.
"""

import os
from pathlib import Path
from typing import Any, cast

from bylaw.errors import BylawError
from bylaw.policy.yaml import YamlError, read_yaml

OUTSIDE = "BYLAW_OUTSIDE"
"""Names folders, parted as in PATH, that packs may be read from beside their own."""
READY = Path(__file__).parent.parent / "packs"
"""Where the packs that come with Bylaw lie; they may read from one another."""
LARGEST = 16_000_000
"""Bytes of a file of a pack that is read."""
_HINT = f"allow it with `{OUTSIDE}=FOLDER`, if it is yours, or copy the file into the pack"


class OutsideError(YamlError):
    """A pack names a file that is not its own, or one that is too large to be read."""


class Reach:
    """The folders that the pack in `root` may be read from."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders = [_resolved(root)]
        self._is_wide = False

    def holds(self, path: Path) -> bool:
        """Whether a path, wherever its links lead, lies in one of them."""
        found = _resolved(path)
        if found is None:
            return False
        if not self._is_wide and not self._has(found):
            # Only a pack that leads out of its folder has us look at what lies around it.
            allowed = [Path(each) for each in os.environ.get(OUTSIDE, "").split(os.pathsep) if each]
            self._folders += [_resolved(each) for each in (_home(self._root), *allowed)]
            self._is_wide = True
        return self._has(found)

    def _has(self, found: Path) -> bool:
        return any(folder is not None and found.is_relative_to(folder) for folder in self._folders)

    def read(self, path: Path, *, file: str) -> bytes:
        """What the file at a path holds; `OutsideError` where it is not to be read, `OSError` where it cannot be."""
        if not self.holds(path):
            raise OutsideError("lies outside of the pack's folder", place=file, hint=_HINT)
        # Where the last part has become a link since, it is not followed, and a pipe does not keep us waiting.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        with open(os.open(path.resolve(), flags | getattr(os, "O_NOFOLLOW", 0)), "rb") as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise OutsideError(f"is larger than {LARGEST // 1_000_000} MB", place=file)
        return data


def outside(path: str, *, place: str) -> OutsideError:
    """The fault of a pack that names what lies elsewhere."""
    return OutsideError(f"`{path[:200]}` lies outside of the pack's folder", place=place, hint=_HINT)


def _home(root: Path) -> Path:
    """The folder of a pack; for a variant that of the pack which chooses it, with what the variants share."""
    if root.resolve().is_relative_to(READY.resolve()):
        return READY
    parent = root.absolute().parent
    try:
        with (parent / "pack.yaml").open("rb") as stream:
            data = read_yaml(stream.read(LARGEST).decode(), file="pack.yaml").data
    except (OSError, ValueError, BylawError):
        return root
    listed: Any = data.get("variants")
    names = (
        [cast("dict[str, Any]", each).get("name") for each in cast("list[Any]", listed) if isinstance(each, dict)]
        if isinstance(listed, list)
        else []
    )
    return parent if root.resolve().name in names else root


def _resolved(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return None


def own_text(root: Path, name: str) -> str:
    """The text of a file of the pack in `root`; an error with its place where it is not to be read, or is none."""
    try:
        return Reach(root).read(root / name, file=name).decode()
    except UnicodeDecodeError:
        raise YamlError("not UTF-8 text", place=name) from None
    except OSError as error:
        raise YamlError(f"cannot be read: {(error.strerror or str(error)).lower()}", place=name) from None


def own_record(root: Path, name: str) -> dict[str, Any]:
    """What a YAML file of the pack in `root` says."""
    return read_yaml(own_text(root, name), file=name).data
