"""Determines what a statement reads and writes, according to the grammar of one dialect."""

import importlib
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from itertools import pairwise
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.errors import MissingExtra
from bylaw.reading import sql_words as words
from bylaw.reading.sql_tables import Names, Table, column_name, pinned_columns, table_name
from bylaw.reading.sql_text import Token, read_tokens
from bylaw.reading.unreadable import Unreadable

__all__ = ["Statement", "Tree", "Unparsed"]

_OF_INSERT = frozenset(
    {"this", "expression", "with_", "conflict", "alternative", "ignore", "returning", "by_name", "default", "hint"}
)
"""The parts of an insert that leave existing rows unchanged. `conflict` and `alternative` are checked separately."""
_OF_ONE_TABLE = frozenset({"this", "expressions", "where", "with_", "returning", "limit", "order", "hint"})
"""The parts of an update or delete that involve no other table."""
_STRICT_NUMBERS = ("postgres", "sqlite")
"""Databases in which a number is equal to at most one key. In other databases, it is also equal to strings that begin
with it.
"""
_OF_PLAIN_QUERY = frozenset({"expressions", "from_", "where", "order", "limit", "offset", "distinct"})
"""The parts of a query that return stored column values unchanged."""


class Statement(Struct, frozen=True):
    """The effect of one statement. A query with a write inside counts as several statements."""

    kind: str
    """The statement's first word, such as `insert`, `explain` or `call`.

    For a query, `select`, or `lock` if it is `for update`.
    """
    writes: bool
    """Whether the statement may change stored data, locks, or the effects of later statements."""
    tables_read: frozenset[str] | None = frozenset()
    """The tables that the statement names as sources, in lower case, with their schema if it is written.

    A CTE is not a table. None if the statement may read unknown tables.
    """
    tables_written: frozenset[str] | None = frozenset()
    """The tables that the statement changes. None if it may change unknown tables."""
    columns_written: frozenset[str] | None = frozenset()
    """The columns that an insert or update names. None if the statement may set any column."""
    bounded: bool | None = True
    """Whether an update or delete is limited to given values of a declared key. None if the table has no declared
    key.
    """
    shown_table: str = ""
    """The table, if a query shows only columns of one table under their own names. Otherwise empty."""


_is_reading: ContextVar[bool] = ContextVar("is_reading", default=False)
"""Whether Bylaw is running the parser. The parser's warnings are then suppressed, because they would put the text into
the host's log.
"""


class Unparsed(Unreadable):
    """Raised if the text does not follow this dialect's grammar."""


@cache
def _sqlglot() -> Any:
    try:
        sqlglot = importlib.import_module("sqlglot")
    except ImportError as error:
        raise MissingExtra("reading SQL needs sqlglot", "read-sql") from error
    logging.getLogger("sqlglot").addFilter(lambda record: not _is_reading.get())
    return sqlglot


@cache
def _dialect(name: str) -> Any:
    return _sqlglot().Dialect.get_or_raise(name)


@cache
def _parser(dialect: str) -> Any:
    """Return a parser that leaves the names of all functions unchanged."""
    plain: Any = type("PlainParser", (_dialect(dialect).parser_class,), {"FUNCTIONS": {}, "NO_PAREN_FUNCTIONS": {}})
    return plain(dialect=_dialect(dialect))


