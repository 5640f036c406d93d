"""Documents in: Markdown, text, HTML, PDF and DOCX become one text, whose lines lead back to file, page and line."""

import importlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from msgspec import Struct

from bylaw.compile.html import html_lines
from bylaw.errors import UsageError
from bylaw.policy.document import Document

_HTML = (".html", ".htm", ".xhtml")


class Place(Struct, frozen=True):
    """Where lines of the joined text come from: these and those after them, up to the next place."""

    line: int
    """1-based, in the joined text."""
    file: str
    page: int = 0
    """0 where the file has no pages."""
    source_line: int = 0
    """The line of the file that it was; 0 where the file has no lines of its own."""


class Reading(Struct, frozen=True):
    """The document of a pack, and where its lines come from."""

    document: Document
    title: str
    places: tuple[Place, ...]

    def origin(self, line: int) -> str:
        """`policy.pdf, page 3` for a line of the joined text."""
        place = [each for each in self.places if each.line <= line][-1]
        if place.page:
            return f"{place.file}, page {place.page}"
        if place.source_line:
            return f"{place.file}:{place.source_line + line - place.line}"
        return place.file

    @property
    def is_joined(self) -> bool:
        """Whether the text is another than that of one file, so that places tell something."""
        return len(self.places) != 1 or not self.places[0].source_line


def read_documents(paths: Sequence[Path]) -> Reading:
    """One text of all files, in the order given; with several, each begins with a heading."""
    lines: list[str] = []
    places: list[Place] = []
    for path in paths:
        pages = [(page, list(found)) for page, found in _pages(path)]
        if not any(line.strip() for _, found in pages for line in found):
            hint = "a scanned PDF must be turned into text first" if path.suffix.lower() == ".pdf" else ""
            raise UsageError("the document contains no text", place=str(path), hint=hint)
        first = next(line for _, found in pages for line in found if line.strip())
        if len(paths) > 1 and not first.startswith("#"):
            places.append(Place(len(lines) + 1, path.name))
            lines += [f"# {path.stem}", ""]
        for page, found in pages:
            places.append(Place(len(lines) + 1, path.name, page, int(not page and not _is_made(path))))
            lines += found
        if path is not paths[-1]:
            lines.append("")
    text = "\n".join(lines)
    title = next((line.lstrip("# ").strip() for line in lines if line.startswith("#")), paths[0].stem)
    document = Document(text if text.endswith("\n") else f"{text}\n")
    if not document.sentences:
        raise UsageError("the document has no sentence", place=str(paths[0]))
    return Reading(document, title, tuple(places))


def _is_made(path: Path) -> bool:
    """Whether the lines of the text are not those of the file."""
    return path.suffix.lower() in (*_HTML, ".docx", ".pdf")


def _pages(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of a file by page; page 0 where it has none."""
    if not path.is_file():
        raise UsageError("no such file", place=str(path))
    data = path.read_bytes()
    suffix = path.suffix.lower()
    if data[:5] == b"%PDF-" or suffix == ".pdf":
        yield from _pdf(path)
    elif suffix == ".docx":
        yield 0, list(_docx(path))
    elif suffix == ".doc":
        raise UsageError("the old Word format is not read", place=str(path), hint="save it as .docx")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UsageError("the document is not UTF-8 text", place=str(path), hint="save it as UTF-8") from None
        # `split`, not `splitlines`: a form feed or an odd separator inside a line is no end of it.
        yield 0, html_lines(text) if suffix in _HTML else text.replace("\r\n", "\n").removesuffix("\n").split("\n")


def _pdf(path: Path) -> Iterator[tuple[int, list[str]]]:
    pypdf = _library("pypdf", path)
    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted:
            raise UsageError("the PDF is encrypted", place=str(path), hint="save it without a password")
        for number, page in enumerate(reader.pages, 1):
            yield number, [line.rstrip() for line in page.extract_text().split("\n")]
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
        raise UsageError(
            f"reading {path.suffix} needs a library", hint="in your clone of Bylaw: pip install '.[compile]'"
        ) from None
