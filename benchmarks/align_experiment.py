"""The alignment experiment: every arm trained and evaluated in the order that leaves the most if it ends early.

    python benchmarks/align_experiment.py --data DATA --base MODEL --work WORK --logs LOGS --seconds 1200

Several of these may run side by side on one GPU, as lanes: each takes the first arm that can begin and that no other
has taken. An arm that has a result in LOGS is not run again, and none is begun that could not end in time. LOGS gets,
for each arm, the metrics of its training, a line per test task, and a summary; `benchmarks/align_page.py` makes the
page of results from them.
"""

import argparse
import gc
import json
import multiprocessing
import pickle
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from functools import cache
from itertools import islice
from math import exp
from pathlib import Path
from typing import Any, get_args

import msgspec

from bylaw.align.dataset import SHAPES, conversation_row
from bylaw.align.evaluation import evaluate, score
from bylaw.align.gold import gold
from bylaw.align.knowledge import EMPTY, Form, examine, prompt, questions
from bylaw.align.matcher import Matcher
from bylaw.align.prompt import pack_named
from bylaw.align.rollout import play
from bylaw.align.tasks import load_tasks
from bylaw.align.training.data import training_rows
from bylaw.align.training.scoring import scorer

BEGAN = time.monotonic()


class Arm(msgspec.Struct, frozen=True):
    """One model to be trained, or a model to be evaluated."""

    name: str
    stage: int | None = None
    """None: nothing is trained."""
    start: str = "base"
    data: str = ""
    epochs: float = 2.0
    seed: int = 1
    reward: str = "full"
    policies: tuple[str, ...] = ("none",)
    """With the policy in the prompt, without it, or both."""
    override: bool = False
    steps: int | None = None

    @property
    def needs(self) -> list[str]:
        """What must be in the work folder before this can begin."""
        found = [] if self.start == "base" else [f"{self.start}/run.json"]
        return [*found, "chosen.json"] if self.data == "chosen" else found


CHOOSE = "choose"
"""Not a model: the turns of stage 3 are chosen, by the answers of one stage 2."""


def arms(passes: int, steps: int, chooser: int = 1) -> list[Arm]:
    """Every arm, in order. `answers` takes as many steps as stages 1 and 2 together.

    Turns are chosen by stage 2 of the seed `chooser`, from which the arms with other rewards begin too.
    """

    def supervised(seed: int) -> list[Arm]:
        first = seed == 1
        places = ("context", "none") if first else ("context",)
        return [
            Arm(f"stage1-{seed}", 1, data="stage1", epochs=passes, seed=seed, policies=places, override=first),
            Arm(f"stage2-{seed}", 2, f"stage1-{seed}", "stage2", passes, seed, override=first),
        ]

    def reinforced(name: str, seed: int = chooser, reward: str = "full", start: str = "stage2") -> Arm:
        name, start = f"{name}-{seed}", f"{start}-{seed}"
        return Arm(name, 3, start, "chosen", 1, seed, reward, override=name == "stage3-1", steps=steps)

    one, two, three = supervised(1), supervised(2), supervised(3)
    found = [one[0], two[0], one[1], two[1], Arm(CHOOSE, start=f"stage2-{chooser}", data="rl", policies=())]
    found += [reinforced("stage3", 1), reinforced("stage3", 2), *three, reinforced("stage3", 3)]
    found.append(reinforced("stage3-compliance", reward="tf+pr+hp+lp+vc"))
    found += [Arm(f"answers-{seed}", 1, data="answers", epochs=2 * passes, seed=seed) for seed in (2, 3)]
    found.append(Arm("base", policies=()))
    found += [reinforced(f"stage3-{said.replace('+', '_')}", reward=said) for said in ("tf", "tf+pr", "tf+pr+hp")]
    found += [
        Arm(f"stage2_alone-{chooser}", 2, "base", "stage2", passes, chooser),
        Arm(f"stage2_unfiltered-{chooser}", 2, f"stage1-{chooser}", "unfiltered", passes, chooser),
        reinforced("stage3_unfiltered", start="stage2_unfiltered"),
        Arm("answers-1", 1, data="answers", epochs=2 * passes, seed=1),
    ]
    return found


GUESS = {"answers": 250.0, "stage1": 200.0, "stage2": 260.0, "stage3": 130.0, "choose": 60.0}
"""Seconds an arm takes, until one of its kind has been run."""


