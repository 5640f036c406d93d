"""Finds the tables that each statement in an SQL text reads and writes. `sqlglot` (extra `read-sql`) parses the
text.
"""

from collections.abc import Container, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from msgspec.structs import replace

from bylaw.reading import sql_words as words
from bylaw.reading.sql_tables import Table
from bylaw.reading.sql_text import DIALECTS, Token, read_tokens
from bylaw.reading.sql_tree import Statement, Tree, Unparsed
from bylaw.reading.unreadable import Unreadable

__all__ = ["DIALECTS", "Statement", "Table", "read_sql"]

MAX_TOKENS = 3000
"""The maximum number of tokens in a parsed statement. The parser takes about 0.05 ms per token and dialect."""
MAX_STATEMENTS = 100
MAX_CALLS = 9
"""The maximum nesting depth of functions."""
MAX_TYPES = 4
"""The maximum nesting depth of functions that contain type names. The parser's time doubles with each level."""


def read_sql(
    text: str, dialect: str | None = None, tables: Mapping[str, Table] | None = MappingProxyType({})
) -> tuple[Statement, ...]:
    """Return every statement in `text`, in order. Raises `Unreadable` if a statement cannot be read with certainty.

    `tables` contains the declared tables by name. If it is None, every name is assumed to be an ordinary table with any
    columns. Use None only to describe logs, never to decide a call. Without a dialect, all dialects that can parse the
    text must agree. A statement takes 2 to 5 ms, or 0.4 to 1 ms with a dialect. The first call loads the parser, which
    takes up to a second.
    """
    found: list[Statement] = []
    for number, tokens in enumerate(_split(read_tokens(text, dialect))):
        if number == MAX_STATEMENTS:
            raise Unreadable(f"there are more than {MAX_STATEMENTS} statements")
        _check_calls(tokens)
        _check_dots(tokens)
        if dialect in (None, "postgres"):
            _check_operators(tokens)
        try:
            found += _Reader(tokens, dialect, tables).statements()
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
    """Check that functions and types are not nested too deeply, and that no function is told which type to return."""
    opened: list[str] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.word == "returning" and token.kind == "word" and opened and opened[-1]:
            raise Unreadable("the type after `returning` may be a domain, and its CHECK constraint may run a function")
        if token.kind != "sign" or token.text not in ("(", ")"):
            continue
        if token.text == ")":
            del opened[-1:]
            continue
        is_call = before is not None and before.kind in ("word", "name") and before.word not in words.BEFORE_QUERIES
        opened.append(before.word if before is not None and is_call else "")
        if sum(map(bool, opened)) > MAX_CALLS or sum(word in words.TYPES for word in opened) > MAX_TYPES:
            raise Unreadable(f"more than {MAX_CALLS} nested functions, or {MAX_TYPES} named as types")


def _check_dots(tokens: list[Token]) -> None:
    """Check that no part of a qualified name is omitted, like the schema in `master..syslogins`."""
    for before, token in pairwise(tokens):
        if before.text == token.text == ".":
            raise Unreadable("`..` leaves out a schema")


def _check_operators(tokens: list[Token]) -> None:
    """Check that every operator is known, because PostgreSQL may call a user-defined function for an unknown
    operator.
    """
    run = ""
    for token in (*tokens, None):
        is_sign = token is not None and token.kind == "sign" and token.text in _OF_OPERATORS
        if run and (not is_sign or token is None or token.spaced):
            # An operator ends in + or - only if it also contains a special character.
            while run[-1] in "+-" and run not in words.OPERATORS and not _OF_SPECIAL_OPERATORS & set(run):
                run = run[:-1]
                if not run:
                    break
            if run and run not in words.OPERATORS:
                raise Unreadable(f"the operator `{run[:20]}` may do more than compute")
            run = ""
        if is_sign and token is not None:
            run += token.text


def _check_literals(tokens: list[Token]) -> None:
    """Check that no unknown name directly precedes a string. In PostgreSQL, `k 'x'` converts the string to the type
    `k`.
    """
    for before, token in pairwise(tokens):
        is_name = before.kind == "name" or (before.kind == "word" and before.word not in words.BEFORE_STRINGS)
        if token.kind == "string" and is_name:
            raise Unreadable(f"`{before.text[:60]}` may be a domain, and its CHECK constraint may run a function")


_OF_OPERATORS = frozenset("+-*/<>=~!@#%^&|?")
_OF_SPECIAL_OPERATORS = frozenset("~!@#%^&|?")


def _is_named(token: Token, names: Container[str]) -> bool:
    """Whether a token is one of these lower-case names.

    A quoted name in other letter case does not match, because it may be user-defined.
    """
    return token.word in names and (token.kind == "word" or token.word in token.text)


