"""The matcher finds the policies that a thought states with their values right, and the rules that it makes up."""

import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bylaw import load_pack, read
from bylaw.align.matcher import Matcher
from bylaw.align.slot import values_in
from bylaw.align.thought import think
from bylaw.align.turn_evidence import next_write
from bylaw.rule.monitor import turns
from bylaw.trace import Trajectory
from bylaw_lab.clinic.simulator.generate import simulated
from tests.engine import clinic
from tests.written import load

PACK = clinic.pack()
MATCHER = Matcher(PACK)
BANK: dict[str, list[str]] = load(Path(__file__).parent / "matcher" / "paraphrases.yaml")
FALSE: dict[str, list[str]] = load(Path(__file__).parent / "matcher" / "false.yaml")
STATED = [policy for policy in PACK.policies.values() if policy.kind != "knowledge"]


@pytest.mark.parametrize("policy", STATED, ids=lambda policy: policy.id)
def test_a_definition_states_its_own_policy(policy: Any) -> None:
    found = MATCHER.mentions(policy.definition)
    assert (found.recalled, found.made_up) == ({policy.id}, ())


@pytest.mark.parametrize("policy", [p for p in STATED if "$" in p.definition], ids=lambda policy: policy.id)
def test_any_amount_made_wrong_is_made_up(policy: Any) -> None:
    for spot in re.finditer(r"\$(\d+)", policy.definition):
        wrong = f"{policy.definition[: spot.start(1)]}{int(spot[1]) + 7}{policy.definition[spot.end(1) :]}"
        found = MATCHER.mentions(wrong)
        assert policy.id not in found.recalled
        assert len(found.made_up) == 1, wrong


def test_two_values_that_change_places_are_made_up() -> None:
    right = "A visit's copay is $0.00 for Gold, $15.00 for Silver, $30.00 for Standard."
    assert MATCHER.mentions(right).recalled == {"visit-copay"}
    swapped = "A visit's copay is $15.00 for Gold, $0.00 for Silver, $30.00 for Standard."
    assert not MATCHER.mentions(swapped).recalled
    assert MATCHER.mentions("Telehealth slots are booked at least 4 hours ahead, in-person slots 1 hour.").made_up


def test_verified_thoughts_state_just_what_their_turn_needs() -> None:
    count = wanted = 0
    for made in simulated(21, 20):
        events = made.trajectory.events
        for span in turns(events):
            thought = think(PACK, events, span, next_write(PACK, events, span.start), seed=count)
            if not thought.text:
                continue
            found = MATCHER.mentions(thought.text)
            assert found.recalled == thought.required, thought.text
            assert not found.made_up, thought.text
            count += 1
            wanted += len(thought.required)
    assert count > 60
    assert wanted > 120


def test_what_is_seen_wished_and_planned_is_no_rule() -> None:
    for text in (
        "I now see: patient status active, balance due $180.00, payment plan: no.",
        "The user wants me to book a visit with a family doctor into a slot.",
        "I have not seen the slot's status yet, so I look that up.",
        "But more than $150.00 is owed and there is no payment plan, so I turn this down and say why.",
        "The result says the status is active and the tier is Silver.",
    ):
        found = MATCHER.mentions(text)
        assert (found.recalled, found.made_up) == (frozenset(), ()), text


def test_most_paraphrases_are_known_and_most_inventions_are_seen() -> None:
    """The published figures are on labelled thoughts; this only keeps the matcher from getting worse."""
    good = [
        MATCHER.mentions(text).recalled == {policy} and not MATCHER.mentions(text).made_up
        for policy, texts in BANK.items()
        for text in texts
    ]
    seen = [
        len(MATCHER.mentions(text).made_up) == 1 and not MATCHER.mentions(text).recalled
        for texts in FALSE.values()
        for text in texts
    ]
    assert sum(good) >= 0.93 * len(good)
    assert sum(seen) >= 0.9 * len(seen)


def test_a_value_that_the_conversation_showed_is_not_taken_for_one_of_the_policy() -> None:
    text = "A patient who owes $180.00, which is more than $150.00, is booked only with a payment plan."
    assert not MATCHER.mentions(text).recalled
    assert MATCHER.mentions(text, known={("amount", "180")}).recalled == {"booking-balance"}


@pytest.mark.parametrize("policy", [p for p in STATED if values_in(p.definition)], ids=lambda policy: policy.id)
def test_a_wrong_value_of_a_policy_is_made_up_even_if_somebody_named_it(policy: Any) -> None:
    """Each number of a definition in turn becomes one that the caller may well have said."""
    tried = 0
    for value in values_in(policy.definition):
        spot = policy.definition[value.start : value.end]
        wrong = re.sub(r"\d+", "77", spot, count=1) if spot[-1].isdigit() and value.kind != "date" else "77"
        text = f"{policy.definition[: value.start]}{wrong}{policy.definition[value.end :]}"
        shown = {each.key for each in values_in(text)} | {("count", "77")}
        if value.kind == "date" or shown >= {each.key for each in values_in(policy.definition)}:
            continue
        found = MATCHER.mentions(text, known=shown)
        assert policy.id not in found.recalled, text
        assert found.made_up, text
        tried += 1
    assert tried or any(value.kind == "date" for value in values_in(policy.definition))


def test_a_limit_that_a_policy_does_not_set_is_made_up_even_if_somebody_named_it() -> None:
    known = {("amount", "77"), ("amount", "180")}
    for text in (
        "A patient who owes more than $77.00 is booked only with a payment plan.",
        "A patient who owes more than $150.00 is booked only with a payment plan, or at most $77.00.",
        "Only active patients who owe less than $77.00 are booked.",
    ):
        found = MATCHER.mentions(text, known)
        assert not found.recalled, text
        assert found.made_up, text


VALUES = [
    ("more than $150.00", [("amount", "150")]),
    ("40 dollars or $1,250.50", [("amount", "40"), ("amount", "1250.5")]),
    ("on or after 1 January 2010", [("date", "2010-01-01")]),
    ("March 12th, 2024", [("date", "2024-03-12")]),
    ("on 20 March", [("date", "03-20")]),
    ("at least 24 hours, or twenty-eight days", [("hour", "24"), ("day", "28")]),
    ("one hour and one of them", [("hour", "1")]),
    ("at 3:30 pm and 09:05", [("time", "15:30"), ("time", "09:05")]),
    ("slot S0011 of P12, clause 3.8", []),
    ("moved twice", [("count", "2")]),
]


@pytest.mark.parametrize(("text", "wanted"), VALUES)
def test_values_are_found_however_they_are_written(text: str, wanted: list[tuple[str, str]]) -> None:
    assert [value.key for value in values_in(text)] == wanted


@pytest.mark.shared
def test_another_pack_needs_no_words_of_its_own() -> None:
    """Verified thoughts of airline conversations, which nothing here was written for, state what their turns need."""
    file = Path(__file__).parents[3] / "shared/data/tau-airline/tau2/runs/gpt-4.1.json.gz"
    if not file.exists():
        pytest.skip("the recorded conversations are not here")
    pack = load_pack("tau-airline/tau2")
    matcher = Matcher(pack)
    count = same = 0
    for trajectory in islice((each for each in read(file) if isinstance(each, Trajectory)), 12):
        events = trajectory.events
        for span in turns(events):
            thought = think(pack, events, span, next_write(pack, events, span.start), seed=count)
            if not thought.text:
                continue
            found = matcher.mentions(thought.text)
            count += 1
            same += found.recalled == thought.required and not found.made_up
    assert count > 100
    # Two policies of the airline say the same of booked and of added bags.
    assert same >= 0.97 * count
