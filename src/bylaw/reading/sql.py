"""Finds what an SQL text reads and writes, statement by statement. `sqlglot` (extra `read-sql`) parses it."""

import importlib
import logging
from collections.abc import Container, Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.errors import MissingExtra
from bylaw.reading import sql_words as words
from bylaw.reading.sql_text import DIALECTS, Token, read_tokens
from bylaw.reading.unreadable import Unreadable

__all__ = ["DIALECTS", "Statement", "read_sql"]

MAX_TOKENS = 3000
"""The maximum number of tokens in a parsed statement. The parser takes about 0.05 ms per token and dialect."""
MAX_STATEMENTS = 100
MAX_CALLS = 9
"""The maximum nesting of functions."""
MAX_TYPES = 4
"""The maximum nesting of functions with type names. The parser's time doubles with each level."""
MAX_LIMIT = 1000
"""A `limit` above this does not bound a statement."""
_PLAUSIBLE = ("postgres", "mysql", "sqlite", "tsql")
"""If no dialect is given, a text is parsed as each of these. Those that succeed must agree."""
_OTHERS = ("duckdb", "bigquery", "snowflake")
"""Dialects to try if none of the plausible dialects succeeds."""
_CONSTANTS = ("Literal", "Placeholder", "Parameter", "National")
"""Values that may distinguish rows. True and false are not listed, because they only divide the rows into two
halves.
"""
_UNLIKE_IN_QUOTES = {"postgres": str.lower, "snowflake": str.upper, "oracle": str.upper}
"""Dialects in which a quoted and an unquoted name may differ in letter case alone, with the function that they apply to
unquoted names.
"""
_OF_INSERT = frozenset(
    {"this", "expression", "with_", "conflict", "alternative", "ignore", "returning", "by_name", "default", "hint"}
)
"""Parts of an insert that leave rows unchanged. `conflict` and `alternative` are checked separately."""
_OF_ONE_TABLE = frozenset({"this", "expressions", "where", "with_", "returning", "limit", "order", "hint"})
"""Parts of an update or delete that involve no other table."""
_OF_PLAIN_QUERY = frozenset({"expressions", "from_", "where", "order", "limit", "offset", "distinct"})
"""Parts of a query that return stored column values unchanged."""


class Statement(Struct, frozen=True):
    """The effect of one statement. If a query contains writes, each write is a separate statement."""

    kind: str
    """The first word, such as `insert`, `explain` or `call`.

    It is `select` for every query, and `lock` for `for update`.
    """
    writes: bool
    """Whether the statement may change stored data, locks, or the effect of later statements."""
    tables_read: frozenset[str] | None = frozenset()
    """Tables that the statement names as sources, in lower case, with the schema if it is written. A CTE is not a
    table. None if the statement may read unknown tables.
    """
    tables_written: frozenset[str] | None = frozenset()
    """The tables that change. None if unknown tables may change."""
    columns_written: frozenset[str] | None = frozenset()
    """The columns that an insert or update names. None if it may set any column."""
    bounded: bool = True
    """Whether an update or delete is limited to given values of a column, or to a number of rows."""
    shown_table: str = ""
    """The table, if a query shows only columns of one table under their own names. Otherwise empty."""
    attributes: frozenset[str] = frozenset()
    """The names after a table's name or alias, as in `o.total`. PostgreSQL calls the user's function with that name if
    the table has no such column.
    """


def read_sql(text: str, dialect: str | None = None) -> tuple[Statement, ...]:
    """Return every statement of `text`, in order. Raises `Unreadable` if one cannot be read with certainty.

    Without a dialect, all dialects that can parse the text must agree. A statement takes 1 to 3 ms, or 0.2 to 0.6 ms
    with a dialect. The first call loads the parser, which takes up to a second.
    """
    found: list[Statement] = []
    for number, tokens in enumerate(_split(read_tokens(text, dialect))):
        if number == MAX_STATEMENTS:
            raise Unreadable(f"there are more than {MAX_STATEMENTS} statements")
        _check_calls(tokens)
        if dialect in (None, "postgres"):
            _check_operators(tokens)
        try:
            found += _Reader(tokens, dialect).statements()
        except RecursionError:
            raise Unreadable("the statement is nested too deeply") from None
    if not found:
        raise Unreadable("there is no statement")
    return tuple(found)


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    begun: list[Token] = []
    depth = 0
    for token in tokens:
        if token.kind == "sign" and token.text in "([{":
            depth += 1
        elif token.kind == "sign" and token.text in ")]}":
            depth -= 1
        if token.kind == "sign" and token.text == ";":
            if depth:
                raise Unreadable("a semicolon inside brackets")
            if begun:
                yield begun
            begun = []
        else:
            begun.append(token)
    if begun:
        yield begun


