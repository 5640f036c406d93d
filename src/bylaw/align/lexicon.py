"""The words of a pack's policies, and the likeness of a statement to each policy.

A policy's wordings are its definition, the sentences it cites and the reasons its guard denies with. The fewer policies
use a word, the more it weighs. Words with one everyday meaning count as one word.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import yaml
from msgspec import Struct

from bylaw.align.slot import Value, values_in
from bylaw.pack import Pack
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import LOADER
from bylaw.text.stem import stem as text_stem

WORDS: dict[str, Any] = yaml.load((Path(__file__).parent / "words.yaml").read_text(encoding="utf-8"), LOADER)
"""The English that the matcher knows."""
_ODD: dict[str, str] = WORDS["odd"]
_STOP = frozenset(WORDS["stop"].split())


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A word without its ending, alike for the forms of a verb or noun."""
    word = word.lower().removesuffix("'s").replace("'", "").replace("’", "")
    return text_stem(_ODD.get(word, word))


def stems(text: str) -> list[str]:
    """The stems of all words but stop words, in order."""
    joined = re.sub(r"(?<=[A-Za-z])-(?=[A-Za-z])", "", text)  # in-person
    return [stem(word) for word in re.findall(r"[A-Za-z][A-Za-z'’]*", joined) if word.lower() not in _STOP]


_CLASS = {stem(word): stem(line.split()[0]) for line in WORDS["same"] for word in line.split()}
_GLUE = frozenset(stem(word) for word in WORDS["glue"].split())
_BOUNDS = {
    "most": re.compile(
        r"\b(?:at most|no more than|not more than|up to(?: and including)?|maximum of)\W*$", re.IGNORECASE
    ),
    "least": re.compile(r"\b(?:at least|no less than|not less than|minimum of)\W*$", re.IGNORECASE),
}
FEWEST = 3
"""Words that a cited sentence needs to be a wording of its policy. The definition always is."""
UNKNOWN = 0.55
"""Weight of a word that no policy uses, as a share of the heaviest."""


class Wording(Struct, frozen=True):
    """The words of one wording of a policy."""

    words: frozenset[str]
    total: float


class Entry(Struct, frozen=True):
    """The wordings of one policy, and the values and words in them."""

    policy: Policy
    words: frozenset[str]
    wordings: tuple[Wording, ...]
    values: frozenset[tuple[str, str]]
    pairs: Mapping[tuple[str, str], frozenset[str]]
    """Each value with the choices next to it: $15.00 with `silver`."""
    bounds: Mapping[str, frozenset[str]]
    """The numbers that it sets as `most` and as `least`."""
    choices: frozenset[str]
    """The enumeration words of the facts and arguments that its guard reads."""
    sentences: tuple[tuple[str, frozenset[str]], ...]
    """Its sentences, each with the choices in it."""


class Lexicon:
    """Finds the policies that a text resembles."""

    def __init__(self, pack: Pack) -> None:
        choices = {policy.id: _choices(pack, policy) for policy in pack.policies.values()}
        self._joined = {word: word.replace(" ", "") for each in choices.values() for word in each if " " in word}
        texts = {policy.id: _texts(pack, policy) for policy in pack.policies.values()}
        words = {name: frozenset(w for text in said for w in self.words(text)) for name, said in texts.items()}
        spread = Counter(word for each in words.values() for word in each)
        count = max(1, len(words))
        self._weights = {word: math.log(1 + count / times) for word, times in spread.items()}
        self._users: dict[str, list[str]] = {}
        for name, used in words.items():
            for word in used:
                self._users.setdefault(word, []).append(name)
        self._unknown = UNKNOWN * max(self._weights.values(), default=1.0)
        self.entries: dict[str, Entry] = {}
        for name, said in texts.items():
            ways = [frozenset(self.words(text)) for text in said]
            wordings = [
                Wording(way, self.weight(way)) for place, way in enumerate(ways) if not place or len(way) >= FEWEST
            ]
            self.entries[name] = Entry(
                pack.policies[name],
                words[name],
                tuple(wordings),
                frozenset(value.key for text in said for value in values_in(text)),
                _pairs(said, choices[name]),
                _bounds(said),
                choices[name],
                tuple((text.lower(), chosen(text, choices[name])) for text in said),
            )

    def weight(self, words: Iterable[str]) -> float:
        return sum(self._weights.get(word, self._unknown) for word in words)

    def is_known(self, word: str) -> bool:
        return word in self._weights

    def closest(self, words: frozenset[str], least: float) -> Iterator[tuple[float, Entry]]:
        """The policies that share words with these, each with its likeness from 0 to 1.

        Policies that cannot reach `least` may be left out.
        """
        total = self.weight(words)
        shared: dict[str, float] = {}
        for word in words:
            weight = self._weights.get(word, 0.0)
            for name in self._users.get(word, ()):
                shared[name] = shared.get(name, 0.0) + weight
        # Likeness is the harmonic mean of two shares, so one large share cannot make up for a small one.
        enough = total * least / (2 - least)
        for name, weight in shared.items():
            if weight >= enough:
                entry = self.entries[name]
                inside = weight / total
                best = max(self.weight(words & way.words) / way.total for way in entry.wordings if way.total)
                if best:
                    yield 2 * inside * best / (inside + best), entry

    def words(self, text: str) -> list[str]:
        """The stems of a text that count, one stem for all words with one meaning."""
        lower = text.lower().replace("-", " ")
        for phrase, joined in self._joined.items():
            lower = lower.replace(phrase, joined)
        return [_CLASS.get(word, word) for word in stems(lower) if word not in _GLUE]


