"""Weights from labels, and what the paper's loss does beside it."""

import math
import random
from functools import partial

import pytest

from bylaw.errors import CircuitError
from bylaw.rule.learning import (
    LabelledAct,
    LabelledActs,
    accuracy,
    learn,
    minimise,
    threshold_for,
    worst_leans,
    z,
)
from bylaw.rule.rule import threshold_of


def random_examples(rng: random.Random, count: int, size: int) -> list[LabelledAct]:
    return [
        LabelledAct(tuple(float(rng.choice([-1, 0, 0, 0.5, 1])) for _ in range(size)), rng.random() < 0.5)
        for _ in range(count)
    ]


def slope(function, point, i, step=1e-6):
    ends = []
    for sign in (1, -1):
        moved = list(point)
        moved[i] += sign * step
        ends.append(function(moved))
    return (ends[0] - ends[1]) / (2 * step)


def hinge(batch: LabelledActs, point) -> float:
    return batch.hinge(point[:-1], point[-1], 0.01)[0]


def paper(batch: LabelledActs, point) -> float:
    return batch.paper(point)[0]


def test_gradients_equal_finite_differences():
    rng = random.Random(1)
    for _ in range(40):
        batch = LabelledActs(random_examples(rng, 12, 4))
        point = [rng.uniform(0, 2) for _ in range(5)]
        _, gradient, by_threshold = batch.hinge(point[:-1], point[-1], 0.01)
        for i, found in enumerate([*gradient, by_threshold]):
            assert found == pytest.approx(slope(partial(hinge, batch), point, i), abs=1e-6)
        _, gradient = batch.paper(point[:-1])
        for i, found in enumerate(gradient):
            assert found == pytest.approx(slope(partial(paper, batch), point[:-1], i), abs=1e-6)


def test_the_minimum_is_stationary_and_weights_are_never_negative():
    rng = random.Random(2)
    examples = random_examples(rng, 200, 6)
    theta, threshold = minimise(LabelledActs(examples), 6, 0.01)
    _, gradient, by_threshold = LabelledActs(examples).hinge(theta, threshold, 0.01)
    assert abs(by_threshold) < 1e-5
    for weight, each in zip(theta, gradient, strict=True):
        assert weight >= 0
        assert abs(each) < 1e-5 if weight > 0 else each > -1e-5


def test_weight_zero_minimises_the_papers_loss_and_prohibitions_never_give_a_positive_margin():
    rng = random.Random(4)
    examples = [
        LabelledAct(tuple(float(rng.choice([-1, 0])) for _ in range(5)), rng.random() < 0.5) for _ in range(100)
    ]
    batch = LabelledActs(examples)
    assert batch.paper([0.0] * 5)[0] == 0.0
    _, gradient = batch.paper([1.0] * 5)
    assert all(each >= 0 for each in gradient), "every step pulls weights down"


def synthetic(rng: random.Random, count: int, *, true: int = 12, wrong: int = 3, noise: float = 0.05):
    """Trajectories that break each true rule now and then, and each wrong rule often, which is no harm."""
    examples, clean = [], []
    for _ in range(count):
        broken = [rng.random() < 0.05 for _ in range(true)]
        odd = [rng.random() < 0.3 for _ in range(wrong)]
        differences = tuple(-float(each) for each in broken + odd)
        clean.append(LabelledAct(differences, not any(broken)))
        examples.append(LabelledAct(differences, (not any(broken)) != (rng.random() < noise)))
    return examples, clean


def test_learned_weights_come_within_a_point_of_the_true_rules_despite_noise_and_wrong_rules():
    rng = random.Random(5)
    names = [f"true{i}" for i in range(12)] + [f"wrong{i}" for i in range(3)]
    examples, _ = synthetic(rng, 2000)
    _, held_out = synthetic(rng, 2000)
    learned = learn(examples, names)
    reached = accuracy(held_out, [learned.weights[n] for n in names], learned.threshold)
    assert reached >= 0.99
    everything = accuracy(held_out, [1.0] * 15)
    assert everything < 0.8, "the wrong rules must hurt where they are believed"
    paper = learn(examples, names, loss="paper")
    assert accuracy(held_out, [paper.weights[n] for n in names]) <= reached


def test_a_rule_no_example_speaks_of_keeps_a_weight_that_denies():
    examples = [LabelledAct((-1.0, 0.0), False), LabelledAct((0.0, 0.0), True)] * 10
    learned = learn(examples, ["seen", "unseen"])
    assert learned.untouched == ("unseen",)
    assert -learned.weights["unseen"] < learned.threshold


def test_a_rule_that_is_only_broken_along_with_another_keeps_a_weight_that_denies():
    examples = [LabelledAct((-1.0, -1.0), False), LabelledAct((-1.0, 0.0), False), LabelledAct((0.0, 0.0), True)] * 10
    learned = learn(examples, ["plain", "along"])
    assert -learned.weights["along"] < learned.threshold


def test_a_rule_that_safe_calls_break_is_silenced_even_where_others_are_broken_too():
    examples = [LabelledAct((-1.0, -1.0), True), LabelledAct((-1.0, 0.0), True), LabelledAct((0.0, 0.0), True)] * 10
    learned = learn(examples, ["plain", "along"])
    assert -learned.weights["plain"] >= learned.threshold
    assert -learned.weights["plain"] - learned.weights["along"] >= learned.threshold


def test_a_trajectory_is_as_bad_as_its_worst_act_rule_by_rule():
    assert worst_leans([(0, -1, 0), (1, 0, 0)]) == (0, -1, 0)


def test_examples_must_fit_the_rules():
    with pytest.raises(CircuitError):
        learn([LabelledAct((1.0,), True)], ["a", "b"])


def test_a_threshold_for_false_alarms_holds_up_no_more_safe_acts_than_wanted():
    rng = random.Random(6)
    examples = [
        LabelledAct((rng.choice([-1.0, 0.0]), rng.choice([-1.0, 0.0, 0.5])), rng.random() < 0.7) for _ in range(500)
    ]
    weights = [0.7, 1.9]
    passing = sorted(z(each, weights) for each in examples if each.safe)
    for wanted in (0.0, 0.01, 0.05, 0.2):
        threshold = threshold_for(examples, weights, wanted)
        assert sum(each < threshold for each in passing) / len(passing) <= wanted
        stricter = next((each for each in passing if each > threshold), None)
        if stricter is not None:
            assert sum(each < stricter for each in passing) / len(passing) > wanted
    assert threshold_of(math.tanh(0.3)) == pytest.approx(0.6)
