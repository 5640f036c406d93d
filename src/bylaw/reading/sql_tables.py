"""A pack's declared tables, and what their columns and keys prove about a statement's names and conditions.

If `o` has no column `purge`, PostgreSQL interprets `o.purge` as a call of the function `purge`. So `o.purge` is taken
for a column only if a declared table, or a query in the text, proves that the column exists.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from bylaw.reading.unreadable import Unreadable

__all__ = ["Names", "Table", "column_name", "pinned_columns", "table_name"]

_COMPARISONS = ("EQ", "NEQ", "GT", "GTE", "LT", "LTE", "Like", "ILike")


class Table(Struct, frozen=True):
    """A table in the user's database."""

    columns: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    """The columns that identify a row."""


def column_name(identifier: Any, dialect: str) -> str:
    """Return a name in lower case. A quoted name keeps its quotes if its letter case matters."""
    name = str(identifier.name)
    if name != name.strip():
        raise Unreadable(f"`{name[:60]}` begins or ends with a space, which some databases leave out")
    if not name.isascii() and dialect == "tsql":
        raise Unreadable(f"`{name[:60]}` may be another spelling of a name")
    if dialect == "postgres" and identifier.args.get("quoted") and name.lower() != name:
        return f'"{name}"'
    return _lower(name)


def table_name(table: Any, dialect: str) -> str:
    """Return a table's name including its schema. A part of the name that contains a dot keeps its quotes."""
    parts = [column_name(part, dialect) for part in table.parts]
    return ".".join(f'"{part}"' if "." in part and part[0] != '"' else part for part in parts)


def _lower(name: str) -> str:
    """Return a name in lower case. Letters outside ASCII stay unchanged, because databases treat them differently."""
    return "".join(each.lower() if each.isascii() else each for each in name)


class Names:
    """A statement's sources by name, and the columns that each of them certainly has."""

    def __init__(self, exp: Any, tree: Any, dialect: str, tables: Mapping[str, Table] | None, queries: Any) -> None:
        self._exp = exp
        self._tree = tree
        self._dialect = dialect
        self._tables = tables
        """None means that every table has every column."""
        self._queries: Mapping[int, Any] = queries
        """The `with` query to which a table's name refers, keyed by the id of the table's node."""
        self._found: dict[int, frozenset[str] | None] = {}
        """The columns of each query, keyed by the id of its node. None while they are being determined."""

    def check(self) -> None:
        """Raise `Unreadable` for a qualified name that might be a function call."""
        exp = self._exp
        for node in self._tree.find_all(exp.Dot):
            if isinstance(node.expression, exp.Identifier):
                raise Unreadable(f"`{node.sql(self._dialect)[:60]}` may call a function")
        sources: dict[str, list[Any]] = {}
        has_unnamed = False
        for node in self._tree.find_all(exp.Table, exp.Subquery, exp.Unnest, exp.Lateral, exp.Values):
            if name := self._alias(node):
                sources.setdefault(name, []).append(node)
            else:
                # A function without an alias may have a name that does not occur in the text.
                has_unnamed |= not isinstance(node, (exp.Subquery, exp.Values))
        if isinstance(self._tree, exp.Insert):
            target = self._tree.this
            sources["excluded"] = [target.this if isinstance(target, exp.Schema) else target]
        for column in self._tree.find_all(exp.Column):
            if not column.table or isinstance(column.this, exp.Star):
                continue
            name = column_name(column.this, self._dialect)
            found = sources.get(column_name(column.args["table"], self._dialect), [])
            is_known = bool(found) or self._tables is None
            if has_unnamed or not is_known or not all(self._has(each, name) for each in found):
                written = f"{column.table}.{column.name}"[:60]
                raise Unreadable(f"`{written}` may call a function: declare the columns of the table under `tables`")

    def _alias(self, source: Any) -> str:
        """Return the name of a source in FROM. Empty if the text does not name the source."""
        alias = source.args.get("alias")
        if alias is not None and alias.args.get("this") is not None:
            return column_name(alias.this, self._dialect)
        is_table = isinstance(source, self._exp.Table) and isinstance(source.this, self._exp.Identifier)
        return column_name(source.this, self._dialect) if is_table else ""

    def _has(self, source: Any, column: str) -> bool:
        columns = self._columns(source)
        return columns is None or column in columns

    def _columns(self, source: Any) -> frozenset[str] | None:
        """Return the columns that a source certainly has. None if it may have any columns."""
        exp, alias = self._exp, source.args.get("alias")
        if alias is not None and alias.columns:
            # The alias renames the first columns, so their old names may no longer exist.
            return self._listed(alias)
        if isinstance(source, exp.Lateral) and isinstance(source.this, exp.Subquery):
            source = source.this
        if isinstance(source, exp.Subquery):
            return self._outputs(source.this)
        if isinstance(source, exp.Values) and self._tables is None:
            return None
        if not isinstance(source, exp.Table) or not isinstance(source.this, exp.Identifier):
            return frozenset()
        if (query := self._queries.get(id(source))) is not None:
            return self._listed(query.args["alias"]) or self._outputs(query.this)
        if self._tables is None:
            return None
        return self._tables.get(table_name(source, self._dialect), Table()).columns

    def _listed(self, alias: Any) -> frozenset[str]:
        """Return the columns listed in `name (columns)`."""
        columns = alias.args.get("columns") or ()
        named = (each if isinstance(each, self._exp.Identifier) else each.this for each in columns)
        return frozenset(column_name(each, self._dialect) for each in named)

    def _outputs(self, query: Any) -> frozenset[str] | None:
        """Return the columns that a query certainly returns. None if it may return any columns."""
        exp = self._exp
        while isinstance(query, (exp.SetOperation, exp.Subquery)):
            query = query.this
        if id(query) not in self._found:
            self._found[id(query)] = frozenset()
            self._found[id(query)] = self._selected(query)
        return self._found[id(query)]

    def _selected(self, query: Any) -> frozenset[str] | None:
        exp = self._exp
        found: set[str] = set()
        for each in query.expressions if isinstance(query, exp.Select) else ():
            if isinstance(each, exp.Alias):
                found.add(column_name(each.args["alias"], self._dialect))
            elif isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
                of = column_name(each.args["table"], self._dialect) if isinstance(each, exp.Column) else ""
                for source in self._sources(query):
                    if of and self._alias(source) != of:
                        continue
                    columns = self._columns(source)
                    if columns is None:
                        return None
                    found |= columns
            elif isinstance(each, exp.Column):
                found.add(column_name(each.this, self._dialect))
        return frozenset(found)

    def _sources(self, query: Any) -> Iterator[Any]:
        source = query.args.get("from_")
        if source is not None:
            yield source.this
        for join in query.args.get("joins") or ():
            yield join.this