def _check_calls(tokens: list[Token]) -> None:
    opened: list[str] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.kind != "sign" or token.text not in ("(", ")"):
            continue
        if token.text == ")":
            del opened[-1:]
            continue
        is_call = before is not None and before.kind in ("word", "name") and before.word not in words.BEFORE_QUERIES
        opened.append(before.word if before is not None and is_call else "")
        if sum(map(bool, opened)) > MAX_CALLS or sum(word in words.TYPES for word in opened) > MAX_TYPES:
            raise Unreadable(f"more than {MAX_CALLS} nested functions, or {MAX_TYPES} named as types")


def _check_operators(tokens: list[Token]) -> None:
    """Check that every operator is known. For any other operator, PostgreSQL may call a function that the user
    defined.
    """
    run = ""
    for token in (*tokens, None):
        is_sign = token is not None and token.kind == "sign" and token.text in _OF_OPERATORS
        if run and (not is_sign or token is None or token.spaced):
            # An operator ends in + or - only if it has one of these signs.
            while run[-1] in "+-" and run not in words.OPERATORS and not _OF_SPECIAL_OPERATORS & set(run):
                run = run[:-1]
                if not run:
                    break
            if run and run not in words.OPERATORS:
                raise Unreadable(f"the operator `{run[:20]}` may do more than compute")
            run = ""
        if is_sign and token is not None:
            run += token.text


_OF_OPERATORS = frozenset("+-*/<>=~!@#%^&|?")
_OF_SPECIAL_OPERATORS = frozenset("~!@#%^&|?")


def _is_named(token: Token, names: Container[str]) -> bool:
    """Whether a token is one of these lower-case names.

    A quoted name in another letter case may be one that the user defined.
    """
    return token.word in names and (token.kind == "word" or token.word in token.text)