def chosen(text: str, choices: frozenset[str]) -> frozenset[str]:
    """The choices that a text names."""
    lower = text.lower().replace("-", " ")
    return frozenset(word for word in choices if re.search(rf"\b{re.escape(word)}(?:s|ly)?\b", lower))


def _pairs(said: Sequence[str], choices: frozenset[str]) -> dict[tuple[str, str], frozenset[str]]:
    pairs: dict[tuple[str, str], set[str]] = {}
    for text in said:
        for value, words in beside(text, choices):
            pairs.setdefault(value.key, set()).update(words)
    return {key: frozenset(words) for key, words in pairs.items()}


def beside(text: str, choices: frozenset[str]) -> list[tuple[Value, frozenset[str]]]:
    """Each value of a text with the choices in its own clause, or else in the last clause that has any."""
    found: list[tuple[Value, frozenset[str]]] = []
    cuts = [
        match.start() for match in re.finditer(r",(?!\d)|;|:|\band\b|\bor\b|\belse\b|\bwith\b(?= \w+ or more)", text)
    ]
    bounds = [0, *cuts, len(text)]
    values = values_in(text)
    previous: frozenset[str] = frozenset()
    for start, end in pairwise(bounds):
        words = chosen(text[start:end], choices)
        inside = [value for value in values if start <= value.start < end]
        found.extend((value, words or previous) for value in inside)
        previous = words or previous
    return found


def bounds(text: str) -> list[tuple[str, str]]:
    """The numbers that a text sets as `most` and as `least`."""
    found: list[tuple[str, str]] = []
    for value in values_in(text):
        for way, before in _BOUNDS.items():
            if before.search(text[: value.start]):
                found.append((way, value.key[1]))
    return found


def _bounds(said: Sequence[str]) -> dict[str, frozenset[str]]:
    pairs = [pair for text in said for pair in bounds(text)]
    return {way: frozenset(number for each, number in pairs if each == way) for way in _BOUNDS}


def _choices(pack: Pack, policy: Policy) -> frozenset[str]:
    """The enumeration words of the facts and arguments that a policy's guard reads."""
    guard = pack.guards.get(policy.id)
    if guard is None:
        return frozenset()
    facts = guard.facts
    words = [
        value
        for entity in pack.schema.entities.values()
        for field in entity.fields.values()
        if f"{entity.name}.{field.name}" in facts
        for value in field.values
    ]
    keys, read = guard.arguments
    for tool in policy.tools:
        for name, schema in pack.schema.tools[tool].parameters.items():
            if name in keys | read and isinstance(schema, dict):
                words += cast(dict[str, Any], schema).get("enum") or ()
    return frozenset(word for value in words if len(word := str(value).replace("_", " ").lower()) > 2)


def _texts(pack: Pack, policy: Policy) -> list[str]:
    guard = pack.guards.get(policy.id)
    cited = [each.text for each in policy.citations if each.text]
    sentences = [part for text in cited for part in re.split(r"(?<=[.;:]) ", text)]
    denials = [text.replace("...", " ") for text in guard.denials] if guard is not None else []
    whole = [text for text in cited if len(text.split()) <= 40]
    return list(dict.fromkeys([policy.definition, *whole, *sentences, *denials]))
