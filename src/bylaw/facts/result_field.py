"""What stands in a tool's result as a whole field of its data, rather than somewhere in its text."""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec
import yaml
from msgspec import Raw

from bylaw.facts.money import amount_of
from bylaw.text.folding import fold, occurs
from bylaw.text.number import canonical
from bylaw.text.spelling import Spelling

_VALUE = 200
_OCCURRENCES = 50
_PARSED = 200_000
_LEAVES = 20_000
_LISTING_WORDS = 10
_FIGURES = re.compile(r"\d+(?:\.\d+)?")
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


@lru_cache(maxsize=256)
def is_json(text: str) -> bool:
    """Whether the whole text is JSON."""
    try:
        msgspec.json.decode(text, type=Raw)
    except msgspec.DecodeError:
        return False
    return True


@lru_cache(maxsize=256)
def fields_of(text: str) -> frozenset[str]:
    """Every whole value, key and list member of the data in `text`, folded; for plain text, the text itself.

    Data is JSON, what YAML reads as a mapping or a list, or a plain listing of short lines, perhaps under a label.
    """
    found: set[str] = {fold(text)} if len(text) <= _VALUE else set()
    data = parse_result(text)
    if isinstance(data, str) or (isinstance(data, dict) and len(cast("dict[Any, Any]", data)) == 1):
        found.update(_listed(text))
    pending: list[Any] = [data]
    left = _LEAVES
    while pending and left:
        left -= 1
        value = pending.pop()
        if isinstance(value, dict):
            mapping = cast("dict[Any, Any]", value)
            found.update(fold(str(name)) for name in mapping)
            pending.extend(mapping.values())
        elif isinstance(value, list):
            pending.extend(cast("list[Any]", value))
        elif isinstance(value, str) and value is not text:
            if value[:1] in ("{", "["):
                pending.append(_decoded(value))
            elif len(value) <= _VALUE:
                found.update((fold(value), *number_forms(value)))
        elif isinstance(value, (int, float)):
            found.add(canonical(value))
    return frozenset(found)


_MARK = re.compile(r"\*{3,}|[\[<{*]+ ?[A-Za-z_][A-Za-z_ ]*[\]>}*]+")


def number_forms(text: str) -> tuple[str, ...]:
    """The number that a whole field is, as it is told without noughts and without its currency: `£96.00`."""
    try:
        return (canonical(float(text)),) if len(text) < 20 else ()
    except ValueError:
        amount = amount_of(text)
    return () if amount is None else (canonical(float(amount)), str(amount))


def is_cut(text: str) -> bool:
    """Whether a result is not there as it came: data that breaks off, or a mark in its place such as `[REDACTED]`."""
    bare = text.strip()
    if bare[:1] not in ("{", "["):
        return _MARK.fullmatch(bare) is not None
    if _decoded(bare) is not None:
        return False
    return _MARK.fullmatch(bare) is not None or isinstance(parse_result(bare), str)


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def parse_result(text: str) -> Any:
    """The data in a result's text: from JSON, else from YAML (which also reads Python's own notation)."""
    data = _decoded(text)
    if data is not None or len(text) > _PARSED or not (":" in text or text.lstrip()[:1] in ("-", "[", "{")):
        return text if data is None else data
    try:
        data = yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, RecursionError, ValueError):
        return text
    return cast("Any", data) if isinstance(data, dict | list) else text


def _listed(text: str) -> set[str]:
    """The members of a plain listing; nothing where any line reads like prose."""
    lines = [line.strip() for line in text[:_PARSED].splitlines() if line.strip()]
    if len(lines) < 2 or any(line.count(" ") >= _LISTING_WORDS for line in lines):
        return set()
    return {fold(part) for line in lines for part in (line, line.partition(":")[2].strip()) if part}


def is_field(spelling: Spelling, text: str) -> bool:
    """Whether a value is a whole field (or key, or list member) of the data in `text`."""
    written = spelling.written
    if not spelling.is_number and text[:1] in ("{", "[") and any(f'"{form}"' in text for form in written):
        return is_json(text) or spelling.folded in fields_of(text)
    may_be = spelling.is_number or _FIGURES.fullmatch(spelling.folded) or _opens_a_field(written, text)
    return bool(may_be) and spelling.folded in fields_of(text)


def _opens_a_field(forms: Sequence[str], text: str) -> bool:
    """Whether a value ever stands where a field could begin; if not, the text need not be parsed."""
    for written in forms:
        here = occurs(written, text)
        for _ in range(_OCCURRENCES):
            if here < 0:
                break
            if text[max(0, here - 12) : here].rstrip(" \"'\\")[-1:] in ("", "\n", ":", "-", "[", "{", ",", "\t"):
                return True
            here = occurs(written, text, here + len(written))
        else:
            return True
    return False
