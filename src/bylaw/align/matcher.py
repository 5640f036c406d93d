"""Which policies a thought states, and which rules it makes up: found by words and values, without a model.

A statement of a thought is rule-like if it allows, forbids or sets a condition. It recalls the policy it is most like
if all its values, and all words it tells cases apart by, are that policy's; it is made up if it is like none, or has
any of these wrong. By what the guards found at its turn a thought is then faithful and complete, or not.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import lru_cache

from msgspec import Struct

from bylaw.align.bearing import Bearing
from bylaw.align.lexicon import Entry, Lexicon, beside, bounds, chosen
from bylaw.align.stem import WORDS, Value, values_in
from bylaw.pack import Pack

ALIKE = 0.5
"""How alike a rule-like statement must be to a policy to state it."""
NEAR = 0.08
"""How much less a statement may be like the policy that it states rightly than like one that it would state wrongly."""
NEARLY = 0.85
"""How alike a statement must be to a policy to be taken for a rule though none of its words says so."""
SHARED = 0.08
"""What a value that a policy has too adds."""
KNOWLEDGE = 0.15
"""What a policy lacks that only says how to read the others."""
LONGEST_HEAD = 7
"""Words of `The policies for this`, which announce rules and are not rules themselves."""
REMEMBERED = 20_000
"""Statements whose reading is kept: thoughts of one model say the same again and again."""
LEAST = 0.3
CUT = 0.6
"""A statement is cut in two where its parts are more like their policies than the whole, by weight of words."""

_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])|\n+")
_ITEMS = re.compile(r"(?:[^;:]|[;:](?!\s))+[;:]?")
_HEAD = re.compile(rf"\b(?:{'|'.join(WORDS['head'])})", re.IGNORECASE)
_CUTS = re.compile(r",\s+(?:and|but|or)\s+(?:that\s+)?|,\s+|\s+and\s+|\s+but\s+|\s+so\s+(?=\w)")
_RULE = re.compile(rf"\b(?:{'|'.join(WORDS['rule'])})\b", re.IGNORECASE)
_FACT = re.compile(rf"^\W*(?:{'|'.join(WORDS['fact'])})", re.IGNORECASE)
_LIMIT = re.compile(rf"\b(?:{'|'.join(WORDS['limit'])})\W*$", re.IGNORECASE)
_LOOSE = re.compile(rf"\b(?:{'|'.join(WORDS['loose'])})\b", re.IGNORECASE)
_ONLY = re.compile(r"\bonly((?:\W+\w+){1,4})", re.IGNORECASE)
_DENIED = re.compile(r"\b(?:not|no|never|nobody|cannot|without|none|nothing)\b|n't\b", re.IGNORECASE)


class Mentions(Struct, frozen=True):
    """What a thought states: policies (B), and made-up rules (C)."""

    recalled: frozenset[str]
    made_up: tuple[str, ...]


class Matcher:
    def __init__(self, pack: Pack) -> None:
        self._lexicon = Lexicon(pack)
        self._read = lru_cache(maxsize=REMEMBERED)(self._read_statement)

    def mentions(self, thought: str, known: Collection[tuple[str, str]] = ()) -> Mentions:
        """B and C of a thought; `known` are values that the conversation showed: facts of the case may have them."""
        right: set[tuple[int, str]] = set()
        wrong: set[tuple[int, str]] = set()
        made_up: list[str] = []
        for statement in statements(thought):
            here = frozenset(value.key for value in values_in(statement.text) if value.key in known)
            for part, policy, is_right in self._read(statement, here):
                (right if is_right else wrong).add((statement.sentence, policy))
                if not is_right:
                    made_up.append(part)
        # A policy that one sentence states partly wrong is not stated rightly by the rest of it.
        return Mentions(frozenset(policy for _, policy in right - wrong), tuple(made_up))

    def _read_statement(self, statement: "Statement", known: frozenset[tuple[str, str]]) -> list[tuple[str, str, bool]]:
        """The parts of a statement that state something: the policy each is about, and whether it is right."""
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
        """A statement cut where its parts, taken alone, are each more like a policy than together."""
        statement = said.text
        if not said.is_announced and (_FACT.match(statement) or not self._lays_down(said)):
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

    def _lays_down(self, said: "Statement") -> bool:
        """Whether a statement is rule-like by its own words, or is nearly a policy's."""
        if _RULE.search(said.text):
            return True
        return not said.is_told and self._closest(said.text)[0] >= NEARLY

    def _closest(self, text: str) -> tuple[float, Entry | None]:
        ranked = self._ranked(text)
        return ranked[0] if ranked else (0.0, None)

    def _near(self, text: str) -> list[Entry]:
        """The policy that a text is most like, and those that it is nearly as much like."""
        ranked = self._ranked(text)
        return [entry for score, entry in ranked if score >= ranked[0][0] - NEAR and entry.policy.kind != "knowledge"]

    def _ranked(self, text: str) -> list[tuple[float, Entry]]:
        """The policies that a text is like enough to, the likest first."""
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
        """Whether nothing that the statement says differs from the policy."""
        for value, words in beside(text, entry.choices):
            kind, number = value.key
            # A number without its unit may be any of the policy's; nothing is $0.00.
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
        """Whether a value that was shown is told beside the rule, and does not stand where the rule has one.

        It stands in the rule's own place if a word such as `more than` sets it, or if the policy has a value of its
        kind that the statement does not say.
        """
        if _LIMIT.search(text[: value.start]):
            return False
        said = Counter(each.key for each in values_in(text))
        own = Counter(each.key for each in values_in(entry.policy.definition))
        return not any(kind == value.kind or "count" in (kind, value.kind) for kind, _ in own - said)

    def _is_said(self, text: str, loose: re.Match[str], entry: Entry) -> bool:
        """Whether the policy, too, lets this through, in the same case."""
        if loose[0].lower().startswith("any") and _DENIED.search(text[: loose.start()]):
            return True
        if loose[0].lower() == "without" and _DENIED.search(text[: loose.start()] + text[loose.end() :]):
            return True
        cases = chosen(text, entry.choices)
        return any(loose[0].lower() in said and (cases <= words or not words) for said, words in entry.sentences)


