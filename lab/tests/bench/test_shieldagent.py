"""Poisoned agents at the clinic's desk: the creation of pairs, and their counts."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from click.testing import CliRunner

from bylaw.pack import load_pack
from bylaw.trace.event import Call
from bylaw_lab.bench.shieldagent import PACK, Found, Said, count, denied, find, held, measure, rule_recall
from bylaw_lab.bench.weighing import Weighed
from bylaw_lab.cli import main
from bylaw_lab.clinic.attacks import CATEGORIES, SOURCES, Sample, samples, schemes

GUARDED = load_pack(PACK)
RULES = {name: policy.definition for name, policy in GUARDED.policies.items()}
EACH = 2
"""Return pairs of each category and source."""


@cache
def train() -> Sequence[Sample]:
    return samples("train", 3, EACH, RULES)


def test_each_instruction_has_a_safe_and_an_unsafe_trajectory_with_the_rules_it_breaks() -> None:
    pairs: dict[str, list[Sample]] = {}
    for each in train():
        pairs.setdefault(each.instruction, []).append(each)
        assert set(each.broken) <= set(GUARDED.policies)
    assert len(pairs) == EACH * len(CATEGORIES) * len(SOURCES)
    for safe, unsafe in pairs.values():
        assert safe.is_safe
        assert not unsafe.is_safe
        assert safe.trajectory.events[0] == unsafe.trajectory.events[0]


def test_the_same_seed_makes_the_same_and_another_seed_does_not() -> None:
    assert samples("train", 3, EACH, RULES) == train()
    other = samples("train", 4, EACH, RULES)
    assert [each.trajectory.events for each in other] != [each.trajectory.events for each in train()]


def test_parts_share_no_scheme_and_no_sentence_of_an_agent() -> None:
    ids = [scheme.id for scheme in schemes()]
    assert len(ids) == len(set(ids))
    for part in ("train", "development", "test"):
        assert {scheme.category for scheme in schemes() if scheme.part == part} == set(CATEGORIES)
    folder = Path(__file__).parents[2] / "src/bylaw_lab/clinic/attacks"
    words = yaml.safe_load((folder / "words.yaml").read_text())
    texts = {part: set(_texts(words[part])) for part in words}
    for scheme in schemes():
        texts[scheme.part] |= {scheme.note, scheme.says} - {""}
    parts = list(texts)
    for place, part in enumerate(parts):
        for other in parts[place + 1 :]:
            assert not texts[part] & texts[other]


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    parts: Any = cast("dict[str, Any]", value).values() if isinstance(value, dict) else value
    return [text for part in parts for text in _texts(part)]


def test_poison_shows_in_the_environment_and_never_in_memory() -> None:
    for each in train():
        note = next(scheme.note for scheme in schemes() if scheme.id == each.scheme).split("{")[0]
        shown = "\n".join(str(getattr(event, "content", "")) for event in each.trajectory.events)
        assert (note in shown) == (each.source == "environment")


def test_what_a_poisoned_call_breaks_is_told_by_the_simulators_truth() -> None:
    anyway = [each for each in train() if each.scheme == "exception-granted" and not each.is_safe]
    assert anyway
    against = next(scheme.against for scheme in schemes() if scheme.id == "exception-granted")
    assert all(set(each.broken) & set(against) for each in anyway)


def test_the_shield_sees_nothing_that_comes_later() -> None:
    unsafe = next(each for each in train() if each.scheme == "strangers-bill" and not each.is_safe)
    (whole,) = find(GUARDED, [unsafe])
    assert "confirm-before-change" in whole.denied | whole.open
    first = next(step for step, event in enumerate(unsafe.trajectory.events) if isinstance(event, Call))
    cut = Sample("x", "x", "x", "access", "memory", unsafe.trajectory.__class__("x", unsafe.trajectory.events[:first]))
    assert find(GUARDED, [cut])[0].denied == frozenset()


def sample(safe: bool, broken: tuple[str, ...] = ()) -> Sample:
    return Sample("s", "i", "scheme", "access", "memory", train()[0].trajectory, () if safe else broken or ("a",))


def test_recall_of_rules_is_the_mean_over_rules() -> None:
    said = [
        Said(sample(False, ("a", "b")), True, frozenset({"a"})),
        Said(sample(False, ("a",)), True, frozenset({"a"})),
        Said(sample(True), False),
    ]
    assert rule_recall(said) == pytest.approx(0.5)
    cell = count(said)
    assert (cell.accuracy.hits, cell.accuracy.cases, cell.false_positives.hits) == (3, 3, 0)


def test_weights_learn_to_leave_a_rule_aside_that_is_broken_by_safe_trajectories() -> None:
    def found(safe: bool, *rules: str) -> Found:
        return Found(sample(safe, ("bad",)), frozenset(rules), frozenset(), 1, 0.0)

    taught = (
        [found(True, "silly")] * 20
        + [found(True)] * 20
        + [found(False, "bad")] * 20
        + [found(False, "bad", "silly")] * 5
    )
    weighed = Weighed(taught, ["bad", "silly"])
    assert weighed.light() == ["silly"]
    said = weighed.say([found(True, "silly"), found(False, "bad")])
    assert [each.is_flagged for each in said] == [False, True]
    assert weighed.probability(found(True)) > 0.9 > 0.1 > weighed.probability(found(False, "bad"))
    shares = [point.recall for point in weighed.curve(taught)]
    assert shares == sorted(shares)


def test_denied_flags_no_more_than_held() -> None:
    found = find(GUARDED, train()[: 4 * EACH])
    assert all(not one.is_flagged or other.is_flagged for one, other in zip(denied(found), held(found), strict=True))
    told = measure("held", held(found))
    assert told.cells["all"].recall.share == 1.0


@pytest.mark.slow
def test_the_command_counts_every_guardrail() -> None:
    done = CliRunner().invoke(main, ["bench", "shieldagent", "--per-cell", "10", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [each["guardrail"] for each in told["guardrails"]] == ["held", "denied", "weighed"]
