"""The arms of the alignment experiment, in the order that leaves the most if it ends early."""

from collections.abc import Sequence

import msgspec

from bylaw.policy.posture import Resolve


class Arm(msgspec.Struct, frozen=True):
    """One model to be trained, or a model to be played."""

    name: str
    stage: int | None = None
    """None: nothing is trained by rows."""
    start: str = "base"
    data: str = ""
    epochs: float = 2.0
    seed: int = 1
    of: str = ""
    """The arm whose model is played, where nothing is trained."""
    policy: str = ""
    """Where the handbook is when the test tasks are played; empty: they are not."""
    is_tuned: bool = False
    """Play the development tasks along with them."""
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
    changes: dict[str, float] = {}
    """Settings of the stage to change."""

    @property
    def model(self) -> str:
        return self.of or self.name

    @property
    def label(self) -> str:
        """What its results are called."""
        return self.name.removeprefix("test-")

    @property
    def kind(self) -> str:
        """Arms of one kind take about the same time."""
        return self.name.split("-")[0]

    @property
    def is_training(self) -> bool:
        """Whether a model comes of it, or what one needs."""
        return bool(self.stage) or self.is_episodic or self.tries


SEEDS = (1, 2, 3)
FIRST = "stage1-1"
"""The stage 1 that all seeds of a run go on from."""
CONTROL = {"learning_rate": 1e-5, "least_learning_rate": 1e-6}
"""Steps of the control of practice: a fifth of those of stage 2, which it goes on from."""
TRIED = 800
"""Practice tasks that a model plays."""


def episodes(passes: float, seeds: Sequence[int] = SEEDS) -> list[Arm]:
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
            Arm(control, 2, second, "practice", 4, k, needs=(second, practised), changes=CONTROL, matches=practised),
        ]
        shields: tuple[Resolve, ...] = ("live", "show")
        found += [_tested(of, "none", shields, is_tuned=True) for of in (second, practised, control)]
    return found


def worked(passes: float, seeds: Sequence[int] = SEEDS) -> list[Arm]:
    """Stage 2 beside the same conversations, in as many steps, with the working of every thought."""
    found = [Arm(FIRST, 1, "base", "stage1", 1, 1)]
    for k in seeds:
        pair = [(f"stage2-{k}", "stage2"), (f"worked-{k}", "worked")]
        found += [Arm(name, 2, FIRST, data, passes, k, needs=(FIRST,)) for name, data in pair]
        found += [_tested(name, "none", ("show",), is_tuned=True) for name, _ in pair]
    return found


def asked(passes: float, seed: int) -> list[Arm]:
    """Worked thoughts beside the same with beginnings that lack a look-up, in as many steps."""
    control, name = f"worked-{seed}", f"asked-{seed}"
    return [
        *worked(passes, [seed]),
        Arm(name, 2, FIRST, "asked", passes, seed, needs=(FIRST, control), matches=control),
        _tested(name, "none", ("show",), is_tuned=True),
    ]


def checked(passes: float, seeds: Sequence[int] = SEEDS) -> list[Arm]:
    """Stage 2 with plain thoughts beside worked ones with rows against near-misses, in as many steps."""
    found = [Arm(FIRST, 1, "base", "stage1", 1, 1)]
    for k in seeds:
        control, name = f"stage2-{k}", f"checked-{k}"
        found += [
            Arm(control, 2, FIRST, "stage2", passes, k, needs=(FIRST,)),
            Arm(name, 2, FIRST, "checked", passes, k, needs=(FIRST, control), matches=control),
            _tested(control, "none", (), is_tuned=True),
            _tested(name, "none", ("show",), is_tuned=True),
        ]
    return found


def fair(passes: float, seed: int) -> list[Arm]:
    """Whether recalling is as good as reading: arms of equally many steps, each begun from the base model or from one
    stage 1; and what they gain by a shield."""
    alone, reads, long = f"alone-{seed}", f"reads-{seed}", f"long-{seed}"
    return [
        Arm(FIRST, 1, "base", "stage1", 1, 1),
        Arm(long, 1, "base", "stage1", 1 + passes, seed),
        Arm(reads, 2, FIRST, "reads", passes, seed, needs=(FIRST,)),
        Arm(alone, 2, "base", "stage2", 1 + passes, seed),
        *(_tested(each, "context", ("show",)) for each in (long, reads, FIRST)),
        _tested(alone, "none", ("show",)),
    ]


def plan(parts: Sequence[str], passes: float, seeds: Sequence[int]) -> list[Arm]:
    """The arms of some parts of the experiment, each once, what is trained before what is only played."""
    made = {
        "worked": lambda: worked(passes, seeds),
        "episodes": lambda: episodes(passes, seeds),
        "fair": lambda: fair(passes, seeds[-1]),
        "asked": lambda: asked(passes, seeds[-1]),
        "checked": lambda: checked(passes, seeds),
    }
    found = {arm.name: arm for part in parts for arm in made[part]()}
    return sorted(found.values(), key=lambda arm: not arm.is_training)


def _tested(of: str, policy: str, shields: tuple[Resolve, ...], *, is_tuned: bool = False) -> Arm:
    needs = (of,) if of != "base" else ()
    return Arm(f"test-{of}", of=of, policy=policy, is_tuned=is_tuned, shields=shields, needs=needs)


GUESS = {
    "stage1": 90.0,
    "stage2": 200.0,
    "worked": 220.0,
    "asked": 220.0,
    "checked": 220.0,
    "control": 30.0,
    "test": 40.0,
    "tried": 30.0,
    "episodes": 120.0,
    "alone": 280.0,
    "reads": 220.0,
    "long": 290.0,
}
"""Seconds an arm takes with a GPU to itself, until one of its kind has been run."""
