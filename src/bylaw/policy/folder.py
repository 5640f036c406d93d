"""A pack's folder on disk: its files, document and digest."""

import hashlib
import os
import stat
from os.path import isdir, isfile
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from bylaw.errors import BylawError, UsageError, meant
from bylaw.policy.catalogue import CatalogueError, with_catalogue
from bylaw.policy.document import TEXTS, Document, DocumentError, find_files, read_files, read_given
from bylaw.policy.statement import with_kinds, with_stated
from bylaw.policy.tool import Postures
from bylaw.policy.yaml import Located, Read, Scalar, YamlError, read_record, read_yaml

OUTSIDE = "BYLAW_OUTSIDE"
"""The environment variable that lists additional folders from which packs may read. They are separated as in PATH."""
READY = Path(__file__).parent.parent / "packs"
"""The folder of the built-in packs, from which any pack may read."""
LARGEST = 16_000_000
"""The maximum size of a file in a pack, in bytes."""
_HINT = f"if its folder is yours, allow it with `{OUTSIDE}=FOLDER`; otherwise, copy the file into the pack"


class OutsideError(YamlError):
    """Raised if a pack names a file that is outside the allowed folders, too large, or not a regular file."""


class Reach:
    """The folders from which the pack in `root` may read files."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders = [_resolved(root)]
        self._is_wide = False

    def holds(self, path: Path) -> bool:
        """Whether a path is in an allowed folder, after symbolic links are resolved."""
        found = _resolved(path)
        if found is None:
            return False
        if not self._is_wide and not self._has(found):
            # Look up the other folders only if the pack refers to a file outside its own folder.
            allowed = [Path(each) for each in os.environ.get(OUTSIDE, "").split(os.pathsep) if each]
            self._folders += [_resolved(each) for each in (_home(self._root), READY, *allowed)]
            self._is_wide = True
        return self._has(found)

    def _has(self, found: Path) -> bool:
        return any(folder is not None and found.is_relative_to(folder) for folder in self._folders)

    def read(self, path: Path, *, file: str) -> bytes:
        """Read a file. Raise `OutsideError` if the pack may not read it, and `OSError` if reading fails."""
        if not self.holds(path):
            raise OutsideError("is outside the pack's folder", place=file, hint=_HINT)
        # Do not follow a symbolic link that was created after the check, and do not block on a pipe.
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
        with open(os.open(path.resolve(), flags | getattr(os, "O_NOFOLLOW", 0)), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise OutsideError("is not a regular file", place=file)
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise OutsideError(f"is larger than {LARGEST // 1_000_000} MB", place=file)
        return data


def outside(path: str, *, place: str) -> OutsideError:
    return OutsideError(f"`{path[:200]}` is outside the pack's folder", place=place, hint=_HINT)


def _home(root: Path) -> Path:
    """Return a pack's folder. For a variant, return the folder of the pack that contains the variant."""
    if root.resolve().is_relative_to(READY.resolve()):
        return READY
    parent = root.absolute().parent
    return parent if _resolved(root) in map(_resolved, read_variants(parent)) else root


def _resolved(path: Path) -> Path | None:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return None


def own_text(root: Path, name: str) -> str:
    """Read a text file of the pack in `root`. If this fails, the error names the file."""
    try:
        return Reach(root).read(root / name, file=name).decode()
    except UnicodeDecodeError:
        raise YamlError("not UTF-8 text", place=name) from None
    except OSError as error:
        raise YamlError(f"cannot be read: {(error.strerror or str(error)).lower()}", place=name) from None


def own_record(root: Path, name: str) -> dict[str, Any]:
    return read_yaml(own_text(root, name), file=name).data


_PARTS = ("tools", "entities", "policies", "rules", "weights")
_SHARED = {"tools": ("tools", "tables"), "entities": ("observations",)}
"""Sections of YAML files in which one entry may have several names, such as `get_a, get_b: ...`."""


class ManifestError(BylawError):
    code = "BY405"


class NothingEnforces(ManifestError):
    """Raised if a policy has no check and no reviewer has accepted it as unenforced."""


class WrittenDocument(Struct, frozen=True, forbid_unknown_fields=True):
    title: Scalar = "policy"
    sha256: str = ""


Criterion = Literal["strict", "determined"]


class Variant(Struct, frozen=True, forbid_unknown_fields=True):
    """A variant of the pack, and the condition under which it is selected."""

    name: Scalar = ""
    when: dict[str, Any] = {}


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    format: Scalar | None = None
    name: Scalar = ""
    version: Scalar = "0"
    title: Scalar = ""
    description: Scalar = ""
    now: Scalar | None = None
    timezone: Scalar = ""
    """An IANA time zone. The default is UTC."""
    base: Scalar = ""
    world: Scalar = ""
    criterion: Criterion = "determined"
    document: Scalar | list[Scalar] | WrittenDocument | None = None
    """A file, a folder of files, or a list of both. For a document that is kept elsewhere, a `WrittenDocument`."""
    variants: list[Variant] = []
    about: dict[str, Scalar] = {}
    shield: Postures = Postures()


