"""Verified thoughts: what an agent should think at a turn, written from the findings of the guards without a model.

A thought states policies in the words of the pack, and facts as the tools showed them. Its conclusion is that of the
guards. The wording varies with the seed. Policies are described in words, never named by id.
"""

import random
import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import yaml
from msgspec import Struct

from bylaw.align.turn_evidence import Purpose, SeenFact, TargetWrite, TurnEvidence, find_evidence, value_arguments
from bylaw.facts.entity import ABSENT, Fact, Field, listed
from bylaw.pack import Pack
from bylaw.policy.statement import Policy
from bylaw.policy.tool import Tool
from bylaw.policy.verb import words_of
from bylaw.policy.yaml import LOADER
from bylaw.rule.monitor import TurnSpan
from bylaw.trace.event import Call, Event, Result

_LONGEST_WISH = 12
_LONGEST_WORDING = 22


def wish(tool: Tool | None, name: str) -> str:
    """Return the effect of a write as a phrase that begins with `to`."""
    said = re.split(r"[.,;:(]", tool.description if tool is not None else "")[0].strip()
    if said and len(said.split()) <= _LONGEST_WISH:
        return said[0].lower() + said[1:]
    return " ".join(words_of(name))


def wordings(policy: Policy) -> list[str]:
    """Return the wordings of a policy: its definition and, if short enough, its cited sentence."""
    cited = [each.text.strip() for each in policy.citations if each.text]
    short = [text for text in cited if len(text.split()) <= _LONGEST_WORDING and not re.search(r"[.:;] \S", text)]
    return list(dict.fromkeys([policy.definition, *(short if len(policy.citations) == 1 else ())]))


def stated(policy: Policy, rng: random.Random, names: frozenset[str], *, shortest: bool = False) -> str:
    """Return one wording of a policy, for use inside a longer sentence."""
    ways = wordings(policy)
    drawn = rng.choice(ways)
    return inner(min(ways, key=len) if shortest else drawn, names)


def inner(sentence: str, names: frozenset[str]) -> str:
    """Return a sentence for use in a list: without its full stop, semicolons and first capital letter (unless it
    belongs to a name).
    """
    sentence = sentence.strip().removesuffix(".").replace(";", ",")
    first = re.match(r"\w+", sentence)
    if first is None or first[0] in names or (not first[0][1:].islower() and len(first[0]) > 1):
        return sentence
    return sentence[0].lower() + sentence[1:]


