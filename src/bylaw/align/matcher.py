"""Finds the policies that a thought states and the rules that it makes up, using words and values but no model.

A statement is rule-like if it allows, forbids or sets a condition. A rule-like statement counts as stating the most
similar policy if its values match and it has the words that distinguish the policy's cases. Otherwise, it counts as
made up. `words.yaml` has the English words for this, measured on labelled thoughts (`lab/scripts/align_matcher.py`). A
model is better at reading thoughts from other models (`grader.ModelJudge`).

The wordings of a policy are its definition, its cited sentences, and the denials of its guard. Words that fewer
policies use weigh more. Synonyms are treated as one word.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import yaml
from msgspec import Struct

from bylaw.align.slot import Value, is_day, values_in
from bylaw.align.thought import SENTENCES
from bylaw.align.turn_evidence import TurnEvidence
from bylaw.pack import Pack
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import LOADER
from bylaw.text.folding import stem as text_stem

WORDS: dict[str, Any] = yaml.load((Path(__file__).parent / "words.yaml").read_text(encoding="utf-8"), LOADER)
_STOP = frozenset(WORDS["stop"].split())


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return a word's stem, which is the same for all forms of the word."""
    word = word.lower().removesuffix("'s").replace("'", "").replace("’", "")
    return text_stem(word)


def stems(text: str) -> list[str]:
    """Return the stems of all words except stop words, in order."""
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
"""The minimum number of words for a cited sentence to serve as a wording. The definition always serves as one."""
UNKNOWN = 0.55
"""The weight of a word outside the policies, as a share of the highest weight."""


class Wording(Struct, frozen=True):
    words: frozenset[str]
    total: float


class Entry(Struct, frozen=True):
    """The wordings of a policy, with their values and words."""

    policy: Policy
    words: frozenset[str]
    wordings: tuple[Wording, ...]
    values: frozenset[tuple[str, str]]
    pairs: Mapping[tuple[str, str], frozenset[str]]
    """Each value with the choices next to it, such as $15.00 with `silver`."""
    bounds: Mapping[str, frozenset[str]]
    """Numbers that are upper limits (`most`) or lower limits (`least`) in the policy."""
    choices: frozenset[str]
    """The enumeration values in the facts and arguments that the policy's guard reads."""
    sentences: tuple[tuple[str, frozenset[str]], ...]
    """The policy's sentences, each with its choices."""


class Lexicon:
    def __init__(self, pack: Pack) -> None:
        choices = {policy.id: _choices(pack, policy) for policy in pack.policies.values()}
        self._joined = {word: word.replace(" ", "") for each in choices.values() for word in each if " " in word}
        texts = {policy.id: _texts(pack, policy) for policy in pack.policies.values()}
        words = {name: frozenset(w for text in said for w in self.words(text)) for name, said in texts.items()}
        spread = Counter(word for each in words.values() for word in each)
        count = max(1, len(words))
        self._weights = {word: math.log(1 + count / times) for word, times in spread.items()}
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

    def closest(self, words: frozenset[str]) -> Iterator[tuple[float, Entry]]:
        """Yield each policy with its similarity, from 0 to 1.

        The similarity is the harmonic mean of two shares: the common words' share of each text. So one large share
        cannot compensate for a small one.
        """
        total = self.weight(words)
        for entry in self.entries.values():
            inside = self.weight(words & entry.words) / total
            best = max(self.weight(words & way.words) / way.total for way in entry.wordings if way.total)
            if best:
                yield 2 * inside * best / (inside + best), entry

    def words(self, text: str) -> list[str]:
        """Return the stems of the relevant words. Synonyms are mapped to the same stem."""
        lower = text.lower().replace("-", " ")
        for phrase, joined in self._joined.items():
            lower = lower.replace(phrase, joined)
        return [_CLASS.get(word, word) for word in stems(lower) if word not in _GLUE]


def chosen(text: str, choices: frozenset[str]) -> frozenset[str]:
    lower = text.lower().replace("-", " ")
    return frozenset(word for word in choices if re.search(rf"\b{re.escape(word)}(?:s|ly)?\b", lower))


def _pairs(said: Sequence[str], choices: frozenset[str]) -> dict[tuple[str, str], frozenset[str]]:
    pairs: dict[tuple[str, str], set[str]] = {}
    for text in said:
        for value, words in beside(text, choices):
            pairs.setdefault(value.key, set()).update(words)
    return {key: frozenset(words) for key, words in pairs.items()}


