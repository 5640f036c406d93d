"""The arms of the alignment experiment, in the order that leaves the most if it ends early."""

from collections.abc import Sequence

import msgspec

from bylaw.policy.posture import Resolve


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
    asks_held_out: bool = False
    """Put the questions on policies of which no stage has learned any."""
    shields: tuple[Resolve, ...] = ()
    """Play the test tasks once more under a shield of each kind, along with the others."""
    tries: bool = False
    """Play every practice task once, to know which of them it fails."""
    is_episodic: bool = False
    """Practise on whole conversations, by the tasks that it fails."""
    matches: str = ""
    """The arm whose number of steps this one takes."""
    needs: tuple[str, ...] = ()
    """The arms that must be trained before this can begin."""
    makes: bool = False
    """Play practice tasks, and make rows to learn from of what comes of them."""
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


FIRST = "stage1-1"
"""The stage 1 that all seeds of a run go on from."""
PRACTICE = {"learning_rate": 1e-5, "least_learning_rate": 1e-6}
"""Steps of practice and of its control: a fifth of those of stage 2, which they go on from."""
TRIED = 800
"""Practice tasks that a model plays."""
RECIPES = ("mended", "own", "control")
"""What goes on from stage 2, in equally many steps; see `align_practice`."""


def practice(passes: int) -> list[Arm]:
    """Practice on a model's own conversations, by two recipes, beside a control; each seed has its own of all."""
    tests = ("stage2", *RECIPES)
    shields: tuple[Resolve, ...] = ("agent", "live")
    return [
        *(Arm(f"stage1-{k}", 1, "base", "stage1", 1, k) for k in SEEDS),
        *(Arm(f"stage2-{k}", 2, f"stage1-{k}", "stage2", passes, k, needs=(f"stage1-{k}",)) for k in SEEDS),
        *(
            Arm(f"played-{k}", of=f"stage2-{k}", seed=k, makes=True, draws=(0, TRIED), needs=(f"stage2-{k}",))
            for k in SEEDS
        ),
        *(_practised(name, k) for name in RECIPES for k in SEEDS),
        *(
            _tested(f"{of}-{k}", "none", shields if of != "control" else (), is_tuned=True)
            for of in tests
            for k in SEEDS
        ),
    ]


def episodes(passes: int, seeds: Sequence[int] = SEEDS) -> list[Arm]:
    """Practice on whole conversations beside a control of equally many steps, seed by seed.

    All seeds go on from one stage 1; each has its own of all else.
    """
    found = [Arm(FIRST, 1, "base", "stage1", 1, 1)]
    for k in seeds:
        second, practised, control = f"stage2-{k}", f"episodes-{k}", f"control-{k}"
        found += [
            Arm(second, 2, FIRST, "stage2", passes, k, needs=(FIRST,)),
            Arm(f"tried-{k}", of=second, seed=k, tries=True, needs=(second,)),
            Arm(practised, start=second, seed=k, is_episodic=True, needs=(second, f"tried-{k}")),
            Arm(control, 2, second, "practice", 4, k, needs=(second, practised), changes=PRACTICE, matches=practised),
        ]
        shields: tuple[Resolve, ...] = ("live", "show")
        found += [_tested(of, "none", shields, is_tuned=True) for of in (second, practised, control)]
    return found


def fair(passes: int, seed: int) -> list[Arm]:
    """Whether recalling is as good as reading: arms of equally many steps, each begun from the base model or from one
    stage 1; and what the base model and stage 1 gain by a shield."""
    alone, reads, long = f"alone-{seed}", f"reads-{seed}", f"long-{seed}"
    return [
        Arm(reads, 2, FIRST, "reads", passes, seed, needs=(FIRST,)),
        Arm(alone, 2, "base", "stage2", 1 + passes, seed),
        Arm(long, 1, "base", "stage1", 1 + passes, seed),
        _tested("base", "context", ("show",)),
        _tested(FIRST, "context", ("agent", "show")),
        _tested(alone, "none", ("show",)),
        _tested(reads, "context", ("show",)),
        _tested(long, "context", ("show",)),
    ]


def _tested(of: str, policy: str, shields: tuple[Resolve, ...], *, is_tuned: bool = False) -> Arm:
    needs = (of,) if of != "base" else ()
    return Arm(
        f"test-{of}", of=of, policies=(policy,), is_tuned=is_tuned, asks_held_out=True, shields=shields, needs=needs
    )


def _practised(recipe: str, seed: int) -> Arm:
    start = f"stage2-{seed}"
    name, needs = f"{recipe}-{seed}", (start, f"played-{seed}")
    return Arm(name, 2, start, f"rows of {name}", 1, seed, needs=needs, changes=PRACTICE)


GUESS = {
    "tried": 40.0,
    "episodes": 150.0,
    "played": 170.0,
    "mended": 120.0,
    "own": 120.0,
    "control": 120.0,
    "shield": 90.0,
}
GUESS |= {"stage1": 300.0, "stage2": 400.0, "stage3": 130.0, "test": 60.0, "answers": 370.0, "dev": 30.0}
"""Seconds an arm takes, until one of its kind has been run."""
GUESS_ALONE = {"stage1": 90.0, "stage2": 200.0, "control": 30.0, "test": 40.0, "tried": 30.0, "episodes": 120.0}
GUESS_ALONE |= {"alone": 280.0, "reads": 220.0, "long": 290.0}
"""The same for a lane that has the GPU to itself."""
