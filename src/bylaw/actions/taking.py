"""Where the parameters of an action come from: the closed set of expressions that `take` of tools.yaml may use.

$argument.NAME                                      an argument of the call
$item.NAME                                          of the record in a list that names the element, a field
$page.url  $page.title  $page.text('REGEX')         the page the element is on; of text, the first group
$page.host  $page.private  $page.url('REGEX')  $page.heading('REGEX')  $page.field('NAME')  $page.fields
$element.name  $element.role  $element.text         the element that is targeted
$link.host  .scheme  .path  .query  .private         where the targeted link leads
$row.text  $row.cell('COLUMN')  $row.cell(2)        the table row that the element is in
$statement.kind  .tables_read  .tables_written  .columns_written  .bounded
$command.program  .words  .operands  .options  .paths  .shown  .outside  .files_written  .files_read  .privileged
$path.path  $path.inside    $url.scheme  .host  .port  .path  .query  .private
"""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, cast

from msgspec import Struct

from bylaw.errors import BylawError
from bylaw.policy.pattern import Pattern, compile_pattern

Kind = Literal["call", "page", "sql", "shell", "path", "url"]
TakenType = Literal["text", "number", "money", "list", "boolean"]

FIELDS: Mapping[str, tuple[Kind, frozenset[str]]] = {
    "argument": ("call", frozenset()),
    "item": ("page", frozenset()),
    "page": ("page", frozenset(("url", "host", "private", "title", "text", "heading", "field", "fields"))),
    "link": ("page", frozenset(("scheme", "host", "path", "query", "private"))),
    "element": ("page", frozenset(("name", "role", "text"))),
    "row": ("page", frozenset(("text", "cell"))),
    "statement": ("sql", frozenset(("kind", "tables_read", "tables_written", "columns_written", "bounded"))),
    "command": (
        "shell",
        frozenset(
            (
                *("program", "words", "operands", "options", "paths", "shown", "outside"),
                *("files_written", "files_read", "privileged"),
            )
        ),
    ),
    "path": ("path", frozenset(("path", "inside"))),
    "url": ("url", frozenset(("scheme", "host", "port", "path", "query", "private"))),
}
"""For each source, the kind of action that may use it, and its fields. For `argument`, the field is the name of an
argument.
"""

_OF_PAGES = ("page", "element", "row", "link")
_TAKE = re.compile(r"\$([a-z]+)\.([A-Za-z_][A-Za-z0-9_-]*)(?:\((.*)\))?", re.DOTALL)
_QUOTED = re.compile(r"'(.*)'|\"(.*)\"", re.DOTALL)
_NUMBER = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[+-]?[0-9]+(?:\.[0-9]+)?")
_TWO_WAYS = re.compile(r"[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}")


class ActionError(BylawError):
    """Raised if an action in tools.yaml is invalid."""

    code = "BY412"


class NotTaken(Exception):
    """Raised if the evidence does not show the value. The message gives the reason and fits after "because"."""


class Ambiguous(NotTaken):
    """Raised if the evidence shows several values. Then even an optional parameter is unknown."""


class NotAtOnce(NotTaken):
    """Raised if one call combines actions that need separate calls. Such a call is always refused."""


class ElementTerms(Struct, frozen=True):
    """A role and a name that describe a page element."""

    roles: tuple[str, ...] = ()
    name: str = ""
    named: Pattern | None = None

    def fits(self, element: Any) -> bool:
        if self.roles and element.role not in self.roles:
            return False
        name = " ".join(element.name.split())
        return (not self.name or name == self.name) and (self.named is None or self.named.occurs(name))


