"""Which policies a thought states, and which rules it makes up: found by words and values, without a model.

A statement is rule-like if it allows, forbids or sets a condition. It recalls the most similar policy if its values,
and the words by which that policy tells cases apart, are the policy's. Otherwise it is made up, as is a rule-like
statement that no policy resembles. `words.yaml` has the English for this, measured on labelled thoughts
(`lab/scripts/align_matcher.py`). A model reads thoughts of other models better (`grader.ModelJudge`).
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from bylaw.align.bearing import Bearing
from bylaw.align.lexicon import WORDS, Entry, Lexicon, beside, bounds, chosen
from bylaw.align.slot import Value, values_in
from bylaw.align.thought import SENTENCES
from bylaw.pack import Pack

ALIKE = 0.5
"""Likeness to a policy from which a rule-like statement is about that policy."""
NEAR = 0.08
"""A policy that much less similar is preferred if the statement states it correctly."""
NEARLY = 0.85
"""Likeness to a policy from which a statement without a rule word is a rule, too."""
SHARED = 0.08
"""Added to the likeness if the policy and the statement share a value."""
KNOWLEDGE = 0.15
"""Subtracted for a policy that only explains how to read the others."""
REMEMBERED = 20_000
"""Statements whose reading is cached: thoughts of one model repeat each other."""
LEAST = 0.3
CUT = 0.6
"""A statement is cut if its parts, taken alone, are more similar to policies than the whole, by weight of words."""

_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])|\n+")
_ITEMS = re.compile(r"[;:](?=\s)")
_CUTS = re.compile(r",\s+(?:and|but|or)\s+(?:that\s+)?|,\s+|\s+and\s+|\s+but\s+|\s+so\s+(?=\w)")
_RULE = re.compile(rf"\b(?:{'|'.join(WORDS['rule'])})\b", re.IGNORECASE)
_LIMIT = re.compile(rf"\b(?:{'|'.join(WORDS['limit'])})\W*$", re.IGNORECASE)
_LOOSE = re.compile(rf"\b(?:{'|'.join(WORDS['loose'])})\b", re.IGNORECASE)
_ONLY = re.compile(r"\bonly((?:\W+\w+){1,4})", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:not|no|never|nobody|cannot|without|none|nothing)\b|n't\b", re.IGNORECASE)


class Mentions(Struct, frozen=True):
    """The policies that a thought states (B), and the rules it makes up (C)."""

    recalled: frozenset[str]
    made_up: tuple[str, ...]


class Matcher:
    """Reads thoughts under one pack."""

    def __init__(self, pack: Pack) -> None:
        self._lexicon = Lexicon(pack)
        self._read = lru_cache(maxsize=REMEMBERED)(self._read_statement)

    def mentions(self, thought: str, known: Collection[tuple[str, str]] = ()) -> Mentions:
        """B and C of a thought. `known` are the values that the conversation showed: facts of the case have them."""
        right: set[tuple[int, str]] = set()
        wrong: set[tuple[int, str]] = set()
        made_up: list[str] = []
        for statement in statements(thought):
            here = frozenset(value.key for value in values_in(statement.text) if value.key in known)
            for part, policy, is_right in self._read(statement, here):
                (right if is_right else wrong).add((statement.sentence, policy))
                if not is_right:
                    made_up.append(part)
        # A sentence that states a policy partly wrong does not state it correctly in the rest.
        return Mentions(frozenset(policy for _, policy in right - wrong), tuple(made_up))

    def _read_statement(self, statement: "Statement", known: frozenset[tuple[str, str]]) -> list[tuple[str, str, bool]]:
        """The rules in a statement: the policy each is about, and whether it is stated correctly."""
        found: list[tuple[str, str, bool]] = []
        for part, entry in self._parts(statement):
            if entry is None:
                if self._weighs(part):
                    found.append((part, "", False))
            elif entry.policy.kind != "knowledge":
                meant = next((each for each in self._near(part) if self._is_right(part, each, known)), None)
                found.append((part, (meant or entry).policy.id, meant is not None))
        return found

    def _parts(self, said: "Statement") -> list[tuple[str, Entry | None]]:
        """The runs of clauses that are each about a policy, by the best way to cut the statement."""
        statement = said.text
        if not said.is_announced and not self._lays_down(statement):
            return []
        clauses = _clauses(statement)
        best: list[tuple[float, list[tuple[str, Entry | None]]]] = [(0.0, [])]
        for end in range(1, len(clauses) + 1):
            ways: list[tuple[float, list[tuple[str, Entry | None]]]] = []
            for start in range(max(0, end - 8), end):
                run = statement[clauses[start][0] : clauses[end - 1][1]]
                score, entry = self._closest(run)
                gain = (
                    (score - LEAST) * self._lexicon.weight(set(self._lexicon.words(run))) if entry is not None else 0.0
                )
                before, parts = best[start]
                ways.append((before + gain - CUT, [*parts, (run, entry)]))
            best.append(max(ways, key=lambda way: way[0]))
        parts = best[-1][1]
        if all(entry is None for _, entry in parts):
            return [(statement, None)]
        return [(run, entry) for run, entry in parts if entry is not None]

    def _lays_down(self, text: str) -> bool:
        """Whether a statement is rule-like by its own words, or is nearly a policy's."""
        return _RULE.search(text) is not None or self._closest(text)[0] >= NEARLY

    def _closest(self, text: str) -> tuple[float, Entry | None]:
        ranked = self._ranked(text)
        return ranked[0] if ranked else (0.0, None)

    def _near(self, text: str) -> list[Entry]:
        """The most similar policy, and those nearly as similar."""
        ranked = self._ranked(text)
        return [entry for score, entry in ranked if score >= ranked[0][0] - NEAR and entry.policy.kind != "knowledge"]

    def _ranked(self, text: str) -> list[tuple[float, Entry]]:
        """The policies that a text is similar enough to, the most similar first."""
        words = frozenset(self._lexicon.words(text))
        if len(words) < 2:
            return []
        keys = {value.key for value in values_in(text) if value.kind != "count" or len(str(value.value)) > 1}
        ranked: list[tuple[float, Entry]] = []
        for score, entry in self._lexicon.closest(words, ALIKE - SHARED):
            score += SHARED * bool(keys & entry.values) - KNOWLEDGE * (entry.policy.kind == "knowledge")
            if score >= ALIKE:
                ranked.append((score, entry))
        return sorted(ranked, key=lambda each: -each[0])

    def _weighs(self, text: str) -> bool:
        words = self._lexicon.words(text)
        return len(words) >= 2 and sum(self._lexicon.is_known(word) for word in words) >= 1

    def _is_right(self, text: str, entry: Entry, known: Collection[tuple[str, str]]) -> bool:
        """Whether the values, limits and cases that a statement names are the policy's."""
        for value, words in beside(text, entry.choices):
            kind, number = value.key
            # A number without its unit may be any of the policy's; no charge is $0.00.
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
            if entry.bounds[way] and number not in entry.bounds[way] and not _turned(entry, way, number):
                return False
        for only in _ONLY.finditer(text):
            words = self._lexicon.words(only[1])
            first = words[:1] if not only.start() else words
            if words and not entry.words & set(first):
                return False
        return all(self._is_said(text, loose, entry) for loose in _LOOSE.finditer(text))

    def _is_of_the_case(self, text: str, value: Value, entry: Entry) -> bool:
        """Whether a value that was shown is a fact of the case next to the rule, not a value of the rule.

        It is a value of the rule if a word such as `more than` sets it, or if the policy has a value of its kind that
        the statement leaves out.
        """
        if _LIMIT.search(text[: value.start]):
            return False
        said = Counter(each.key for each in values_in(text))
        own = Counter(each.key for each in values_in(entry.policy.definition))
        return not any(kind == value.kind or "count" in (kind, value.kind) for kind, _ in own - said)

    def _is_said(self, text: str, loose: re.Match[str], entry: Entry) -> bool:
        """Whether the policy also permits this, in the same case."""
        if loose[0].lower().startswith("any") and _DENIED.search(text[: loose.start()]):
            return True
        if loose[0].lower() == "without" and _DENIED.search(text[: loose.start()] + text[loose.end() :]):
            return True
        cases = chosen(text, entry.choices)
        return any(loose[0].lower() in said and (cases <= words or not words) for said, words in entry.sentences)


