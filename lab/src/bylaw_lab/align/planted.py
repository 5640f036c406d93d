"""Thoughts made worse on purpose, for the arm that learns from thoughts nobody filtered.

A share of the turns omits a policy it needs, states one that has nothing to do with it, or gets a policy wrong. Real
unfiltered thoughts go wrong in more ways; this is not the paper's arm (its Table 4) but a stand-in of known strength.
"""

import random
import re
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from bylaw.align.lesson import Lesson, LessonSeries
from bylaw.align.thought import compose
from bylaw.pack import Pack
from bylaw.policy.statement import Policy
from bylaw.trace.event import Call, Message

Share = Annotated[float, Meta(ge=0, le=1)]

_NUMBER = re.compile(r"\d+(?:\.\d\d)?")
_INVENTED = (
    "every request needs a manager's approval when it is above ${number}.00",
    "a caller may make at most {number} requests a day",
    "a signed form must be handed in {number} days in advance",
    "a deposit of ${number}.00 must be paid before anything is changed",
    "nothing may be changed within {number} days of the last change",
)
"""Rules that no pack has."""


class Faults(Struct, frozen=True, forbid_unknown_fields=True):
    """Shares of the turns that state policies."""

    omission: Share = 0.0
    invention: Share = 0.0
    irrelevancy: Share = 0.0


def plant(pack: Pack, talk: LessonSeries, faults: Faults, *, seed: int = 0) -> LessonSeries:
    """A conversation with faults in its thoughts; what it does stays right."""
    rng = random.Random(f"{seed}/{talk.id}")
    return replace(talk, lessons=tuple(_planted(pack, talk, lesson, faults, rng) for lesson in talk.lessons))


def _planted(pack: Pack, talk: LessonSeries, lesson: Lesson, faults: Faults, rng: random.Random) -> Lesson:
    policies = list(lesson.bearing.policies)
    if not policies:
        return lesson
    if rng.random() < faults.omission:
        policies.remove(rng.choice(policies))
    if policies and rng.random() < faults.invention:
        place = rng.randrange(len(policies))
        policies[place] = distort(policies[place], rng)
    if rng.random() < faults.irrelevancy:
        others = [policy for policy in pack.policies.values() if policy.kind == "guard" and policy not in policies]
        policies.insert(rng.randrange(len(policies) + 1), rng.choice(others))
    if policies == list(lesson.bearing.policies):
        return lesson
    found = replace(lesson.bearing, policies=tuple(policies))
    act = Call(*lesson.call) if lesson.call is not None else Message("agent", lesson.answer)
    thought = compose(pack, found, lesson.before, (act,), seed=f"{talk.id}/{lesson.turn}")
    return replace(lesson, thought=thought)


def distort(policy: Policy, rng: random.Random) -> Policy:
    """A policy with a wrong value in it, or, where it has none, a rule that there is not."""
    text = policy.definition
    if numbers := list(_NUMBER.finditer(text)):
        match = rng.choice(numbers)
        text = text[: match.start()] + other_number(match[0], rng) + text[match.end() :]
    else:
        text = rng.choice(_INVENTED).format(number=rng.randint(2, 19))
    return replace(policy, definition=text, citations=())


def other_number(number: str, rng: random.Random) -> str:
    """Another number of the same shape."""
    value = float(number)
    wrong = value
    while wrong == value:
        wrong = max(0, round(value * rng.choice((0.5, 0.75, 1.5, 2, 3))) + rng.choice((0, 1, 5)))
    return f"{wrong:.2f}" if "." in number else str(int(wrong))
