"""Parses a page from Playwright's accessibility snapshot, either alone or in the Markdown of Playwright's MCP server.

The grammar is exactly Playwright's: each line describes one element, with its name as a JSON string and its states in
brackets. So no name or other content can be mistaken for an element. For any other line, `Unreadable` is raised with
the line's number.
"""

import json
import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

from msgspec import Struct

from bylaw.reading.unreadable import Unreadable

MAX_CHARACTERS = 4_000_000
MAX_DEPTH = 400

_STATES = r"((?: \[(?!ref=)[a-z-]++(?:=[^\]\[\"' ]*+)?\])*+)"
_LINE = re.compile(
    r"( *)- (<changed> )?([a-z]+)"
    r'(?: ("(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+"|/.*/))?'
    rf"{_STATES}(?: \[ref=(\w+)\])?{_STATES}(?:(:)(?: (.+))?)?"
)
"""Matches one element: indentation, change mark, role, name, states, reference, further states, and the text after the
colon.
"""
_QUOTED_LINE = re.compile(r"( *)- '((?:[^']|'')*)'(?:(:)(?: (.+))?)?")
_PROPERTY = re.compile(r"( *)- /([a-z-]+): (.+)")
_UNCHANGED = re.compile(r"( *)- ref=(\w+) \[unchanged\]")
_SPECIAL = frozenset("\"' \t")
_QUOTED_VALUE = re.compile(r'"((?:[^"\\\x00-\x1f\x7f-\x9f]|\\["\\bfnrt]|\\x[0-9a-f]{2})*)"')
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|(.))")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_BEFORE = re.compile(
    r"|### (?:Ran Playwright code|Open tabs|Page|Page state|Snapshot)|- Ran Playwright code:?|- Page Snapshot:?"
    r"|- Page (?:URL|Title):.*|- Console: [0-9, a-z]*|- [0-9]+: .*"
)
"""Matches the lines that may precede a snapshot. Text under any other heading may come from the page."""
_URL = "- Page URL: "
_TITLE = "- Page Title: "


class Element(Struct, frozen=True, gc=False):
    """An element of a page, or a piece of text (role `text`)."""

    at: int
    """The index in `Page.elements`, in document order."""
    line: int
    """The line number in the text, starting at 1."""
    parent: int
    """The index of the parent, or -1 at the top."""
    depth: int
    role: str
    name: str = ""
    """The accessible name. Playwright omits a name of over 900 characters, and a name that repeats the element's
    content.
    """
    ref: str = ""
    """The reference with which tools name the element. Empty if tools cannot use the element."""
    states: tuple[tuple[str, str], ...] = ()
    """States such as `checked`, `disabled`, `level` and `cursor`, with their values. A state without a value has an
    empty value.
    """
    text: str = ""
    """The element's text. For a text box, this is what the user entered."""

    def state(self, name: str) -> str | None:
        """Return the value of a state: empty if the state has no value, and None if the element does not have the
        state.
        """
        return next((value for each, value in self.states if each == name), None)

    @property
    def level(self) -> int:
        """The level of a heading, or 0 for other elements."""
        return int(value) if (value := self.state("level") or "").isascii() and value.isdigit() else 0