def names_in(pack: Pack) -> frozenset[str]:
    """Return the words in the document and the definitions that have a capital letter inside a sentence."""
    texts = [policy.definition for policy in pack.policies.values()]
    texts += [each.text for policy in pack.policies.values() for each in policy.citations if each.text]
    return frozenset(found for text in texts for found in re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", text))


def label(name: str) -> str:
    """Return the name of a field as English words, without "id"."""
    return " ".join(words_of(name.removesuffix("_id")))


def value_in_words(field: Field, value: Any) -> str:
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


def seen_in_words(facts: Iterable[SeenFact]) -> list[str]:
    """Describe facts that the agent has seen, grouped by entity, such as `slot: status open, kind telehealth`."""
    things: dict[tuple[str, Any], list[str]] = {}
    for item in facts:
        if item.field.private:
            continue
        thing = things.setdefault((item.fact.entity, item.fact.key), [])
        if item.value is ABSENT or (item.fact.field == "exists" and item.value is False):
            thing[:] = ["not there"]
        elif item.fact.field != "exists":
            colon = ":" if isinstance(item.value, bool) else ""
            held = f" ({'; '.join(item.notes)})" if item.notes else ""
            thing.append(f"{label(item.fact.field)}{colon} {value_in_words(item.field, item.value)}{held}")
    return [f"{label(entity)} {', '.join(said)}" for (entity, _), said in things.items() if said]


def missing_in_words(facts: Iterable[Fact]) -> list[str]:
    """Describe facts that the agent has not seen, such as `the slot's status and kind`."""
    things: dict[str, dict[str, None]] = {}
    for fact in facts:
        things.setdefault(fact.entity, {})[label(fact.field)] = None
    return [
        f"the {label(entity)}" if "exists" in fields else f"the {label(entity)}'s {listed(list(fields))}"
        for entity, fields in things.items()
    ]


SOFT = 100
"""The target length of a thought in words, without calculations."""
SENTENCES: dict[str, list[str]] = yaml.load(
    (Path(__file__).parent / "sentences.yaml").read_text(encoding="utf-8"), LOADER
)
"""Templates for verified thoughts, by purpose."""
_WORKING = re.compile(r" \([^()]*\)")


class Thought(Struct, frozen=True):
    """A verified thought and its evidence."""

    text: str
    """The text without `<think>` tags. Empty if no true thought leads to this turn."""
    evidence: TurnEvidence

    @property
    def required(self) -> frozenset[str]:
        """The policies that the turn needs (the paper's set A)."""
        return self.evidence.required


def think(
    pack: Pack,
    events: Sequence[Event],
    span: TurnSpan,
    target: TargetWrite | None,
    *,
    seed: int | str,
    purpose: Purpose | None = None,
) -> Thought:
    """Return the verified thought for the turn at `span` and the write that the turn works towards.

    The latest facts are always included, because the conclusion depends on them. Other parts of a long thought are
    shortened. There is no thought for a write that was not permitted or that the user did not confirm.
    """
    found = find_evidence(pack, events, span, target, purpose)
    before, turn = events[: span.start], events[span.start : span.end]
    if found.purpose == "write" and found.target is not None and not found.is_settled:
        return Thought("", found)
    text, names = "", names_in(pack)
    for brevity in range(4):
        text = _Composer(pack, found, before, turn, random.Random(f"{seed}/{span.start}"), brevity, names).text()
        if len(_WORKING.sub("", text).split()) <= SOFT:
            break
    return Thought(text, found)


class _Composer(Struct):
    pack: Pack
    found: TurnEvidence
    before: Sequence[Event]
    turn: Sequence[Event]
    rng: random.Random
    brevity: int
    """How much to shorten the thought: 1 leaves out the wish, 2 also leaves out the missing facts, and 3 also uses the
    shortest wording of each policy.
    """
    names: frozenset[str]

    def text(self) -> str:
        parts = [*self._wish(), *self._news(), *self._policies(), self._then()]
        return " ".join(part for part in parts if part)

    def _draw(self, kind: str) -> str:
        return self.rng.choice(SENTENCES[kind])

    def _wish(self) -> list[str]:
        target = self.found.target
        # Always draw this wording, so that the random choice of the other wordings does not depend on the length.
        drawn = self._draw("wish"), self.rng.random()
        has_begun = any(isinstance(event, Result) for event in self.before)
        if target is None or self.found.purpose == "other" or self.brevity or (has_begun and drawn[1] < 0.5):
            return []
        return [drawn[0].format(wish=wish(self.pack.schema.tools.get(target.call.tool), target.call.tool))]

    def _news(self) -> list[str]:
        said = self._draw("news"), self._draw("fine")
        found = self.found
        recap = found.value_facts if found.purpose == "announce" else ()
        seen = [*(item for item in recap if item not in found.newly_seen), *found.newly_seen]
        facts = [*seen_in_words(seen), *(note.text() for note in found.claims)]
        if not facts or self.found.purpose == "other":
            return []
        fine = [] if self.found.denials else [said[1]]
        return [said[0].format(facts="; ".join(facts)), *fine]

    def _policies(self) -> list[str]:
        policies = list(self.found.policies)
        self.rng.shuffle(policies)
        words = [stated(policy, self.rng, self.names, shortest=self.brevity > 2) for policy in policies]
        if not words:
            return []
        if len(words) == 1:
            return [self._draw("one").format(policy=words[0])]
        return [self._draw("many").format(policies="; ".join(words))]

    def _then(self) -> str:
        found = self.found
        match found.purpose:
            case "look_up":
                facts = missing_in_words(found.lacking)
                if facts and self.brevity > 1:
                    return "I look that up."
                return self._draw("missing").format(facts=listed(facts)) if facts else self._draw("find")
            case "ask":
                return self._draw("ask").format(questions=" ".join(found.questions))
            case "announce":
                values = self._values(found.target.call) if found.target and found.value_facts else ""
                return f"{f'That comes to {values}. ' if values else ''}{self._draw('announce')}"
            case "refuse":
                reasons = listed([inner(reason, self.names) for reason in found.denials])
                return self._draw("refuse").format(reasons=reasons) if reasons else self._draw("other")
            case "write":
                call = next((event for event in self.turn if isinstance(event, Call)), None)
                values = self._values(call) if call is not None else ""
                return self._draw("write").format(values=f" with {values}" if values else "")
            case "other":
                return self._reply()

    def _values(self, call: Call) -> str:
        names = value_arguments(self.pack, call.tool)
        return listed(
            [
                f"{name.replace('_', ' ')} {value}"
                for name, value in call.arguments.items()
                if name in names and not isinstance(value, dict | list)
            ]
        )

    def _reply(self) -> str:
        last = next((event for event in reversed(self.before) if isinstance(event, Result)), None)
        if last is not None and self.before[-1] is last and last.call is not None:
            tool = self.pack.schema.tools.get(last.tool or self._called(last.call))
            if tool is not None and tool.effect == "write":
                refused = "error" in str(last.value()).lower()[:200]
                return self._draw("failed" if refused else "done")
        return self._draw("other")

    def _called(self, step: int) -> str:
        call = self.before[step] if step < len(self.before) else None
        return call.tool if isinstance(call, Call) else ""
