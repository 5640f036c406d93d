"""The packs and worlds of one audit, and which of them judge a conversation."""

import importlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from bylaw.errors import FormatError, PackError, UsageError, WorldError
from bylaw.facts.database import open_snapshot
from bylaw.facts.world import Snapshot, World
from bylaw.pack import Pack, build_pack, load_pack
from bylaw.policy.document import Document
from bylaw.policy.folder import find_folder, read_folder
from bylaw.trace.source import LogFile, RemoteFile
from bylaw.trace.trajectory import Trajectory

_TEXTS = 256
"""Different instructions that are cached; logs usually repeat a few."""
_OURS = "bylaw.packs."
"""Only packs that come with Bylaw may contain code for a world."""


class Shelf:
    """A pack, or the variants of one, with the worlds they are judged against."""

    def __init__(self, name: str, *, world: Path | None = None, document: Path | None = None) -> None:
        root = find_folder(name)
        folder = read_folder(root, cases=False)
        manifest = folder.manifest
        variants = manifest.variants
        if variants and folder.faults:
            raise PackError(folder.faults, place=root.name)
        self.name = str(manifest.name or name)
        packs = _load_variants([root / str(variant.name) for variant in variants], document)
        self._variants: list[tuple[dict[str, Any], Pack]] = [
            (variant.when, pack) for variant, pack in zip(variants, packs, strict=True)
        ]
        self._about = manifest.about
        self._only = None if variants else build_pack(folder, document=document)
        self._world_path = world
        self.opened: Any = None if world is None else _open(self.packs[0], world)
        self._worlds: dict[tuple[str, str], tuple[str, World | None]] = {}
        self._changed: dict[tuple[str, str], tuple[str, ...]] = {}

    @property
    def packs(self) -> list[Pack]:
        """Every pack on the shelf."""
        return [pack for _, pack in self._variants] if self._only is None else [self._only]

    @property
    def not_in_world(self) -> list[str]:
        """The entities with a look-up that the database does not have."""
        if not isinstance(self.opened, Snapshot):
            return []
        looked_up = (each for each in self.packs[0].schema.entities.values() if each.key and each.read is not None)
        return [each.name for each in looked_up if self.opened.members(each.name, {}) is None]

    def pack_for(self, trajectory: Trajectory) -> Pack:
        """The first variant whose conditions the trajectory meets. Raises `FormatError` if the pack is for other
        conversations, `WorldError` if the world is of another variant."""
        for name, ours in self._about.items():
            theirs = trajectory.details.get(name)
            if theirs is not None and not fnmatchcase(str(theirs), str(ours)):
                raise FormatError(
                    f"these conversations have {name} `{theirs}`, but pack `{self.name}` is for `{ours}`",
                    hint="to judge them anyway, name a variant of the pack" if self._variants else "",
                )
        pack = self._only if self._only is not None else self._variant_for(trajectory)
        if self.opened is not None and pack.world:
            self.opened.check(pack.name)
        return pack

    def _variant_for(self, trajectory: Trajectory) -> Pack:
        for when, pack in self._variants:
            if all(getattr(trajectory, name, None) == value for name, value in when.items()):
                return pack
        return self._variants[-1][1]

    def world_for(self, pack: Pack, file: LogFile) -> tuple[str, World | None]:
        """The world for one file of runs, and its name in the given folder."""
        if self._world_path is None:
            return "", None
        if pack.world and isinstance(file, RemoteFile):
            raise WorldError("the world of these runs can only be found in a local file", hint="audit a local copy")
        key = (pack.name, str(file))
        if key not in self._worlds:
            self._worlds[key] = ("", self.opened) if not pack.world else self.opened.for_runs(file, pack.name)
        return self._worlds[key]

    def changed_policies(self, pack: Pack, trajectory: Trajectory) -> tuple[str, ...]:
        """Policies with sentences that the recorded instructions do not contain verbatim.

        Empty if no instructions were recorded, or if they contain no sentence of the document.
        """
        text = trajectory.instructions
        if not text or not pack.digests:
            return ()
        key = (pack.digest, text)
        if key not in self._changed:
            if len(self._changed) >= _TEXTS:
                self._changed.clear()
            self._changed[key] = pack.changed_in(Document(text))
        return self._changed[key]


def _load_variants(roots: list[Path], document: Path | None) -> list[Pack]:
    """The variants of a pack. A document is used by the variants that it fits best."""
    packs = [load_pack(root, document=document, cases=False) for root in roots]
    if document is None or not packs:
        return packs
    best = min(len(pack.stale) for pack in packs)
    return [
        pack if len(pack.stale) == best else load_pack(root, cases=False)
        for root, pack in zip(roots, packs, strict=True)
    ]


def open_tasks(shelf: Shelf, path: Path) -> Any:
    """The tasks of a benchmark; their gold actions define a good outcome."""
    for pack in shelf.packs:
        if pack.world and hasattr(_module(pack), "open_tasks"):
            if shelf.opened is None:
                raise UsageError("--tasks needs a database to replay gold actions on", hint="give --world")
            return _module(pack).open_tasks(path, shelf.opened)
    raise UsageError(f"pack `{shelf.name}` does not use tasks", hint="leave out --tasks")


def _open(pack: Pack, world: Path) -> Any:
    """Open a world. This happens before any log is read, so that errors appear at once."""
    return _module(pack).open_world(world) if pack.world else open_snapshot(world, pack.schema)


def _module(pack: Pack) -> Any:
    if not pack.world.startswith(_OURS):
        raise UsageError(f"pack `{pack.name}` may not contain code for its world", hint="give an SQLite or JSON file")
    try:
        return importlib.import_module(pack.world)
    except ImportError:
        hint = "give an SQLite or JSON file, and leave out `world:` in pack.yaml"
        raise UsageError(f"pack `{pack.name}` names a world `{pack.world}` that does not exist", hint=hint) from None
