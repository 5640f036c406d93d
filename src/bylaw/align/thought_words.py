"""Facts, policies and wishes in words, for any pack: what thoughts are put together from."""

import random
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, cast

from bylaw.align.bearing import Saw
from bylaw.facts.entity import ABSENT, Fact, Field
from bylaw.pack import Pack
from bylaw.policy.statement import Policy
from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of

_LONGEST_WISH = 12
_LONGEST_WORDING = 22
_ID = re.compile(r"_id$")


def wish(tool: Tool | None, name: str) -> str:
    """What a write does, as `to ...` would say it."""
    said = re.split(r"[.,;:(]", tool.description if tool is not None else "")[0].strip()
    if said and len(said.split()) <= _LONGEST_WISH:
        return said[0].lower() + said[1:]
    return " ".join(words_of(name))


def wordings(policy: Policy) -> list[str]:
    """The ways a policy is stated: its definition, and what it cites where that is one short sentence."""
    cited = [each.text.strip() for each in policy.citations if each.text]
    short = [text for text in cited if len(text.split()) <= _LONGEST_WORDING and not re.search(r"[.:;] \S", text)]
    return list(dict.fromkeys([policy.definition, *(short if len(policy.citations) == 1 else ())]))


def stated(policy: Policy, rng: random.Random, names: frozenset[str], *, shortest: bool = False) -> str:
    """One wording of a policy, as part of a longer sentence."""
    ways = wordings(policy)
    drawn = rng.choice(ways)
    return inner(min(ways, key=len) if shortest else drawn, names)


def inner(sentence: str, names: frozenset[str]) -> str:
    """A sentence as part of a list: no full stop or semicolon, a small first letter unless it begins with a name."""
    sentence = sentence.strip().removesuffix(".").replace(";", ",")
    first = re.match(r"\w+", sentence)
    if first is None or first[0] in names or (not first[0][1:].islower() and len(first[0]) > 1):
        return sentence
    return sentence[0].lower() + sentence[1:]


def names_in(pack: Pack) -> frozenset[str]:
    """Words that stand with a capital inside sentences of the document or the definitions: names."""
    texts = [policy.definition for policy in pack.policies.values()]
    texts += [each.text for policy in pack.policies.values() for each in policy.citations if each.text]
    return _names_in(tuple(texts))


@cache
def _names_in(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset(found for text in texts for found in re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", text))


def label(name: str) -> str:
    """A field's name in words; what names another thing goes by that thing."""
    return " ".join(words_of(_ID.sub("", name)))


def value_in_words(field: Field, value: Any) -> str:
    """A value as a person writes it."""
    match value:
        case _ if value is ABSENT:
            return "not there"
        case bool():
            return "yes" if value else "no"
        case Decimal():
            return f"${value:,.2f}" if field.type == "money" else f"{value:f}"
        case datetime():
            return f"{value:%Y-%m-%d %H:%M}"
        case date():
            return value.isoformat()
        case list():
            items = cast(list[Any], value)
            if any(isinstance(item, dict | list) for item in items):
                return f"{len(items)} on record"
            return ", ".join(str(item).replace("_", " ") for item in items) or "nothing"
        case dict():
            return "on record"
        case _:
            return str(value).replace("_", " ") if field.type == "enum" else str(value)


def saw_in_words(saws: Iterable[Saw]) -> list[str]:
    """What was seen, thing by thing: `slot: status open, kind telehealth`."""
    things: dict[tuple[str, Any], list[str]] = {}
    for saw in saws:
        if saw.field.private:
            continue
        thing = things.setdefault((saw.fact.entity, saw.fact.key), [])
        if saw.value is ABSENT or (saw.fact.field == "exists" and saw.value is False):
            thing[:] = ["not there"]
        elif saw.fact.field != "exists":
            colon = ":" if isinstance(saw.value, bool) else ""
            held = f" ({'; '.join(saw.notes)})" if saw.notes else ""
            thing.append(f"{label(saw.fact.field)}{colon} {value_in_words(saw.field, saw.value)}{held}")
    return [f"{label(entity)} {', '.join(said)}" for (entity, _), said in things.items() if said]


def lacks_in_words(facts: Iterable[Fact]) -> list[str]:
    """What was not seen: `the slot's status and kind`."""
    things: dict[str, dict[str, None]] = {}
    for fact in facts:
        things.setdefault(fact.entity, {})[label(fact.field)] = None
    return [
        f"the {label(entity)}" if "exists" in fields else f"the {label(entity)}'s {listed(list(fields))}"
        for entity, fields in things.items()
    ]


def listed(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""
