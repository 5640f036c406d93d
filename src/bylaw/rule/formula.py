"""Formulas in linear temporal logic on finite traces (LTL-f) with past operators, and their parser.

Operators, from the loosest to the tightest: `IFF <-> <=>`, `IMPLIES -> =>`, `OR | ||`, `XOR ^`, `AND & &&`, then `UNTIL
RELEASE WEAK_UNTIL SINCE`, then the unary operators. `IFF`, `IMPLIES` and the binary temporal operators group to the
right, and the others to the left. Keywords are upper case, so a predicate may be called `next`. Any name can be quoted,
such as `"card shown"`. `str(formula)` returns text with few parentheses that parses to the same formula.
"""

import re
from collections.abc import Iterator
from typing import get_args

from msgspec import Struct

from bylaw.errors import FormulaError


class _Printed(Struct, frozen=True):
    def __str__(self) -> str:
        return show(self)  # type: ignore[arg-type]


class Constant(_Printed, frozen=True):
    value: bool


class Atom(_Printed, frozen=True):
    name: str


class _Unary(_Printed, frozen=True):
    operand: "Formula"


class _Binary(_Printed, frozen=True):
    left: "Formula"
    right: "Formula"


class Not(_Unary, frozen=True):
    """True if the operand is false."""


class And(_Binary, frozen=True):
    """True if both operands are true."""


class Or(_Binary, frozen=True):
    """True if at least one operand is true."""


class Xor(_Binary, frozen=True):
    """True if exactly one operand is true."""


class Implies(_Binary, frozen=True):
    """False only if the left operand is true and the right operand is false."""


class Always(_Unary, frozen=True):
    """The operand holds now and at every later step."""


class Eventually(_Unary, frozen=True):
    """The operand holds now or at a later step."""


class Next(_Unary, frozen=True):
    """There is a next step, and the operand holds there (strong next)."""


class WeakNext(_Unary, frozen=True):
    """This is the last step, or the operand holds at the next step (weak next)."""


class Until(_Binary, frozen=True):
    """The right operand holds now or later, and the left operand holds at every step before."""


class Release(_Binary, frozen=True):
    """The right operand holds to the end, or up to and including the first step where the left operand holds."""


class WeakUntil(_Binary, frozen=True):
    """Like `Until`, but the right operand need not occur if the left operand holds to the end."""


class Yesterday(_Unary, frozen=True):
    """There is a previous step, and the operand held there (strong)."""


class Once(_Unary, frozen=True):
    """The operand holds now or held at some earlier step."""


class Historically(_Unary, frozen=True):
    """The operand holds now and held at every earlier step."""


class Since(_Binary, frozen=True):
    """The right operand holds now or held earlier, and the left operand has held at every step since."""


Formula = (
    Constant
    | Atom
    | Not
    | And
    | Or
    | Xor
    | Implies
    | Always
    | Eventually
    | Next
    | WeakNext
    | Until
    | Release
    | WeakUntil
    | Yesterday
    | Once
    | Historically
    | Since
)
Unary = Not | Always | Eventually | Next | WeakNext | Yesterday | Once | Historically
Binary = And | Or | Xor | Implies | Until | Release | WeakUntil | Since
Future = Always | Eventually | Next | WeakNext | Until | Release | WeakUntil
Past = Yesterday | Once | Historically | Since
Basic = Constant | Atom | Not | And | Or | Xor | Next | WeakNext | Until | Release | Yesterday | Since
"""The operators that can express all others. See `basic`."""

KEYWORDS: dict[type[Unary] | type[Binary], str] = {
    kind: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).upper() for kind in (*get_args(Unary), *get_args(Binary))
}
"""The names of the operators, such as `WEAK_NEXT` for `WeakNext`."""
RESERVED = frozenset(KEYWORDS.values()) | {"TRUE", "FALSE", "true", "false", "IFF", "FOR", "EACH"}
"""Predicate names that need quotes."""

LEVELS: dict[type[Binary], int] = {Implies: 1, Or: 2, Xor: 3, And: 4, Until: 5, Release: 5, WeakUntil: 5, Since: 5}
"""The binding strength of binary operators. Unary operators bind more tightly."""
UNARY_LEVEL = 6
RIGHT_ASSOCIATIVE = (Implies, Until, Release, WeakUntil, Since)

_PLAIN_NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