class Tree:
    """A statement as parsed with the grammar of one dialect."""

    def __init__(
        self, tokens: Sequence[Token], dialect: str, tables: Mapping[str, Table] | None, *, is_named: bool = True
    ) -> None:
        """Set `is_named` to False if the text may also be in another dialect."""
        self.exp: Any = _sqlglot().expressions
        self.dialect = dialect
        self.tables = tables
        self.named = dialect if is_named else None
        self.queries: dict[int, Any] = {}
        """The `with` query to which a table's name refers, keyed by the id of the table's node."""
        text = "".join(f" {token.text}" if token.spaced else token.text for token in tokens)
        quiet = _is_reading.set(True)
        try:
            trees: list[Any] = _parser(dialect).parse(_dialect(dialect).tokenize(text), text)
            if len(trees) != 1 or trees[0] is None:
                raise Unreadable("the parser finds a different number of statements")
            self.tree: Any = trees[0]
            if any(isinstance(node, self.exp.Command) for node in self.tree.walk()):
                raise Unparsed("the parser does not know the statement")
            written = self.tree.sql(_dialect(dialect), comments=False, normalize_functions=False)
        except (_sqlglot().errors.SqlglotError, RecursionError, ValueError) as error:
            raise Unparsed(f"the SQL cannot be parsed: {str(error).splitlines()[0][:120]}") from None
        finally:
            _is_reading.reset(quiet)
        if any(each.args.get("field") is not None for each in self.tree.find_all(self.exp.In)):
            raise Unreadable("`in` without brackets may read a table")
        self._check_words(tokens, written)
        self._check_aliases(tokens)
        self._check_types(tokens)

    def _check_words(self, tokens: Sequence[Token], written: str) -> None:
        """Check that the tree contains every word and value of the statement, because the parser drops words that it
        ignores.
        """
        try:
            lost = _counted(tokens) - _counted(read_tokens(written, self.named))
        except Unreadable as error:
            raise Unparsed(str(error)) from None
        if unknown := lost.keys() - words.REWRITTEN:
            raise Unparsed(f"the parser leaves out `{min(unknown)[:60]}`")

    def _check_aliases(self, tokens: Sequence[Token]) -> None:
        """Check that every alias is introduced by AS, if statements need no semicolon between them.

        In `select 1 shutdown`, the last word may be the next statement.
        """
        if self.named not in (None, "tsql"):
            return
        exp = self.exp
        of_tables = [node.this for node in self.tree.find_all(exp.TableAlias) if not isinstance(node.parent, exp.CTE)]
        nodes = [*(node.args["alias"] for node in self.tree.find_all(exp.Alias)), *filter(None, of_tables)]
        is_unknown = self.named is None
        aliases = Counter(str(each.name).lower() for each in nodes if not (is_unknown and each.args.get("quoted")))
        after_as = Counter(token.text.lower() for before, token in pairwise(tokens) if before.word == "as")
        # If the dialect is unknown, it may be one that requires a semicolon after each statement.
        used = {before.word for before, token in pairwise(tokens) if token.text == "." and is_unknown}
        if unknown := (aliases - after_as).keys() - used:
            raise Unreadable(f"`{min(unknown)[:60]}` may begin a statement: write `as` before an alias")

    def _check_types(self, tokens: Sequence[Token]) -> None:
        """Check that PostgreSQL converts values only to built-in types. Another type may be a domain, and its CHECK
        constraint may call any function.
        """
        if self.dialect != "postgres":
            return
        exp = self.exp
        # Without a dialect, the types of other databases count as built-in.
        known = words.POSTGRES_TYPES | (words.TYPES if self.named is None else frozenset[str]())
        if any(each.this == exp.DataType.Type.USERDEFINED for each in self.tree.find_all(exp.DataType)):
            raise Unreadable(
                "a type that PostgreSQL does not have may be a domain, and its CHECK constraint may run a function"
            )
        dialect = _dialect("postgres")
        for first, before, token, after in zip((None, *tokens), tokens, tokens[1:], (*tokens[2:], None), strict=False):
            # A quoted type name in another letter case is a type that the user defined.
            is_own = token.kind == "name" and token.word not in token.text
            if token.word in known and not is_own:
                continue
            kind = dialect.tokenizer_class.KEYWORDS.get(token.word.upper())
            ends = after is not None and after.text in (")", "[", "(", "" if before.word == "as" else ",")
            follows = before.word == "as" or (is_own and before.kind in ("word", "name"))
            is_type = follows and kind in dialect.parser_class.TYPE_TOKENS and (ends or not is_own)
            if is_type or (first is not None and first.text == before.text == ":"):
                raise Unreadable(f"`{token.text[:60]}` may be a domain, and its CHECK constraint may run a function")

    def statements(self) -> list[Statement]:
        self._collect(self.tree, {}, set(), None)
        # Other databases do not call functions on a table's row.
        tables = self.tables if self.named in (None, "postgres") else None
        Names(self.exp, self.tree, self.dialect, tables, self.queries).check()
        self._check_functions()
        found = self._effects()
        if self.named in (None, "sqlite") and self.tables is not None:
            self._check_tables(found, self.tables)
        return found

    def _check_functions(self) -> None:
        """Check that every called function is known. A database may have a function named by a keyword of another, such
        as `add`, and the parser may read its call as another clause.
        """
        exp, known = self.exp, words.FUNCTIONS | words.FUNCTIONS_OF_WRITES
        for node in self.tree.find_all(exp.Anonymous, exp.Aliases, exp.Qualify, exp.TableAlias, exp.TableSample):
            match node:
                case exp.Anonymous():
                    is_known = str(node.name).lower() in known
                case exp.TableAlias():
                    is_known = node.this is not None
                case _:
                    is_known = isinstance(node, exp.TableSample) and not isinstance(node.parent, exp.Select)
            if not is_known:
                raise Unreadable(f"`{node.sql(self.dialect)[:60]}` may call a function that writes")

    def _check_tables(self, found: Sequence[Statement], tables: Mapping[str, Table]) -> None:
        """Check that every table is declared. In SQLite, an undeclared table may be virtual.

        Some virtual tables read files when queried, and some treat a row as a command.
        """
        for statement in found:
            named = set(statement.tables_read or frozenset())
            if statement.kind in ("insert", "update"):
                named |= statement.tables_written or set()
            if unknown := named - tables.keys() - words.SCHEMA_TABLES:
                raise Unreadable(f"`{min(unknown)[:60]}` may be a virtual table: declare it under `tables`")
            if statement.kind == "insert":
                columns = {column for each in statement.tables_written or () for column in tables[each].columns}
                if unknown := (statement.columns_written or frozenset()) - columns:
                    raise Unreadable(f"`{min(unknown)[:60]}` may be a command: declare the columns of the table")

    def _effects(self) -> list[Statement]:
        found = [each for node in self.tree.walk() if self._is_write(node) for each in self._writes(node)]
        if self._is_write(self.tree):
            # A write must also have no effect beyond its tables.
            exp = self.exp
            for node in self.tree.find_all(exp.NextValueFor, exp.WithTableHint, exp.Into, exp.Lock, exp.PropertyEQ):
                self._check(node)
            return found
        if not isinstance(self.tree, (self.exp.Query, self.exp.Values)):
            raise Unparsed("the parser does not know the statement")
        reads = self._tables_read(self.tree)
        for node in self.tree.walk():
            if isinstance(node, self.exp.Into):
                found.append(self._into(node, reads))
            elif isinstance(node, self.exp.Lock):
                found.append(Statement("lock", True, reads, reads, frozenset(), False))
        if found:
            return [*found, Statement("select", False, reads)]
        for node in self.tree.walk():
            self._check(node)
        return [Statement("select", False, reads, shown_table=self._shown_table())]

    def _shown_table(self) -> str:
        """Return the table if the query shows only columns of one table, otherwise an empty string.

        Literals, expressions, aliases and further sources do not qualify.
        """
        exp, tree = self.exp, self.tree
        if not isinstance(tree, exp.Select) or _parts(tree) - _OF_PLAIN_QUERY:
            return ""
        distinct, source = tree.args.get("distinct"), tree.args.get("from_")
        if source is None or _parts(source) != {"this"} or (distinct is not None and _parts(distinct)):
            return ""
        table = source.this
        alias = table.args.get("alias")
        if not isinstance(table, exp.Table) or _parts(table) - {"this", "db", "catalog", "alias"}:
            return ""
        if not isinstance(table.this, exp.Identifier) or (alias is not None and _parts(alias) != {"this"}):
            return ""
        return table_name(table, self.dialect) if all(map(self._is_plain_column, tree.expressions)) else ""

    def _is_plain_column(self, node: Any) -> bool:
        exp = self.exp
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return not _parts(node.this)
        return (isinstance(node, exp.Star) and not _parts(node)) or self._is_declared(node)

    def _is_write(self, node: Any) -> bool:
        exp = self.exp
        kinds = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable)
        return isinstance(node, kinds) and not isinstance(node.parent, exp.When)

    def _check(self, node: Any) -> None:
        name = type(node).__name__
        if isinstance(node, self.exp.WithTableHint):
            is_known = {str(each.name).lower() for each in node.expressions} <= words.TABLE_HINTS
        else:
            is_known = name in words.NODES
        if not is_known:
            raise Unreadable(f"`{name}` is not known to be read-only")

    def _into(self, node: Any, reads: frozenset[str]) -> Statement:
        target = node.this
        if not isinstance(target, self.exp.Table) or node.args.get("expressions") or node.args.get("bulk_collect"):
            raise Unreadable("a query that writes into something other than a table")
        return Statement("create", True, reads, frozenset({table_name(target, self.dialect)}), None, True)

    # Tables

    def _tables_read(self, tree: Any, skip: Any = None) -> frozenset[str]:
        found: set[str] = set()
        self._collect(tree, {}, found, skip)
        return frozenset(found)

    def _collect(self, node: Any, known: Mapping[str, Any], found: set[str], skip: Any) -> None:
        """Collect the table names under `node` that are not CTEs in scope."""
        if node is skip:
            return
        is_named = isinstance(node, self.exp.Table) and isinstance(node.this, self.exp.Identifier)
        if is_named:
            query = self._query_of(node, known)
            if query is None:
                found.add(table_name(node, self.dialect))
            else:
                self.queries[id(node)] = query
        if isinstance(node, self.exp.Into):
            return
        clause: Any = node.args.get("with_")
        queries: list[Any] = clause.expressions if clause else []
        for each in queries:
            alias = self._alias(each)
            inner = {**known, alias: each} if clause and clause.args.get("recursive") else known
            self._collect(each.this, inner, found, skip)
            known = {**known, alias: each}
        for child in node.iter_expressions():
            if child is not clause:
                self._collect(child, known, found, skip)

    def _alias(self, query: Any) -> str:
        """Return the name of a `with` query. The name must be an unquoted word, because databases disagree about quoted
        names.
        """
        alias = query.args["alias"].this
        name = str(alias.this)
        if alias.args.get("quoted") or not name.isascii() or not name.isidentifier():
            raise Unreadable(f"a query with the quoted name `{name[:60]}`")
        return name.lower()

    def _query_of(self, table: Any, known: Mapping[str, Any]) -> Any:
        """Return the `with` query to which a table name refers, or None. A name with a schema never refers to one."""
        name, named = table.this, str(table.this.this)
        if named.lower() not in known or table.args.get("db") or table.args.get("catalog"):
            return None
        if name.args.get("quoted"):
            raise Unreadable(f"`{named[:60]}` may be a query of that name, or a table")
        return known[named.lower()]

    def _write(self, node: Any) -> Statement:
        exp = self.exp
        kind = {"TruncateTable": "truncate"}.get(type(node).__name__, type(node).__name__.lower())
        targets = self._targets(node)
        if isinstance(node, (exp.Drop, exp.TruncateTable)):
            reads = frozenset[str]()
        elif self._names_queries():
            reads = self._tables_read(self.tree)
        else:
            reads = self._tables_read(node, self._target_node(node))
        return Statement(
            kind,
            True,
            reads,
            targets,
            self._columns(node),
            self._is_bounded(node) if isinstance(node, (exp.Update, exp.Delete)) else isinstance(node, exp.Insert),
        )

    def _writes(self, node: Any) -> list[Statement]:
        """Return a write and its other effects. An insert may also update, and a `create` may also drop."""
        found = self._write(node)
        is_table = str(node.args.get("kind")).upper() == "TABLE"
        if isinstance(node, self.exp.Create) and is_table and node.args.get("replace"):
            return [found, replace(found, kind="drop")]
        return [found, replace(found, kind="update", bounded=False)] if self._overwrites(node) else [found]

    def _overwrites(self, node: Any) -> bool:
        if not isinstance(node, self.exp.Insert):
            return False
        conflict, alternative = node.args.get("conflict"), str(node.args.get("alternative") or "IGNORE")
        target = self._target_node(node)
        if not isinstance(target, self.exp.Table) or {key for key, value in node.args.items() if value} - _OF_INSERT:
            return True
        if alternative.upper() not in ("IGNORE", "ABORT", "FAIL", "ROLLBACK"):
            return True
        action = str(conflict.args.get("action") or "").upper() if conflict is not None else ""
        return conflict is not None and action != "DO NOTHING"

    def _names_queries(self) -> bool:
        return next(self.tree.find_all(self.exp.CTE), None) is not None

    def _target_node(self, node: Any) -> Any:
        target = node.this
        return target.this if isinstance(target, self.exp.Schema) else target

    def _targets(self, node: Any) -> frozenset[str] | None:
        exp = self.exp
        queries = {str(each.alias).casefold() for each in self.tree.find_all(exp.CTE)}
        if isinstance(node, exp.TruncateTable):
            named = list(node.expressions)
        elif isinstance(node, exp.Drop):
            named = list(node.args.get("tables") or [node.this])
        elif isinstance(node, exp.Delete) and node.args.get("tables"):
            return self._aliased(node)
        else:
            named = [self._target_node(node)]
        if isinstance(node, (exp.Drop, exp.Create, exp.Alter)) and str(node.args.get("kind")).upper() != "TABLE":
            return None
        if isinstance(node, exp.Drop) and node.args.get("cascade"):
            return None
        if not all(isinstance(each, exp.Table) and isinstance(each.this, exp.Identifier) for each in named):
            return None
        if not named or named[0].args.get("joins"):
            return None
        if isinstance(node, exp.Create) and not self._is_plain_table(node):
            return None
        found = {table_name(each, self.dialect) for each in named}
        return None if found & queries or self._is_alias(node, found) else frozenset(found)

    def _is_plain_table(self, node: Any) -> bool:
        """Whether a new table is independent of other tables. A query may still fill the table."""
        exp, properties, filled = self.exp, node.args.get("properties"), node.args.get("expression")
        if next(node.find_all(exp.Reference, exp.ForeignKey), None) is not None:
            return False
        are_plain = properties is None or all(
            isinstance(each, (exp.TemporaryProperty, exp.UnloggedProperty)) for each in properties.expressions
        )
        return are_plain and (filled is None or isinstance(filled, (exp.Query, exp.Values)))

    def _is_alias(self, node: Any, found: set[str]) -> bool:
        """Whether a target, or a column being set, uses another table's alias. T-SQL and MySQL allow this."""
        exp = self.exp
        aliased = {
            str(each.alias).casefold(): table_name(each, self.dialect)
            for each in node.find_all(exp.Table)
            if each.alias
        }
        targets = set(found)
        if isinstance(node, exp.Update):
            columns = [column for each in node.expressions for column in each.this.find_all(exp.Column)]
            targets |= {str(column.table).casefold() for column in columns if column.table}
        return any(aliased.get(name, name) not in found for name in targets)

    def _aliased(self, node: Any) -> frozenset[str] | None:
        """Return the tables of `delete a, b from t as a join u as b`."""
        targets = {id(each) for each in node.args["tables"]}
        sources = [each for each in node.find_all(self.exp.Table) if id(each) not in targets]
        by_alias = {str(each.alias_or_name).casefold(): table_name(each, self.dialect) for each in sources}
        found = {by_alias.get(str(each.name).casefold(), "") for each in node.args["tables"]}
        return frozenset(found) if all(found) else None

    def _columns(self, node: Any) -> frozenset[str] | None:
        exp = self.exp
        if isinstance(node, exp.Update):
            return self._set_columns(node.expressions)
        if isinstance(node, exp.Insert) and isinstance(node.this, exp.Schema):
            found = {str(each.name).casefold() for each in node.this.expressions}
            conflict = node.args.get("conflict")
            more = self._set_columns(conflict.expressions) if conflict is not None else frozenset[str]()
            return None if more is None else frozenset(found) | more
        return frozenset() if isinstance(node, exp.Delete) else None

    def _set_columns(self, assignments: Sequence[Any]) -> frozenset[str] | None:
        found: set[str] = set()
        for each in assignments:
            if not isinstance(each, self.exp.EQ):
                return None
            target: Any = each.this
            columns: list[Any] = target.expressions if isinstance(target, self.exp.Tuple) else [target]
            if not all(isinstance(column, self.exp.Column) for column in columns):
                return None
            found |= {str(column.name).casefold() for column in columns}
        return frozenset(found)

    # Declared tables

    def _is_bounded(self, node: Any) -> bool | None:
        """Whether an update or delete identifies its rows by their keys. None if its table has no declared keys."""
        exp, where = self.exp, node.args.get("where")
        has_others = {key for key, value in node.args.items() if value} - _OF_ONE_TABLE
        if where is None or has_others or not isinstance(node.this, exp.Table) or node.this.args.get("joins"):
            # If the statement has other tables, every row may be joined to a row with the key.
            return False
        table = self.tables.get(table_name(node.this, self.dialect)) if self.tables is not None else None
        if table is None or not table.keys:
            return None
        pinned = pinned_columns(where.this, exp, self.dialect, numbers=self.named in _STRICT_NUMBERS)
        return bool((pinned or frozenset()) & table.keys)

    def _is_declared(self, node: Any) -> bool:
        """Whether a column that a query shows is declared. An undeclared name may be a session value, such as
        `current_user`.
        """
        if not isinstance(node, self.exp.Column):
            return False
        source = self.tree.args["from_"].this
        table = (self.tables or {}).get(table_name(source, self.dialect), Table())
        return column_name(node.this, self.dialect) in table.columns


def _parts(node: Any) -> set[str]:
    return {name for name, value in node.args.items() if value}


def _counted(tokens: Sequence[Token]) -> Counter[str]:
    """Count words and values. Single quotes are ignored, because the parser puts the 1 in `interval 1 day` in
    quotes.
    """
    return Counter(token.word or token.text.strip("'").lower() for token in tokens if token.kind != "sign")
