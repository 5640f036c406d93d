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
    is_tuned: bool = False
    """Play it on the development tasks."""
    of: str = ""
    """The arm whose model is played, where it is not this one's."""
    policies: tuple[str, ...] = ()
    """On the test tasks: with the policy in the prompt, without it, or both."""
    asks: bool = False
    """Put the questions of the knowledge test, and play the override tasks."""
    needs: tuple[str, ...] = ()
    """What must be in the work folder before this can begin."""

    @property
    def model(self) -> str:
        return self.of or self.name

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

    The arms with other rewards, and what lies beyond, begin from `seed`'s models.
    """

    def reinforced(name: str, seed: int, reward: str = "full", start: str = "stage2", **others: Any) -> Arm:
        needs = (f"{start}-{seed}/run.json", *others.pop("needs", ()))
        return Arm(f"{name}-{seed}", 3, f"{start}-{seed}", "rl", 1, seed, reward, steps, needs=needs, **others)

    def test(of: str, policy: str = "none", *needs: str) -> Arm:
        needs = (f"{of}/run.json", *needs)
        return Arm(f"test-{of}", of=of, policies=(policy,), asks=of.endswith("-1"), needs=needs)

    found = [Arm(f"stage1-{k}", 1, data="stage1", epochs=passes, seed=k) for k in SEEDS]
    for k in SEEDS:
        needs = (f"stage1-{k}/run.json",)
        found.append(Arm(f"stage2-{k}", 2, f"stage1-{k}", "stage2", passes, k, needs=needs))
    found += [reinforced("stage3", k, keep=keep, is_tuned=True) for k in SEEDS]
    found.append(Arm(PICK, needs=tuple(f"stage3-{k}/development.json" for k in SEEDS)))
    found += [test(f"stage3-{k}", "none", PICKED) for k in SEEDS]
    found += [test(f"stage2-{k}") for k in SEEDS]
    found += [Arm(f"answers-{k}", 1, data="answers", epochs=2 * passes, seed=k, policies=("none",)) for k in (2, 3)]
    played: dict[str, Any] = {"policies": ("none",), "needs": (PICKED,)}
    rewards = {"compliance": "tf+pr+hp+lp+vc", "tf": "tf", "tf_pr": "tf+pr", "tf_pr_hp": "tf+pr+hp"}
    found += [reinforced(f"stage3-{name}", seed, said, **played) for name, said in rewards.items()]
    found += [reinforced("stage3-compliance", k, rewards["compliance"], **played) for k in SEEDS if k != seed]
    found += [test(f"stage1-{k}", "context") for k in SEEDS]
    found.append(Arm("base", policies=("context", "none"), asks=True))
    test_too: dict[str, Any] = {"epochs": passes, "seed": seed, "policies": ("none",)}
    needs = (f"stage1-{seed}/run.json",)
    found += [
        Arm(f"stage2_alone-{seed}", 2, "base", "stage2", **test_too),
        Arm(f"stage2_unfiltered-{seed}", 2, f"stage1-{seed}", "unfiltered", **test_too, needs=needs),
        reinforced("stage3_unfiltered", seed, start="stage2_unfiltered", **played),
    ]
    return found


GUESS = {"stage1": 300.0, "stage2": 330.0, "stage3": 200.0, "test": 60.0, "answers": 300.0, "table": 120.0, "pick": 5.0}
"""Seconds an arm takes, until one of its kind has been run."""