class Experiment:
    """Runs arms one after the other, with one generator for all of them."""

    def __init__(self, options: argparse.Namespace, pool: Executor) -> None:
        self.data, self.base = Path(options.data), Path(options.base)
        self.work, self.logs = Path(options.work), Path(options.logs)
        self.seconds = options.seconds
        self.preset = options.preset
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.longest = options.longest
        self.pool = pool
        self.tasks = load_tasks("test")[: options.tasks]
        self.limit = options.rows
        self.asked = options.tasks
        self.overrides: list[tuple[Any, tuple[str, str]]] = override_tasks(options.overrides)[: options.tasks]
        self.player: Any = None
        self.learn = options.learn
        self.lane, self.share = options.lane, options.share
        self.pool_size, self.chosen = options.tried, options.chosen
        self.reinforced: dict[str, Any] = json.loads(options.reinforced)
        self.logs.mkdir(parents=True, exist_ok=True)

    def left(self) -> float:
        """Seconds that are left. A file `seconds` in the work folder, once there, says how many there are in all."""
        said = self.work / "seconds"
        return (float(said.read_text()) if said.exists() else self.seconds) - (time.monotonic() - BEGAN)

    def log(self, **values: Any) -> None:
        line = {"at": round(time.monotonic() - BEGAN, 1), "lane": self.lane, **values}
        print(json.dumps(line), flush=True)
        with (self.logs / f"log-{self.lane}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def guarded(self, name: str, work: Callable[..., None], *given: Any) -> bool:
        """Whether it went well. One arm that fails must not cost the others their time."""
        try:
            work(*given)
        except Exception as error:
            self.log(arm=name, failed=repr(error)[:2000])
            traceback.print_exc()
        else:
            return True
        self.clean()
        return False

    def kernels(self) -> None:
        """Use the GPU's flash kernels only where they are right."""
        import torch

        from bylaw.align.training import attention, layers

        if not torch.cuda.is_available():
            return
        torch.cuda.set_per_process_memory_fraction(self.share)
        attention.FLASH = False
        from align_kernels import packed

        try:
            found = packed(0.0)
        except Exception:
            attention.FLASH = False
            raise
        attention.FLASH = max(found.values()) < 0.05
        eager = self.work / "eager"
        layers.COMPILED = not eager.exists()
        self.log(kernels=found, flash=attention.FLASH, compiled=layers.COMPILED)

    def overfit(self) -> None:
        """The whole loop in small: ten training conversations learned by heart must be played right."""
        from bylaw.align.training.run import train
        from bylaw.packs.clinic.tasks.sets import pairs

        tasks = [task for pair in islice(pairs("training"), 5) for task in pair]
        golds = [gold(task) for task in tasks]
        for name in ("answers", "stage2"):
            rows = [conversation_row("clinic", one, SHAPES[name]) for one in golds]
            folder = self.work / f"overfit-{name}"
            run = self.settings(folder, self.base, 1, {"epochs": self.learn, "batch": 10, "at_once": 10})
            done = train(run, rows)
            self.load(folder)
            self.player.generator.forget()
            outcomes = play(tasks, self.player, policy="none")
            passed = sum(outcome.success for outcome in outcomes)
            self.log(arm="overfit", data=name, steps=done["steps"], seconds=done["seconds"], passed=passed, tasks=10)
            self.clean()

    def run(self, arm: Arm) -> None:
        """Train and evaluate one arm."""
        began = time.monotonic()
        summary: dict[str, Any] = {"arm": msgspec.to_builtins(arm)}
        if arm.name == CHOOSE:
            self.choose(arm)
            return
        folder = self.work / arm.name if arm.stage else self.base
        if arm.stage and not (folder / "run.json").exists():
            summary["training"] = self.train(arm, folder)
            self.log(arm=arm.name, trained=summary["training"]["seconds"], loss=summary["training"]["loss"])
        elif arm.stage:
            summary["training"] = json.loads((folder / "run.json").read_text())
        self.load(folder)
        for policy in arm.policies:
            summary[policy] = self.evaluate(arm, policy)
        summary["knowledge"] = self.knowledge(arm)
        if arm.override:
            summary["override"] = self.override(arm)
        summary["seconds"] = round(time.monotonic() - began, 1)
        (self.logs / f"{arm.name}.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")
        self.log(arm=arm.name, seconds=summary["seconds"])

    def choose(self, arm: Arm) -> None:
        """Try turns of the pool with a model, and keep those that its answers disagree on."""
        from bylaw.align.training.choice import disagreeing, tried

        began = time.monotonic()
        self.load(self.work / arm.start)
        rows = self.rows["rl"][: self.pool_size]
        rewards = tried(rows, self.player.dialect, self.player.generator, scorer("full", pool=self.pool), seed=arm.seed)
        kept = disagreeing(rewards, self.chosen)
        found = {
            "by": arm.start,
            "turns": len(rows),
            "disagreed_on": len(disagreeing(rewards, len(rows))),
            "chosen": kept,
            "seconds": round(time.monotonic() - began, 1),
            "rewards": [[round(value, 3) for value in values] for values in rewards],
        }
        (self.logs / "choose.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
        (self.work / "chosen.part").write_text(json.dumps(kept), encoding="utf-8")
        (self.work / "chosen.part").rename(self.work / "chosen.json")
        mean = sum(map(sum, rewards)) / sum(map(len, rewards))
        self.log(arm=arm.name, mean=mean, **{name: found[name] for name in ("turns", "disagreed_on", "seconds")})

    def prepare(self) -> None:
        """Read and tokenise every supervised set once, for all arms that learn from it."""
        from transformers import AutoTokenizer

        from bylaw.align.training import supervised
        from bylaw.align.training.dialect import Dialect
        from bylaw.align.training.preset import PRESETS

        dialect = Dialect(AutoTokenizer.from_pretrained(self.base))
        plain = supervised.examples
        done: dict[int, Any] = {}
        for file in sorted(self.data.glob("*.jsonl*")):
            name = file.name.split(".")[0]
            self.rows[name] = training_rows(file, 3 if name == "rl" else 1)[: self.limit]
            if name != "rl":
                longest = PRESETS[self.preset].supervised.longest
                done[id(self.rows[name])] = plain(self.rows[name], dialect, longest)

        def examples(rows: Any, *others: Any) -> Any:
            return done[id(rows)] if id(rows) in done else plain(rows, *others)

        supervised.examples = examples

    def train(self, arm: Arm, folder: Path) -> dict[str, Any]:
        """Train one arm; with half as many rows at once where the GPU's memory is too small."""
        import torch

        from bylaw.align.training.preset import PRESETS

        chosen = PRESETS[self.preset]
        at_once = (chosen.reinforced if arm.stage == 3 else chosen.supervised).at_once
        while True:
            try:
                return self.attempt(arm, folder, at_once)
            except torch.OutOfMemoryError:
                at_once //= 2
                self.log(arm=arm.name, at_once=at_once)
            self.clean()

    def attempt(self, arm: Arm, folder: Path, at_once: int) -> dict[str, Any]:
        from bylaw.align.training.run import train

        start = self.base if arm.start == "base" else self.work / arm.start
        if self.player is None:
            self.load(start)
        changes = {"epochs": arm.epochs, "at_once": at_once}
        if arm.stage == 3:
            changes |= self.reinforced
        if arm.data == "chosen" and "chosen" not in self.rows:
            kept = json.loads((self.work / "chosen.json").read_text(encoding="utf-8"))
            self.rows["chosen"] = [self.rows["rl"][place] for place in kept]
        run = self.settings(folder, start, arm.stage, changes, arm.seed, arm.steps)
        reward = scorer(arm.reward, pool=self.pool) if arm.stage == 3 else None
        (folder / "metrics.jsonl").unlink(missing_ok=True)
        done = train(run, self.rows[arm.data], reward, self.player.generator if arm.stage == 3 else None)
        shutil.copy(folder / "metrics.jsonl", self.logs / f"{arm.name}.train.jsonl")
        self.clean()
        return done

    def settings(
        self, folder: Path, start: Path, stage: Any, changes: dict[str, Any], seed: int = 1, steps: Any = None
    ) -> Any:
        from bylaw.align.training.run import Run

        return Run(
            stage=stage,
            model=start,
            out=folder,
            preset=self.preset,
            seed=seed,
            changes=changes,
            steps=steps,
            save_every=None,
            tensorboard=False,
            resume=False,
        )

    def load(self, folder: Path) -> None:
        """Make the model in `folder` the one that plays."""
        from safetensors.torch import load_file

        from bylaw.align.training.checkpoint import open_checkpoint

        if self.player is None:
            self.player = open_checkpoint(folder, slots=512, room=3072)
            self.player.longest = self.longest
        else:
            self.player.generator.load(
                load_file(folder / "model.safetensors", device=str(self.player.generator.device))
            )

    def clean(self) -> None:
        import torch

        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def evaluate(self, arm: Arm, policy: str) -> dict[str, Any]:
        """pass@1 and the words it took, on the test tasks."""
        began = time.monotonic()
        self.player.generator.forget()
        outcomes = play(self.tasks, self.player, policy=policy)  # pyright: ignore[reportArgumentType]
        played = time.monotonic() - began
        scores = list(self.pool.map(score, self.tasks, outcomes, chunksize=16))
        found: dict[str, Any] = msgspec.to_builtins(evaluate(self.tasks, scores))
        found["hallucination"] = self.hallucination(outcomes)
        found["seconds"] = round(played, 1)
        lines = b"".join(msgspec.json.encode(one) + b"\n" for one in scores)
        (self.logs / f"{arm.name}.{policy}.tasks.jsonl").write_bytes(lines)
        with (self.logs / f"{arm.name}.{policy}.talks.jsonl").open("wb") as file:
            for outcome in outcomes[:6]:
                file.write(msgspec.json.encode(outcome) + b"\n")
        self.log(arm=arm.name, policy=policy, passed=found["passed"], words=found["words"], played=found["seconds"])
        return found

    def hallucination(self, outcomes: Sequence[Any]) -> dict[str, float]:
        """Of the policies that thoughts state, the share that there is not; and how many thoughts state one."""
        parts = [[outcome.thoughts for outcome in outcomes[start::16]] for start in range(16)]
        stated, made_up, thoughts, wrong = map(sum, zip(*self.pool.map(_mentions, parts), strict=True))
        return {
            "thoughts": thoughts,
            "policies_stated": stated,
            "made_up": made_up,
            "rate": made_up / (stated + made_up) if stated + made_up else 0.0,
            "thoughts_with_one": wrong / thoughts if thoughts else 0.0,
        }

    def knowledge(self, arm: Arm) -> dict[str, Any]:
        """The yes/no questions, without the policy in the prompt: in two forms, at once and after a thought."""
        began = time.monotonic()
        asked = questions("clinic")[: self.asked]
        texts = [*(question.text for question in asked), *EMPTY]
        found: dict[str, Any] = {}
        for form in get_args(Form):
            prompts = [prompt("clinic", text, "none", form) for text in texts]
            thoughts = self.player.recalled(prompts)
            for name, after in ((form, None), (f"{form}, recalled", thoughts)):
                pairs = self.player.chances(prompts, ["Yes", "No"], after)
                leaning = [yes - no for yes, no in pairs]
                known = examine(asked, leaning[: len(asked)], leaning[len(asked) :])
                said = {key: value for key, value in msgspec.to_builtins(known).items() if key != "by_policy"}
                said["mass"] = sum(exp(yes) + exp(no) for yes, no in pairs[: len(asked)]) / len(asked)
                found[name] = said
            parts = [(thoughts[start : len(asked) : 16], asked[start::16]) for start in range(16)]
            right = sum(self.pool.map(_recalls, *zip(*parts, strict=True)))
            found[f"{form}, recalled"]["states_the_policy"] = right / len(asked)
            found[f"{form}, recalled"]["examples"] = [
                {"question": text, "thought": thought} for text, thought in zip(texts[:3], thoughts[:3], strict=True)
            ]
        shown = {name: [said["accuracy"], said["balanced"], said["calibrated"]] for name, said in found.items()}
        self.log(arm=arm.name, knowledge=shown, seconds=round(time.monotonic() - began, 1))
        return found

    def override(self, arm: Arm) -> dict[str, Any] | None:
        """Tasks over a policy replaced by its contrary, which stands in the prompt; the others do not."""
        if not self.overrides:
            return None
        began = time.monotonic()
        self.player.generator.forget()
        tasks = [task for task, _ in self.overrides]
        outcomes = play(tasks, self.player, policy="none", overrides=[words for _, words in self.overrides])
        passed = [outcome.success for outcome in outcomes]
        found = {"tasks": len(passed), "passed": sum(passed) / len(passed), "each": [int(each) for each in passed]}
        self.log(arm=arm.name, override=found["passed"], seconds=round(time.monotonic() - began, 1))
        return found


@cache
def _matcher() -> Matcher:
    return Matcher(pack_named("clinic"))


def _mentions(talks: Sequence[Sequence[str]]) -> tuple[int, int, int, int]:
    matcher = _matcher()
    stated = made_up = thoughts = wrong = 0
    for thought in (thought for talk in talks for thought in talk):
        found = matcher.mentions(thought)
        thoughts += 1
        stated += len(found.recalled)
        made_up += len(found.made_up)
        wrong += bool(found.made_up)
    return stated, made_up, thoughts, wrong


def _recalls(thoughts: Sequence[str], asked: Sequence[Any]) -> int:
    """How many thoughts state the policy that they were asked about."""
    matcher = _matcher()
    pairs = zip(thoughts, asked, strict=True)
    return sum(question.policy in matcher.mentions(thought).recalled for thought, question in pairs)


def override_tasks(kept: str) -> list[tuple[Any, tuple[str, str]]]:
    """The tasks of the override test, each with the old sentences and the new; `kept` is a file that holds them."""
    if kept:
        return pickle.loads(Path(kept).read_bytes())
    from bylaw.align.override import load_overrides

    return [(one.task, (one.old, one.new)) for one in load_overrides()]


def main() -> None:
    """Run what there is time for."""
    options = argparse.ArgumentParser()
    for name in ("data", "base", "work", "logs"):
        options.add_argument(f"--{name}", required=True)
    options.add_argument("--seconds", type=float, default=1e9)
    options.add_argument("--preset", default="small")
    options.add_argument("--passes", type=int, default=2, help="over the conversations, in each of stages 1 and 2")
    options.add_argument("--steps", type=int, default=20, help="of stage 3")
    options.add_argument("--tried", type=int, default=2048, help="turns that are tried, to choose those of stage 3")
    options.add_argument("--chosen", type=int, default=900, help="turns of stage 3, at most")
    options.add_argument("--chooser", type=int, default=1, help="the seed whose stage 2 chooses them")
    options.add_argument("--reinforced", default="{}", help="settings of stage 3 to change, as JSON")
    options.add_argument("--share", type=float, default=1.0, help="of the GPU's memory that this lane may take")
    options.add_argument("--lane", default="a", help="the name of this one of several that run side by side")
    options.add_argument("--first", action="store_true", help="learn ten conversations by heart and play their tasks")
    options.add_argument("--learn", type=int, default=40, help="passes over the ten conversations of --first")
    options.add_argument("--rows", type=int)
    options.add_argument("--tasks", type=int)
    options.add_argument("--longest", type=int, default=200)
    options.add_argument("--cores", type=int, default=multiprocessing.cpu_count())
    options.add_argument("--only", default="")
    options.add_argument("--overrides", default="", help="a pickle of the override tasks, which take a minute to make")
    options.add_argument("--wait", default="", help="begin the first arm when this file is there")
    given = options.parse_args()
    # Workers are forked before anything touches the GPU.
    with ProcessPoolExecutor(given.cores, mp_context=multiprocessing.get_context("fork")) as pool:
        list(pool.map(_warm, range(4 * given.cores)))
        experiment = Experiment(given, pool)
        took = dict(GUESS)
        experiment.log(begun=vars(given), tasks=len(experiment.tasks))
        questions("clinic")
        experiment.prepare()
        experiment.log(ready=True)
        while given.wait and not Path(given.wait).exists():
            time.sleep(0.1)
        experiment.guarded("kernels", experiment.kernels)
        if given.first:
            experiment.guarded("overfit", experiment.overfit)
        planned = arms(given.passes, given.steps, given.chooser)
        kinds = {arm.name: arm.name.split("-")[0].split("_")[0] for arm in planned}
        only = given.only.split(",") if given.only else list(kinds)
        for arm in queue(experiment, [arm for arm in planned if arm.name in only]):
            kind, left = kinds[arm.name], experiment.left()
            if left < took.get(kind, 30):
                experiment.log(arm=arm.name, skipped=f"{left:.0f} s left")
                continue
            began = time.monotonic()
            if experiment.guarded(arm.name, experiment.run, arm):
                took[kind] = time.monotonic() - began
            else:
                (experiment.work / f"{arm.name}.failed").touch()
        experiment.log(ended=True)


def queue(experiment: Experiment, wanted: Sequence[Arm]) -> Iterator[Arm]:
    """Arms that no lane has taken, the first that can begin each time; waits where all wait for others."""
    claims = experiment.work / "claims"
    claims.mkdir(parents=True, exist_ok=True)
    open_arms = list(wanted)
    while open_arms:
        open_arms = [arm for arm in open_arms if not (claims / arm.name).exists()]
        for arm in open_arms:
            needed = [experiment.work / name for name in arm.needs]
            if all(path.exists() for path in needed):
                try:
                    (claims / arm.name).touch(exist_ok=False)
                except FileExistsError:
                    break
                yield arm
                break
        else:
            hopeless = [arm for arm in open_arms if (experiment.work / f"{arm.start}.failed").exists()]
            open_arms = [arm for arm in open_arms if arm not in hopeless]
            if experiment.left() < 0:
                return
            time.sleep(0.3)


def _warm(_: int) -> None:
    _matcher()
    time.sleep(0.05)


if __name__ == "__main__":
    main()
