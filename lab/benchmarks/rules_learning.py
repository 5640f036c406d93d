"""Compares learned weights with the true rule set and with the paper's loss, using noisy labels and three wrong
rules.
"""

import random
from collections.abc import Iterator, Sequence

from bylaw.compile.lesson import Label, teach
from bylaw.engine.session import Session
from bylaw.pack import Pack, load_pack
from bylaw.rule.learning import LabelledAct, accuracy, learn
from bylaw.rule.monitor import MonitorSet
from bylaw.rule.rule import read_rule
from bylaw.trace import Call, Message, Trajectory
from bylaw_lab.clinic.simulator import simulate
from bylaw_lab.clinic.simulator.generate import simulated

NOISE = 0.05
SEEDS = range(10)
Broken = tuple[tuple[bool, ...], bool]
"""The rules that a trajectory breaks, and whether the trajectory is safe."""


def synthetic(rng: random.Random, count: int, *, true: int = 30, wrong: int = 3) -> list[Broken]:
    """Return trajectories that sometimes break true rules and often break wrong rules, which is harmless."""
    made: list[Broken] = []
    rates = [rng.choice([0.005, 0.01, 0.03]) for _ in range(true)]
    for _ in range(count):
        broken = tuple(rng.random() < rate for rate in rates)
        made.append(((*broken, *(rng.random() < 0.25 for _ in range(wrong))), not any(broken)))
    return made


WRONG = {
    "one-change-only": "ALWAYS (write IMPLIES NOT YESTERDAY ONCE write)",
    "membership-first": "ALWAYS (write IMPLIES ONCE get_membership)",
    "no-change-after-a-slot": "ALWAYS (write IMPLIES NOT ONCE get_slot)",
}
"""Rules that sound plausible but that no clause of the handbook requires."""


def clinic(seed: int, count: int) -> tuple[list[str], list[Broken]]:
    """Return simulated conversations: the rules that their acts break, and whether the simulator finds no violation.

    The guards of the pack find broken policies without a database. So the rules have less information than the labels,
    and even the true rule set makes mistakes.
    """
    pack = load_pack("clinic")
    texts = {name: f'ALWAYS (write IMPLIES NOT "breaks {name}")' for name in sorted(pack.guards)} | WRONG
    rules = [read_rule(name, text) for name, text in texts.items()]
    made: list[Broken] = []
    for trajectory, truth in simulate(seed, count):
        watched = MonitorSet(rules)
        broken: set[int] = set()
        for letter in acts(pack, trajectory):
            values = dict.fromkeys(watched.predicates, False) | dict.fromkeys(letter, True)
            broken.update(watched.step(*watched.mask(values)).broken)
        safe = all(call.determined["snapshot"] != "violation" for call in truth.calls)
        made.append((tuple(place in broken for place in range(len(rules))), safe))
    return list(texts), made


def acts(pack: Pack, trajectory: Trajectory) -> Iterator[set[str]]:
    """Yield the predicates that are true at each act of the agent."""
    session = Session(pack, mode="hindsight")
    writes: set[int] = set()
    for step, event in enumerate(trajectory.events):
        if isinstance(event, Call) and pack.schema.tools[event.tool].effect == "write":
            session.judge(event)
            writes.add(step)
        session.observe(event)
    denied = {
        verdict.made.step: {f"breaks {each.policy.id}" for each in verdict.policies if each.determined == "violation"}
        for verdict in session.settle()
    }
    for step, event in enumerate(trajectory.events):
        if isinstance(event, Message) and event.by == "agent":
            yield {"message"}
        elif isinstance(event, Call) and event.by == "agent":
            yield {event.tool} | denied.get(step, set()) | ({"write"} if step in writes else set())


def experiment(
    title: str, rules: Sequence[str], wrong: int, taught: Sequence[Broken], tested: Sequence[Broken]
) -> None:
    """Train on the first trajectories with noisy labels, and test on the others with clean labels.

    A single draw of noise and a single random start say little, especially for the paper's loss. So everything is
    repeated for all `SEEDS`.
    """
    test = [LabelledAct(tuple(-float(b) for b in broken), safe) for broken, safe in tested]
    truth = [1.0] * (len(rules) - wrong) + [0.0] * wrong
    right = accuracy(test, truth)
    ours: list[float] = []
    paper: list[float] = []
    wrongs: list[float] = []
    for seed in SEEDS:
        rng = random.Random(seed)
        train = [
            LabelledAct(tuple(-float(b) for b in broken), safe != (rng.random() < NOISE)) for broken, safe in taught
        ]
        learned = learn(train, rules)
        ours.append(accuracy(test, [learned.weights[name] for name in rules], learned.threshold))
        wrongs += [learned.weights[name] for name in rules[len(rules) - wrong :]]
        other = learn(train, rules, loss="paper", seed=seed)
        paper.append(accuracy(test, [other.weights[name] for name in rules]))
    print(
        f"learning: {title}: {len(taught)} trajectories with {NOISE:.0%} wrong labels, {len(SEEDS)} draws of noise and"
    )
    print(f"random starts; accuracy on {len(test)} others with clean labels: mean (lowest to highest)")
    print(f"  true rule set                         {right:8.2%}")
    print(f"  all rules believed, wrong ones too    {accuracy(test, [1.0] * len(rules)):8.2%}")
    print(f"  weights all 0, which minimise Eq. 6   {accuracy(test, [0.0] * len(rules)):8.2%}")
    for label, found in (("learned, default loss", ours), ("learned, the paper's loss (Eq. 6)", paper)):
        near = sum(each >= right - 0.01 for each in found)
        spread = f"{sum(found) / len(found):8.2%} ({min(found):.2%} to {max(found):.2%})"
        print(f"  {label:<36}  {spread}, within a point of the true rules in {near} of {len(found)}")
    print(f"  weights of the wrong rules, default loss: up to {max(wrongs):.2f}")


def learning(*, teach: int = 2000, test: int = 1000) -> None:
    """Run the experiment on invented rules and on the clinic."""
    rng = random.Random(7)
    names = [*(f"true{i}" for i in range(30)), *(f"wrong{i}" for i in range(3))]
    made = synthetic(rng, 2 * teach)
    experiment("synthetic", names, 3, made[:teach], made[teach:])
    names, taught = clinic(1, teach)
    experiment("clinic", names, len(WRONG), taught, clinic(2, test)[1])
    own_rules()


def own_rules(*, conversations: int = 600) -> None:
    """Measure the rules of the clinic pack, with labels from the simulator for each write."""
    made = list(simulated(5, conversations))
    labels = {
        each.trajectory.id: [Label(label.trajectory, label.safe, label.step) for label in each.labels]
        for each in made
        if each.labels
    }
    lesson = teach(load_pack("clinic"), [each.trajectory for each in made], labels)
    before, after = lesson.accuracies(lesson.kept_back)
    print(f"learning: clinic, the pack's own rules: {len(lesson.taught)} labelled writes; accuracy on the")
    print(f"{len(lesson.kept_back)} held back: {before:.1%} with the pack's weights, {after:.1%} with learned ones")


if __name__ == "__main__":
    learning()
