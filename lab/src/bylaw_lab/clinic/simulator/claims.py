"""Decides whether a user message states the value of a fact, and extracts facts that only the user knows."""

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from bylaw_lab.clinic.simulator.tables import TODAY, Fact, tables

MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
DATE = re.compile(
    rf"(?P<iso>\b\d{{4}}-\d\d-\d\d\b)"
    rf"|\b(?P<month>{'|'.join(MONTHS)}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year>\d{{4}})\b)?"
    rf"|\b(?P<day2>\d{{1,2}})(?:st|nd|rd|th)? (?:of )?(?P<month2>{'|'.join(MONTHS)})\b(?:,? (?P<year2>\d{{4}})\b)?",
    re.IGNORECASE,
)
AMOUNT = re.compile(r"\$\s?(\d+(?:\.\d\d)?)\b|\b(\d+(?:\.\d\d)?) dollars\b|\b(\d+\.\d\d)\b")
NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")


@cache
def lexicon() -> dict[str, Any]:
    return yaml.safe_load((Path(__file__).with_name("claims.yaml")).read_text(encoding="utf-8"))


def told(tool: str, arguments: dict[str, Any], messages: Sequence[str]) -> dict[str, Any]:
    """Return the stated facts that are not in the records. Facts that are missing here were not stated."""
    facts: dict[str, Any] = {}
    if tool == "cancel_appointment" and "reason" in arguments:
        facts["reason"] = arguments["reason"]
    for rule in lexicon()["user_facts"]["Request.in_state"]["from"]:
        if any(re.search(rule["says"], text, re.IGNORECASE) for text in messages):
            facts.setdefault("in_state", rule["value"])
    return facts


def completions(asks: Sequence[str], facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Return all possible combinations of the facts that only the caller knows."""
    ways = [dict(facts)]
    for name in asks:
        if name not in facts:
            entry = lexicon()["user_facts"][f"Request.{name}"]
            values = [True, False] if entry["type"] == "boolean" else entry["values"]
            ways = [{**way, name: value} for way in ways for value in values]
    return ways


def states(text: str, fact: Fact, value: Any) -> bool:
    """Whether a message states this value of this fact."""
    entity, _, field = fact
    match tables()[entity].columns[field].type:
        case "boolean":
            phrases = lexicon()["claims"].get(f"{entity}.{field}", {}).get(value, [])
            return any(phrase.lower() in text.lower() for phrase in phrases)
        case "date":
            return value in dates(text)
        case "money":
            return value in amounts(text)
        case "enum" | "string":
            return says_word(text, value)
        case _:
            return False


def says_word(text: str, value: str) -> bool:
    """Whether the text contains the words of `value`, joined in any way."""
    return word(value).search(text) is not None


@cache
def word(value: str) -> re.Pattern[str]:
    parts = [re.escape(part) for part in re.split(r"[\s_-]+", value)]
    return re.compile(r"\b" + r"[\s_-]+".join(parts) + r"\b", re.IGNORECASE)


def dates(text: str) -> set[date]:
    """Return every date in a text. A date without a year is assumed to be in the current year."""
    found: set[date] = set()
    for match in DATE.finditer(text):
        if match["iso"]:
            found.add(date.fromisoformat(match["iso"]))
        else:
            month = MONTHS.index((match["month"] or match["month2"]).lower()) + 1
            year = int(match["year"] or match["year2"] or TODAY.year)
            found.add(date(year, month, int(match["day"] or match["day2"])))
    return found


def amounts(text: str) -> set[Decimal]:
    return {Decimal(next(part for part in match.groups() if part)) for match in AMOUNT.finditer(text)}


def doubtful(text: str, fact: Fact, value: Any) -> bool:
    """Whether readers could disagree about `states` because it contains a count, a time, a bare number, or a date
    without a year.
    """
    entity, _, field = fact
    match tables()[entity].columns[field].type:
        case "money":
            return value not in amounts(text) and any(Decimal(number) == value for number in NUMBER.findall(text))
        case "integer":
            return any(Decimal(number) == value for number in NUMBER.findall(text))
        case "datetime":
            return any((day.month, day.day) == (value.month, value.day) for day in dates(text))
        case "date":
            same = {day for day in dates(text) if (day.month, day.day) == (value.month, value.day)}
            return bool(same) and value not in same
        case "boolean":
            phrases = lexicon()["claims"].get(f"{entity}.{field}", {}).get(not value, [])
            return any(phrase.lower() in text.lower() for phrase in phrases) and states(text, fact, value)
        case _:
            return False
