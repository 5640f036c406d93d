"""A policy: its definition, the sentences that it cites, and its check."""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from msgspec import Struct, field

from bylaw.errors import BylawError
from bylaw.policy.yaml import Located, Scalar, YamlPath
from bylaw.text.python import parse_python

DRAFTED_BY = "bylaw init"
"""The author recorded for entries of a draft that no person has reviewed."""


class StatementError(BylawError):
    """Raised if a policy or tool in a pack is invalid."""

    code = "BY406"


PolicyKind = Literal["guard", "rule", "conversation", "knowledge"]
Severity = Literal["high", "medium", "low"]


class Stand(Struct, frozen=True):
    document: str
    heading: str
    line: int
    start: int
    end: int

    def __str__(self) -> str:
        return told_place(self.document, self.line, self.heading)


class Citation(Struct, frozen=True):
    """Whole sentences that a policy cites, with their location. If the document is unavailable, `text` is None."""

    document: str
    heading: str
    line: int
    """The line in the document, or 0 if it is unknown."""
    text: str | None = None
    start: int = -1
    end: int = -1
    again: tuple[Stand, ...] = ()
    """Other locations in which these sentences occur. The policy covers them too."""
    whole: str | None = None
    """The sentences with their clause numbers, or None if the document is unavailable."""

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        own = ((self.start, self.end),) if self.start >= 0 else ()
        return (*own, *((each.start, each.end) for each in self.again))

    def __str__(self) -> str:
        return ", ".join([told_place(self.document, self.line, self.heading), *map(str, self.again)])


def told_place(document: str, line: int, heading: str) -> str:
    """Return what is known about the location, such as `policy.md:12 (Returns)`."""
    where = f"{document}:{line}" if line else document
    return f"{where} ({heading})" if heading else where


class Unenforced(Struct, frozen=True):
    """A person's decision not to enforce a policy for now."""

    accepted_by: str
    reason: str


class Policy(Struct, frozen=True):
    id: str
    kind: PolicyKind
    definition: str
    """The policy in one sentence, in the pack author's words."""
    tools: tuple[str, ...] = ()
    description: str = ""
    citations: tuple[Citation, ...] = ()
    severity: Severity = "medium"
    unenforced: Unenforced | None = None
    stale: bool = False
    """Whether a cited sentence is missing from the document."""


class WrittenTools(Struct, frozen=True, forbid_unknown_fields=True):
    """Selects the tools to which a policy applies, by their effects and parameters."""

    effect: Scalar | None = None
    with_: Scalar | list[Scalar] = field(name="with", default_factory=list[Scalar])
    except_: Scalar | list[Scalar] = field(name="except", default_factory=list[Scalar])


class WrittenSpan(Struct, frozen=True, forbid_unknown_fields=True):
    """A citation in policies.yaml: a quote, or locations with digests.

    A heading without either cites its whole section.
    """

    quote: Scalar | None = None
    document: Scalar = ""
    heading: Scalar = ""
    line: int | None = None
    sentence: int = 1
    digest: str | None = None
    at: dict[str, str] = {}

    @property
    def is_section(self) -> bool:
        return bool(self.heading) and self.quote is None and self.line is None and self.digest is None and not self.at


class WrittenUnenforced(Struct, frozen=True, forbid_unknown_fields=True):
    accepted_by: Scalar = ""
    reason: Scalar = ""


class WrittenPolicy(Struct, frozen=True, forbid_unknown_fields=True):
    id: Scalar = ""
    kind: Scalar = "guard"
    definition: Scalar = ""
    description: Scalar = ""
    scope: Scalar = ""
    severity: Scalar = "medium"
    tools: list[Scalar | WrittenTools] | WrittenTools = field(default_factory=list[Scalar | WrittenTools])
    spans: list[Scalar | WrittenSpan] = []
    unenforced: WrittenUnenforced | None = None


class PoliciesFile(Struct, frozen=True, forbid_unknown_fields=True):
    policies: list[WrittenPolicy] = []


_STATES = re.compile(r"^def\s+\w+\s*\(\s*call\s*:", re.MULTILINE)
_FUNCTION = re.compile(r"^def\s+(\w+)", re.MULTILINE)
_EFFECTS = ("read", "write", "none")