class Take(Struct, frozen=True):
    """Where a parameter of an action takes its value from."""

    name: str
    source: str
    field: str
    pattern: Pattern | None = None
    """For `$page.text` and similar: the value is the pattern's first group or, without groups, the whole match."""
    column: str | int = ""
    """For `$row.cell`, a heading or a number starting at 1. For `$page.field`, the field's name."""
    type: TakenType = "text"
    optional: bool = False
    within: ElementTerms | None = None
    """For `$page.text` and similar: the part of the page that shows the value."""

    def fitted(self, value: Any) -> Any:
        """Return the value converted to the parameter's type. Raises `NotTaken` if the conversion fails."""
        if self.type == "list":
            return [str(each) for each in cast("list[Any]", value)] if isinstance(value, list | tuple) else [str(value)]
        if isinstance(value, list | tuple):
            raise NotTaken(f"`{self.name}` is a list")
        if self.type == "boolean":
            if not isinstance(value, bool):
                raise NotTaken(f"`{self.name}` is neither true nor false")
            return value
        if self.type == "number":
            return _number(self.name, value)
        # Browsers collapse spaces on pages. In a call's arguments, spaces may be significant.
        return " ".join(value.split()) if isinstance(value, str) and self.source in _OF_PAGES else value


def _number(name: str, value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    text = str(value).strip()
    if not _NUMBER.fullmatch(text):
        raise NotTaken(f"`{name}` is not a number")
    if _TWO_WAYS.fullmatch(text):
        raise NotTaken(f"`{name}` is {text}, whose separator may mark thousands or decimals")
    try:
        found = Decimal(text.replace(",", ""))
    except InvalidOperation:
        raise NotTaken(f"`{name}` is not a number") from None
    return int(found) if found == found.to_integral_value() else float(found)


def names_element(argument: str) -> bool:
    """Whether an argument names another page element, such as `startRef`."""
    return argument.endswith(("Target", "Ref"))


def compile_take(
    name: str, text: str, kinds: frozenset[Kind], type: TakenType, *, optional: bool, arguments: Mapping[str, Any]
) -> Take:
    """Parse a parameter from tools.yaml.

    `kinds` contains the kinds of the action, and `arguments` contains the arguments of its tools. Raises `ActionError`,
    or `PatternError` for an invalid pattern.
    """
    known = ", ".join(f"${source}" for source, (kind, _) in FIELDS.items() if kind == "call" or kind in kinds)
    found = _TAKE.fullmatch(text.strip())
    if found is None:
        raise ActionError(f"`{text}` is not a valid source", hint="write it like `$argument.NAME`")
    source, field, inside = found[1], found[2], found[3]
    if source not in FIELDS:
        raise ActionError(f"`${source}` is not a valid source", hint=f"use one of {known}")
    kind, fields = FIELDS[source]
    if kind != "call" and kind not in kinds:
        raise ActionError(
            f"`${source}` is not available, because this action matches no `{kind}`", hint=f"use one of {known}"
        )
    if kind == "call":
        if arguments and field not in arguments:
            hint = f"its tools take {', '.join(f'`{each}`' for each in arguments)}"
            raise ActionError(f"no argument is named `{field}`", hint=hint)
    elif fields and field not in fields:
        raise ActionError(f"`${source}` has no `{field}`", hint=f"it has {', '.join(sorted(fields))}")
    pattern, column = None, ""
    if source == "page" and (field in ("text", "heading") or (field == "url" and inside is not None)):
        pattern = compile_pattern(f"(?m){_quoted(text, inside)}", ignore_case=False)
    elif source == "page" and field == "field":
        column = " ".join(_quoted(text, inside).split())
    elif source == "row" and field == "cell":
        column = int(inside) if inside and inside.strip().isdigit() else _quoted(text, inside)
    elif inside is not None:
        raise ActionError(f"`${source}.{field}` does not take brackets", hint=f"write `${source}.{field}`")
    return Take(name, source, field, pattern, column, type, optional)


def _quoted(text: str, inside: str | None) -> str:
    found = _QUOTED.fullmatch((inside or "").strip())
    if found is None:
        raise ActionError(f"`{text}` requires quoted text", hint="write it like `$page.text('^Total: (.*)')`")
    return found[1] if found[1] is not None else found[2]
