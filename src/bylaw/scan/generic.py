"""Finds tools with an argument that determines what a call does: SQL, a shell command or a page element.

Drafts actions for these tools. The kind of an argument is determined by its values, never by its name.
"""

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from bylaw.actions.page_state import page_in, text_of
from bylaw.errors import MissingExtra
from bylaw.reading import Unreadable
from bylaw.reading.page import Page
from bylaw.reading.shell import read_shell
from bylaw.reading.sql import read_sql
from bylaw.scan.shape import is_name
from bylaw.scan.written import remark, word, wrapped
from bylaw.trace import Call, Result

Kind = Literal["sql", "shell", "page"]

TRIES = 30
"""The number of values after which an argument is no longer examined if no parser understands any of them."""
MOST_CHARACTERS = 10_000
LISTED = 8
"""The maximum number of a role's elements that get their own actions, and of parts that a summary lists."""
_HELD: Mapping[Kind, str] = {"sql": "SQL", "shell": "shell commands", "page": "an element of a page"}


class Part(Struct, frozen=True, order=True):
    """What a call does: a kind of statement, a program, or the role of an element with its name and page."""

    what: str
    writes: bool = True
    name: str = ""
    page: str = ""
    """The path of the page's address. `*` replaces each segment that contains digits."""


class Generic(Struct, frozen=True):
    """A tool with an argument that determines what a call does."""

    tool: str
    argument: str
    kind: Kind
    calls: int
    unread: int
    """The number of calls whose argument could not be parsed."""
    parts: tuple[tuple[Part, int], ...]
    """What the calls do, most frequent first."""
    tables: tuple[str, ...] = ()
    """The tables named in SQL statements."""


class _Argument:
    def __init__(self) -> None:
        self.calls = 0
        self._read: Counter[Kind] = Counter()
        self._sure: Counter[Kind] = Counter()
        """Values that are certainly code, because all their tables are known. Prose hardly ever looks like this."""
        self._tables: set[str] = set()
        self._parts: dict[Kind, Counter[Part]] = {"page": Counter(), "sql": Counter(), "shell": Counter()}

    def add(self, text: str, page: Page | None) -> None:
        self.calls += 1
        element = page.by_ref(text) if page is not None else None
        if page is not None and element is not None:
            name = " ".join(page.label(element).split())[:100]
            self._count("page", [Part(element.role, name=name, page=_path(page.url))], is_sure=True)
        elif (self.calls <= TRIES or self.kind) and len(text) <= MOST_CHARACTERS:
            found = _parsed(partial(read_sql, tables=None), text)
            is_sure = any(not each.writes or each.tables_written for each in found)
            self._tables.update(
                *(each.tables_read or () for each in found), *(each.tables_written or () for each in found)
            )
            self._count("sql", [Part(each.kind, each.writes) for each in found], is_sure=is_sure)
            found = _parsed(read_shell, text)
            parts = [Part(each.program or "redirection", each.writes) for each in found]
            self._count("shell", parts, is_sure=not all(each.writes for each in found))

    def _count(self, kind: Kind, parts: Sequence[Part], *, is_sure: bool) -> None:
        self._read[kind] += bool(parts)
        self._sure[kind] += is_sure
        self._parts[kind].update({*parts})

    @property
    def kind(self) -> Kind | None:
        """The kind of the argument: the parser that understands at least half of its values.

        None if there is no such parser.
        """
        for kind in self._parts:
            if self._sure[kind] and 2 * self._read[kind] >= self.calls and 5 * self._sure[kind] >= self._read[kind]:
                return kind
        return None

    def found(self, tool: str, argument: str) -> Generic | None:
        if (kind := self.kind) is None:
            return None
        listed = sorted(self._parts[kind].items(), key=lambda each: (-each[1], each[0]))
        tables = tuple(sorted(self._tables)) if kind == "sql" else ()
        return Generic(tool, argument, kind, self.calls, self.calls - self._read[kind], tuple(listed), tables)


def _path(url: str) -> str:
    parts = (urlsplit(url).path or "/").split("/")
    return "/".join("*" if re.search("[0-9]", part) else part for part in parts)


def _parsed(read: Callable[[str], Iterable[Any]], text: str) -> Sequence[Any]:
    try:
        return tuple(read(text))
    except (Unreadable, MissingExtra, RecursionError):
        return ()