class Page(Struct, frozen=True, dict=True):
    elements: tuple[Element, ...]
    url: str = ""
    title: str = ""
    is_complete: bool = True
    """False if the snapshot is truncated or contains only changes."""
    properties: dict[int, dict[str, str]] = {}
    """The `url` or `placeholder` of an element, keyed by index."""

    @cached_property
    def _by_ref(self) -> dict[str, Element]:
        return {element.ref: element for element in self.elements if element.ref}

    @cached_property
    def _ends(self) -> list[int]:
        ends = list(range(1, len(self.elements) + 1))
        for element in reversed(self.elements):
            if element.parent >= 0:
                ends[element.parent] = max(ends[element.parent], ends[element.at])
        return ends

    def by_ref(self, ref: str) -> Element | None:
        return self._by_ref.get(ref)

    @cached_property
    def focused(self) -> Element | None:
        """The element that receives keys, or None if it is unknown. If no element is focused, this is the root of the
        page.
        """
        active = [element for element in self.elements if element.state("active") is not None]
        if not active:
            return None
        last = active[-1]
        above = {element.at for element in self.ancestors(last)}
        return last if all(element.at in above for element in active[:-1]) else None

    def parent(self, element: Element) -> Element | None:
        return self.elements[element.parent] if element.parent >= 0 else None

    def ancestors(self, element: Element) -> Iterator[Element]:
        while element.parent >= 0:
            element = self.elements[element.parent]
            yield element

    def descendants(self, element: Element) -> tuple[Element, ...]:
        return self.elements[element.at + 1 : self._ends[element.at]]

    def children(self, element: Element) -> Iterator[Element]:
        at, end = element.at + 1, self._ends[element.at]
        while at < end:
            yield self.elements[at]
            at = self._ends[at]

    def text_of(self, element: Element) -> str:
        """Return the visible text, with its pieces joined by spaces. If there is no text, return the name."""
        if element.text:
            return element.text
        inside = self.descendants(element)
        if not inside:
            return element.name
        ends = self._ends
        return " ".join(
            shown for each in inside if (shown := each.text or (each.name if ends[each.at] == each.at + 1 else ""))
        )

    def find(self, role: str, name: str | None = None) -> Iterator[Element]:
        """Yield the elements with this role and, if `name` is given, with exactly this name."""
        for element in self.elements:
            if element.role == role and (name is None or element.name == name):
                yield element

    def is_in_frame(self, element: Element) -> bool:
        """Whether the element is in a frame and therefore belongs to another document."""
        return any(above.role == "iframe" for above in self.ancestors(element))

    def label(self, element: Element) -> str:
        """Return the element's name, or its text if Playwright omitted the name because the text repeats it."""
        return element.name or self.text_of(element)

    def rows(self, table: Element) -> Iterator[Element]:
        """Yield the rows of a table or grid, without the rows of nested tables."""
        at, end = table.at + 1, self._ends[table.at]
        while at < end:
            here = self.elements[at]
            if here.role == "row":
                yield here
            at = self._ends[at] if here.role in ("row", "table", "grid", "treegrid") else at + 1

    def cells(self, row: Element) -> tuple[Element, ...]:
        return tuple(child for child in self.children(row) if child.role in _CELLS)

    def columns(self, table: Element) -> tuple[str, ...]:
        """Return the column headers in a table's first row. Empty if that row contains any other cells."""
        first = next(self.rows(table), None)
        cells = self.cells(first) if first is not None else ()
        return tuple(self.text_of(cell) for cell in cells) if all(c.role == "columnheader" for c in cells) else ()

    def cell(self, row: Element, column: str) -> Element | None:
        """Return a row's cell under a header. None if two headers are equal, or if the cells do not match the
        headers.
        """
        table = next((above for above in self.ancestors(row) if above.role in ("table", "grid", "treegrid")), None)
        columns = self.columns(table) if table is not None else ()
        cells = self.cells(row)
        if len(cells) != len(columns) or columns.count(column) != 1:
            return None
        return cells[columns.index(column)]


_CELLS = frozenset({"cell", "gridcell", "columnheader", "rowheader"})


def read_page(text: str) -> Page:
    """Return the page in a snapshot. Raises `Unreadable` unless the text is exactly one Playwright snapshot.

    A truncated snapshot gives an incomplete page. Use this function only for results of snapshot tools, because other
    results may contain any text from the page.
    """
    if len(text) > MAX_CHARACTERS:
        raise Unreadable(f"the snapshot has more than {MAX_CHARACTERS:,} characters")
    text = text.replace("\r\n", "\n")
    if "\n```yaml\n" in f"\n{text}\n":
        return _read_markdown(text)
    return _Snapshot(text.rstrip("\n").split("\n"), 1).page("", "")


def _read_markdown(text: str) -> Page:
    """Read the first snapshot under its heading. Any later text may come from the page, such as script logs."""
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if line == "```yaml"), 0) + 1
    before, is_code = lines[: start - 1], False
    for number, line in enumerate(before, 1):
        if line == ("```" if is_code else "```js"):
            is_code = not is_code
        elif not is_code and _BEFORE.fullmatch(line) is None:
            raise Unreadable(f"`{line[:60]}` before the snapshot may have been written by anyone", line=number)
    if is_code or not before or not before[-1].startswith(("### Snapshot", "- Page ")):
        raise Unreadable("the snapshot is not under a heading of its own", line=start)
    url, title = _only(before, _URL), _only(before, _TITLE)
    end = next((at for at in range(start, len(lines)) if lines[at] == "```"), None)
    is_cut = end is None
    return _Snapshot(lines[start : -1 if is_cut else end], start + 1).page(url, title, is_complete=not is_cut)


def _only(lines: list[str], label: str) -> str:
    found = [line.removeprefix(label) for line in lines if line.startswith(label)]
    if len(found) > 1:
        raise Unreadable(f"there is more than one `{label.strip('- :')}`")
    return found[0] if found else ""


