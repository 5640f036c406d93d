"""A call in plain words, for the user to read before they agree: made from the pack, the same for the same call.

Values come from agents, tools and users, who may want to be believed: each stands on a line of its own, in quotes
unless it is one plain word, so that none of it reads like a line of the card.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import Struct

from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of

LIFETIME = 3600.0
"""Seconds for which a card is good, where the pack does not say."""
_LONGEST = 4000
"""Characters of a card at most: nobody reads more, and what was not read was not agreed to."""
_PLAIN = re.compile(r"[A-Za-z0-9](?:[\w.@/+:&-]{0,80}\w)?", re.ASCII)


class CardWords(Struct, frozen=True):
    """The words of a card in the language of the pack, and how long it is good."""

    heading: str = "Please confirm:"
    question: str = "Shall I do this? Please answer yes or no."
    yes: tuple[str, ...] = ()
    """Answers that mean yes, beside those in English; the first of them is how a card writes `true`."""
    no: tuple[str, ...] = ()
    lifetime: float = LIFETIME


def card_text(
    tool: Tool | None, name: str, arguments: Mapping[str, Any], spared: frozenset[str], words: CardWords
) -> str:
    """The text of a card; empty where it would be too long to be read."""
    parameters = tool.parameters if tool is not None else {}
    lines = [f"{words.heading} {title_of(tool, name)}"]
    for key, value in arguments.items():
        if key not in spared:
            lines += [f"- {label}: {told}" for label, told in _told(key, value, parameters.get(key), words, spared)]
    lines.append(words.question)
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST else ""


def title_of(tool: Tool | None, name: str) -> str:
    """What a tool does, in the pack's words or by its name."""
    return (tool.title if tool is not None else "") or _named(name)


def label_of(key: str, schema: Any) -> str:
    """What an argument is called, in the pack's words or by its name."""
    declared: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    title = declared.get("title")
    return title if isinstance(title, str) and title else _named(key)


def _told(
    key: str, value: Any, schema: Any, words: CardWords, spared: frozenset[str], above: str = ""
) -> Iterator[tuple[str, str]]:
    """What an argument says, by its name in words; one without a value says nothing."""
    declared: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    label = f"{above} {label_of(key, declared)}".strip()
    if isinstance(value, dict):
        fields: Any = declared.get("properties")
        known: Mapping[str, Any] = cast("Mapping[str, Any]", fields) if isinstance(fields, Mapping) else {}
        for inner, part in cast("dict[str, Any]", value).items():
            if inner not in spared:
                yield from _told(inner, part, known.get(inner), words, spared, label)
    elif isinstance(value, list):
        parts = cast("list[Any]", value)
        if any(isinstance(part, dict | list) for part in parts):
            for place, part in enumerate(parts, 1):
                yield from _told(str(place), part, declared.get("items"), words, spared, label)
        else:
            yield label, ", ".join(_shown(part, declared.get("items"), words) for part in parts) or "-"
    elif value is not None:
        yield label, _shown(value, declared, words)


def _shown(value: Any, schema: Any, words: CardWords) -> str:
    if isinstance(value, bool):
        return (words.yes or ("yes",))[0] if value else (words.no or ("no",))[0]
    text = str(value)
    if not isinstance(value, str) or _PLAIN.fullmatch(text):
        declared: Mapping[str, Any] = cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
        return text.replace("_", " ") if "enum" in declared else text
    return _quoted(text)


def _named(name: str) -> str:
    """A name of a tool or an argument in words; one that is none in quotes."""
    return " ".join(words_of(name)) if name.isidentifier() and name.isascii() and len(name) <= 80 else _quoted(name)


def _quoted(text: str) -> str:
    """A text in quotes on one line, every character in it to be seen."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in quoted)