class _Reader:
    """The tokens of one statement, and their effect."""

    def __init__(self, tokens: list[Token], dialect: str | None) -> None:
        self.tokens = tokens
        self.dialect = dialect

    def statements(self) -> list[Statement]:
        first = self.tokens[0]
        if first.kind == "sign" and first.text == "(":
            return self._query()
        if first.kind != "word":
            raise Unreadable(f"`{first.text[:40]}` does not begin a statement")
        match first.word:
            case "select" | "with" | "values" | "table":
                return self._query()
            case "from" if self.dialect == "duckdb":
                return self._query()
            case "explain":
                return self._explain()
            case "describe" | "desc":
                return self._explain() if self._is_query(1) else [self._describe("describe")]
            case "show":
                return [self._show()]
            case "pragma":
                return [self._pragma()]
            case word if word in words.PARSED_WRITES:
                return self._parsed_write(word)
            case word if word in words.SESSION_STATEMENTS and self._is_plain_begin():
                return [Statement(word, False)]
            case word if word in words.SESSION_STATEMENTS or word in words.WRITE_STATEMENTS:
                return [_unknown_write(word)]
            case word:
                raise Unreadable(f"`{word[:40]}` does not begin a known statement")

    def _is_plain_begin(self) -> bool:
        if self.tokens[0].word == "savepoint":
            return len(self.tokens) == 2
        return all(token.word in words.TRANSACTION_WORDS or token.text == "," for token in self.tokens[1:])

    def _words_of_writes(self) -> set[str]:
        """Return the keywords that begin writes. A keyword after a dot is just a name, unless it asks for a sequence's
        next value.
        """
        return {
            token.word
            for before, token in zip([None, *self.tokens], self.tokens, strict=False)
            if token.word == "nextval" or (token.kind == "word" and (before is None or before.text != "."))
        } & words.OF_WRITES

    def _is_query(self, at: int) -> bool:
        return at < len(self.tokens) and self.tokens[at].word in ("select", "with", *words.PARSED_WRITES)

    def _text(self) -> str:
        if len(self.tokens) > MAX_TOKENS:
            raise Unreadable(f"the statement has more than {MAX_TOKENS:,} words and signs")
        return "".join(f" {token.text}" if token.spaced else token.text for token in self.tokens)

    def _query(self) -> list[Statement]:
        readings = _agreed(self._text(), self.dialect)
        if any(statement.writes for statement in readings):
            self._check_functions(of_write=True)
            return readings
        if hidden := self._words_of_writes():
            raise Unreadable(f"`{min(hidden)}` in a query")
        for token in self.tokens:
            if token.word.startswith("pragma_") and token.word not in words.FUNCTIONS:
                # In SQLite, reading `pragma_optimize` or `pragma_journal_mode` runs it.
                raise Unreadable(f"`{token.word[:60]}` is not known to be read-only")
        self._check_functions()
        return readings

    def _check_functions(self, *, of_write: bool = False) -> None:
        for at, token in enumerate(self.tokens[1:], 1):
            if token.kind != "sign" or token.text != "(" or self._may_precede_bracket(at - 1):
                continue
            if not of_write or not self._is_part_of_write(at - 1):
                raise Unreadable(f"`{self.tokens[at - 1].text[:60]}(` is not known to be a function that only reads")

    def _may_precede_bracket(self, at: int) -> bool:
        token = self.tokens[at]
        if token.kind == "sign":
            return token.text not in ("]", "}", ".", ":", "@", "#")
        if token.kind not in ("word", "name"):
            return False
        before = self.tokens[at - 1] if at else None
        if before is None:
            return token.word in words.BEFORE_BRACKETS
        if before.kind == "sign" and before.text == ".":
            return self._is_of_catalog(at) and _is_named(token, words.FUNCTIONS)
        if token.kind == "word" and token.word in words.BEFORE_BRACKETS:
            return True
        if _is_named(token, words.FUNCTIONS):
            return True
        if before.kind == "word" and before.word == "as":
            return True
        return self._names_columns(at) or self._is_named_query(at)

    def _is_part_of_write(self, at: int) -> bool:
        token, before = self.tokens[at], self.tokens[at - 1].word if at else ""
        if token.kind == "word" and (before, token.word) in (("then", "insert"), ("on", "conflict")):
            return True
        if at == 1 and token.word == "top":
            return True
        if token.kind == "word" and (token.word == "set" or token.word in words.FUNCTIONS_OF_WRITES):
            return True
        while at > 1 and self.tokens[at - 1].text == ".":
            at -= 2
        before = self.tokens[at - 1] if at else token
        places = (
            ("into", "overwrite", "table", "exists", "references") if self.tokens[0].word == "create" else ("into",)
        )
        return before.kind == "word" and before.word in places

    def _is_of_catalog(self, at: int) -> bool:
        if at < 2 or not _is_named(self.tokens[at - 2], ("pg_catalog",)):
            return False
        return at < 3 or self.tokens[at - 3].text != "."

    def _names_columns(self, at: int) -> bool:
        """Whether `name (columns)` follows a query in brackets, as in `from (select ...) name (columns)`."""
        if self.tokens[at - 1].text != ")":
            return False
        start, depth = at - 1, 0
        while start >= 0:
            text = self.tokens[start].text if self.tokens[start].kind == "sign" else ""
            depth += (text == ")") - (text == "(")
            if not depth:
                break
            start -= 1
        is_query = self.tokens[start + 1].kind == "word" and self.tokens[start + 1].word in ("select", "with", "values")
        return is_query and start > 0 and self.tokens[start - 1].word in ("from", "join", "lateral", "apply", "using")

    def _is_named_query(self, at: int) -> bool:
        """Whether `name (columns) as (select` begins here, in a `with` list."""
        before = self.tokens[at - 1]
        if before.text != "," and not (before.kind == "word" and before.word in ("with", "recursive")):
            return False
        end = at + 2
        while end < len(self.tokens) and (self.tokens[end].kind in ("word", "name") or self.tokens[end].text == ","):
            end += 1
        after = [token.word if token.kind == "word" else token.text for token in self.tokens[end : end + 7]]
        if after[:2] != [")", "as"]:
            return False
        rest = [word for word in after[2:] if word not in ("not", "materialized")]
        # A column may also be named `values`.
        return rest[:2] in (["(", "select"], ["(", "with"]) or rest[:3] == ["(", "values", "("]

    def _explain(self) -> list[Statement]:
        at = 1
        while at < len(self.tokens) and not self._is_query(at):
            token = self.tokens[at]
            inside = token.word in words.EXPLAIN_OPTIONS or token.text in ("(", ")", ",", "=") or token.kind == "number"
            if not inside:
                break
            at += 1
        if at == len(self.tokens):
            raise Unreadable("`explain` without a statement")
        opened = sum((token.text == "(") - (token.text == ")") for token in self.tokens[:at])
        if not self._is_query(at):
            if at > 1:
                raise Unreadable(f"`explain` of `{self.tokens[at].text[:40]}`")
            return [self._describe("explain")]
        if opened and not all(token.text == ")" for token in self.tokens[len(self.tokens) - opened :]):
            raise Unreadable("brackets in `explain` that do not close before or after the statement")
        inner = _Reader(self.tokens[at : len(self.tokens) - opened], self.dialect).statements()
        if any(statement.writes for statement in inner):
            return inner
        return [replace(statement, kind="explain") for statement in inner]

    def _describe(self, kind: str) -> Statement:
        """Return a statement that names one object, and possibly one of its columns."""
        rest = self.tokens[1:]
        begins = words.PARSED_WRITES | words.WRITE_STATEMENTS | words.SESSION_STATEMENTS | words.OF_WRITES | {"pragma"}
        if not rest or (rest[0].kind == "word" and rest[0].word in begins):
            raise Unreadable(f"`{kind}` without the name of an object")
        while len(rest) > 2 and rest[1].text == ".":
            rest = rest[2:]
        if len(rest) > 2 or rest[0].kind not in ("word", "name") or rest[-1].kind in ("sign", "number"):
            raise Unreadable(f"`{kind}` of more than an object and a column")
        return Statement(kind, False)

    def _show(self) -> Statement:
        """Return a `show` of harmless settings or of names. Other settings, such as the owner's own, may be secret."""
        settings = words.SETTINGS if self.dialect in (None, "postgres", "redshift") else frozenset[str]()
        objects = words.SHOWN if self.dialect not in ("postgres", "redshift") else frozenset[str]()
        rest = self.tokens[1:]
        if len(rest) == 1 and rest[0].kind == "word" and rest[0].word in settings:
            return Statement("show", False)
        while len(rest) > 1 and rest[0].kind == "word" and rest[0].word in words.BEFORE_SHOWN:
            rest = rest[1:]
        if not rest or rest[0].kind != "word" or rest[0].word not in objects:
            raise Unreadable("`show` of something that may be secret")
        for token in rest:
            if token.kind == "word" and token.word in words.OF_WRITES:
                raise Unreadable(f"`{token.word}` in `show`")
            if token.kind == "sign" and token.text not in (".", ",", "=", "*", "%"):
                raise Unreadable(f"`{token.text}` in `show`")
        return Statement("show", False)

    def _pragma(self) -> Statement:
        rest = self.tokens[1:]
        if len(rest) > 2 and rest[1].text == ".":
            rest = rest[2:]
        name = rest[0].word if rest else ""
        if name in words.PRAGMAS and len(rest) == 1:
            return Statement("pragma", False)
        is_argument = len(rest) == 4 and rest[1].text == "(" and rest[3].text == ")" and rest[2].kind != "sign"
        if name in words.PRAGMAS_OF_A_TABLE and is_argument:
            return Statement("pragma", False)
        return _unknown_write("pragma")

    def _parsed_write(self, kind: str) -> list[Statement]:
        try:
            # `delete top (5) from t` would be parsed with `top` as the table.
            found = [] if self.tokens[1:] and self.tokens[1].word == "top" else _agreed(self._text(), self.dialect)
        except (Unreadable, RecursionError):
            found = []
        try:
            self._check_functions(of_write=True)
        except Unreadable:
            if kind in ("insert", "update", "delete", "merge", "replace"):
                raise
            found = []
        if any(statement.writes for statement in found):
            return found
        return [_unknown_write(kind)]


