"""Shows a call to the user as a card or as a sentence from the pack, so that a plain yes is enough.

The wording comes from the pack. The values come from agents, tools and users, who may try to mislead. A card shows each
value on its own line. A value longer than one word is quoted, so that it cannot look like wording from the pack.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from hashlib import sha256
from itertools import product
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from bylaw.facts.call_record import CallRecord
from bylaw.facts.entity import Fact
from bylaw.facts.ledger import Ledger
from bylaw.facts.schema import Computed
from bylaw.facts.seen import SeenFacts
from bylaw.facts.value import INVISIBLE, currency_of, plain
from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of
from bylaw.text.number import amount_spellings, figures, quantity_spellings
from bylaw.trace.event import Result


class CardFacts(Struct, frozen=True):
    """The facts that a card shows in addition to the arguments. If some are unknown, the facts that are missing."""

    values: Mapping[str, Any] = {}
    schemas: Mapping[str, Any] = {}
    """How to format each value: its title, currency and unit."""
    lacking: tuple[Fact, ...] = ()
    """Facts to look up first, including stale ones."""
    faults: tuple[str, ...] = ()
    """The reasons why values cannot be computed from known facts."""

    @property
    def is_known(self) -> bool:
        return not self.lacking and not self.faults

    def plain(self) -> dict[str, Any]:
        """Return the values as JSON. Two values that look the same on a card have the same JSON."""
        return {name: _plain(value) for name, value in self.values.items()}


NO_FACTS = CardFacts()


def card_facts(call: CallRecord, ledger: Ledger) -> CardFacts:
    """Evaluate the facts for a card. A fact counts as missing if a result in the same turn may contradict it."""
    declared = ledger.schema.card_facts.get(call.call.tool, ())
    if call.tool is None or call.call.fault or not (declared or call.untold):
        return NO_FACTS
    arguments, seen = call.tool.fitted(call.call.arguments), SeenFacts(ledger, call, {})
    computed = {fact.name: fact.compute(arguments, seen) for fact in declared}
    if any(type(event) is Result for event in ledger.events[call.start : call.step]):
        # A result in the same turn may have changed earlier facts.
        seen = SeenFacts(ledger, replace(call, start=call.step), {})
        known = [fact for fact in declared if _is_known(computed[fact.name])]
        computed |= {fact.name: fact.compute(arguments, seen) for fact in known}
    return CardFacts(
        {**{name: each.value for name, each in computed.items()}, **call.untold},
        {fact.name: fact.schema for fact in declared} | {name: {"title": name} for name in call.untold},
        tuple(dict.fromkeys(fact for each in computed.values() for fact in each.lacking)),
        tuple(f"`{name}`: {each.fault}" for name, each in computed.items() if each.fault),
    )


def _is_known(computed: Computed) -> bool:
    return not computed.lacking and not computed.fault


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in cast("Sequence[Any]", value)]
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return plain(value)
    whole, _, part = format(Decimal(str(value)), "f").partition(".")
    part = part.rstrip("0")
    number = f"{whole}.{part}" if part else whole
    currency = currency_of(value)
    return f"{number} {currency}" if currency else number


_REMARKS = frozenset(words_of("reason reasons note notes comment comments remark summary description"))
"""Words for arguments that are recorded but have no other effect. Consent does not depend on such an argument."""


class Terms(Struct, frozen=True):
    """The arguments to leave out (`spared`) or to show in any case (`wanted`), and how long consent lasts."""

    spared: frozenset[str] = frozenset()
    wanted: frozenset[str] = frozenset()
    lifetime: float = 86_400.0
    """The number of seconds for which consent to a sentence is valid. The default equals the lifetime of an approval.
    """


def what_matters(given: Mapping[str, Any], terms: Terms) -> dict[str, Any]:
    """Return the arguments, with nested values, on which the user's consent depends."""
    return {
        name: value
        for name, value in given.items()
        if name not in terms.spared and not (type(value) is str and name not in terms.wanted and _is_remark(name))
    }