class PackFolder(Struct):
    """A pack's files, with those of its base pack first. Only the manifest is interpreted here."""

    root: Path
    manifest: Manifest
    manifest_source: Located
    parts: dict[str, Located]
    """The contents of the YAML files, under `tools`, `entities`, `policies`, `rules` and `weights`."""
    guards: dict[str, str] = field(default_factory=dict[str, str])
    lookups: dict[str, str] = field(default_factory=dict[str, str])
    cases: dict[str, Located] = field(default_factory=dict[str, Located])
    digest: str = ""
    faults: list[BylawError] = field(default_factory=list[BylawError])

    def read_document(self, given: Path | None) -> Document | None:
        """Return the given document or the document in the manifest, or None if it is kept elsewhere."""
        if given is not None:
            try:
                return read_given(given)
            except DocumentError as error:
                raise UsageError(f"the document {error.why}", place=str(error.path), hint=error.hint) from None
        named = named_documents(self.manifest)
        if not named:
            return None
        place, reach = self.manifest_source.place("document"), Reach(self.root)
        # Do not even list folders outside the pack.
        far = [name for name in named if isdir(self.root / name) and not reach.holds(self.root / name)]
        files = [pair for name in named for pair in find_files(name, self.root)] if not far else []
        if far := far or [name for name, path in files if not reach.holds(path)]:
            self.faults.append(outside(far[0], place=place))
            return None
        try:
            return read_files(named, self.root, lambda name, path: reach.read(path, file=name))
        except DocumentError as error:
            texts = (found.name for found in self.root.glob("*") if found.suffix in TEXTS)
            hint = error.hint or (meant(error.name, texts) if error.is_missing else "")
            self.faults.append(ManifestError(f"document `{error.name[:200]}` {error.why}", place=place, hint=hint))
        return None


def named_documents(manifest: Manifest) -> list[str]:
    """Return the files and folders that a manifest names as its document."""
    named = manifest.document
    if isinstance(named, list):
        return [str(each) for each in named]
    return [named] if isinstance(named, str) else []


def find_folder(name: str) -> Path:
    """Return the folder of a pack. The pack is given as a path, or as a built-in name such as `tau-airline/tau1`."""
    path = Path(name)
    if (path / "pack.yaml").is_file():
        return path
    ready = READY.joinpath(*(part.replace("-", "_") for part in path.parts)) if not path.is_absolute() else path
    if (ready / "pack.yaml").is_file():
        return ready
    raise _no_pack(path)


def _no_pack(path: Path) -> UsageError:
    known = ", ".join(ready_packs())
    if isfile(path):
        folder = path.parent if (path.parent / "pack.yaml").is_file() else None
        hint = f"pass its folder: {folder}" if folder is not None else "pass the folder that contains pack.yaml"
        return UsageError("a pack is a folder, but this is a file", place=str(path), hint=hint)
    if not isdir(path):
        beside = (found.parent.name for found in path.parent.glob("*/pack.yaml")) if isdir(path.parent) else ()
        close = meant(path.name, (*beside, *ready_packs()))
        given = f"pass a folder with a pack.yaml, or the name of a built-in pack: {known}"
        hint = close if close.startswith("did you mean") else given
        return UsageError("no folder or built-in pack has this name", place=str(path), hint=hint)
    below = sorted(found.parent for found in path.glob("*/pack.yaml"))
    if below:
        hint = f"did you mean {' or '.join(f'`{each}`' for each in below[:3])}?"
    else:
        hint = "name the folder of a pack; `bylaw init LOGS --document DOCUMENT --out FOLDER` starts a new one"
    return UsageError("this folder has no pack.yaml, so it is not a pack", place=str(path), hint=hint)


def ready_packs() -> list[str]:
    return sorted(found.parent.name.replace("_", "-") for found in READY.glob("*/pack.yaml"))


