"""Turns a model's names into valid ids, function names and field names. A name with two meanings becomes two names."""

import hashlib
import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast


def slug(text: str) -> str:
    """Return the lower-case words of a text joined by `-`, from the first letter on. Empty if no word is left."""
    name = "-".join(re.findall(r"[a-z0-9]+", text.lower()))[:60].strip("-")
    name = re.sub(r"^[0-9-]+", "", name)
    return f"{name}-policy" if keyword.iskeyword(name) else name


def function_name(policy: str) -> str:
    return policy.replace("-", "_")


def digest_of(*shown: str) -> str:
    return hashlib.sha256("\0".join(shown).encode()).hexdigest()[:16]


Rules = dict[str, Any]
"""The `predicates` and `rules`, as in `rules.yaml`."""

_WORD = re.compile(r"[A-Za-z_][\w.]*")
_NAME = re.compile(r'"([^"]+)"|([^\s(),"]+)')


def named_apart(rules: Mapping[str, Any], policy: str, taken: Mapping[str, Any]) -> Rules:
    """Return a policy's rules. A predicate is renamed if `taken` uses its name with another meaning."""
    prefix = slug(policy).replace("-", "_")
    predicates: dict[str, Any] = {}
    renamed: dict[str, str] = {}
    for name, body in rules["predicates"].items():
        is_same = meaning(taken.get(name, body)) == meaning(body)
        renamed[name] = name if is_same else f"{prefix}_{name}"
        predicates[renamed[name]] = taken.get(name, body) if is_same else body
    return {
        "predicates": predicates,
        "rules": [{**rule, "formula": with_names(rule["formula"], renamed)} for rule in rules["rules"]],
    }


def meaning(body: Any) -> dict[str, Any]:
    """Return a predicate's definition without its description."""
    return {part: value for part, value in cast(dict[str, Any], body or {}).items() if part != "description"}


def used_in(formulas: Iterable[Any], predicates: Mapping[str, Any]) -> dict[str, Any]:
    names = {name for formula in formulas for pair in _NAME.findall(str(formula)) for name in pair}
    return {name: body for name, body in predicates.items() if name in names}


def with_names(formula: str, renamed: Mapping[str, str]) -> str:
    return _WORD.sub(lambda match: renamed.get(match[0], match[0]), formula)