def beside(text: str, choices: frozenset[str]) -> list[tuple[Value, frozenset[str]]]:
    """Return each value in a text with the choices in its clause or, if there are none, in the last clause that has
    any.
    """
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
    """Return the numbers that are upper limits (`most`) or lower limits (`least`) in a text."""
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


ALIKE = 0.5
"""A rule-like statement must be at least this similar to a policy to state that policy."""
SHARED = 0.08
"""Added to the similarity if the policy and the statement share a value."""
REMEMBERED = 20_000
"""The maximum number of statements in the cache, which helps because models often repeat themselves."""

_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])|\n+")
_ITEMS = re.compile(r"[;:](?=\s)")
_RULE = re.compile(rf"\b(?:{'|'.join(WORDS['rule'])})\b", re.IGNORECASE)
_LIMIT = re.compile(rf"\b(?:{'|'.join(WORDS['limit'])})\W*$", re.IGNORECASE)
_LOOSE = re.compile(rf"\b(?:{'|'.join(WORDS['loose'])})\b", re.IGNORECASE)
_ONLY = re.compile(r"\bonly((?:\W+\w+){1,4})", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:not|no|never|nobody|cannot|without|none|nothing)\b|n't\b", re.IGNORECASE)


class Mentions(Struct, frozen=True):
    """The policies stated in a thought (the paper's set B), and its made-up rules (C)."""

    recalled: frozenset[str]
    made_up: tuple[str, ...]


class Matcher:
    def __init__(self, pack: Pack) -> None:
        self._lexicon = Lexicon(pack)
        self._read = lru_cache(maxsize=REMEMBERED)(self._read_statement)

    def mentions(self, thought: str, known: Collection[tuple[str, str]] = ()) -> Mentions:
        """Return the policies (B) and made-up rules (C) in a thought. The values in `known` may be facts of the
        case.
        """
        right: set[tuple[int, str]] = set()
        wrong: set[tuple[int, str]] = set()
        made_up: list[str] = []
        for statement in statements(thought):
            here = frozenset(value.key for value in values_in(statement.text) if value.key in known)
            found = self._read(statement, here)
            if found is not None:
                policy, is_right = found
                (right if is_right else wrong).add((statement.sentence, policy))
                if not is_right:
                    made_up.append(statement.text)
        # If one part of a sentence is wrong, the whole sentence counts as a wrong statement of the policy.
        return Mentions(frozenset(policy for _, policy in right - wrong), tuple(made_up))

    def _read_statement(self, statement: "Statement", known: frozenset[tuple[str, str]]) -> tuple[str, bool] | None:
        """Return the policy of a statement ("" if made up) and whether it is stated correctly. None if the statement is
        not rule-like.
        """
        text = statement.text
        words = frozenset(self._lexicon.words(text))
        if len(words) < 2 or not (statement.is_announced or _RULE.search(text)):
            return None
        entry = self._closest(text, words)
        if entry is None:
            return "", False
        return None if entry.policy.kind == "knowledge" else (entry.policy.id, self._is_right(text, entry, known))

    def _closest(self, text: str, words: frozenset[str]) -> Entry | None:
        keys = {value.key for value in values_in(text) if value.kind != "count" or len(str(value.value)) > 1}
        ranked = [(score + SHARED * bool(keys & entry.values), entry) for score, entry in self._lexicon.closest(words)]
        score, entry = max(ranked, key=lambda each: each[0], default=(0.0, None))
        return entry if score >= ALIKE else None

    def _is_right(self, text: str, entry: Entry, known: Collection[tuple[str, str]]) -> bool:
        """Whether a statement has the same values, limits and cases as the policy."""
        for value, words in beside(text, entry.choices):
            kind, number = value.key
            # A number without a unit matches any unit. "No charge" is $0.00.
            same = [each for each in entry.values if each == (kind, number)]
            same = same or [each for each in entry.values if each[1] == number and "count" in (kind, each[0])]
            if not same:
                if value.key in known and self._is_of_the_case(text, value, entry):
                    continue
                return False
            if words and not any(not entry.pairs.get(each) or words & entry.pairs[each] for each in same):
                return False
        if chosen(text, entry.choices).difference(*(words for _, words in entry.sentences)):
            return False
        for way, number in bounds(text):
            if entry.bounds[way] and not any(number in numbers for numbers in entry.bounds.values()):
                return False
        for only in _ONLY.finditer(text):
            words = self._lexicon.words(only[1])
            first = words[:1] if not only.start() else words
            if words and not entry.words & set(first):
                return False
        return all(self._is_said(text, loose, entry) for loose in _LOOSE.finditer(text))

    def _is_of_the_case(self, text: str, value: Value, entry: Entry) -> bool:
        """Whether a known value is only a fact of the case, not part of the rule.

        The value is part of the rule if it follows a word such as `more than`, or if the statement lacks the policy's
        own value of this kind.
        """
        if _LIMIT.search(text[: value.start]):
            return False
        said = Counter(each.key for each in values_in(text))
        own = Counter(each.key for each in values_in(entry.policy.definition))
        return not any(kind == value.kind or "count" in (kind, value.kind) for kind, _ in own - said)

    def _is_said(self, text: str, loose: re.Match[str], entry: Entry) -> bool:
        """Whether the policy uses this permissive word for the same case."""
        if loose[0].lower().startswith("any") and _DENIED.search(text[: loose.start()]):
            return True
        if loose[0].lower() == "without" and _DENIED.search(text[: loose.start()] + text[loose.end() :]):
            return True
        cases = chosen(text, entry.choices)
        return any(loose[0].lower() in said and (cases <= words or not words) for said, words in entry.sentences)