def with_stated(source: Located | None, guards: Mapping[str, str]) -> tuple[Located | None, list[BylawError]]:
    """Return the policies in policies.yaml, together with those that only guards declare, and the errors."""
    faults: list[BylawError] = []
    places: dict[YamlPath, str] = {}
    functions = {node.name: (node, file) for file, text in guards.items() for node in _stating(text)}
    if not functions:
        return source, faults
    source = source or Located("policies.yaml", {}, {})
    listed: Any = source.data.get("policies") or []
    if not isinstance(listed, list):
        return source, faults
    policies = list(cast(list[Any], listed))
    known = {str(cast(Any, body).get("id")): at for at, body in enumerate(policies) if isinstance(body, dict)}
    for name, (node, file) in functions.items():
        policy, place = name.replace("_", "-"), f"{file}:{node.lineno}"
        try:
            said: dict[str, Any] = {"tools": _tools(node.args.args[0].annotation)}
        except ValueError:
            hint = "write `call: tool`, `call: one_tool | another`, `call: write`, `call: write(argument) | tool`"
            faults.append(StatementError(f"`{name}` does not say which tools it applies to", place=place, hint=hint))
            continue
        sentences = dict(_sentences(node))
        if sentences:
            said["spans"] = list(sentences.values())
        at = known.get(policy, len(policies))
        places |= {("policies", at, "spans", each): f"{file}:{line}" for each, line in enumerate(sentences)}
        if policy not in known:
            places[("policies", at)] = place
            policies.append({"id": policy, **said})
            continue
        body = cast(dict[str, Any], policies[known[policy]])
        if twice := [part for part in said if body.get(part)]:
            there = "the annotation of `call`" if twice[0] == "tools" else "the docstring"
            hint = f"its guard states it at {place}; remove `{twice[0]}` here, or {there} there"
            where = source.place("policies", known[policy], twice[0])
            faults.append(
                StatementError(f"`{twice[0]}` of policy `{policy}` is declared twice", place=where, hint=hint)
            )
        policies[known[policy]] = {**body, **said}
        places |= {("policies", at, part): place for part in said}
    return source.with_data({**source.data, "policies": policies}).with_places(places), faults


def with_kinds(source: Located | None, rules: Located | None, guards: Mapping[str, str]) -> Located | None:
    """Add `kind: rule` to policies that a rule or limit names and that no guard declares."""
    listed: Any = source.data.get("policies") if source is not None else None
    data: Any = rules.data if rules is not None else {}
    given: list[Any] = [each for part in ("rules", "limits") if isinstance(data.get(part), list) for each in data[part]]
    if source is None or not isinstance(listed, list) or not given:
        return source
    records = [cast(dict[str, Any], each) for each in given if isinstance(each, dict)]
    named = {str(rule.get("policy") or rule.get("id")) for rule in records}
    named -= {name.replace("_", "-") for text in guards.values() for name in _FUNCTION.findall(text)}
    policies: list[Any] = []
    for each in cast(list[Any], listed):
        body = cast(dict[str, Any], each) if isinstance(each, dict) else {}
        policies.append({"kind": "rule", **body} if str(body.get("id")) in named else each)
    return source.with_data({**source.data, "policies": policies})


def _stating(text: str) -> Iterator[ast.FunctionDef]:
    """Yield the functions whose parameter `call` has an annotation, which names the tools to check.

    Syntax errors are ignored here, because they are reported when guards are parsed.
    """
    if not _STATES.search(text):
        return
    try:
        tree = parse_python(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        first = node.args.args[0] if isinstance(node, ast.FunctionDef) and node.args.args else None
        if isinstance(node, ast.FunctionDef) and first and first.arg == "call" and first.annotation is not None:
            yield node


def _tools(node: ast.expr | None) -> list[str | dict[str, Any]]:
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*_tools(left), *_tools(right)]
        case ast.Call(func=ast.Name(id=effect), args=arguments, keywords=[]) if effect in _EFFECTS:
            return [{"effect": effect, "with": [_name(each) for each in arguments]}]
        case ast.Name(id=effect) if effect in _EFFECTS:
            return [{"effect": effect}]
        case _:
            return [_name(node)]


def _name(node: ast.expr | None) -> str:
    match node:
        case ast.Name(id=name) | ast.Constant(value=str(name)):
            return name
        case _:
            raise ValueError


def _sentences(node: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """Yield each line of the docstring with its line number in the file. Each of these lines is a quote."""
    text = ast.get_docstring(node, clean=False) or ""
    for number, line in enumerate(text.expandtabs().splitlines(), node.body[0].lineno):
        if quote := line.strip():
            yield number, quote