def _unknown_write(kind: str) -> Statement:
    return Statement(kind, True, None, None, None, False)


def _agreed(text: str, dialect: str | None) -> list[Statement]:
    if dialect is not None:
        return _Parsed(text, dialect).statements()
    readings: dict[str, list[Statement]] = {}
    fault = Unreadable("no dialect can parse it")
    for group in (_PLAUSIBLE, _OTHERS):
        for each in group:
            try:
                readings[each] = _Parsed(text, each).statements()
            except _Unparsed as found:
                fault = found
        if readings:
            break
    if not readings:
        raise fault
    first, *rest = readings.values()
    for other in rest:
        if [_gist(one) for one in first] != [_gist(one) for one in other]:
            raise Unreadable("databases read this differently: name the dialect")
        first = [
            replace(
                one,
                columns_written=one.columns_written if one.columns_written == two.columns_written else None,
                bounded=one.bounded and two.bounded,
                shown_table=one.shown_table if one.shown_table == two.shown_table else "",
            )
            for one, two in zip(first, other, strict=True)
        ]
    return first


def _gist(statement: Statement) -> tuple[Any, ...]:
    return statement.kind, statement.writes, statement.tables_read, statement.tables_written


_is_reading: ContextVar[bool] = ContextVar("is_reading", default=False)
"""Whether Bylaw runs the parser. Its warnings would write the text to the host's log."""


