"""The arms of the alignment experiment, in the order that leaves the most if it ends early."""

from typing import Literal

import msgspec


class Arm(msgspec.Struct, frozen=True):
    """One model to be trained, or a model to be played."""

    name: str
    stage: int | None = None
    """None: nothing is trained."""
    start: str = "base"
    data: str = ""
    epochs: float = 2.0
    seed: int = 1
    reward: str = "full"
    steps: int | None = None
    of: str = ""
    """The arm whose model is played, where nothing is trained."""
    policies: tuple[str, ...] = ()
    """On the test tasks: with the policy in the prompt, without it, or both."""
    is_tuned: bool = False
    """Play it on the development tasks."""
    asks: bool = False
    """Put the questions of the knowledge test, and with seed 1 play the override tasks."""
    needs: tuple[str, ...] = ()
    """The arms that must be trained before this can begin."""
    makes: Literal["", "corrections", "successes"] = ""
    """Rows to learn from, made of what a model does on practice tasks: the turns it got wrong, put right; or its own
    conversations that came out well, drawn from many tries at tasks it fails."""
    draws: tuple[int, int] = (0, 0)
    """Those of the practice tasks that it plays."""
    changes: dict[str, float] = {}
    """Settings of the stage to change."""

    @property
    def model(self) -> str:
        return self.of or self.name

    @property
    def label(self) -> str:
        """What its results are called."""
        return self.name.removeprefix("test-").removeprefix("dev-")

    @property
    def kind(self) -> str:
        """Arms of one kind take about the same time."""
        return self.name.split("-")[0].split("_")[0]


SEEDS = (1, 2, 3)
REWARDS = {"tf": "tf", "tf_pr": "tf+pr", "tf_pr_hp": "tf+pr+hp"}
"""The arms of the paper's table 5 beside stage 3 itself."""
COMPLIANCE = "tf+pr+hp+lp+vc=3"
"""A write that the guards do not permit on what was seen costs as much as a turn can be worth."""


def arms(passes: int, steps: int) -> list[Arm]:
    """Every arm: those that are trained, in order, then the plays of their models, in order.

    `answers` takes as many steps as stages 1 and 2 together (its seed 1 stands in run 1). Every stage 3 takes the same
    number of steps.
    """
    trained: list[Arm] = []

    def supervised(name: str, stage: int, data: str, seed: int, start: str = "base", times: int = 1) -> None:
        needs = () if start == "base" else (start,)
        trained.append(Arm(f"{name}-{seed}", stage, start, data, times * passes, seed, needs=needs))

    def reinforced(name: str, seed: int, reward: str = "full", start: str = "stage2") -> None:
        start = f"{start}-{seed}"
        trained.append(Arm(f"{name}-{seed}", 3, start, "rl", 1, seed, reward, steps, needs=(start,)))

    for k in SEEDS:
        supervised("stage1", 1, "stage1", k)
    for k in SEEDS:
        supervised("stage2", 2, "stage2", k, f"stage1-{k}")
    for k in SEEDS:
        reinforced("stage3", k)
    for k in SEEDS[1:]:
        supervised("answers", 1, "answers", k, times=2)
    reinforced("stage3-compliance", 1, COMPLIANCE)
    supervised("stage2_unfiltered", 2, "unfiltered", 1, "stage1-1")
    for name, reward in REWARDS.items():
        reinforced(f"stage3-{name}", 1, reward)
    reinforced("stage3-compliance", 2, COMPLIANCE)
    reinforced("stage3_unfiltered", 1, start="stage2_unfiltered")
    reinforced("stage3-compliance", 3, COMPLIANCE)
    supervised("stage2_alone", 2, "stage2", 1)
    return [*trained, *plays(trained)]


def plays(trained: list[Arm]) -> list[Arm]:
    """The test of every model, in the order they are trained in; then the development tasks, which choose nothing."""
    found: list[Arm] = []
    for arm in trained:
        policy = "context" if arm.name.startswith("stage1") else "none"
        asks = arm.name in {f"{stage}-{k}" for stage in ("stage1", "stage3") for k in SEEDS} | {"stage2-1"}
        found.append(Arm(f"test-{arm.name}", of=arm.name, policies=(policy,), asks=asks, needs=(arm.name,)))
    chains = [f"{stage}-{k}" for k in SEEDS for stage in ("stage2", "stage3")]
    return [*found, *(Arm(f"dev-{name}", of=name, is_tuned=True, needs=(name,)) for name in chains)]


PRACTICE = {"learning_rate": 2e-5, "least_learning_rate": 2e-6}
"""Steps of practice and of its controls: 40 % of those of stage 2, which they go on from."""
TRIED = 900
"""Practice tasks that one round plays."""


def practice(passes: int, epochs: float = 2.0) -> list[Arm]:
    """Practice on a model's own conversations, beside controls that take as many steps over gold conversations."""
    made: list[Arm] = []

    def chain(name: str, start: str, data: str, needs: tuple[str, ...] = ()) -> None:
        for k in SEEDS:
            waits = tuple(f"{each}-{k}" for each in (start, *needs))
            made.append(
                Arm(f"{name}-{k}", 2, f"{start}-{k}", data.format(k=k), epochs, k, needs=waits, changes=PRACTICE)
            )

    def play(name: str, of: str, makes: Literal["corrections", "successes"], first: int) -> None:
        for k in SEEDS:
            needs = (f"{of}-{k}",) if makes == "corrections" else (f"{of}-{k}", f"corrected1-{k}")
            draws = (first, first + TRIED)
            made.append(Arm(f"{name}-{k}", of=f"{of}-{k}", seed=k, makes=makes, draws=draws, needs=needs))

    made += [Arm(f"stage1-{k}", 1, "base", "stage1", passes, k) for k in SEEDS]
    made += [Arm(f"stage2-{k}", 2, f"stage1-{k}", "stage2", passes, k, needs=(f"stage1-{k}",)) for k in SEEDS]
    play("corrected1", "stage2", "corrections", 0)
    chain("practice1", "stage2", "corrected1-{k}", ("corrected1",))
    chain("control1", "stage2", "gold of corrected1-{k}", ("corrected1",))
    play("corrected2", "practice1", "corrections", TRIED)
    chain("practice2", "practice1", "corrected1-{k} corrected2-{k}", ("corrected2",))
    chain("control2", "control1", "gold of corrected1-{k} corrected2-{k}", ("corrected2",))
    play("succeeded", "stage2", "successes", 0)
    chain("own", "stage2", "succeeded-{k}", ("succeeded",))
    models = ("practice2", "control2", "practice1", "own", "stage2", "control1")
    for kind in ("dev", "test"):
        order = models if kind == "dev" else ("stage2", *(name for name in models if name != "stage2"))
        for name in (f"{model}-{k}" for model in order for k in SEEDS):
            policies = ("none",) if kind == "test" else ()
            made.append(Arm(f"{kind}-{name}", of=name, is_tuned=kind == "dev", policies=policies, needs=(name,)))
    return made


GUESS = {"practice1": 90.0, "practice2": 120.0, "control1": 90.0, "control2": 120.0, "own": 60.0, "corrected1": 100.0}
GUESS |= {"corrected2": 100.0, "succeeded": 120.0}
GUESS |= {"stage1": 300.0, "stage2": 400.0, "stage3": 130.0, "test": 60.0, "answers": 370.0, "dev": 30.0}
"""Seconds an arm takes, until one of its kind has been run."""