def operands(formula: Formula) -> tuple[Formula, ...]:
    match formula:
        case _Unary():
            return (formula.operand,)
        case _Binary():
            return (formula.left, formula.right)
        case _:
            return ()


def walk(formula: Formula) -> Iterator[Formula]:
    """Yield the formula and all its subformulas from left to right, each before its own subformulas."""
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        yield part
        waiting.extend(reversed(operands(part)))


def atoms(formula: Formula) -> tuple[str, ...]:
    """Return the predicate names in order of first appearance."""
    return tuple(dict.fromkeys(part.name for part in walk(formula) if isinstance(part, Atom)))


def depth(formula: Formula) -> int:
    deepest = 0
    waiting = [(formula, 1)]
    while waiting:
        part, level = waiting.pop()
        deepest = max(deepest, level)
        waiting.extend((operand, level + 1) for operand in operands(part))
    return deepest


def basic(formula: Formula) -> Basic:
    """Rewrite the outermost operator of a formula with basic operators. The operands stay unchanged."""
    match formula:
        case Implies(left, right):
            return Or(Not(left), right)
        case Always(operand):
            return Release(Constant(False), operand)
        case Eventually(operand):
            return Until(Constant(True), operand)
        case WeakUntil(left, right):
            return Release(right, Or(left, right))
        case Once(operand):
            return Since(Constant(True), operand)
        case Historically(operand):
            return Not(Once(Not(operand)))
        case _:
            return formula


def is_propositional(formula: Formula) -> bool:
    return not any(isinstance(part, Future | Past) for part in walk(formula))


def is_past_only(formula: Formula) -> bool:
    return not any(isinstance(part, Future) for part in walk(formula))


def show(formula: Formula) -> str:
    return _show(formula, 0)


def show_name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name not in RESERVED:
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _show(formula: Formula, around: int) -> str:
    match formula:
        case Constant(value):
            return "TRUE" if value else "FALSE"
        case Atom(name):
            return show_name(name)
        case _Unary():
            return f"{KEYWORDS[type(formula)]} {_show(formula.operand, UNARY_LEVEL)}"
        case _:
            kind = type(formula)
            level = LEVELS[kind]
            to_the_right = kind in RIGHT_ASSOCIATIVE
            left = _show(formula.left, level + 1 if to_the_right else level)
            right = _show(formula.right, level if to_the_right else level + 1)
            text = f"{left} {KEYWORDS[kind]} {right}"
            return f"({text})" if level < around else text