class _Reader:
    """The tokens of one statement. Determines the statement's effect."""

    def __init__(self, tokens: list[Token], dialect: str | None, tables: Mapping[str, Table] | None) -> None:
        self.tokens = tokens
        self.dialect = dialect
        self.tables = tables

    def statements(self) -> list[Statement]:
        first = self.tokens[0]
        if first.kind == "sign" and first.text == "(":
            return self._query()
        if first.kind != "word":
            raise Unreadable(f"`{first.text[:40]}` does not begin a statement")
        match first.word:
            case "select" | "with" | "values" | "table":
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
        """Whether a `begin` or `savepoint` stands alone, without a further statement."""
        if self.tokens[0].word == "savepoint":
            return len(self.tokens) == 2
        return all(token.word in words.TRANSACTION_WORDS or token.text == "," for token in self.tokens[1:])

    def _words_of_writes(self) -> set[str]:
        """Return the keywords that begin a write. After a dot, such a word is a name and does not count, except for
        `nextval`.
        """
        return {
            token.word
            for before, token in zip([None, *self.tokens], self.tokens, strict=False)
            if token.word == "nextval" or (token.kind == "word" and (before is None or before.text != "."))
        } & words.OF_WRITES

    def _is_query(self, at: int) -> bool:
        return at < len(self.tokens) and self.tokens[at].word in ("select", "with", *words.PARSED_WRITES)

    def _effects(self) -> list[Statement]:
        """Return the effects in the named dialect, or in all dialects that can parse the statement. They must agree."""
        if len(self.tokens) > MAX_TOKENS:
            raise Unreadable(f"the statement has more than {MAX_TOKENS:,} words and signs")
        if self.dialect in (None, "postgres"):
            _check_literals(self.tokens)
        if self.dialect is not None:
            return Tree(self.tokens, self.dialect, self.tables).statements()
        readings: dict[str, list[Statement]] = {}
        fault = Unreadable("no dialect can parse it")
        for each in DIALECTS:
            try:
                readings[each] = Tree(self.tokens, each, self.tables, is_named=False).statements()
            except Unparsed as found:
                fault = found
        if not readings:
            raise fault
        return _agreed(list(readings.values()))

    # Queries

    def _query(self) -> list[Statement]:
        readings = self._effects()
        if any(statement.writes for statement in readings):
            self._check_functions(of_write=True)
            return readings
        if hidden := self._words_of_writes():
            raise Unreadable(f"`{min(hidden)}` in a query")
        for token in self.tokens:
            if token.word.startswith("pragma_") and token.word not in words.FUNCTIONS:
                # SQLite runs `pragma_optimize` or `pragma_journal_mode` when a query reads it.
                raise Unreadable(f"`{token.word[:60]}` is not known to be read-only")
        self._check_functions()
        return readings

    def _check_functions(self, *, of_write: bool = False) -> None:
        """Check each name before a bracket. It must be a function that only reads, a type, a keyword or an alias."""
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
        """Whether the text before a bracket names the target of a write, or introduces a list of columns."""
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
        # A column may also be called `values`.
        return rest[:2] in (["(", "select"], ["(", "with"]) or rest[:3] == ["(", "values", "("]

    # Statements about statements

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
        inside = self.tokens[at : len(self.tokens) - opened]
        inner = _Reader(inside, self.dialect, self.tables).statements()
        if any(statement.writes for statement in inner):
            return inner
        return [replace(statement, kind="explain") for statement in inner]

    def _describe(self, kind: str) -> Statement:
        """Return a statement that names one object, and perhaps a column of it."""
        rest = self.tokens[1:]
        begins = words.PARSED_WRITES | words.WRITE_STATEMENTS | words.SESSION_STATEMENTS | words.OF_WRITES | {"pragma"}
        if not rest or (rest[0].kind == "word" and rest[0].word in begins):
            raise Unreadable(f"`{kind}` without the name of an object")
        while len(rest) > 2 and rest[1].text == ".":
            rest = rest[2:]
        if len(rest) > 2 or rest[0].kind not in ("word", "name") or rest[-1].kind in ("sign", "number"):
            raise Unreadable(f"`{kind}` with more than the name of an object and a column")
        return Statement(kind, False)

    def _show(self) -> Statement:
        """Return a `show` of names or harmless settings. Other settings, such as those that the owner defines, may be
        secret.
        """
        settings = words.SETTINGS if self.dialect in (None, "postgres") else frozenset[str]()
        objects = words.SHOWN if self.dialect != "postgres" else frozenset[str]()
        rest = self.tokens[1:]
        if len(rest) == 1 and rest[0].kind == "word" and rest[0].word in settings:
            return Statement("show", False)
        while len(rest) > 1 and rest[0].kind == "word" and rest[0].word in words.BEFORE_SHOWN:
            rest = rest[1:]
        if not rest or rest[0].kind != "word" or rest[0].word not in objects:
            raise Unreadable("`show` of a value that may be secret")
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
        """Return a write with its tables and columns. Every dialect that parses it must agree."""
        is_of_rows = kind in ("insert", "update", "delete", "merge", "replace")
        is_of_table = kind == "create" and any(token.word == "table" for token in self.tokens[1:4])
        try:
            # The parser would mistake `top` in `delete top (5) from t` for the table.
            found = [] if self.tokens[1:] and self.tokens[1].word == "top" else self._effects()
            self._check_functions(of_write=True)
        except Unreadable as fault:
            if is_of_table or (is_of_rows and not isinstance(fault, Unparsed)):
                raise
            found = []
        if any(statement.writes for statement in found):
            return found
        return [_unknown_write(kind)]


def _unknown_write(kind: str) -> Statement:
    return Statement(kind, True, None, None, None, False)


def _agreed(readings: list[list[Statement]]) -> list[Statement]:
    first, *rest = readings
    for other in rest:
        if [_gist(one) for one in first] != [_gist(one) for one in other]:
            raise Unreadable("databases read this differently: name the dialect")
        first = [
            replace(
                one,
                columns_written=one.columns_written if one.columns_written == two.columns_written else None,
                bounded=one.bounded if one.bounded == two.bounded else None,
                shown_table=one.shown_table if one.shown_table == two.shown_table else "",
            )
            for one, two in zip(first, other, strict=True)
        ]
    return first


def _gist(statement: Statement) -> tuple[Any, ...]:
    return statement.kind, statement.writes, statement.tables_read, statement.tables_written
