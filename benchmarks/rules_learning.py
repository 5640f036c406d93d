"""Learned weights beside the true rule set and the paper's loss: labels with noise, three wrong rules planted."""

import random
from collections.abc import Sequence

from bylaw.rule.calibration import calibration_curve, calibration_error, line_for, p_safe
from bylaw.rule.learning import Example, accuracy, learn

NOISE = 0.05
Broken = tuple[tuple[bool, ...], bool]
"""Which rules a trajectory breaks, and whether it is safe."""


def synthetic(rng: random.Random, count: int, *, true: int = 30, wrong: int = 3) -> list[Broken]:
    """Trajectories that break true rules now and then, and wrong rules often, which is no harm."""
    made: list[Broken] = []
    rates = [rng.choice([0.005, 0.01, 0.03]) for _ in range(true)]
    for _ in range(count):
        broken = tuple(rng.random() < rate for rate in rates)
        made.append(((*broken, *(rng.random() < 0.25 for _ in range(wrong))), not any(broken)))
    return made


def experiment(title: str, rules: Sequence[str], wrong: int, trajectories: Sequence[Broken], seed: int = 0) -> None:
    """Half the trajectories teach, with noisy labels; the other half, with clean labels, tests."""
    rng = random.Random(seed)
    shuffled = list(trajectories)
    rng.shuffle(shuffled)
    examples = [Example(tuple(-float(each) for each in broken), safe) for broken, safe in shuffled]
    half = len(examples) // 2
    train = [Example(each.differences, each.safe != (rng.random() < NOISE)) for each in examples[:half]]
    test = examples[half:]
    truth = [1.0] * (len(rules) - wrong) + [0.0] * wrong
    ours = learn(train, rules)
    paper = learn(train, rules, loss="paper")
    theta = [ours.weights[name] for name in rules]
    print(f"learning: {title}: {half} trajectories with {NOISE:.0%} wrong labels, {len(test)} clean ones to test on")
    print(f"  true rule set                         {accuracy(test, truth):8.2%}")
    print(f"  all rules believed, wrong ones too    {accuracy(test, [1.0] * len(rules)):8.2%}")
    print(f"  learned, default loss                 {accuracy(test, theta, ours.threshold):8.2%}")
    print(f"  learned, the paper's loss (Eq. 6)     {accuracy(test, [paper.weights[n] for n in rules]):8.2%}")
    print(f"  weights all 0, which minimise Eq. 6   {accuracy(test, [0.0] * len(rules)):8.2%}")
    wrong_weights = ", ".join(f"{ours.weights[name]:.2f}" for name in rules[len(rules) - wrong :])
    print(
        f"  weights of the wrong rules {wrong_weights}; threshold {ours.threshold:.2f}; untouched {len(ours.untouched)}"
    )
    scores = [sum(d * t for d, t in zip(each.differences, theta, strict=True)) for each in test]
    curve = calibration_curve([p_safe(z, ours.threshold) for z in scores], [each.safe for each in test])
    line = line_for(scores, [each.safe for each in test], 0.01)
    held = f"{line.true_positive_rate:.1%} of the unsafe ones are held up"
    print(f"  calibration error {calibration_error(curve):.3f}; at 1 % false alarms {held}")


def learning() -> None:
    """The synthetic experiment; the clinic's where its simulator is there."""
    rng = random.Random(7)
    names = [*(f"true{i}" for i in range(30)), *(f"wrong{i}" for i in range(3))]
    experiment("synthetic", names, 3, synthetic(rng, 4000))


if __name__ == "__main__":
    learning()