@lru_cache(maxsize=4096)
def _is_remark(name: str) -> bool:
    """Whether an argument's name says that it is a remark, as `cancel_reason` does. `email_summary_to` does not."""
    words = words_of(name)
    return bool(words) and words[-1] in _REMARKS


LIFETIME = 3600.0
"""The default lifetime of a card in seconds."""
CALL = "{call}"
"""The placeholder in a question for the tool's `put_as` sentence."""
ASKS = tuple(
    f"{lead}{CALL}{end}"
    for lead, end in (
        ("Shall I ", "?"),
        *((lead, ". Shall I go ahead?") for lead in ("I will ", "I'll ", "I can ", "I'm about to ")),
    )
)
SLOT = re.compile(r"\{(\w+)\}")
"""Matches a value's placeholder in a `put_as` sentence."""
_LONGEST = 4000
"""The maximum length of a card in characters. Users would not read a longer text."""
_LARGE = 10**12
_NOTHING: Mapping[str, Any] = {}
_HIDING = frozenset("<`~")
"""Characters that may hide the rest of a card in HTML or Markdown."""
_QUOTE = re.compile(r'"(?:[^"\\]|\\.)*"')
_QUOTED_VALUE = re.compile(f"({_QUOTE.pattern})")
_PLAIN = re.compile(r"[A-Za-z0-9](?:[\w.@/+:&-]{0,80}\w)?", re.ASCII)
_NUMERIC = re.compile(r"\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?")
_FIGURES = re.compile(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,6})?")
_LEAD = re.compile(
    r"(?:>\s*)*(?:#{1,6}\s+)?(?:(?:[-*+\u2022\u2023\u2013]|\d{1,2}[.)])\s+)?(?=[*_`]*(?:[^\W\d_]|[\u00a1\u00bf]))"
)
"""Matches Markdown at the start of a line: quote marks, headings, bullets and numbers."""
_FENCE = re.compile(r"`{3,}\w*")
_EMPHASIS = re.compile(
    rf"(?<![^\s(])(\*{{1,3}}|_{{1,3}}|`+)(?=\S)((?:{_QUOTE.pattern}|(?!\1)[^\"])+)(?<=\S)\1(?=[:;,.?!)]*(?:\s|$))"
)
_NESTED = 2
"""The maximum nesting of emphasis marks."""
_BULLET = re.compile(r"(?<![:,\s])\s+[-\u2022\u2013]\s+(?=[^\W\d_])")
"""Matches a bullet before words inside a line."""
_OVERLAY = 1
"""The combining class of characters that strike out the character before them."""


class CardWords(Struct, frozen=True):
    """The wording of cards in the pack's language, and how long a card is valid."""

    heading: str = "Please confirm:"
    question: str = "Shall I do this? Please answer yes or no."
    yes: tuple[str, ...] = ()
    """Additional answers that mean yes. The first one also replaces `true` on a card."""
    no: tuple[str, ...] = ()
    lifetime: float = LIFETIME
    asks: tuple[str, ...] = ASKS
    """Questions to which the user can answer yes. `{call}` is replaced by the tool's `put_as` sentence."""
    decimal: str = "."


def card_form(text: str) -> str:
    """Return a text in a form for comparing cards: without extra spaces and Markdown. Quoted values stay unchanged."""
    if text.isalnum():
        return text
    words: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if _FENCE.fullmatch(bare):
            continue
        # Text that precedes a value on its line belongs to the value.
        lead = _LEAD.match(bare) if not words or words[-1][-1] not in ":," else None
        words += _words_of_line(bare[lead.end() :] if lead is not None else bare)
    return " ".join(words)


