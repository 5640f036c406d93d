"""One kind of action, what it is recognised by, and all actions of a pack."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal

from msgspec import Struct

from bylaw.actions.taking import Kind, Take
from bylaw.policy.pattern import Pattern
from bylaw.policy.tool import Effect, Tool

Otherwise = Literal["ask", "deny", "allow"]


class ElementTerms(Struct, frozen=True):
    """An element, by its role and name."""

    roles: tuple[str, ...] = ()
    name: str = ""
    named: Pattern | None = None

    def fits(self, element: Any) -> bool:
        """Whether an element of a page is such a one."""
        if self.roles and element.role not in self.roles:
            return False
        name = " ".join(element.name.split())
        return (not self.name or name == self.name) and (self.named is None or self.named.occurs(name))


class TargetTerms(Struct, frozen=True):
    """The element an action targets, and where it is."""

    page: Pattern | None
    element: ElementTerms
    within: ElementTerms | None = None
    url: Pattern | None = None
    """Of a link, where it leads."""
    names_host: bool = False
    """Whether `page` fits pages of one host only."""


class ReadTerms(Struct, frozen=True):
    """The argument an action is read from, and what must be in it."""

    argument: str
    kind: Kind
    dialect: str | None = None
    statements: tuple[str, ...] = ()
    tables: tuple[Pattern, ...] = ()
    bounded: bool | None = None
    programs: tuple[str, ...] = ()
    operands: tuple[Pattern, ...] = ()
    options: tuple[str, ...] = ()
    without_options: tuple[str, ...] = ()
    root: str = ""
    inside: bool | None = None
    fresh: bool = False
    scheme: Pattern | None = None
    host: Pattern | None = None
    path: Pattern | None = None
    names_host: bool = False
    """Whether `host` fits one host only."""


class Action(Struct, frozen=True):
    """One kind of action that calls of some tools perform."""

    name: str
    of: tuple[str, ...]
    effect: Effect
    on: TargetTerms | None = None
    reads: ReadTerms | None = None
    where: Mapping[str, Pattern] = {}
    takes: tuple[Take, ...] = ()

    @property
    def kind(self) -> Kind:
        """What it is recognised by: a part of the call that a reader finds, or the call as a whole."""
        return "page" if self.on is not None else "call" if self.reads is None else self.reads.kind

    @property
    def is_of_any_call(self) -> bool:
        """Whether every call of its tools performs it."""
        return self.kind == "call" and not self.where

    def fits_call(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the call's plain arguments are as its `where` has them."""
        return all(
            isinstance(value := arguments.get(name), str | int | float) and pattern.occurs(str(value))
            for name, pattern in self.where.items()
        )


class PageTerms(Struct, frozen=True):
    """How pages come into a conversation."""

    tools: tuple[str, ...]
    unchanged_by: tuple[str, ...]
    not_shown_by: tuple[str, ...]
    snapshot: str
    target: tuple[str, ...]
    description: tuple[str, ...]
    content: tuple[ElementTerms, ...] = ()

    def changes_with(self, tool: str) -> bool:
        """Whether a call of the tool may change the page, or show another."""
        return _is_one(tool, self.tools) and not _is_one(tool, self.unchanged_by)

    def shows(self, tool: str) -> bool:
        """Whether a snapshot in the tool's result is believed."""
        return self.changes_with(tool) and not _is_one(tool, self.not_shown_by)


def _is_one(tool: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(tool, each) for each in patterns)


class Actions(Struct, frozen=True):
    """All actions of a pack."""

    by_tool: Mapping[str, tuple[Action, ...]]
    otherwise: Mapping[str, Otherwise]
    pages: PageTerms
    plain: Mapping[str, Tool]
    """The tools, as they count beside the actions that a call of them performs: those say what is changed."""
