"""The actions of a pack, and the conditions that recognise each one."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

from msgspec import Struct

from bylaw.actions.run_line import RunLine
from bylaw.actions.taking import ElementTerms, Kind, Take
from bylaw.policy.pattern import Pattern
from bylaw.policy.tool import Effect, Tool
from bylaw.reading import Unreadable
from bylaw.reading.sql_tables import Table

Otherwise = Literal["ask", "deny", "allow"]
FIELDS = frozenset(("textbox", "searchbox", "combobox", "spinbutton"))
"""Roles of page elements that contain typed text."""


class TargetTerms(Struct, frozen=True):
    """Conditions on an action's target element, and on the page that contains the element."""

    page: Pattern | None
    element: ElementTerms
    within: ElementTerms | None = None
    url: Pattern | None = None
    """A pattern for the address of a link."""


class ReadTerms(Struct, frozen=True):
    """The argument that a parser reads to recognise the action, and the conditions on its content."""

    argument: str
    kind: Kind
    dialect: str | None = None
    statements: tuple[str, ...] = ()
    tables: tuple[Pattern, ...] = ()
    declared: Mapping[str, Table] = {}
    """The database tables that the pack declares, by name."""
    bounded: bool | None = None
    programs: tuple[str, ...] = ()
    operands: tuple[Pattern, ...] = ()
    options: tuple[str, ...] = ()
    without_options: tuple[str, ...] = ()
    root: str = ""
    inside: bool | Literal["unknown"] | None = None
    ordinary: bool | None = None
    """Whether every file that is shown, copied or changed has one of `ordinary_names`. Commands need a closed form."""
    ordinary_names: tuple[str, ...] = ()
    settings: bool | None = None
    """Whether a changed file, or a folder that contains it, has one of `setting_names`."""
    setting_names: tuple[str, ...] = ()
    runs: bool | None = None
    run_lines: tuple[RunLine, ...] = ()
    fresh: bool = False
    commands: tuple[Pattern, ...] = ()
    privileged: bool | None = None
    scheme: Pattern | None = None
    host: Pattern | None = None
    path: Pattern | None = None
    query: Pattern | None = None
    names_host: bool = False
    """Whether `host` matches exactly one host."""


class Action(Struct, frozen=True):
    """An action that some tools perform when called."""

    name: str
    of: tuple[str, ...]
    effect: Effect
    on: TargetTerms | None = None
    reads: ReadTerms | None = None
    where: Mapping[str, Pattern] = {}
    takes: tuple[Take, ...] = ()
    is_fallback: bool = False
    """Whether the action applies only if no other action does."""

    @property
    def kind(self) -> Kind:
        """How the action is recognised: by its target on the page, by a part of the call that a parser extracts, or by
        the whole call.
        """
        return "page" if self.on is not None else "call" if self.reads is None else self.reads.kind

    @property
    def is_of_any_call(self) -> bool:
        """Whether every call of the action's tools performs the action."""
        return self.kind == "call" and not self.where

    def fits_call(self, arguments: Mapping[str, Any]) -> bool:
        return all(
            isinstance(value := arguments.get(name), str | int | float) and pattern.occurs(str(value))
            for name, pattern in self.where.items()
        )


class PageTerms(Struct, frozen=True):
    """How a conversation reports pages."""

    tools: tuple[str, ...]
    unchanged_by: tuple[str, ...]
    not_shown_by: tuple[str, ...]
    snapshot: str
    target: tuple[str, ...]
    description: tuple[str, ...]
    content: tuple[ElementTerms, ...] = ()
    looks: tuple[Pattern, ...] = ()
    """Patterns for the full addresses of view-only pages, which a browser can open without changing anything.

    Each pattern matches only one host.
    """
    fields: tuple[Pattern, ...] = ()
    """Patterns for full names of fields on the view-only pages. Typing into such a field changes only that field."""
    passing: tuple[ElementTerms, ...] = ()
    """Elements of a page that change by themselves. The user's consent remains valid when they change."""

    def lists(self, address: str) -> bool:
        """Whether the address is that of a listed view-only page."""
        from bylaw.reading.url import read_url

        try:
            normal = read_url(address).address
        except Unreadable:
            return False
        return any(pattern.occurs(normal) for pattern in self.looks)

    def is_field(self, name: str) -> bool:
        """Whether the name is that of a listed field, so that typing into it changes only the field."""
        return bool(name) and any(pattern.occurs(name) for pattern in self.fields)

    def changes_with(self, tool: str) -> bool:
        """Whether a call of this tool may change the page or open another page."""
        return _is_one(tool, self.tools) and not _is_one(tool, self.unchanged_by)

    def shows(self, tool: str) -> bool:
        return self.changes_with(tool) and not _is_one(tool, self.not_shown_by)


def _is_one(tool: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, each) for each in patterns)


class Actions(Struct, frozen=True):
    by_tool: Mapping[str, tuple[Action, ...]]
    otherwise: Mapping[str, Otherwise]
    pages: PageTerms
    unread: Mapping[str, frozenset[str]]
    """The arguments that have no effect, by tool."""
    secrets: Mapping[str, frozenset[str]]
    """For each tool, the arguments that must not contain secrets. If a value may be a secret, the call is
    unresolved.
    """
    plain: Mapping[str, Tool]
    """The tools, without the effects that their actions declare."""
