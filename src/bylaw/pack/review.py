"""Signatures: who accepted which check in a pack.

A signature becomes invalid if the sentence or the check changes. In a compiled pack, every policy needs a signature.
In a handwritten pack, signatures are optional, and a signature affects only the policies that it names.
"""

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.errors import BylawError
from bylaw.policy.folder import PackFolder, own_record, read_folder
from bylaw.policy.tool import Posture, Postures
from bylaw.text.python import parse_python

REVIEW = "review.yaml"
COMPILED = "compiled.yaml"
"""Marks a pack as compiled. Its policies are not enforced until a reviewer accepts them."""

_NAMED = 6
"""The maximum number of policies to name for each review status."""

Word = Literal["accepted", "rejected"]
Standing = Literal["accepted", "rejected", "lapsed", "unsigned", "unreviewed", "unenforced"]
"""`unreviewed`: handwritten, so no review is needed. `unenforced`: policies.yaml says that the check is not enforced.
"""


class ReviewError(BylawError):
    """Raised if the signatures of a pack are invalid."""

    code = "BY411"


class Signature(Struct, frozen=True):
    word: Word
    by: str
    on: str
    sentence: str
    """The digest of the policy's sentences and definition at the time of signing."""
    check: str
    """The digest of the check and its cases at the time of signing."""
    note: str = ""


class Sides(Struct, frozen=True):
    sentence: str
    check: str


def is_compiled(root: Path) -> bool:
    """Whether a reviewer must accept the pack's policies before they are enforced."""
    return (root / COMPILED).is_file()


def standings(root: Path, sides: Mapping[str, Sides] | None = None) -> dict[str, Standing]:
    """Return the review status of each policy. Pass `sides` if you have already computed them, to save time."""
    signed = read_signatures(root)
    unsigned: Standing = "unsigned" if is_compiled(root) else "unreviewed"
    now = sides if sides is not None else sides_of(read_folder(root))
    return {name: _standing(signed.get(name), each, unsigned) for name, each in now.items()}


def held_to(postures: Postures, unaccepted: Iterable[str]) -> Postures:
    """Return a shield's postures. Policies that are unenforced, rejected or unsigned are only logged."""
    shadowed: dict[str, Posture] = dict.fromkeys(unaccepted, "shadow")
    return replace(postures, policies={**postures.policies, **shadowed}) if shadowed else postures


def unaccepted(root: Path) -> dict[str, Standing]:
    """Return the policies that are not enforced because of their review status, with this status.

    In a compiled pack, a policy is enforced only if its current version is accepted. In a handwritten pack, only
    rejected policies are not enforced.
    """
    if not is_compiled(root) and not (root / REVIEW).is_file():
        return {}
    held = ("accepted",) if is_compiled(root) else ("accepted", "lapsed", "unreviewed")
    return {name: standing for name, standing in standings(root).items() if standing not in held}


def told_unaccepted(found: Mapping[str, Standing]) -> str:
    """Describe the policies that are not enforced, for example `3 not enforced: a, b (unsigned), c (rejected)`.

    Empty if there are none. Only the first few policies of each status are named. `bylaw review` lists all of them.
    """
    by_standing: dict[str, list[str]] = {}
    for name, standing in found.items():
        by_standing.setdefault(standing, []).append(name)
    parts = (f"{_first_of(names)} ({standing})" for standing, names in by_standing.items())
    return f"{len(found)} not enforced: {', '.join(parts)}" if found else ""