def _words_of_line(line: str) -> list[str]:
    for _ in range(_NESTED):
        line, found = _EMPHASIS.subn(r"\2", line)
        if not found:
            break
    parts = _QUOTED_VALUE.split(line)
    # Odd positions contain the quoted values.
    parts[::2] = [_BULLET.sub(" ", part) for part in parts[::2]]
    return "".join(parts).split()


def digest(
    tool: str, arguments: Mapping[str, Any], facts: CardFacts = NO_FACTS, spared: frozenset[str] = frozenset()
) -> str:
    """Return the digest of a card. It depends on the tool, the arguments and the facts, but not on the order of
    arguments or facts.
    """
    given = {name: value for name, value in arguments.items() if name not in spared}
    parts = [tool, msgspec.to_builtins(given), *([facts.plain()] if facts.values else [])]
    told = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str)
    return sha256(told.encode()).hexdigest()


def card_text(
    tool: Tool | None,
    name: str,
    arguments: Mapping[str, Any],
    spared: frozenset[str],
    words: CardWords,
    facts: CardFacts = NO_FACTS,
) -> str:
    """Return the text of a card. Empty if it would be too long, two labels would be equal, or a fact is missing."""
    if not facts.is_known:
        return ""
    parameters = tool.parameters if tool is not None else {}
    given = [(key, value, parameters.get(key)) for key, value in arguments.items() if key not in spared]
    given += [(key, value, facts.schemas[key]) for key, value in facts.values.items()]
    told = [line for key, value, schema in given for line in _told(key, value, schema, words)]
    lines = [
        f"{words.heading} {title_of(tool, name)}",
        *(f"- {label}: {value}" for label, value in told),
        words.question,
    ]
    text, labels = "\n".join(lines), {label.lower() for label, _ in told}
    return text if len(text) <= _LONGEST and len(labels) == len(told) else ""


def sentences_in(
    message: str,
    tool: Tool | None,
    arguments: Mapping[str, Any],
    terms: Terms,
    words: CardWords,
    facts: CardFacts = NO_FACTS,
) -> Iterator[tuple[str, str]]:
    """Yield the pack's sentences for this call that occur in a message, each with the part that the pack's author
    wrote.
    """
    if tool is None:
        return
    given, schemas = {**arguments, **facts.values}, {**tool.parameters, **facts.schemas}
    for phrase, ask in product(tool.put_as, words.asks):
        names, begin, texts = _asked(phrase, ask)
        start = message.rfind(begin)
        if start < 0:
            continue
        left = (what_matters(arguments, terms).keys() | facts.values.keys()) - set(names)
        if any(given[name] is not None or _may_be_null(schemas.get(name)) for name in left):
            continue
        place, values = start + len(begin), list[str]()
        for name, after in zip(names, texts, strict=True):
            ways = _ways(given.get(name), schemas.get(name), words)
            told = next((each for each in ways if message.startswith(each + after, place)), "")
            if not told:
                break
            place += len(told) + len(after)
            values.append(told)
        else:
            if place - start <= _LONGEST and _is_told_in_one_way(values, texts):
                yield message[start:place], SLOT.sub(" ", phrase)


def never_asks(phrase: str, tool: Tool, terms: Terms) -> str:
    """Return the reason why a `put_as` sentence can never match a call to its tool. Empty if it can match."""
    slots = SLOT.findall(phrase)
    kinds = {name: _record(tool.parameters.get(name)) for name in {*slots, *tool.required}}
    samples = {name: "" if kind.get("type") == "string" else 0 for name, kind in kinds.items()}
    if left := [name for name in what_matters(samples, terms) if name in tool.required and name not in slots]:
        return f"the sentence does not contain {', '.join(f'`{name}`' for name in left)}"
    nested = [
        name
        for name in slots
        if kinds[name].get("type") == "object" or _record(kinds[name].get("items")).get("type") in ("object", "array")
    ]
    return f"`{nested[0]}` is an object, which a sentence cannot express; use cards" if nested else ""


