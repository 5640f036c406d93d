"""Converts Markdown, text, HTML, PDF and DOCX documents to text."""

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from msgspec import Struct

from bylaw.errors import MissingExtra, UsageError
from bylaw.policy.document import TEXTS, Document

_HTML = (".html", ".htm", ".xhtml")
_READ = (*TEXTS, *_HTML, ".pdf", ".docx")
FOLDER = "documents"
"""The folder in a pack that contains the texts of several documents."""
_LISTED = 12
"""The maximum number of documents that a pack lists by name. If there are more, only their folder is named."""


class Reading(Struct, frozen=True):
    """The texts of a policy's documents, and a title."""

    document: Document
    title: str


def read_documents(paths: Sequence[Path]) -> Reading:
    """Read files in the given order, and a folder's files in order of name. A single file becomes `policy.md`."""
    names = _names(dict(pair for path in paths for pair in _found(path)))
    texts: dict[str, str] = {}
    for path, name in names.items():
        text = "\n".join(_lines(path))
        if not text.strip():
            hint = "a scanned PDF must be converted to text first" if path.suffix.lower() == ".pdf" else ""
            raise UsageError("the document contains no text", place=str(path), hint=hint)
        texts[name] = text if text.endswith("\n") else f"{text}\n"
    whole = len(texts) > 1
    document = Document.joined(list(texts.items()), name=FOLDER) if whole else Document(*texts.values())
    first = next(iter(texts.values()))
    titles = (line.lstrip("# ").strip() for line in first.split("\n") if line.startswith("#"))
    title = paths[0].stem if paths[0].is_dir() else next(titles, paths[0].stem)
    if not document.sentences:
        raise UsageError("the document has no sentences", place=str(paths[0]))
    return Reading(document, title)


def named_in_pack(document: Document) -> str | list[str]:
    """Return the `document:` entry of a pack: one file, the files in order, or the folder if there are many files."""
    names = [file.name for file in document.files]
    return names[0] if len(names) == 1 else names if len(names) <= _LISTED else FOLDER


def _found(path: Path) -> list[tuple[Path, str]]:
    if not path.is_dir():
        return [(path, path.name)]
    inside = sorted(each for each in path.rglob("*") if each.is_file() and each.suffix.lower() in _READ)
    named = [(each, each.relative_to(path)) for each in inside]
    shown = [(each, name.as_posix()) for each, name in named if not any(part[0] == "." for part in name.parts)]
    if not shown:
        raise UsageError(
            "the folder has no document", place=str(path), hint=f"the name of a document must end in {', '.join(_READ)}"
        )
    return shown


def _names(found: Mapping[Path, str]) -> dict[Path, str]:
    """Return each text's path in the pack: `policy.md` or, if there are several documents, its own name in their
    folder.
    """
    if len(found) == 1:
        return dict.fromkeys(found, "policy.md")
    made: dict[Path, str] = {}
    for path, name in sorted(found.items(), key=lambda pair: pair[1]) if len(found) > _LISTED else found.items():
        base = name if path.suffix.lower() in TEXTS else f"{name}.md"
        text, number = f"{FOLDER}/{base}", 2
        while text in made.values():
            text, number = f"{FOLDER}/{number}-{base}", number + 1
        made[path] = text
    return made


def _lines(path: Path) -> Iterable[str]:
    if not path.is_file():
        raise UsageError("no such file", place=str(path))
    data, suffix = path.read_bytes(), path.suffix.lower()
    if data[:5] == b"%PDF-" or suffix == ".pdf":
        return _pdf(path)
    if suffix == ".docx":
        return _docx(path)
    if suffix == ".doc":
        raise UsageError("old Word files are not supported", place=str(path), hint="save it as .docx")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError("the document is not UTF-8 text", place=str(path), hint="save it as UTF-8") from None
    # `splitlines` would also split at form feeds and unusual separators.
    return html_lines(text) if suffix in _HTML else text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _pdf(path: Path) -> Iterator[str]:
    pypdf = _library("pypdf", path)
    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted:
            raise UsageError("the PDF is encrypted", place=str(path), hint="save it without a password")
        for page in reader.pages:
            yield from (line.rstrip() for line in page.extract_text().split("\n"))
    except pypdf.errors.PyPdfError as error:
        raise UsageError(f"the PDF cannot be read: {str(error).lower()}", place=str(path)) from None


def _docx(path: Path) -> Iterator[str]:
    docx = _library("docx", path)
    try:
        document = docx.Document(str(path))
    except (ValueError, KeyError, BadZipFile, docx.opc.exceptions.OpcError):
        raise UsageError("the DOCX cannot be read", place=str(path), hint="open and save it again as .docx") from None
    for block in document.iter_inner_content():
        if hasattr(block, "rows"):
            yield from (f"| {' | '.join(' '.join(cell.text.split()) for cell in row.cells)} |" for row in block.rows)
            yield ""
            continue
        style, text = str(block.style.name if block.style is not None else ""), " ".join(block.text.split())
        if not text:
            continue
        level = style.removeprefix("Heading ")
        if style == "Title" or (level != style and level.isdigit()):
            yield f"{'#' * (1 if style == 'Title' else min(int(level), 6))} {text}"
        else:
            yield f"- {text}" if style.startswith("List") else text
        yield ""


def _library(name: str, path: Path) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtra(f"reading {path.suffix} needs a library", "compile") from None


_UNSHOWN = {"script", "style", "head", "template", "noscript", "svg"}
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_TAGS = "p div section article li ul ol table tr blockquote pre br dt dd hr"
_BLOCKS = frozenset((*_TAGS.split(), *_HEADINGS))


class _Lines(HTMLParser):
    """Collects the headings, paragraphs, list items and table rows of a page as Markdown."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self._words: list[str] = []
        self._start = ""
        self._hidden = 0
        self._cells: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSHOWN:
            self._hidden += 1
        elif tag in _BLOCKS and self._cells is None:
            self.end_block()
        if tag == "tr":
            self._cells = []
        elif tag == "li" or tag in _HEADINGS:
            self._start = "- " if tag == "li" else f"{'#' * _HEADINGS[tag]} "

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNSHOWN:
            self._hidden = max(0, self._hidden - 1)
        elif tag in ("td", "th") and self._cells is not None:
            self._cells.append(self._text())
        elif tag == "tr" and self._cells is not None:
            self.lines += [f"| {' | '.join(self._cells)} |"] if any(self._cells) else []
            self._cells = None
        elif tag in _BLOCKS and self._cells is None:
            self.end_block()

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._words.append(data)

    def end_block(self) -> None:
        if text := self._text():
            self.lines += [self._start + text, ""]
        self._start = ""

    def _text(self) -> str:
        """Return the text collected since the last call."""
        text = " ".join("".join(self._words).split())
        self._words = []
        return text


def html_lines(text: str) -> list[str]:
    parser = _Lines()
    parser.feed(text)
    parser.close()
    parser.end_block()
    return parser.lines
