"""Learns rule weights from labelled acts, with a convex hinge loss on the margin or the paper's loss.

In an example, each rule gives -1 (against the act), 1 (for the act) or 0. z is the weighted sum, and an act passes if z
reaches the learned threshold. The default loss wants each act to be at least 1 away from the threshold, on the correct
side. It is smooth near that distance and linear on the wrong side, to limit the effect of a wrong label. Weights are at
least 0 and have an L2 penalty.

The paper's loss (ShieldAgent, Eq. 6) is max(0, -y tanh(z/2)). It is lowest when all weights are 0. If all rules are
prohibitions, safe acts can only reduce weights.
"""

import math
import random
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from bylaw.errors import CircuitError
from bylaw.rule.rule import denying_weight

Loss = Literal["hinge", "paper"]


class LabelledAct(msgspec.Struct, frozen=True):
    """The results of the rules for one act or conversation, and its label."""

    leans: tuple[float, ...]
    safe: bool


class Learned(msgspec.Struct, frozen=True, kw_only=True):
    """The weight of each rule, and the threshold learned with the weights."""

    weights: dict[str, float]
    threshold: float
    untouched: tuple[str, ...] = ()
    """Rules without an example. Each of them still denies a call on its own, because the lack of examples proves
    nothing.
    """

    @property
    def eps(self) -> float:
        """The threshold, expressed as a margin."""
        return math.tanh(self.threshold / 2)


def learn(
    examples: Sequence[LabelledAct], rules: Sequence[str], *, loss: Loss = "hinge", l2: float = 1e-4, seed: int = 0
) -> Learned:
    """Learn weights for `rules`. Each example has one entry per rule, in the same order."""
    if not examples or any(len(each.leans) != len(rules) for each in examples):
        raise CircuitError("there is nothing to learn from", hint="each example needs one number per rule")
    threshold = 0.0
    if loss == "paper":
        theta = descend_paper(examples, len(rules), seed=seed)
    else:
        theta, threshold = minimise(LabelledActs(examples), len(rules), l2)
    untouched = [i for i in range(len(rules)) if not any(each.leans[i] for each in examples)]
    if loss == "hinge":
        _raise_unspoken(examples, theta, threshold)
    weights = {name: round(weight, 6) for name, weight in zip(rules, theta, strict=True)}
    return Learned(weights=weights, threshold=round(threshold, 6), untouched=tuple(rules[i] for i in untouched))


def _raise_unspoken(examples: Sequence[LabelledAct], theta: list[float], threshold: float) -> None:
    """Raise weights until each rule denies a call on its own, unless the labels contradict this.

    The loss gives little weight to a rule that is never broken, or that is broken only together with other rules,
    although such a rule may be important. A weight is raised only if this does not reduce the number of correctly
    classified examples.
    """
    for place, weight in enumerate(theta):
        is_alone = any(each.leans[place] and sum(map(bool, each.leans)) == 1 for each in examples)
        if weight <= max(-threshold, 0.0) and not is_alone:
            raised = [*theta[:place], denying_weight(threshold), *theta[place + 1 :]]
            if accuracy(examples, raised, threshold) >= accuracy(examples, theta, threshold):
                theta[:] = raised