class Statement(Struct, frozen=True):
    """A sentence or list item in a thought."""

    text: str
    sentence: int
    is_announced: bool
    """Whether the words before the statement introduce policies."""


def _beginnings(kinds: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that matches the beginnings of sentences made from these templates."""
    sentences = {each for kind in kinds for text in SENTENCES[kind] for each in _SENTENCES.split(text)}
    found = {each.partition("{")[0].strip() for each in sentences} - {""}
    return re.compile("|".join(re.escape(each) for each in sorted(found, key=len, reverse=True)))


_POLICIES = _beginnings(("one", "many"))
_CASE = _beginnings(SENTENCES.keys() - {"one", "many"})


def statements(thought: str) -> Iterator[Statement]:
    """Yield the sentences and list items in a thought, without the template text that describes the case."""
    for number, sentence in enumerate(_SENTENCES.split(thought)):
        head = _POLICIES.match(sentence)
        if head is None and _CASE.match(sentence):
            continue
        for item in _ITEMS.split(sentence[head.end() :] if head is not None else sentence):
            if text := item.strip(";: "):
                yield Statement(text, number, head is not None)


class Checked(Struct, frozen=True):
    """The result of comparing a thought with the findings of the guards at its turn."""

    missing: tuple[str, ...]
    """Policies that the turn needs but the thought does not state."""
    beside: tuple[str, ...]
    """Policies that the thought states but the turn does not need."""
    made_up: tuple[str, ...]
    """Stated rules that match no policy, and amounts and days that are in neither a policy nor the conversation."""

    @property
    def is_faithful(self) -> bool:
        """Whether all rules, amounts and days in the thought have a source."""
        return not self.made_up

    @property
    def is_complete(self) -> bool:
        """Whether the thought states every policy that the turn needs."""
        return not self.missing


def check(pack: Pack, thought: str, found: TurnEvidence, reader: Matcher, said: str = "") -> Checked:
    """Check a thought against the findings of the guards. Values from the conversation (`said`) are allowed."""
    shown = {value.key for value in values_in(said)}
    mentions = reader.mentions(thought, shown)
    stated = [pack.policies[name] for name in {*found.required, *mentions.recalled}]
    texts = [text for policy in stated for text in (policy.definition, *(each.text or "" for each in policy.citations))]
    known = shown | {value.key for text in texts for value in values_in(text)}
    days = {key[1] for key in known if key[0] == "date"}
    inside = " ".join(mentions.made_up)
    stray = [
        text
        for value in values_in(thought)
        if value.kind in ("amount", "date")
        and value.key not in known
        and not any(is_day(value.key[1], d) for d in days)
        if (text := thought[value.start : value.end]) not in inside
    ]
    return Checked(
        tuple(sorted(found.required - mentions.recalled)),
        tuple(sorted(mentions.recalled - found.required)),
        (*mentions.made_up, *stray),
    )
