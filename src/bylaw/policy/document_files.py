"""The files of a policy document: one, several, or all texts of a folder, such as the articles of a help centre."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bylaw.policy.document import LONGEST, Document

TEXTS = (".md", ".markdown", ".txt")
"""What counts as a text in a folder; a file that is named may end as it likes."""
MOST = 5 * LONGEST
"""Characters of all files together."""
TOO_LONG = f"longer than {LONGEST:,} characters"
PARTED = "give the part that the pack is about"
_MISSING = "is not there"

Reader = Callable[[str, Path], bytes]
"""Reads the file of that name at that path."""


class DocumentError(Exception):
    """A document cannot be read; whoever asked for it says so in words of its own."""

    def __init__(self, name: str, path: Path, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.name, self.path, self.why, self.hint = name, path, why, hint

    @property
    def is_missing(self) -> bool:
        return self.why == _MISSING


def find_files(name: str, root: Path) -> list[tuple[str, Path]]:
    """A file under its name, or the texts of a folder under theirs, in order; none where there is nothing to read."""
    path = root / name
    try:
        if path.is_dir() and not path.samefile(root):
            found = sorted(each for each in path.rglob("*") if _is_text(each, path))
            return [((Path(name) / each.relative_to(path)).as_posix(), each) for each in found]
        return [(name, path)] if path.is_file() else []
    except (OSError, ValueError):
        return []


def read_files(names: Sequence[str], root: Path, read: Reader) -> Document:
    """The document of these files and folders, each under the name that it goes by in `root`."""
    texts: dict[str, str] = {}
    for name in names:
        files = find_files(name, root)
        if not files:
            raise DocumentError(name, root / name, *_why_none(root / name, root))
        texts |= {each: _text(each, file, read) for each, file in files}
        if sum(map(len, texts.values())) > MOST:
            raise DocumentError(name, root / name, f"is, with all files, longer than {MOST:,} characters", PARTED)
    if len(texts) == 1:
        ((only, text),) = texts.items()
        return Document(text, name=only)
    title = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    return Document.joined(list(texts.items()), name=title)


def read_given(path: Path) -> Document:
    """A document given by its path: a file, whatever it is, or a folder."""
    if path.is_dir():
        return read_files([path.name], path.parent, lambda _, file: file.read_bytes())
    return Document(_text(path.name, path, lambda _, file: file.read_bytes()), name=path.name)


def _text(name: str, path: Path, read: Reader) -> str:
    try:
        # By its size, before any of it is read: a character takes at most four bytes.
        text = read(name, path).decode() if path.stat().st_size <= 4 * LONGEST else None
    except UnicodeDecodeError:
        raise DocumentError(name, path, "is not UTF-8 text") from None
    except OSError as error:
        raise DocumentError(name, path, f"cannot be read: {(error.strerror or str(error)).lower()}") from None
    if text is None or len(text) > LONGEST:
        raise DocumentError(name, path, f"is {TOO_LONG}", PARTED)
    return text


def _why_none(path: Path, root: Path) -> tuple[str, str]:
    try:
        if path.is_dir() and path.samefile(root):
            return "is the pack's own folder", "name a file or a folder in it"
        is_folder = path.is_dir()
    except (OSError, ValueError):
        is_folder = False
    return ("is a folder without a text", f"texts end with {', '.join(TEXTS)}") if is_folder else (_MISSING, "")


def _is_text(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return path.suffix.lower() in TEXTS and not hidden and path.is_file()