class LabelledActs:
    """Examples without duplicates, and both loss functions with their gradients."""

    def __init__(self, examples: Iterable[LabelledAct]) -> None:
        counts: dict[LabelledAct, int] = {}
        for each in examples:
            counts[each] = counts.get(each, 0) + 1
        size = sum(counts.values())
        self.rows = [
            (
                [(i, d) for i, d in enumerate(each.leans) if d],
                1.0 if each.safe else -1.0,
                count / size,
            )
            for each, count in counts.items()
        ]

    def hinge(self, theta: Sequence[float], threshold: float, l2: float) -> tuple[float, list[float], float]:
        """Return the default loss, its gradient for the weights, and its slope for the threshold."""
        value = l2 / 2 * math.fsum(t * t for t in theta)
        gradient = [l2 * t for t in theta]
        slope = 0.0
        for row, label, share in self.rows:
            distance = label * (sum(d * theta[i] for i, d in row) - threshold)
            if distance >= 1.0:
                continue
            short = 1.0 - distance
            value += share * (short * short / 2 if distance > 0.0 else short - 0.5)
            push = share * label * min(short, 1.0)
            slope += push
            for i, d in row:
                gradient[i] -= push * d
        return value, gradient, slope

    def paper(self, theta: Sequence[float]) -> tuple[float, list[float]]:
        """Return the loss of Eq. 6 and its gradient."""
        value = 0.0
        gradient = [0.0] * len(theta)
        for row, label, share in self.rows:
            margin = math.tanh(sum(d * theta[i] for i, d in row) / 2)
            if label * margin < 0.0:
                value -= share * label * margin
                for i, d in row:
                    gradient[i] -= share * label * (1.0 - margin * margin) / 2 * d
        return value, gradient


def accuracy(examples: Sequence[LabelledAct], theta: Sequence[float], threshold: float = 0.0) -> float:
    """Return the share of examples on the correct side of the threshold, ignoring rounding errors."""
    right = sum((z(each, theta) >= threshold - 1e-9) == each.safe for each in examples)
    return right / len(examples)


def z(example: LabelledAct, theta: Sequence[float]) -> float:
    return math.fsum(lean * weight for lean, weight in zip(example.leans, theta, strict=True))


def threshold_for(examples: Sequence[LabelledAct], theta: Sequence[float], false_alarms: float) -> float:
    """Return the strictest threshold that stops at most this share of the safe examples."""
    passing = sorted(z(each, theta) for each in examples if each.safe)
    # Without the small number, a rounding error could turn 0.05 * 20 = 1 into 0.
    return passing[min(int(false_alarms * len(passing) + 1e-9), len(passing) - 1)] if passing else 0.0


def minimise(batch: LabelledActs, size: int, l2: float, *, rounds: int = 4000) -> tuple[list[float], float]:
    """Return the weights and threshold with the lowest loss. Uses accelerated projected gradient descent with restarts.

    The step size comes from a bound on the curvature.
    """
    curvature = l2 + sum(share * (1.0 + sum(d * d for _, d in row)) for row, _, share in batch.rows)
    point = [0.0] * (size + 1)
    ahead = list(point)
    speed = 1.0
    for _ in range(rounds):
        _, gradient, slope = batch.hinge(ahead[:-1], ahead[-1], l2)
        after = [max(0.0, x - g / curvature) for x, g in zip(ahead[:-1], gradient, strict=True)]
        after.append(ahead[-1] - slope / curvature)
        moved = [new - old for new, old in zip(after, point, strict=True)]
        if math.fsum((x - y) * m for x, y, m in zip(ahead, after, moved, strict=True)) > 0.0:
            speed = 1.0
        faster = (1.0 + math.sqrt(1.0 + 4.0 * speed * speed)) / 2
        ahead = [new + (speed - 1.0) / faster * m for new, m in zip(after, moved, strict=True)]
        ahead = [max(0.0, x) for x in ahead[:-1]] + ahead[-1:]
        point, speed = after, faster
        if max(map(abs, moved)) < 1e-10:
            break
    return point[:-1], point[-1]


def descend_paper(
    examples: Sequence[LabelledAct], size: int, *, epochs: int = 30, rate: float = 0.1, seed: int = 0
) -> list[float]:
    """Train with the paper's Algorithm 3, lines 26 to 37: random initial weights, one step per example and epoch."""
    rng = random.Random(seed)
    theta = [rng.random() for _ in range(size)]
    steps = [LabelledActs([each]) for each in examples]
    for _ in range(epochs):
        for step in steps:
            value, gradient = step.paper(theta)
            if value:
                theta = [t - rate * g for t, g in zip(theta, gradient, strict=True)]
    return theta


def worst_leans(acts: Iterable[Sequence[float]]) -> tuple[float, ...]:
    """Combine the acts of a trajectory into one example, in which each rule has its lowest value."""
    return tuple(min(column) for column in zip(*acts, strict=True))
