"""Predicates of several policies side by side: a name that means two things becomes two names."""

import re
from collections.abc import Mapping
from typing import Any

from bylaw.compile.identifier import slug

Rules = dict[str, Any]
"""`predicates` and `rules` as `rules.yaml` has them."""

_WORD = re.compile(r"[A-Za-z_][\w.]*")


def named_apart(rules: Mapping[str, Any], policy: str, taken: Mapping[str, Any]) -> Rules:
    """The rules of a policy, its predicates renamed where `taken` has the name for something else."""
    prefix = slug(policy).replace("-", "_")
    renamed = {
        name: name if taken.get(name, body) == body else f"{prefix}_{name}"
        for name, body in rules["predicates"].items()
    }
    return {
        "predicates": {renamed[name]: body for name, body in rules["predicates"].items()},
        "rules": [{**rule, "formula": with_names(rule["formula"], renamed)} for rule in rules["rules"]],
    }


def with_names(formula: str, renamed: Mapping[str, str]) -> str:
    """A formula with other names for its predicates."""
    return _WORD.sub(lambda match: renamed.get(match[0], match[0]), formula)
