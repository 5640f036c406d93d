"""A broken rule in words: which of its predicates held at the step that broke it, and which did not."""

import re
from collections.abc import Mapping

_BINDING = re.compile(r" \([^()]*\)$")
_SIGNS = {"not ": "not so", "perhaps ": "not known"}


def in_words(because: str, predicates: Mapping[str, str]) -> str:
    """`change, not agreed` told with what the pack says of each predicate; as it is where the pack says nothing."""
    if not any(predicates.values()):
        return because
    binding = _BINDING.search(because)
    said: dict[str, list[str]] = {"": [], "not so": [], "not known": []}
    for part in because[: binding.start() if binding else None].split(", "):
        sign = next((sign for sign in _SIGNS if part.startswith(sign)), "")
        name = part.removeprefix(sign)
        if name not in predicates:
            return because
        said[_SIGNS.get(sign, "")].append(predicates[name] or name)
    told = "; ".join(
        f"{word}: {', '.join(parts)}" if word else ", ".join(parts) for word, parts in said.items() if parts
    )
    return told + (binding[0] if binding else "")
