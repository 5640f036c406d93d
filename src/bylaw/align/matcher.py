"""Which policies a thought states, and which rules it makes up: found by likeness and values, without a model.

A thought is cut into clauses, and runs of clauses are compared with the pack's wordings of each policy: its
definition, the sentences it cites and the reasons its guard denies with. A run recalls the most similar policy if its
values, and the words by which that policy tells cases apart, are the policy's. Otherwise it is made up. So is an
announced rule that no policy resembles, and a statement with a value that has no source. Only a judge sees through
other rules that are made up or turned around (`grader.ModelJudge`).
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

from bylaw.align.bearing import Bearing
from bylaw.align.slot import Value, values_in
from bylaw.pack import Pack
from bylaw.policy.statement import Policy
from bylaw.policy.yaml import LOADER
from bylaw.text.stem import stems

ALIKE = 0.5
"""Likeness from which a run of clauses is about a policy."""
NEAR = 0.08
"""A policy that much less similar is preferred if the run states it correctly."""
KNOWLEDGE = 0.15
"""Subtracted for a policy that only explains how to read the others."""
LEAST, CUT = 0.3, 0.6
"""A statement is cut if its parts, taken alone, are more similar to policies than the whole, by weight of words."""
LONGEST_RUN = 8
FEWEST_WORDS = 3
"""Words that a cited sentence needs to stand for its policy."""
UNKNOWN = 0.55
"""Weight of a word that no policy uses, as a share of the heaviest."""
REMEMBERED = 20_000
"""Statements whose reading is cached: thoughts of one model repeat each other."""
SENTENCES: dict[str, list[str]] = yaml.load(
    (Path(__file__).parent / "sentences.yaml").read_text(encoding="utf-8"), LOADER
)
"""The templates of verified thoughts, by what they say."""


def _beginnings(kinds: Iterable[str]) -> re.Pattern[str]:
    """How sentences of these templates begin."""
    found = {text.partition("{")[0].strip() for kind in kinds for text in SENTENCES[kind]}
    return re.compile("|".join(re.escape(each) for each in sorted(found, key=len, reverse=True)))


_RULES = _beginnings(("one", "many"))
_OTHERS = _beginnings(SENTENCES.keys() - {"one", "many"})
_SENTENCES = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])|\n+")
_ITEMS = re.compile(r"[;:](?=\s)")
_CLAUSES = re.compile(r",\s+(?:and|but|or)\s+(?:that\s+)?|,\s+|\s+and\s+|\s+but\s+|\s+so\s+(?=\w)")
_VALUE_CLAUSES = re.compile(r",(?!\d)|;|:|\band\b|\bor\b|\belse\b|\bwith\b(?= \w+ or more)")


class Mentions(Struct, frozen=True):
    """The policies that a thought states (B), and the rules it makes up (C)."""

    recalled: frozenset[str]
    made_up: tuple[str, ...]


class _Statement(Struct, frozen=True):
    """A sentence of a thought, or an item of a list in it."""

    text: str
    sentence: int
    is_announced: bool
    """The thought announces policies here."""


class _Wordings(Struct, frozen=True):
    """The wordings of one policy, and the values and words in them."""

    policy: Policy
    ways: tuple[tuple[frozenset[str], float], ...]
    """The words of each wording, with their weight."""
    values: frozenset[tuple[str, str]]
    choices: frozenset[str]
    """The words by which its guard tells cases apart: enumeration words of the facts and arguments it reads."""
    pairs: Mapping[tuple[str, str], frozenset[str]]
    """Each value with the choices next to it: $15.00 with `silver`."""


class Matcher:
    """Reads thoughts under one pack."""

    def __init__(self, pack: Pack) -> None:
        texts = {name: _texts(pack, policy) for name, policy in pack.policies.items()}
        spread = Counter(word for said in texts.values() for word in {each for text in said for each in stems(text)})
        self._weights = {word: math.log(1 + len(texts) / times) for word, times in spread.items()}
        self._unknown = UNKNOWN * max(self._weights.values(), default=1.0)
        self._policies = [self._wordings(pack, pack.policies[name], said) for name, said in texts.items()]
        self._values = frozenset(key for each in self._policies for key in each.values)
        self._read = lru_cache(maxsize=REMEMBERED)(self._read_statement)

    def mentions(self, thought: str, known: Collection[tuple[str, str]] = ()) -> Mentions:
        """B and C of a thought. `known` are the values that the conversation showed: facts of the case have them."""
        right: set[tuple[int, str]] = set()
        wrong: set[tuple[int, str]] = set()
        made_up: list[str] = []
        for statement in _statements(thought):
            here = frozenset(value.key for value in values_in(statement.text) if value.key in known)
            for part, policy, is_right in self._read(statement, here):
                (right if is_right else wrong).add((statement.sentence, policy))
                if not is_right:
                    made_up.append(part)
        # A sentence that states a policy partly wrong does not state it correctly in the rest.
        return Mentions(frozenset(policy for _, policy in right - wrong), tuple(made_up))

    def _wordings(self, pack: Pack, policy: Policy, said: Sequence[str]) -> _Wordings:
        ways = [frozenset(stems(text)) for text in said]
        kept = [way for place, way in enumerate(ways) if way and (not place or len(way) >= FEWEST_WORDS)]
        choices = _choices(pack, policy)
        pairs: dict[tuple[str, str], set[str]] = {}
        for value, chosen in (pair for text in said for pair in _with_choices(text, choices)):
            pairs.setdefault(value.key, set()).update(chosen)
        return _Wordings(
            policy,
            tuple((way, self._weight(way)) for way in kept),
            frozenset(value.key for text in said for value in values_in(text)),
            choices,
            {key: frozenset(chosen) for key, chosen in pairs.items()},
        )

    def _weight(self, words: Iterable[str]) -> float:
        return sum(self._weights.get(word, self._unknown) for word in words)

    def _read_statement(self, said: _Statement, known: frozenset[tuple[str, str]]) -> list[tuple[str, str, bool]]:
        """The rules in a statement: the policy each is about, and whether it is stated correctly."""
        parts = self._parts(said.text)
        if not parts:
            stated = {value.key for value in values_in(said.text) if value.kind not in ("count", "time")}
            return [(said.text, "", False)] if said.is_announced or stated - known - self._values else []
        found: list[tuple[str, str, bool]] = []
        for part, entry in parts:
            if entry.policy.kind != "knowledge":
                ranked = self._ranked(part)
                near = (each for score, each in ranked if score >= ranked[0][0] - NEAR)
                ways = (each for each in near if each.policy.kind != "knowledge" and _is_right(part, each, known))
                meant = next(ways, None)
                found.append((part, (meant or entry).policy.id, meant is not None))
        return found

    def _parts(self, text: str) -> list[tuple[str, _Wordings]]:
        """The runs of clauses that are each about a policy, by the best way to cut the statement."""
        clauses = _ranges(_CLAUSES, text)
        best: list[tuple[float, list[tuple[str, _Wordings]]]] = [(0.0, [])]
        for end in range(1, len(clauses) + 1):
            ways: list[tuple[float, list[tuple[str, _Wordings]]]] = []
            for start in range(max(0, end - LONGEST_RUN), end):
                run = text[clauses[start][0] : clauses[end - 1][1]]
                before, parts = best[start]
                gain = -CUT
                if ranked := self._ranked(run):
                    gain += (ranked[0][0] - LEAST) * self._weight(set(stems(run)))
                    parts = [*parts, (run, ranked[0][1])]
                ways.append((before + gain, parts))
            best.append(max(ways, key=lambda way: way[0]))
        return best[-1][1]

    def _ranked(self, text: str) -> list[tuple[float, _Wordings]]:
        """The policies that a text is similar enough to, the most similar first."""
        mine = frozenset(stems(text))
        if len(mine) < 2:
            return []
        total = self._weight(mine)
        ranked: list[tuple[float, _Wordings]] = []
        for entry in self._policies:
            alike = max((2 * self._weight(mine & way) / (total + weight) for way, weight in entry.ways), default=0.0)
            alike -= KNOWLEDGE * (entry.policy.kind == "knowledge")
            if alike >= ALIKE:
                ranked.append((alike, entry))
        return sorted(ranked, key=lambda each: -each[0])


def _statements(thought: str) -> Iterator[_Statement]:
    """The sentences of a thought and the items of its lists, without what its templates say of the case."""
    for number, sentence in enumerate(_SENTENCES.split(thought)):
        head = _RULES.match(sentence)
        if head is None and _OTHERS.match(sentence):
            continue
        for item in _ITEMS.split(sentence[head.end() :] if head is not None else sentence):
            if text := item.strip(" ;:."):
                yield _Statement(text, number, head is not None)


def _is_right(text: str, entry: _Wordings, known: Collection[tuple[str, str]]) -> bool:
    """Whether the values that a text states, each with the choices next to it, are the policy's."""
    for value, chosen in _with_choices(text, entry.choices):
        kind, number = value.key
        # A number without its unit may be any of the policy's; no charge is $0.00.
        same = [each for each in entry.values if each == (kind, number)]
        same = same or [each for each in entry.values if each[1] == number and "count" in (kind, each[0])]
        if not same and (value.key not in known or _replaces(text, value, entry)):
            return False
        if same and chosen and all(entry.pairs.get(each) and not chosen & entry.pairs[each] for each in same):
            return False
    return True


