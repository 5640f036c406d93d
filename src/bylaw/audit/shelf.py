"""The packs and worlds of one audit: which of them a conversation is held to."""

import importlib
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from bylaw.errors import FormatError, PackError, UsageError, WorldError
from bylaw.facts.database import open_snapshot
from bylaw.facts.world import World
from bylaw.pack import Pack, build_pack, load_pack
from bylaw.policy.document import Document
from bylaw.policy.folder import find_folder, read_folder
from bylaw.trace.log_file import LogFile, RemoteFile
from bylaw.trace.trajectory import Trajectory

_TEXTS = 256
"""How many different instructions are remembered; logs that repeat them repeat a few."""
_OURS = "bylaw.packs."
"""Only packs that come with Bylaw may bring code of their own for a world."""


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

    def adapt(self, change: Callable[[Pack], Pack]) -> None:
        """Put another in the place of every pack, with the same policies."""
        self._variants = [(when, change(pack)) for when, pack in self._variants]
        self._only = change(self._only) if self._only is not None else None

    def pack_for(self, trajectory: Trajectory) -> Pack:
        """The variant whose conditions the trajectory meets, the first that does; `FormatError` where the pack is about
        something else than the trajectory says of itself, `WorldError` where the world is of another variant."""
        for name, ours in self._about.items():
            theirs = trajectory.details.get(name)
            if theirs is not None and not fnmatchcase(str(theirs), str(ours)):
                raise FormatError(
                    f"conversations of the {name} `{theirs}`, and pack `{self.name}` is about `{ours}`",
                    hint="name a variant of the pack to judge them all the same" if self._variants else "",
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
        """The world for one file of runs, and which part of the given folder it is."""
        if self._world_path is None:
            return "", None
        if pack.world and isinstance(file, RemoteFile):
            raise WorldError("which world it is of is found by reading the file again", hint="audit a local copy")
        key = (pack.name, str(file))
        if key not in self._worlds:
            self._worlds[key] = ("", self.opened) if not pack.world else self.opened.for_runs(file, pack.name)
        return self._worlds[key]

    def changed_policies(self, pack: Pack, trajectory: Trajectory) -> tuple[str, ...]:
        """Policies whose sentences the instructions recorded with the trajectory do not contain word for word.

        Empty where no instructions were recorded or they hold none of the policy's sentences at all.
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
    """The variants of a pack. A document is that of the variants whose sentences it holds best, and of no other."""
    packs = [load_pack(root, document=document, cases=False) for root in roots]
    if document is None or not packs:
        return packs
    best = min(len(pack.stale) for pack in packs)
    return [
        pack if len(pack.stale) == best else load_pack(root, cases=False)
        for root, pack in zip(roots, packs, strict=True)
    ]


def open_tasks(shelf: Shelf, path: Path) -> Any:
    """The tasks of a benchmark, whose gold actions say what a good outcome is."""
    for pack in shelf.packs:
        if pack.world and hasattr(_module(pack), "open_tasks"):
            if shelf.opened is None:
                raise UsageError("--tasks needs a database to replay gold actions on", hint="give --world")
            return _module(pack).open_tasks(path, shelf.opened)
    raise UsageError(f"pack `{shelf.name}` has no use for tasks", hint="leave out --tasks")


def _open(pack: Pack, world: Path) -> Any:
    """Opened before anything is read, so that a fault of it is told at once."""
    return _module(pack).open_world(world) if pack.world else open_snapshot(world, pack.schema)


def _module(pack: Pack) -> Any:
    if not pack.world.startswith(_OURS):
        raise UsageError(f"pack `{pack.name}` may not bring code for its world", hint="give an SQLite or JSON file")
    try:
        return importlib.import_module(pack.world)
    except ImportError:
        hint = "give an SQLite or JSON file, and leave out `world:` in pack.yaml"
        raise UsageError(f"pack `{pack.name}` names a world `{pack.world}` that is not there", hint=hint) from None