def _turned(entry: Entry, way: str, number: str) -> bool:
    """Whether the policy sets the number from the other side: `up to $150.00` for `more than $150.00`."""
    return number in entry.bounds["least" if way == "most" else "most"]


class Statement(Struct, frozen=True):
    """A sentence of a thought, or an item of a list in it."""

    text: str
    sentence: int
    """Index of the sentence in the thought."""
    is_announced: bool
    """The words before it announce policies."""


def _beginnings(kinds: Iterable[str]) -> re.Pattern[str]:
    """How the sentences of these templates begin."""
    sentences = {each for kind in kinds for text in SENTENCES[kind] for each in _SENTENCES.split(text)}
    found = {each.partition("{")[0].strip() for each in sentences} - {""}
    return re.compile("|".join(re.escape(each) for each in sorted(found, key=len, reverse=True)))


_POLICIES = _beginnings(("one", "many"))
_CASE = _beginnings(SENTENCES.keys() - {"one", "many"})


def statements(thought: str) -> Iterator[Statement]:
    """The sentences of a thought and the items of its lists, without what its templates say of the case."""
    for number, sentence in enumerate(_SENTENCES.split(thought)):
        head = _POLICIES.match(sentence)
        if head is None and _CASE.match(sentence):
            continue
        for item in _ITEMS.split(sentence[head.end() :] if head is not None else sentence):
            if text := item.strip(";: "):
                yield Statement(text, number, head is not None)


def _clauses(statement: str) -> Sequence[tuple[int, int]]:
    cuts = [(match.start(), match.end()) for match in _CUTS.finditer(statement)]
    starts = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(statement)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if end > start]


class Checked(Struct, frozen=True):
    """How a thought compares with what the guards found at its turn."""

    missing: tuple[str, ...]
    """Policies that the turn needs and the thought does not state."""
    beside: tuple[str, ...]
    """Policies that it states and the turn does not need."""
    made_up: tuple[str, ...]
    """Rules that no policy has, and amounts and days that neither a policy nor the conversation has."""

    @property
    def is_faithful(self) -> bool:
        """It states no rule, amount or day without a source."""
        return not self.made_up

    @property
    def is_complete(self) -> bool:
        """It states every policy that the turn needs."""
        return not self.missing


def check(pack: Pack, thought: str, found: Bearing, reader: Matcher, said: str = "") -> Checked:
    """Check a thought against the guards' findings at its turn. `said` is the conversation, whose values it may use."""
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
        if value.kind in ("amount", "date") and value.key not in known and not _is_day_of(value.key[1], days)
        if (text := thought[value.start : value.end]) not in inside
    ]
    return Checked(
        tuple(sorted(found.required - mentions.recalled)),
        tuple(sorted(mentions.recalled - found.required)),
        (*mentions.made_up, *stray),
    )


def _is_day_of(day: str, days: set[str]) -> bool:
    """Whether a day without its year is one of those with it."""
    return len(day) == 5 and any(each.endswith(day) for each in days)