def pinned_columns(condition: Any, exp: Any, dialect: str, *, numbers: bool) -> frozenset[str] | None:
    """Return the columns that a condition sets equal to given values. None if the condition is too complex.

    Only comparisons joined by AND are supported, because databases disagree about the precedence of anything else.
    """
    match condition:
        case exp.Paren():
            return pinned_columns(condition.this, exp, dialect, numbers=numbers) or frozenset()
        case exp.And():
            sides = [
                pinned_columns(each, exp, dialect, numbers=numbers) for each in (condition.this, condition.expression)
            ]
            found = [each for each in sides if each is not None]
            return found[0] | found[1] if len(found) == len(sides) else None
        case exp.In() if {name for name, value in condition.args.items() if value} == {"this", "expressions"}:
            column, values = condition.this, condition.expressions
        case exp.Is() if isinstance(condition.this, exp.Column) and isinstance(condition.expression, exp.Null):
            return frozenset()
        case exp.Not() if isinstance(condition.this, (exp.Is, exp.Like, exp.ILike)):
            return pinned_columns(condition.this, exp, dialect, numbers=numbers)
        case _ if type(condition).__name__ in _COMPARISONS:
            column, value = condition.this, condition.expression
            if not isinstance(column, exp.Column):
                column, value = value, column
            values = [value]
        case _:
            return None
    # Brackets separate their content from the rest of the condition.
    sides = (exp.Column, exp.Anonymous, exp.Paren, *_given(exp))
    if not isinstance(column, exp.Column) or not all(isinstance(each, sides) for each in values):
        return None
    if not isinstance(condition, (exp.EQ, exp.In)) or not all(_is_given(each, exp, numbers=numbers) for each in values):
        return frozenset()
    if column.this.args.get("quoted") and dialect != "postgres":
        # A name in double quotes may be a string in SQLite and MySQL.
        return frozenset()
    return frozenset((column_name(column.this, dialect),))


def _given(exp: Any) -> tuple[Any, ...]:
    return exp.Literal, exp.Placeholder


def _is_given(value: Any, exp: Any, *, numbers: bool) -> bool:
    """Whether a value is equal to at most one key. In MySQL, a number is equal to every text that begins with the
    number.
    """
    if not isinstance(value, _given(exp)):
        return False
    if isinstance(value, exp.Literal) and value.is_string:
        return True
    return numbers and (isinstance(value, exp.Placeholder) or str(value.this).isdigit())