def _first_of(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def read_signatures(root: Path) -> dict[str, Signature]:
    """Return the signatures, keyed by policy. Raise `ReviewError` if the file is invalid."""
    if not (root / REVIEW).is_file():
        return {}
    data = own_record(root, REVIEW)
    try:
        return msgspec.convert(data.get("policies") or {}, dict[str, Signature])
    except msgspec.ValidationError as error:
        raise ReviewError(
            f"not a valid review file: {error}", place=REVIEW, hint="`bylaw review` writes this file"
        ) from None


def sides_of(folder: PackFolder) -> dict[str, Sides]:
    rules = _records(folder, "rules")
    functions = [_functions(text) for text in folder.guards.values()]
    made: dict[str, Sides] = {}
    for body in _records(folder, "policies"):
        name = str(body.get("id", ""))
        own = [rule for rule in rules if str(rule.get("policy", rule.get("id"))) == name]
        check = [
            body.get("kind", "guard"),
            body.get("tools"),
            body.get("unenforced"),
            _guard(functions, name.replace("-", "_")),
            own,
            _predicates(folder, own),
            _cases(folder, {name, *(str(rule.get("id")) for rule in own)}),
            *_learned(folder, own),
            *_shown(folder, own),
        ]
        check += _performed(folder, check)
        made[name] = Sides(_digest([body.get("definition"), body.get("spans")]), _digest(check))
    return made


def _standing(signature: Signature | None, sides: Sides, unsigned: Standing) -> Standing:
    if signature is None:
        return unsigned
    is_same = (signature.sentence, signature.check) == (sides.sentence, sides.check)
    return signature.word if is_same else "lapsed"


def _guard(files: Sequence[Mapping[str, ast.FunctionDef]], function: str) -> list[str]:
    """Return the code of a guard and the functions it shares with others, without layout and comments."""
    own = next((nodes for nodes in files if function in nodes), dict[str, ast.FunctionDef]())
    others = {name: node for nodes in files if nodes is not own for name, node in nodes.items()}
    wanted, found = [function], dict[str, str]()
    while wanted:
        name = wanted.pop()
        node = own.get(name) or others.get(name)
        if node is None or not own or name in found:
            continue
        found[name] = ast.dump(node)
        calls = [part.func for part in ast.walk(node) if isinstance(part, ast.Call)]
        wanted += [called.id for called in calls if isinstance(called, ast.Name)]
        wanted += [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and part.id in own]
    return [found[name] for name in sorted(found)]


def _functions(text: str) -> dict[str, ast.FunctionDef]:
    try:
        return {node.name: node for node in parse_python(text).body if isinstance(node, ast.FunctionDef)}
    except (SyntaxError, ValueError, RecursionError):
        return {}


def _section(folder: PackFolder, part: str, name: str) -> dict[str, Any]:
    source = folder.parts.get(part)
    return cast(dict[str, Any], source.data.get(name) or {}) if source is not None else {}


def _records(folder: PackFolder, part: str) -> list[dict[str, Any]]:
    listed = cast(list[Any], _section(folder, part, part) or [])
    return [cast(dict[str, Any], each) for each in listed if isinstance(each, dict)]


def _learned(folder: PackFolder, rules: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the learned weights and the margin.

    They are part of the check, because they decide whether a rule stops a call.
    """
    weights = _section(folder, "weights", "weights")
    own = {name: weights[name] for rule in rules if (name := str(rule.get("id"))) in weights}
    return [own, folder.parts["weights"].data.get("eps")] if own else []


def _predicates(folder: PackFolder, rules: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    formulas = " ".join(str(rule.get("formula")) for rule in rules)
    return {name: body for name, body in _section(folder, "rules", "predicates").items() if name in formulas}


def _shown(folder: PackFolder, rules: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Return the facts that users see before they confirm a call.

    They are part of the check, because consent covers them.
    """
    if not any(isinstance(body, dict) and "consented" in body for body in _predicates(folder, rules).values()):
        return []
    tools: dict[str, Any] = {**_section(folder, "tools", "tools"), **_section(folder, "tools", "actions")}
    found = {name: [body["show"], body.get("put_as")] for name, body in tools.items() if body and body.get("show")}
    return [found] if found else []


def _performed(folder: PackFolder, check: list[Any]) -> list[Any]:
    """Return the actions that a check names. They are part of the check, because they decide which calls it covers."""
    text = json.dumps(check, default=str)
    actions = _section(folder, "tools", "actions")
    named = {name: body for name, body in actions.items() if name in text or '"effect"' in text}
    if not named:
        return []
    data = folder.parts["tools"].data
    return [named, data.get("otherwise"), data.get("pages"), *([data["tables"]] if data.get("tables") else [])]


def _cases(folder: PackFolder, names: set[str]) -> list[Any]:
    found: list[Any] = []
    for source in folder.cases.values():
        listed = cast(list[Any], source.data.get("") or source.data.get("cases") or [])
        bodies = (cast(dict[str, Any], each) for each in listed if isinstance(each, dict))
        found += [body for body in bodies if str(body.get("policy") or body.get("rule")) in names]
    return found


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, default=str).encode()).hexdigest()[:16]