class GenericTools:
    """Counts what the calls of generic tools do."""

    def __init__(self) -> None:
        self._arguments: defaultdict[tuple[str, str], _Argument] = defaultdict(_Argument)

    def add(self, events: Iterable[object]) -> None:
        page: Page | None = None
        for event in events:
            if isinstance(event, Result) and "[ref=" in event.text:
                shown = page_in(text_of(event.value()))
                page = shown if isinstance(shown, Page) else page
            elif isinstance(event, Call):
                for name, text in _texts(event.arguments):
                    self._arguments[event.tool, name].add(text, page)

    def found(self) -> tuple[Generic, ...]:
        every = (seen.found(*key) for key, seen in sorted(self._arguments.items()))
        return tuple(each for each in every if each is not None)


def _texts(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the strings in a call's arguments. Strings in lists of records, such as form fields, are included."""
    for name, value in arguments.items():
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, list):
            for each in value:  # pyright: ignore[reportUnknownVariableType]
                if isinstance(each, dict):
                    yield from ((key, text) for key, text in each.items() if isinstance(text, str))  # pyright: ignore


def draft_actions(found: Sequence[Generic]) -> str:
    """Return a draft of `actions:` for tools.yaml, with guesses from the logs. A person must complete the draft."""
    if not found:
        return ""
    lines = [
        "# Calls of these tools in the logs. Correct the effects, and rename the actions that policies mention.",
        "# A person is asked about every other call.",
        "actions:",
    ]
    taken = {each.tool for each in found}
    for each in found:
        lines.append(f"  # {remark(f'{each.tool}: {summary(each)}')}")
        for name, body in _drafts(each):
            numbered = (name if number == 1 else f"{name}_{number}" for number in itertools.count(1))
            unique = next(each for each in numbered if each not in taken)
            taken.add(unique)
            lines.append(wrapped(f"  {word(unique)}: ", body))
    lines.append(wrapped("otherwise: ", dict.fromkeys([each.tool for each in found], "ask")))
    if tables := sorted({name for each in found for name in each.tables}):
        lines.append("# Add `columns` and `keys`, and the `dialect` of each action.")
        lines += [wrapped("tables: ", {name: dict[str, Any]() for name in tables})]
    return "\n".join(lines) + "\n"


def summary(found: Generic) -> str:
    """Return one line that describes what the calls of a tool do."""
    told = f"{found.calls:,} calls with {_HELD[found.kind]} in `{found.argument}`"
    if found.kind == "page":
        listed = [f'{part.what} "{part.name}" on {part.page} {count:,}' for part, count in found.parts]
        told += f": {_first(listed)}"
    else:
        for words, is_write in ((": reads ", False), ("; may write: ", True)):
            parts = [f"{part.what} {count:,}" for part, count in found.parts if part.writes is is_write]
            told += f"{words}{_first(parts)}" if parts else ""
    return f"{told}; {found.unread:,} not parsed" if found.unread else told


def _first(listed: Sequence[str]) -> str:
    rest = len(listed) - LISTED
    return ", ".join(listed[:LISTED]) + (f" and {rest:,} more" if rest > 0 else "")


def _drafts(found: Generic) -> Iterator[tuple[str, dict[str, Any]]]:
    if found.kind == "page":
        yield from _on_pages(found)
        return
    key = "statements" if found.kind == "sql" else "program"
    reads = {"argument": found.argument, "as": found.kind}
    parts = [part for part, _ in found.parts if part.what != "redirection"]
    if looks := [part.what for part in parts if not part.writes]:
        yield f"{_slug(found.tool)}_read", {"of": found.tool, "reads": {**reads, key: looks}, "effect": "read"}
    for part in parts:
        if part.writes:
            body = {"of": found.tool, "reads": {**reads, key: [part.what]}, "effect": "write", "fallback": True}
            if is_name(found.argument):
                body["take"] = {found.argument: f"$argument.{found.argument}"}
            yield f"{_slug(found.tool)}_{_slug(part.what)}", body


def _on_pages(found: Generic) -> Iterator[tuple[str, dict[str, Any]]]:
    """Draft an action for each pair of an element's role and name.

    If a role has many names, draft a single action for the role.
    """
    by_role: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for part, _ in found.parts:
        by_role[part.what][part.name].add(_pattern(part.page))
    for role, names in by_role.items():
        if len(names) > LISTED or "" in names:
            yield f"{_slug(found.tool)}_{role}", {"of": found.tool, "on": {"role": role}, "effect": "write"}
            continue
        for name, pages in names.items():
            on = {"role": role, "name": name}
            if len(pages) == 1:
                on = {"page": next(iter(pages)), **on}
            yield f"{_slug(found.tool)}_{_slug(name)}", {"of": found.tool, "on": on, "effect": "write"}


def _pattern(path: str) -> str:
    parts = ("[^/]+" if part == "*" else re.escape(part) for part in path.split("/"))
    return f"{'/'.join(parts)}$"


def _slug(text: str) -> str:
    return "_".join(re.findall("[a-z0-9]+", text.lower()))[:40] or "other"
