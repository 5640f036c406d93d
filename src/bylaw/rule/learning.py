"""Rule weights from labelled acts: a convex margin hinge with a learned threshold, and the paper's loss beside it.

An example is what each rule says of an act: -1 against, 1 for, 0 nothing. z is the weighted sum, and the act passes
where z reaches the threshold. The default loss asks for a distance of 1 on the right side, smooth near it and linear
beyond, so that a wrong label pulls no harder the further off it is; weights stay at 0 or above, with an L2 penalty. The
paper's (ShieldAgent, Eq. 6) is max(0, -y tanh(z/2)): all weights 0 minimise it, and under prohibitions alone safe acts
can only pull weights down.
"""

import hashlib
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import msgspec
import yaml

from bylaw.errors import CircuitError
from bylaw.rule.circuit import Circuit, Evidence
from bylaw.rule.inference import Inference

Loss = Literal["hinge", "paper"]


class Example(msgspec.Struct, frozen=True):
    """What the rules say of one act or trajectory, and whether it was safe."""

    differences: tuple[float, ...]
    safe: bool
    offset: float = 0.0
    """Part of z that does not grow with the weights; not 0 only where unknown predicates were summed out."""


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """Learned weights, with what they were learned from; kept in the pack as YAML."""

    action: str
    weights: dict[str, float]
    eps: float
    """The learned threshold as a margin, tanh(threshold / 2)."""
    threshold: float
    loss: Loss
    l2: float
    source: str
    """Where the labels came from, in words."""
    examples: int
    safe_examples: int
    digest: str
    """Of the examples, so that one can tell whether these weights are up to date."""
    accuracy: float
    """On the examples themselves."""
    objective: float
    untouched: tuple[str, ...] = ()
    """Rules that no example speaks of; they keep a weight that denies on its own, since silence proves nothing."""


def learn(
    examples: Sequence[Example],
    rules: Sequence[str],
    *,
    action: str = "",
    loss: Loss = "hinge",
    l2: float = 1e-4,
    source: str = "labelled acts",
    solver: Literal["own", "scipy"] = "own",
    seed: int = 0,
) -> Weights:
    """Weights for `rules`, in the order of the examples' differences."""
    if not examples or any(len(each.differences) != len(rules) for each in examples):
        raise CircuitError("each example needs one difference per rule, and there must be examples", place=action)
    batch = Batch(examples)
    if loss == "paper":
        theta, threshold = descend_paper(examples, len(rules), seed=seed), 0.0
    elif solver == "scipy":
        theta, threshold = _minimised_by_scipy(batch, len(rules), l2)
    else:
        theta, threshold = _minimised(batch, len(rules), l2)
    untouched = [i for i in range(len(rules)) if not any(each.differences[i] for each in examples)]
    if loss == "hinge":
        for i in untouched:
            theta[i] = 1.0 - threshold
    value = batch.paper(theta)[0] if loss == "paper" else batch.hinge(theta, threshold, l2)[0]
    return Weights(
        action=action,
        weights=dict(zip(rules, theta, strict=True)),
        eps=math.tanh(threshold / 2),
        threshold=threshold,
        loss=loss,
        l2=l2 if loss == "hinge" else 0.0,
        source=source,
        examples=len(examples),
        safe_examples=sum(each.safe for each in examples),
        digest=hashlib.sha256(msgspec.json.encode((list(rules), list(examples)))).hexdigest()[:16],
        accuracy=accuracy(examples, theta, threshold),
        objective=value,
        untouched=tuple(rules[i] for i in untouched),
    )


class Batch:
    """Examples, equal ones counted once, and the two losses over them with their gradients."""

    def __init__(self, examples: Iterable[Example]) -> None:
        counts: dict[Example, int] = {}
        for each in examples:
            counts[each] = counts.get(each, 0) + 1
        size = sum(counts.values())
        self.rows = [
            (
                [(i, d) for i, d in enumerate(each.differences) if d],
                1.0 if each.safe else -1.0,
                count / size,
                each.offset,
            )
            for each, count in counts.items()
        ]

    def hinge(self, theta: Sequence[float], threshold: float, l2: float) -> tuple[float, list[float], float]:
        """The default loss, its gradient by the weights, and its slope by the threshold."""
        value = l2 / 2 * math.fsum(t * t for t in theta)
        gradient = [l2 * t for t in theta]
        slope = 0.0
        for row, label, share, offset in self.rows:
            distance = label * (offset + sum(d * theta[i] for i, d in row) - threshold)
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
        """Eq. 6 and its gradient."""
        value = 0.0
        gradient = [0.0] * len(theta)
        for row, label, share, offset in self.rows:
            margin = math.tanh((offset + sum(d * theta[i] for i, d in row)) / 2)
            if label * margin < 0.0:
                value -= share * label * margin
                for i, d in row:
                    gradient[i] -= share * label * (1.0 - margin * margin) / 2 * d
        return value, gradient