def _replaces(text: str, value: Value, entry: _Wordings) -> bool:
    """Whether the policy has a value of this kind that the text leaves out, so that this one takes its place."""
    said = Counter(each.key for each in values_in(text))
    own = Counter(each.key for each in values_in(entry.policy.definition))
    return any(kind == value.kind or "count" in (kind, value.kind) for kind, _ in own - said)


def _chosen(text: str, choices: frozenset[str]) -> frozenset[str]:
    lower = text.lower().replace("-", " ")
    return frozenset(word for word in choices if re.search(rf"\b{re.escape(word)}(?:s|ly)?\b", lower))


def _with_choices(text: str, choices: frozenset[str]) -> Iterator[tuple[Value, frozenset[str]]]:
    """Each value of a text with the choices in its own clause, or else in the last clause that has any."""
    values = values_in(text)
    cuts = [match.start() for match in _VALUE_CLAUSES.finditer(text)]
    chosen: frozenset[str] = frozenset()
    for start, end in pairwise([0, *cuts, len(text)]):
        chosen = _chosen(text[start:end], choices) or chosen
        yield from ((value, chosen) for value in values if start <= value.start < end)


def _ranges(cut: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    cuts = [(match.start(), match.end()) for match in cut.finditer(text)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(text)]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if end > start]


def _choices(pack: Pack, policy: Policy) -> frozenset[str]:
    """The enumeration words of the facts and arguments that a policy's guard reads."""
    guard = pack.guards.get(policy.id)
    if guard is None:
        return frozenset()
    words = [
        value
        for entity in pack.schema.entities.values()
        for field in entity.fields.values()
        if f"{entity.name}.{field.name}" in guard.facts
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
