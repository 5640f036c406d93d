"""The arms of the alignment experiment, in the order that leaves the most if it ends early."""

from typing import Any

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
    keep: tuple[int, ...] = ()
    """Steps after which the model is played on the development tasks; one of them is picked."""
    stop: int | None = None
    """End stage 3 after this step, with the learning rate as if there were more."""
    is_tuned: bool = False
    """Play it on the development tasks."""
    of: str = ""
    """The arm whose model is played, where it is not this one's."""
    step: int | None = None
    """Play it as it was after this step."""
    policies: tuple[str, ...] = ()
    """On the test tasks: with the policy in the prompt, without it, or both."""
    asks: bool = False
    """Put the questions of the knowledge test, and with seed 1 play the override tasks."""
    needs: tuple[str, ...] = ()
    """What must be in the work folder before this can begin."""

    @property
    def model(self) -> str:
        return self.of or self.name

    @property
    def label(self) -> str:
        """What its results are called."""
        return self.name.removeprefix("test-")

    @property
    def kind(self) -> str:
        is_other = self.stage == 3 and not self.keep
        return "table" if is_other else self.name.split("-")[0].split("_")[0]


PICK = "pick"
"""Not a model: how many steps stage 3 takes, by what its seeds do on the development tasks."""
PICKED = "picked.json"
SEEDS = (1, 2, 3)


def arms(passes: int, steps: int, keep: tuple[int, ...], seed: int = 1) -> list[Arm]:
    """Every arm, in order. `answers` takes as many steps as stages 1 and 2 together.

    The arms with other rewards take as many steps of stage 3 as the first of `keep`; beside them stands stage 3 as it
    was then (`stage3_short`). They and what lies beyond begin from `seed`'s models first.
    """
    few = keep[0]

    def reinforced(name: str, seed: int, reward: str = "full", start: str = "stage2", **others: Any) -> Arm:
        needs = (f"{start}-{seed}/run.json",)
        return Arm(f"{name}-{seed}", 3, f"{start}-{seed}", "rl", 1, seed, reward, steps, needs=needs, **others)

    def test(of: str, policy: str = "none", *needs: str, asks: bool = False) -> Arm:
        needs = (f"{of}/run.json", *needs)
        return Arm(f"test-{of}", of=of, policies=(policy,), asks=asks, needs=needs)

    found = [Arm(f"stage1-{k}", 1, data="stage1", epochs=passes, seed=k) for k in SEEDS]
    for k in SEEDS:
        needs = (f"stage1-{k}/run.json",)
        found.append(Arm(f"stage2-{k}", 2, f"stage1-{k}", "stage2", passes, k, needs=needs))
    found += [reinforced("stage3", k, keep=keep, is_tuned=True) for k in SEEDS]
    found.append(Arm(PICK, needs=tuple(f"stage3-{k}/development.json" for k in SEEDS)))
    found += [test(f"stage3-{k}", "none", PICKED, asks=True) for k in SEEDS]
    found += [test(f"stage2-{k}", asks=k == seed) for k in SEEDS]
    found += [Arm(f"answers-{k}", 1, data="answers", epochs=2 * passes, seed=k, policies=("none",)) for k in (2, 3)]
    found += [test(f"stage1-{k}", "context", asks=k == seed) for k in SEEDS]
    short: dict[str, Any] = {"policies": ("none",), "stop": few}
    rewards = {"tf": "tf", "tf_pr": "tf+pr", "tf_pr_hp": "tf+pr+hp"}
    for k in (seed, *(k for k in SEEDS if k != seed)):
        of = f"stage3-{k}"
        found += [
            reinforced("stage3-compliance", k, "tf+pr+hp+lp+vc", **short),
            Arm(f"test-stage3_short-{k}", of=of, step=few, policies=("none",), needs=(f"{of}/run.json",)),
        ]
        if k == seed:
            found += [reinforced(f"stage3-{name}", k, said, **short) for name, said in rewards.items()]
    test_too: dict[str, Any] = {"epochs": passes, "seed": seed, "policies": ("none",)}
    needs = (f"stage1-{seed}/run.json",)
    found += [
        Arm(f"stage2_unfiltered-{seed}", 2, f"stage1-{seed}", "unfiltered", **test_too, needs=needs),
        reinforced("stage3_unfiltered", seed, start="stage2_unfiltered", **short),
        Arm(f"stage2_alone-{seed}", 2, "base", "stage2", **test_too),
        Arm("base", policies=("context", "none"), asks=True),
    ]
    return found


def chain(passes: int, steps: int, seed: int = 1) -> list[Arm]:
    """One stage 1 and one stage 2, and from it stage 3 by every seed: what half an hour less has room for."""
    stage1, stage2 = f"stage1-{seed}", f"stage2-{seed}"
    found = [
        Arm(stage1, 1, data="stage1", epochs=passes, seed=seed),
        Arm(stage2, 2, stage1, "stage2", passes, seed, needs=(f"{stage1}/run.json",)),
    ]
    needs = (f"{stage2}/run.json",)
    tested: dict[str, Any] = {"policies": ("none",), "needs": needs}
    found += [Arm(f"stage3-{k}", 3, stage2, "rl", 1, k, "full", steps, asks=k == seed, **tested) for k in SEEDS]
    found.append(Arm(f"test-{stage1}", of=stage1, policies=("context",), asks=True, needs=(f"{stage1}/run.json",)))
    found.append(Arm(f"test-{stage2}", of=stage2, asks=True, **tested))
    return found


GUESS = {"stage1": 300.0, "stage2": 200.0, "stage3": 200.0, "test": 40.0, "answers": 200.0, "table": 100.0, "pick": 5.0}
"""Seconds an arm takes, until one of its kind has been run."""