def accuracy(examples: Sequence[Example], theta: Sequence[float], threshold: float = 0.0) -> float:
    """The share of examples on the right side of the threshold."""
    right = 0
    for each in examples:
        z = each.offset + math.fsum(d * t for d, t in zip(each.differences, theta, strict=True) if d)
        right += (z >= threshold) == each.safe
    return right / len(examples)


def _minimised(batch: Batch, size: int, l2: float, *, rounds: int = 4000) -> tuple[list[float], float]:
    """Accelerated projected gradient with restarts; the step is safe by the curvature's bound."""
    curvature = l2 + sum(share * (1.0 + sum(d * d for _, d in row)) for row, _, share, _ in batch.rows)
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


def _minimised_by_scipy(batch: Batch, size: int, l2: float) -> tuple[list[float], float]:
    try:
        from scipy.optimize import minimize  # pyright: ignore
    except ImportError:
        raise CircuitError("scipy is not installed", hint="pip install 'bylaw[learn]'") from None

    def objective(x: Any) -> tuple[float, list[float]]:
        point = [float(each) for each in x]
        value, gradient, slope = batch.hinge(point[:-1], point[-1], l2)
        return value, [*gradient, slope]

    bounds = [(0.0, None)] * size + [(None, None)]
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    found = cast(Any, minimize)(
        objective, [0.0] * (size + 1), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return [float(x) for x in found.x[:-1]], float(found.x[-1])


def descend_paper(
    examples: Sequence[Example], size: int, *, epochs: int = 30, rate: float = 0.1, seed: int = 0
) -> list[float]:
    """Algorithm 3, lines 26-37: random weights, then one gradient step of Eq. 6 per example, epoch after epoch."""
    rng = random.Random(seed)
    theta = [rng.random() for _ in range(size)]
    steps = [Batch([each]) for each in examples]
    for _ in range(epochs):
        for step in steps:
            value, gradient = step.paper(theta)
            if value:
                theta = [t - rate * g for t, g in zip(theta, gradient, strict=True)]
    return theta


def worst(acts: Iterable[Sequence[float]]) -> tuple[float, ...]:
    """One example from a whole trajectory: each rule speaks as it did where it spoke hardest against."""
    return tuple(min(column) for column in zip(*acts, strict=True))


def examples_of(inference: Inference, samples: Iterable[tuple[Evidence, bool]]) -> list[Example]:
    """Examples from evidence with labels; unknown predicates are summed out at the circuit's present weights."""
    made: list[Example] = []
    soft = [rule for rule in inference.circuit.rules if not rule.hard]
    for evidence, safe in samples:
        slopes, margin = inference.slopes(evidence), inference.margin(evidence)
        if slopes is None or margin is None:
            continue
        linear = math.fsum(rule.weight * slopes[rule.name] for rule in soft)
        offset = 2 * math.atanh(max(min(margin, 1 - 1e-15), 1e-15 - 1)) - linear
        differences = tuple(slopes[rule.name] for rule in soft)
        made.append(Example(differences, safe, 0.0 if abs(offset) < 1e-9 else offset))
    return made


def pseudo_samples(circuit: Circuit, count: int, *, seed: int = 0) -> list[tuple[dict[str, bool], bool]]:
    """Worlds at random, labelled by the rules themselves: unsafe where any of them speaks against the action.

    For a pack without data: it makes weights consistent with the rules, and proves nothing about the rules.
    """
    rng = random.Random(seed)
    inference = Inference(circuit)
    names = circuit.predicates
    made: list[tuple[dict[str, bool], bool]] = []
    for _ in range(50 * count):
        if len(made) == count:
            break
        world = {name: rng.random() < 0.5 for name in names}
        found = inference.assess(world)
        if found.margin is not None:
            made.append((world, not any(rule.speech == "against" for rule in found.rules)))
    return made


def applied(circuit: Circuit, learned: Weights) -> Circuit:
    """The circuit with learned weights and threshold; rules they do not name keep their own."""
    rules = tuple(
        msgspec.structs.replace(rule, weight=learned.weights.get(rule.name, rule.weight)) for rule in circuit.rules
    )
    return msgspec.structs.replace(circuit, rules=rules, eps=learned.eps)


def dump_weights(learned: Sequence[Weights]) -> str:
    """The YAML kept in a pack."""
    return yaml.safe_dump({"weights": msgspec.to_builtins(list(learned))}, sort_keys=False, allow_unicode=True)


def load_weights(text: str) -> list[Weights]:
    """What `dump_weights` wrote."""
    try:
        document = cast("Mapping[str, Any]", yaml.safe_load(text))
        return msgspec.convert(document["weights"], list[Weights])
    except (yaml.YAMLError, msgspec.ValidationError, KeyError, TypeError) as error:
        raise CircuitError(f"no learned weights: {error}") from None