DEEPEST = 200
"""The maximum nesting depth of operators and parentheses. A deeper formula could exhaust the stack."""

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<name>[^\W\d]\w*(?:\.\w+)*)
    | (?P<quoted>"(?:[^"\\]|\\["\\])*")
    | (?P<symbol><->|<=>|->|=>|&&|\|\||\[\]|<>|[!~&|^()¬∧∨⊕→↔□◇○:])
    | (?P<wrong>\S)
    )""",
    re.VERBOSE,
)
_SIGNS = {
    "NOT": "! ~ ¬",
    "AND": "& && ∧",
    "OR": "| || ∨",
    "XOR": "^ ⊕",
    "IMPLIES": "-> => →",
    "IFF": "<-> <=> ↔",
    "ALWAYS": "[] □",
    "EVENTUALLY": "<> ◇",
    "NEXT": "○",
}
_SYMBOLS = {sign: word for word, signs in _SIGNS.items() for sign in signs.split()}
_UNARY: dict[str, type[Unary]] = {word: kind for kind, word in KEYWORDS.items() if issubclass(kind, Unary)}
_BINARY: dict[str, type[Binary]] = {word: kind for kind, word in KEYWORDS.items() if issubclass(kind, Binary)}
_CONSTANTS = {"TRUE": True, "true": True, "FALSE": False, "false": False}
_OTHER_NAMES = {
    "ALWAYS": "G GLOBALLY",
    "EVENTUALLY": "F FINALLY",
    "NEXT": "X",
    "WEAK_NEXT": "WX WEAKNEXT",
    "UNTIL": "U",
    "RELEASE": "R",
    "WEAK_UNTIL": "W UNLESS WEAKUNTIL",
    "YESTERDAY": "Y PREVIOUSLY",
    "ONCE": "O",
    "HISTORICALLY": "H",
    "SINCE": "S",
    "IMPLIES": "THEN IMPLY",
    "ALWAYS NOT": "NEVER",
}
_ELSEWHERE = {name: word for word, names in _OTHER_NAMES.items() for name in names.split()}
"""Names for these operators that other tools and plain English use."""


class _Token(Struct, frozen=True):
    kind: str
    """The keyword or symbol itself, `name`, or `end`."""
    text: str
    column: int


def parse(text: str) -> Formula:
    """Parse a formula. Raises `FormulaError` with the column of the error."""
    parser = _Parser(text)
    if parser.now.kind == "FOR":
        raise FormulaError(
            "`FOR EACH` belongs to a rule, not to a formula",
            column=parser.now.column,
            hint="remove everything up to the colon",
        )
    return parser.whole()


def parse_rule(text: str) -> tuple[str | None, Formula]:
    """Return the key of a leading `FOR EACH key:`, or None, and the formula after it."""
    parser = _Parser(text)
    key = parser.for_each() if parser.now.kind == "FOR" else None
    return key, parser.whole()


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    place = 0
    while match := _TOKEN.match(text, place):
        place = match.end()
        kind = match.lastgroup or ""
        column = match.start(kind) + 1
        word = match[kind]
        if kind == "wrong":
            raise _unreadable(word, column)
        if kind == "quoted":
            found.append(_Token("name", re.sub(r"\\(.)", r"\1", word[1:-1]), column))
        elif kind == "symbol":
            found.append(_Token(_SYMBOLS.get(word, word), word, column))
        elif word in _UNARY or word in _BINARY or word in _CONSTANTS or word in ("IFF", "FOR", "EACH"):
            found.append(_Token(word, word, column))
        else:
            found.append(_Token("name", word, column))
    found.append(_Token("end", "", len(text.rstrip()) + 1))
    return found


def _unreadable(word: str, column: int) -> FormulaError:
    if word == '"':
        return FormulaError("this quoted name is never closed", column=column, hint='add a closing `"`')
    hints = {
        "=": "write `IFF` for equality and `IMPLIES` for implication",
        "'": 'quote names with `"`',
        "`": 'quote names with `"`',
        "[": "use parentheses, or `[]` for `ALWAYS`",
        "{": "use parentheses",
        "-": "write `->` for `IMPLIES`, or quote the name",
        "<": "write `<->` for `IFF` or `<>` for `EVENTUALLY`",
        "@": "write `ONCE`, `YESTERDAY` ... in words",
        "*": "write `AND`",
        "+": "write `OR`",
    }
    return FormulaError(
        f"cannot read `{word}`", column=column, hint=hints.get(word, 'quote a name that is not one word: `"..."`')
    )


def _meant(word: str) -> str:
    """Return the keyword that a misspelt word probably means, or an empty string."""
    upper = word.upper()
    if upper in _UNARY or upper in _BINARY or upper == "IFF":
        return upper
    if upper in _ELSEWHERE:
        return _ELSEWHERE[upper]
    from difflib import get_close_matches  # imported only after an error

    close = get_close_matches(upper, [*_UNARY, *_BINARY], n=1, cutoff=0.7)
    return close[0] if close else ""


def _too_deep(column: int) -> FormulaError:
    return FormulaError(
        f"the formula is nested more than {DEEPEST} levels deep", column=column, hint="split it into several rules"
    )


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.place = 0
        self.operators = 0
        self.parentheses = 0
        """The nesting depth of parentheses. It is counted separately, so that every printed formula can be parsed
        again.
        """
        self.future: list[tuple[int, str]] = []
        """The column and word of each future operator so far, to find future operators inside a past operator."""

    @property
    def now(self) -> _Token:
        return self.tokens[self.place]

    def at(self, kind: str) -> bool:
        return self.now.kind == kind

    def take(self) -> _Token:
        token = self.now
        self.place += 1
        return token

    def whole(self) -> Formula:
        try:
            formula = self.binary(0)
        except RecursionError:
            raise _too_deep(self.now.column) from None
        token = self.now
        if token.kind == "end":
            if depth(formula) > DEEPEST:
                raise _too_deep(1)
            return formula
        if token.kind == ")":
            raise FormulaError("this `)` closes nothing", column=token.column, hint="remove it, or add a `(` before it")
        raise self.expected_operator(token)

    def for_each(self) -> str:
        start = self.take()
        if not self.at("EACH"):
            raise FormulaError(
                "`FOR` must be followed by `EACH`", column=start.column, hint="write `FOR EACH key: ...`"
            )
        self.take()
        if not self.at("name"):
            raise FormulaError(
                "`FOR EACH` needs a key", column=self.now.column, hint="write `FOR EACH reservation_id: ...`"
            )
        key = self.take().text
        if not self.at(":"):
            raise FormulaError(
                "expected `:` after the key", column=self.now.column, hint=f"write `FOR EACH {key}: ...`"
            )
        self.take()
        return key

    def expected_operator(self, token: _Token) -> FormulaError:
        before = self.tokens[self.place - 1]
        meant = _meant(token.text) if token.kind == "name" else ""
        if not meant and before.kind == "name" and (wanted := _meant(before.text)) and wanted.split()[0] in _UNARY:
            return FormulaError(
                f"`{before.text}` is read as a predicate here", column=before.column, hint=f"did you mean `{wanted}`?"
            )
        if meant in _BINARY or meant == "IFF":
            hint = f"did you mean `{meant}`?"
        else:
            hint = "put `AND`, `OR` or `IMPLIES` between the two parts"
        return FormulaError(f"expected an operator, found `{token.text}`", column=token.column, hint=hint)

    def binary(self, loosest: int) -> Formula:
        """Parse an operand and all following operators that bind at least as tightly as `loosest`."""
        since = len(self.future)
        left = self.unary()
        while True:
            token = self.now
            kind = _BINARY.get(token.kind)
            level = 0 if token.kind == "IFF" else LEVELS[kind] if kind else -1
            if level < loosest:
                return left
            self.deeper(token)
            self.take()
            if kind is not None and issubclass(kind, Future):
                self.future.append((token.column, token.text))
            right = self.binary(level if kind is None or kind in RIGHT_ASSOCIATIVE else level + 1)
            self.operators -= 1
            if kind is None:
                left = Not(Xor(left, right))
            else:
                if kind is Since:
                    self.refuse_future(token, since)
                left = kind(left, right)

    def unary(self) -> Formula:
        token = self.now
        kind = _UNARY.get(token.kind)
        if kind is None:
            return self.primary()
        self.deeper(token)
        self.take()
        since = len(self.future)
        if issubclass(kind, Future):
            self.future.append((token.column, token.text))
        operand = self.unary()
        self.operators -= 1
        if issubclass(kind, Past):
            self.refuse_future(token, since)
        return kind(operand)

    def primary(self) -> Formula:
        token = self.take()
        if token.kind == "name":
            return Atom(token.text)
        if token.kind in _CONSTANTS:
            return Constant(_CONSTANTS[token.kind])
        if token.kind == "(":
            self.parentheses += 1
            if self.parentheses > DEEPEST:
                raise _too_deep(token.column)
            if self.at(")"):
                raise FormulaError("these parentheses are empty", column=token.column, hint="write a formula there")
            inside = self.binary(0)
            self.parentheses -= 1
            if self.at("end"):
                raise FormulaError("this `(` is never closed", column=token.column, hint="add a `)`")
            if not self.at(")"):
                raise self.expected_operator(self.now)
            self.take()
            return inside
        self.place -= 1
        raise self.expected_operand(token)

    def expected_operand(self, token: _Token) -> FormulaError:
        if self.place == 0 and token.kind == "end":
            return FormulaError("the formula is empty", column=1, hint="write a predicate's name, or `TRUE`")
        found = "the end" if token.kind == "end" else f"`{token.text}`"
        after = f" after `{self.tokens[self.place - 1].text}`" if self.place else ""
        hint = "write a predicate, `NOT`, a temporal operator or `(`"
        if token.kind in _BINARY and self.place == 0:
            hint = f"`{token.text}` belongs between two formulas"
        elif token.kind in ("FOR", "EACH"):
            hint = "`FOR EACH key:` is allowed once, before the whole rule"
        return FormulaError(f"expected a formula{after}, found {found}", column=token.column, hint=hint)

    def deeper(self, token: _Token) -> None:
        self.operators += 1
        if self.operators > DEEPEST:
            raise _too_deep(token.column)

    def refuse_future(self, past: _Token, since: int) -> None:
        if len(self.future) > since:
            column, word = self.future[since]
            raise FormulaError(
                f"the future operator `{word}` is nested inside the past operator `{past.text}`",
                column=column,
                hint="the operands of a past operator must not contain future operators",
            )