class _Snapshot:
    """The lines of a snapshot. `first` is the first line's number."""

    def __init__(self, lines: list[str], first: int) -> None:
        self.lines = lines
        self.first = first
        self.elements: list[Element] = []
        self.properties: dict[int, dict[str, str]] = {}
        self.refs: set[str] = set()
        self.parents = [-1]
        self.step = 0

    def page(self, url: str, title: str, *, is_complete: bool = True) -> Page:
        for number, line in enumerate(self.lines, self.first):
            if (found := _LINE.fullmatch(line)) is not None:
                indent, changed, role, name, before, ref, after, colon, value = found.groups()
                if changed:
                    is_complete = False
                self._add(number, indent, role, name, before + after, ref, colon, value)
            elif (quoted := _QUOTED_LINE.fullmatch(line)) is not None:
                key = _LINE.fullmatch("- " + quoted[2].replace("''", "'"))
                if key is None or key[8]:
                    raise Unreadable("the line is not an element", line=number)
                _, changed, role, name, before, ref, after, *_ = key.groups()
                if changed:
                    is_complete = False
                self._add(number, quoted[1], role, name, before + after, ref, quoted[3], quoted[4])
            elif (owned := _PROPERTY.fullmatch(line)) is not None:
                self._own(number, *owned.groups())
            elif (unchanged := _UNCHANGED.fullmatch(line)) is not None:
                is_complete = False
                self._add(number, unchanged[1], "", None, "", unchanged[2], None, None)
            else:
                raise Unreadable("the line is not an element of a snapshot", line=number)
        if not self.elements and is_complete:
            raise Unreadable("the snapshot is empty", line=self.first)
        return Page(tuple(self.elements), url, title, is_complete, self.properties)

    def _add(
        self,
        number: int,
        indent: str,
        role: str,
        name: str | None,
        states: str,
        ref: str | None,
        colon: str | None,
        value: str | None,
    ) -> None:
        depth, parent = self._place(number, len(indent))
        known = _states(states) if states else ()
        if known is None:
            raise Unreadable("an element has the same state twice", line=number)
        if ref is not None:
            if ref in self.refs:
                raise Unreadable(f"two elements have the reference `{ref}`", line=number)
            self.refs.add(ref)
        at = len(self.elements)
        text = "" if value is None else value if value[0] not in _SPECIAL else _value(value, number)
        written = "" if name is None else name[1:-1] if name[0] == '"' and "\\" not in name else _name(name)
        self.elements.append(Element(at, number, parent, depth, role, written, ref or "", known, text))
        if colon is not None and value is None:
            self.parents.append(at)

    def _place(self, number: int, indent: int) -> tuple[int, int]:
        depth = 0
        if indent:
            step = self.step = self.step or indent
            depth, odd = divmod(indent, step)
            if odd or step not in (2, 4) or depth >= len(self.parents) or depth > MAX_DEPTH:
                raise Unreadable("an element is not allowed on this line", line=number)
        del self.parents[depth + 1 :]
        return depth, self.parents[depth]

    def _own(self, number: int, indent: str, name: str, value: str) -> None:
        _, parent = self._place(number, len(indent))
        own = self.properties.setdefault(parent, {})
        if parent < 0 or name in own:
            raise Unreadable(f"`/{name}` is not a property of an element, or appears twice", line=number)
        own[name] = _value(value, number)


def _name(written: str) -> str:
    if written[0] == "/":
        return written
    if "\\" not in written:
        return written[1:-1]
    name: str = json.loads(written)
    return name if name.isascii() else name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _value(written: str, number: int) -> str:
    if written[0] not in _SPECIAL:
        return written
    found = _QUOTED_VALUE.fullmatch(written)
    if found is None:
        raise Unreadable(
            "the text begins with a space, or its quotes are not closed at the end of the line", line=number
        )
    inside = found[1]
    if "\\" not in inside:
        return inside
    return _ESCAPE.sub(lambda each: chr(int(each[1], 16)) if each[1] else _ESCAPED[each[2]], inside)


@lru_cache(4096)
def _states(written: str) -> tuple[tuple[str, str], ...] | None:
    """Return the states in brackets, or None if one is repeated."""
    parts = [part.partition("=") for part in written[2:-1].split("] [")]
    names = [name for name, _, _ in parts]
    if "ref" in names or len(set(names)) < len(names):
        return None
    return tuple((name, value) for name, _, value in parts)