def read_folder(root: Path, *, cases: bool = True) -> PackFolder:
    """Read a pack's files and, if requested, its cases. Errors are collected in the result."""
    faults: list[BylawError] = []
    files = _Files(root, faults)
    manifest, source, wrong = _manifest(files, root)
    faults += wrong
    layers = [root]
    if manifest.base:
        base = _resolved(root / str(manifest.base))
        below = base if base is not None and isdir(base) else _ready_folder(str(manifest.base))
        if below is not None and not files.reach.holds(below):
            faults.append(outside(str(manifest.base), place=source.place("base")))
        elif below is not None:
            layers.insert(0, below)
        else:
            faults.append(source.fault(ManifestError, f"base `{manifest.base}` is not a folder", "base"))
    for index, variant in enumerate(manifest.variants):
        if not variant.name:
            hint = "name the folder, next to pack.yaml, that contains the variant"
            faults.append(source.fault(ManifestError, "a variant needs a name", "variants", index, hint=hint))
        elif not files.reach.holds(root / str(variant.name)):
            faults.append(outside(str(variant.name), place=source.place("variants", index)))
    digest = hashlib.sha256()
    folder = PackFolder(root, manifest, source, {})
    for layer in layers:
        for name, path in _files(layer, root, manifest):
            digest.update(f"{name}\0".encode() + files.bytes(path) + b"\0")
        for part in _PARTS:
            found = files.yaml(layer / f"{part}.yaml", shared=_SHARED.get(part, ()))
            if part == "tools" and found is not None and (catalogue := found.data.get("from")) is not None:
                path = layer / str(catalogue)
                if not files.reach.holds(path):
                    faults.append(outside(str(catalogue), place=found.place("from")))
                elif (data := files.data(path, CatalogueError)) is not None:
                    digest.update(f"{catalogue}\0".encode() + data + b"\0")
                    found, wrong = with_catalogue(found, data, file=_name(path, root))
                    faults.extend(wrong)
            if found is not None:
                folder.parts[part] = found.over(folder.parts[part]) if part in folder.parts else found
        for path in _matching(layer, "guards/*.py"):
            folder.guards[_name(path, root)] = files.text(path)
        for path in _matching(layer, "lookups/*.py"):
            folder.lookups[_name(path, root)] = files.text(path)
        for path in _matching(layer, "cases/*.yaml") if cases else ():
            if case := files.yaml(path):
                folder.cases[_name(path, root)] = case
    policies, wrong = with_stated(folder.parts.get("policies"), folder.guards)
    faults.extend(wrong)
    policies = with_kinds(policies, folder.parts.get("rules"), folder.guards)
    if policies is not None:
        folder.parts["policies"] = policies
    folder.digest = digest.hexdigest()
    folder.faults = faults
    return folder


def read_variants(root: Path) -> list[Path]:
    """Return the folders of the variants that a pack's manifest lists. Empty if the pack has no variants."""
    return [root / str(each.name) for each in _manifest(_Files(root, []), root).record.variants]


def _manifest(files: "_Files", root: Path) -> Read[Manifest]:
    return read_record(files.yaml(root / "pack.yaml") or Located("pack.yaml", {}, {}), Manifest)


def _files(layer: Path, root: Path, manifest: Manifest) -> list[tuple[str, Path]]:
    names = ["pack.yaml", *(f"{part}.yaml" for part in _PARTS)]
    found = [(name, layer / name) for name in names if isfile(layer / name)]
    reach = Reach(root)
    for name in named_documents(manifest) if layer == root else ():
        if reach.holds(root / name):
            found += [pair for pair in find_files(name, root) if reach.holds(pair[1])]
    return found + [
        (path.relative_to(layer).as_posix(), path)
        for pattern in ("guards/*.py", "lookups/*.py", "cases/*.yaml")
        for path in _matching(layer, pattern)
    ]


def _matching(layer: Path, pattern: str) -> list[Path]:
    """Return the regular files that match a pattern.

    Other files are left out: reading a folder fails, and reading a pipe blocks.
    """
    return sorted(path for path in layer.glob(pattern) if isfile(path))


def _ready_folder(name: str) -> Path | None:
    return READY / name.replace("-", "_") if name in ready_packs() else None


def _name(path: Path, root: Path) -> str:
    """Return a file's name for messages.

    It is relative to the pack, and starts with the base pack's folder if the file is there.
    """
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    beside = root.resolve().parent
    return f"../{path.relative_to(beside).as_posix()}" if path.is_relative_to(beside) else path.name


class _Files:
    """Reads a pack's files, each only once, and collects errors."""

    def __init__(self, root: Path, faults: list[BylawError]) -> None:
        self.reach = Reach(root)
        self._root = root
        self._faults = faults
        self._read: dict[Path, bytes | None] = {}

    def bytes(self, path: Path) -> bytes:
        """Return the content of a file. If it cannot be read, return empty bytes and report the error once."""
        return self.data(path) or b""

    def yaml(self, path: Path, *, shared: tuple[str, ...] = ()) -> Located | None:
        if not isfile(path):
            if path.name == "pack.yaml":
                self._faults.append(ManifestError("no pack.yaml", place=str(path.parent)))
            return None
        text = self.text(path) if self.data(path) is not None else None
        if text is None:
            return None
        try:
            found = read_yaml(text, file=_name(path, self._root))
            for section in shared:
                found = found.shared_out(section)
            return found
        except YamlError as error:
            self._faults.append(error)
        return None

    def text(self, path: Path) -> str:
        """Return the text of a file. If the file is not text, return an empty string and report the error once."""
        try:
            return (self.data(path) or b"").decode()
        except UnicodeDecodeError:
            self._faults.append(YamlError("not UTF-8 text", place=_name(path, self._root)))
        return ""

    def data(self, path: Path, fault: type[BylawError] = YamlError) -> "bytes | None":
        """Return the content of a YAML file. If it cannot be read, return None and report the error once."""
        if path not in self._read:
            self._read[path] = None
            place = _name(path, self._root)
            try:
                self._read[path] = self.reach.read(path, file=place)
            except OSError as error:
                why = (error.strerror or str(error)).lower()
                self._faults.append(fault(f"cannot be read: {why}", place=place))
            except OutsideError as error:
                self._faults.append(error)
        return self._read[path]