def _turned(entry: Entry, way: str, number: str) -> bool:
    """Whether the policy sets the number the other way round, as `up to $150.00` for `more than $150.00`."""
    return number in entry.bounds["least" if way == "most" else "most"]


class Statement(Struct, frozen=True):
    """A sentence of a thought, or an item of a list in it."""

    text: str
    sentence: int
    """Which sentence of the thought it stands in."""
    is_announced: bool
    """The words before it say that a rule follows."""
    is_told: bool = False
    """The words before it tell what was seen or is planned."""


def statements(thought: str) -> list[Statement]:
    """A thought cut into its sentences and the items of its lists."""
    found: list[Statement] = []
    for number, sentence in enumerate(_SENTENCES.split(thought)):
        is_announced = is_listed = is_told = False
        for item in _ITEMS.findall(sentence):
            text = item.strip(";: ")
            is_head = _HEAD.search(text) is not None
            if is_head and len(text.split()) <= LONGEST_HEAD:
                is_announced = True
            elif item.endswith(":") and _FACT.match(text):
                is_listed = True
            elif text and (is_announced or not is_listed):
                is_told = is_told or _FACT.match(text) is not None
                found.append(Statement(text, number, is_announced or is_head, is_told))
    return found


def _clauses(statement: str) -> Sequence[tuple[int, int]]:
    cuts = [(match.start(), match.end()) for match in _CUTS.finditer(statement)]
    starts = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(statement)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if end > start]


class Checked(Struct, frozen=True):
    """What a check finds."""

    missing: tuple[str, ...]
    """Policies that the turn needs and the thought does not state."""
    beside: tuple[str, ...]
    """Policies that it states and the turn does not need."""
    made_up: tuple[str, ...]
    """Rules that it states and no policy has."""
    stray: tuple[str, ...]
    """Amounts and days in it that neither a policy nor the conversation has."""

    @property
    def is_faithful(self) -> bool:
        """It states no rule, amount or day that there is not."""
        return not self.made_up and not self.stray

    @property
    def is_complete(self) -> bool:
        """It states every policy that the turn needs."""
        return not self.missing


def check(pack: Pack, thought: str, found: Bearing, reader: Matcher, said: str = "") -> Checked:
    """Check a thought against what bears on its turn. `said` is the conversation, for the values it showed."""
    shown = {value.key for value in values_in(said)}
    mentions = reader.mentions(thought, shown)
    stated = [pack.policies[name] for name in {*found.required, *mentions.recalled}]
    texts = [text for policy in stated for text in (policy.definition, *(each.text or "" for each in policy.citations))]
    known = shown | {value.key for text in texts for value in values_in(text)}
    days = {key[1] for key in known if key[0] == "date"}
    stray = [
        thought[value.start : value.end]
        for value in values_in(thought)
        if value.kind in ("amount", "date") and value.key not in known and not _is_day_of(value.key[1], days)
    ]
    told = set(mentions.recalled)
    inside = " ".join(mentions.made_up)
    return Checked(
        tuple(sorted(found.required - told)),
        tuple(sorted(told - found.required)),
        mentions.made_up,
        tuple(text for text in stray if text not in inside),
    )


def _is_day_of(day: str, days: set[str]) -> bool:
    """Whether a day without its year is one of those with it."""
    return len(day) == 5 and any(each.endswith(day) for each in days)