class _Unparsed(Unreadable):
    """The text does not follow this dialect's grammar."""


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


class _Parsed:
    """A statement as parsed with one dialect's grammar."""

    def __init__(self, text: str, dialect: str) -> None:
        self.exp: Any = _sqlglot().expressions
        self.dialect = dialect
        parser = _dialect(dialect)
        quiet = _is_reading.set(True)
        try:
            trees: list[Any] = parser.parse(text)
        except (_sqlglot().errors.SqlglotError, RecursionError) as error:
            raise _Unparsed(f"the SQL cannot be parsed: {str(error).splitlines()[0][:120]}") from None
        finally:
            _is_reading.reset(quiet)
        if len(trees) != 1 or trees[0] is None:
            raise Unreadable("the parser finds a different number of statements")
        self.tree: Any = trees[0]
        if any(isinstance(node, self.exp.Command) for node in self.tree.walk()):
            raise _Unparsed("the parser does not know the statement")

    def statements(self) -> list[Statement]:
        self._check_attributes()
        attributes = frozenset(
            str(node.name).casefold()
            for node in self.tree.find_all(self.exp.Column)
            if node.table and not isinstance(node.this, self.exp.Star)
        )
        return [replace(each, attributes=attributes) for each in self._effects()]

    def _effects(self) -> list[Statement]:
        found = [each for node in self.tree.walk() if self._is_write(node) for each in self._writes(node)]
        if self._is_write(self.tree):
            return found
        if not isinstance(self.tree, (self.exp.Query, self.exp.Values)):
            raise _Unparsed("the parser does not know the statement")
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
        return _name(table, self.dialect) if all(map(self._is_plain_column, tree.expressions)) else ""

    def _is_plain_column(self, node: Any) -> bool:
        exp = self.exp
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            return not _parts(node.this)
        return (isinstance(node, exp.Star) and not _parts(node)) or self._is_column(node)

    def _is_write(self, node: Any) -> bool:
        exp = self.exp
        kinds = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Alter, exp.TruncateTable)
        return isinstance(node, kinds) and not isinstance(node.parent, exp.When)

    def _check(self, node: Any) -> None:
        exp = self.exp
        name = type(node).__name__
        if isinstance(node, exp.WithTableHint):
            hints = {str(each.name).lower() for each in node.expressions}
            if hints <= words.TABLE_HINTS:
                return
        elif name in words.NODES:
            return
        elif isinstance(node, exp.NextValueFor):
            pass
        elif isinstance(node, (exp.Func, exp.Binary, exp.Unary, exp.Predicate)) and name != "PropertyEQ":
            return
        raise Unreadable(f"`{name}` is not known to be read-only")

    def _check_attributes(self) -> None:
        """Raise Unreadable for `value.name` if PostgreSQL may call the function `name` with a value that is not a row
        of a table.
        """
        exp = self.exp
        declared: dict[str, set[str]] = {}
        """The columns that the text gives to the result of each function in FROM, by alias. An alias in quotes counts
        as one without columns, because its case matters. If functions share an alias, it has only the columns that all
        of them have.
        """
        has_unnamed = False
        for node in self.tree.find_all(exp.Table, exp.Unnest, exp.Lateral):
            if not self._is_function(node):
                continue
            alias = node.args.get("alias")
            if alias is not None and alias.name:
                names = [alias.this, *alias.columns]
                is_quoted = any(each.args.get("quoted") for each in names)
                columns = set[str]() if is_quoted else {str(each.name).casefold() for each in alias.columns}
                name = str(alias.name).casefold()
                declared[name] = declared.get(name, columns) & columns
            else:
                has_unnamed = True
        for node in self.tree.find_all(exp.Dot, exp.Column):
            table = "" if isinstance(node, exp.Dot) else str(node.table).casefold()
            if isinstance(node, exp.Dot):
                is_call = isinstance(node.expression, exp.Identifier)
            elif not table or isinstance(node.this, exp.Star):
                is_call = False
            else:
                # A function without an alias has a name that need not be in the text.
                is_call = has_unnamed or (table in declared and node.name.casefold() not in declared[table])
            if is_call:
                raise Unreadable(f"`{node.sql(self.dialect)[:60]}` may call a function")

    def _is_function(self, source: Any) -> bool:
        """Whether a source in FROM is a function. `current_date` is one, unless it is in quotes or in a schema."""
        name = source.this
        if isinstance(name, self.exp.Subquery):
            return False
        if not isinstance(name, self.exp.Identifier) or name.args.get("quoted") or source.args.get("db"):
            return not isinstance(name, self.exp.Identifier)
        return str(name.this).casefold() in words.SAME_IN_EVERY_ROW

    def _into(self, node: Any, reads: frozenset[str]) -> Statement:
        target = node.this
        if not isinstance(target, self.exp.Table) or node.args.get("expressions") or node.args.get("bulk_collect"):
            raise Unreadable("a query that writes into something other than a table")
        return Statement("create", True, reads, frozenset({_name(target, self.dialect)}), None, True)

    def _tables_read(self, tree: Any, skip: Any = None) -> frozenset[str]:
        found: set[str] = set()
        self._collect(tree, frozenset(), found, skip)
        return frozenset(found)

    def _collect(self, node: Any, known: frozenset[str], found: set[str], skip: Any) -> None:
        if node is skip:
            return
        is_named = isinstance(node, self.exp.Table) and isinstance(node.this, self.exp.Identifier)
        if is_named and not self._is_query_of(node, known):
            found.add(_name(node, self.dialect))
        if isinstance(node, self.exp.Into):
            return
        clause: Any = node.args.get("with_")
        queries: list[Any] = clause.expressions if clause else []
        for each in queries:
            alias = self._alias(each)
            inner = known | {alias} if clause and clause.args.get("recursive") else known
            self._collect(each.this, inner, found, skip)
            known |= {alias}
        for child in node.iter_expressions():
            if child is not clause:
                self._collect(child, known, found, skip)

    def _alias(self, query: Any) -> str:
        """Return the name of a query in `with`. It must be a plain word, because databases differ in how they treat a
        quoted one.
        """
        alias = query.args["alias"].this
        name = str(alias.this)
        if alias.args.get("quoted") or not name.isascii() or not name.isidentifier():
            raise Unreadable(f"a query with the quoted name `{name[:60]}`")
        return name.casefold()

    def _is_query_of(self, table: Any, known: frozenset[str]) -> bool:
        """Whether a table is one of the queries in `with`. A name with a schema never refers to such a query."""
        name, named = table.this, str(table.this.this)
        if named.casefold() not in known or table.args.get("db") or table.args.get("catalog"):
            return False
        if name.args.get("quoted"):
            raise Unreadable(f"`{named[:60]}` may be a query of that name, or a table")
        return True

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
        found = {_name(each, self.dialect) for each in named}
        return None if found & queries or self._is_alias(node, found) else frozenset(found)

    def _is_plain_table(self, node: Any) -> bool:
        """Whether a new table is not part of another table and is filled by a query at most."""
        exp, properties, filled = self.exp, node.args.get("properties"), node.args.get("expression")
        if next(node.find_all(exp.Reference, exp.ForeignKey), None) is not None:
            return False
        are_plain = properties is None or all(
            isinstance(each, exp.TemporaryProperty) for each in properties.expressions
        )
        return are_plain and (filled is None or isinstance(filled, (exp.Query, exp.Values)))

    def _is_alias(self, node: Any, found: set[str]) -> bool:
        exp = self.exp
        aliased = {
            str(each.alias).casefold(): _name(each, self.dialect) for each in node.find_all(exp.Table) if each.alias
        }
        targets = set(found)
        if isinstance(node, exp.Update):
            columns = [column for each in node.expressions for column in each.this.find_all(exp.Column)]
            targets |= {str(column.table).casefold() for column in columns if column.table}
        return any(aliased.get(name, name) not in found for name in targets)

    def _aliased(self, node: Any) -> frozenset[str] | None:
        targets = {id(each) for each in node.args["tables"]}
        sources = [each for each in node.find_all(self.exp.Table) if id(each) not in targets]
        by_alias = {str(each.alias_or_name).casefold(): _name(each, self.dialect) for each in sources}
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

    def _is_bounded(self, node: Any) -> bool:
        exp, where = self.exp, node.args.get("where")
        has_others = {key for key, value in node.args.items() if value} - _OF_ONE_TABLE
        if has_others or not isinstance(node.this, exp.Table) or node.this.args.get("joins"):
            # The column may belong to another table, and then every row of this table changes.
            return False
        if (limit := node.args.get("limit")) is not None and self._is_few(limit):
            return True
        return where is not None and any(self._pins(each) for each in _conjuncts(where.this, exp))

    def _is_few(self, limit: Any) -> bool:
        count = limit.expression
        is_number = isinstance(limit, self.exp.Limit) and isinstance(count, self.exp.Literal) and not count.is_string
        return is_number and str(count.this).isdigit() and int(count.this) <= MAX_LIMIT

    def _pins(self, condition: Any) -> bool:
        exp = self.exp
        match condition:
            case exp.EQ():
                sides = (condition.this, condition.expression)
                return any(self._is_column(a) and self._is_given(b) for a, b in (sides, sides[::-1]))
            case exp.In():
                given = condition.expressions
                return self._is_column(condition.this) and bool(given) and all(self._is_given(each) for each in given)
            case _:
                return False

    def _is_column(self, node: Any) -> bool:
        """Whether rows can differ in this column. A name in double quotes may be a string in SQLite and MySQL."""
        if not isinstance(node, self.exp.Column) or str(node.name).casefold() in words.SAME_IN_EVERY_ROW:
            return False
        if self.dialect == "oracle" and str(node.name).casefold() == "uid":
            return False
        return not (self.dialect in ("sqlite", "mysql") and node.this.args.get("quoted"))

    def _is_given(self, node: Any) -> bool:
        """Whether this constant distinguishes rows. In MySQL, most strings equal the number 0."""
        if not self._is_constant(node):
            return False
        literals = [each for each in node.walk() if isinstance(each, self.exp.Literal)]
        return self.dialect != "mysql" or not any(self._may_be_zero(each) for each in literals)

    def _may_be_zero(self, node: Any) -> bool:
        return not node.is_string and not str(node.this).strip("0.eExX+-")

    def _is_constant(self, node: Any) -> bool:
        if isinstance(node, (self.exp.Cast, self.exp.Neg, self.exp.Paren)):
            return self._is_constant(node.this)
        return type(node).__name__ in _CONSTANTS


def _parts(node: Any) -> set[str]:
    return {name for name, value in node.args.items() if value}


def _conjuncts(condition: Any, exp: Any) -> Iterator[Any]:
    waiting = [condition]
    while waiting:
        here = waiting.pop()
        if isinstance(here, exp.Paren):
            waiting.append(here.this)
        elif isinstance(here, exp.And):
            waiting += [here.this, here.expression]
        else:
            yield here


def _name(table: Any, dialect: str) -> str:
    """Return a table's name with its schema. A part keeps its quotes if it contains a dot or if its letter case
    matters.
    """
    folded = _UNLIKE_IN_QUOTES.get(dialect)
    parts: list[str] = []
    for part in table.parts:
        name = str(part.name)
        if folded is not None and part.args.get("quoted") and folded(name) != name:
            parts.append(f'"{name}"')
        else:
            parts.append((f'"{name}"' if "." in name else name).casefold())
    return ".".join(parts)