@lru_cache(maxsize=4096)
def _asked(phrase: str, ask: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Return the names of the arguments in a question, the text before the first argument, and the text after each
    argument.
    """
    lead, _, end = ask.partition(CALL)
    parts = SLOT.split(phrase)
    parts[0] = lead + parts[0]
    parts[-1] += end
    return tuple(parts[1::2]), parts[0], tuple(parts[2::2])


def _ways(value: Any, schema: Any, words: CardWords) -> list[str]:
    if measured := _measured(value, _record(schema), words):
        return measured
    told = _in_words(value, schema, words)
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) >= _LARGE:
        return [told] if told else []
    exact = Decimal(str(value))
    return [told, *(format(way, "f") for way in (exact.normalize(), round(exact, 2)) if way == exact)]


def _is_told_in_one_way(values: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether the text can be split into values in only one way, because no value contains the text that follows it."""
    bare = [_QUOTE.sub('"', each) for each in values]
    if any(not text or text in value for text in texts[:-1] for value in bare):
        return False
    return all((value + text).index(text) >= len(value) for value, text in zip(bare, texts, strict=True) if text)


def _in_words(value: Any, schema: Any, words: CardWords) -> str:
    """Return a value in the form used in sentences. Empty if a sentence cannot show the value."""
    if isinstance(value, dict) or value is None:
        return ""
    declared = _record(schema)
    if not isinstance(value, list):
        return _shown(value, declared, words)
    parts = cast("list[Any]", value)
    if any(isinstance(part, dict | list) or part is None for part in parts):
        return ""
    return ", ".join(_shown(part, declared.get("items"), words) for part in parts)


def title_of(tool: Tool | None, name: str) -> str:
    return (tool.title if tool is not None else "") or _named(name)


def label_of(key: str, schema: Any) -> str:
    declared = _record(schema)
    title = declared.get("title")
    return title if isinstance(title, str) and title else _named(key)


def _told(key: str, value: Any, schema: Any, words: CardWords, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the labelled lines for an argument. Null is shown only if it has a meaning for the argument."""
    declared = _record(schema)
    label = f"{above} / {_field(key, schema)}" if above else label_of(key, declared)
    if value is None:
        if _may_be_null(schema):
            yield label, "-"
    elif value == {}:
        yield label, "{}"
    elif isinstance(value, dict):
        fields: Any = declared.get("properties")
        known = _record(fields)
        for inner, part in cast("dict[str, Any]", value).items():
            yield from _told(inner, part, known.get(inner), words, label)
    elif isinstance(value, list):
        parts = cast("list[Any]", value)
        if any(isinstance(part, dict | list) for part in parts):
            for place, part in enumerate(parts, 1):
                yield f"{label} {place}", _item(part, declared.get("items"), words)
        else:
            listed = ", ".join(_plainly(part, declared.get("items"), words) for part in parts)
            yield label, (listed or "-") if _is_list(declared) else f"[{listed}]"
    else:
        yield label, _plainly(value, declared, words)


def _item(value: Any, schema: Any, words: CardWords) -> str:
    """Return a list item on one line, such as `flight number HAT001, cabin "basic economy"`."""
    declared = _record(schema)
    if isinstance(value, dict):
        known = _record(declared.get("properties"))
        parts = cast("dict[str, Any]", value).items()
        told = [
            (name, part, known.get(name)) for name, part in parts if part is not None or _may_be_null(known.get(name))
        ]
        return ", ".join(f"{_field(name, of)} {_inner(part, of, words)}" for name, part, of in told) or "{}"
    if isinstance(value, list):
        parts = ", ".join(_inner(part, declared.get("items"), words) for part in cast("list[Any]", value))
        return f"[{parts}]"
    text = "-" if value is None else _plainly(value, declared, words)
    return _quoted(text) if text[:1].isalpha() and " " in text else text


def _inner(value: Any, schema: Any, words: CardWords) -> str:
    told = _item(value, schema, words)
    return f"({told})" if isinstance(value, dict) else told


def _field(key: str, schema: Any) -> str:
    """Return the label of a nested field. An undeclared field keeps its exact name, so that `priceMax` and `price_max`
    differ.
    """
    return label_of(key, schema) if schema is not None or "_".join(words_of(key)) == key else _quoted(key)


def _is_list(declared: Mapping[str, Any]) -> bool:
    return "items" in declared or "array" in str(declared.get("type"))


def _plainly(value: Any, schema: Any, words: CardWords) -> str:
    """Return a value as cards show it. Text without a schema is quoted if it looks like a number, yes or no."""
    declared, told = _record(schema), _shown(value, schema, words)
    is_expected = "string" in str(declared.get("type")) or declared.keys() & {"enum", "currency", "unit"}
    is_like_another = told.lower() in ("yes", "no", *words.yes, *words.no) or _NUMERIC.fullmatch(told)
    return _quoted(value) if isinstance(value, str) and is_like_another and not is_expected else told


def _record(schema: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", schema) if isinstance(schema, dict) else _NOTHING


def _may_be_null(schema: Any) -> bool:
    """Whether null is a possible value, with a different meaning from an omitted argument."""
    if not isinstance(schema, dict):
        return True
    declared = _record(schema)
    return bool(declared.get("nullable")) or "null" in str([declared.get(key) for key in ("type", "anyOf", "oneOf")])


def _shown(value: Any, schema: Any, words: CardWords) -> str:
    if isinstance(value, bool):
        return (words.yes or ("yes",))[0] if value else (words.no or ("no",))[0]
    if measured := _measured(value, _record(schema), words):
        return measured[0]
    text = value.isoformat(" ", "auto" if value.second else "minutes") if isinstance(value, datetime) else str(value)
    if not isinstance(value, str) or (_PLAIN.fullmatch(text) and card_form(text) == text):
        declared = _record(schema)
        return text.replace("_", " ") if value in (declared.get("enum") or ()) else text
    return _quoted(text)


def _measured(value: Any, declared: Mapping[str, Any], words: CardWords) -> list[str]:
    """Return the spellings of an amount or a quantity, starting with the one on cards. Empty for other values."""
    currency, unit = currency_of(value) or declared.get("currency"), declared.get("unit")
    is_figure = isinstance(value, str) and (currency or unit) and _FIGURES.fullmatch(value)
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if not (is_figure or is_number):
        return []
    number = Decimal(str(value))
    if not number.is_finite():
        return []
    if currency:
        return amount_spellings(number, str(currency), words.decimal)
    if unit:
        return quantity_spellings(number, str(unit), words.decimal)
    # Guards compute amounts of money as exact decimals, so show them exactly.
    return [figures(number, words.decimal, places=2, grouped=False)] if isinstance(value, Decimal) else []


@lru_cache(maxsize=4096)
def _named(name: str) -> str:
    """Return the name of a tool or argument in words. A name that is not made of words is quoted."""
    return " ".join(words_of(name)) if name.isidentifier() and name.isascii() and len(name) <= 80 else _quoted(name)


def _quoted(text: str) -> str:
    """Quote text on one line. Invisible characters and strike-through are escaped."""
    quoted = json.dumps(text, ensure_ascii=False).replace("  ", " \\u0020")
    return "".join(each if _is_visible(each) else _escaped(each) for each in quoted)


def _is_visible(each: str) -> bool:
    if each.isascii():
        return each.isprintable() and each not in _HIDING
    is_over_another = unicodedata.combining(each) == _OVERLAY or unicodedata.category(each) == "Me"
    return each.isprintable() and ord(each) not in INVISIBLE and not is_over_another


def _escaped(each: str) -> str:
    return f"\\u{ord(each):04x}" if each.isascii() and each.isprintable() else json.dumps(each)[1:-1]
