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
SLOTS = 256
"""Conversations that are played side by side."""


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
        self.development = load_tasks("development")[: options.tasks]
        self.limit = options.rows
        self.asked = options.tasks
        self.overrides: list[tuple[Any, tuple[str, str]]] = override_tasks(options.overrides)[: options.tasks]
        self.player: Any = None
        self.learn = options.learn
        self.writes_tokens = options.tokens
        self.lane, self.share = options.lane, options.share
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
        """Train, tune or play one arm."""
        began = time.monotonic()
        if arm.name == PICK:
            self.pick(arm)
            return
        folder = self.work / arm.model if arm.stage or arm.of else self.base
        if arm.stage and not (folder / "run.json").exists():
            done = self.train(arm, folder)
            self.log(arm=arm.name, trained=done["seconds"], loss=done["loss"], steps=done["steps"])
        if arm.is_tuned:
            self.tune(arm, folder)
        if arm.policies:
            self.test(arm, folder)
        self.log(arm=arm.name, seconds=round(time.monotonic() - began, 1))

    def test(self, arm: Arm, folder: Path) -> None:
        """The test tasks, and the knowledge test."""
        summary: dict[str, Any] = {
            "arm": msgspec.to_builtins(arm),
            "training": json.loads((folder / "run.json").read_text()),
        }
        if PICKED in arm.needs and arm.of:
            from bylaw.align.training.record import step_folder

            summary["picked"] = self.picked()
            folder = step_folder(folder, self.picked())
        self.load(folder)
        for policy in arm.policies:
            summary[policy] = self.evaluate(arm, policy)
        if arm.asks:
            summary["knowledge"] = self.knowledge(arm)
            summary["override"] = self.override(arm)
        (self.logs / f"{arm.model}.json").write_text(json.dumps(summary, indent=1) + "\n", encoding="utf-8")

    def tune(self, arm: Arm, folder: Path) -> None:
        """The development tasks: of stage 3 after each of some steps."""
        from bylaw.align.training.record import step_folder

        found: dict[str, Any] = {}
        for step in arm.keep or (0,):
            self.load(step_folder(folder, step) if arm.keep else folder)
            began = time.monotonic()
            outcomes = play(self.development, self.player, policy="none", side_by_side=len(self.development))
            passed = [outcome.success for outcome in outcomes]
            found[str(step)] = {
                "passed": sum(passed) / len(passed),
                "seconds": round(time.monotonic() - began, 1),
                "each": {task.id: int(one) for task, one in zip(self.development, passed, strict=True)},
            }
            self.log(arm=arm.name, step=step, development=found[str(step)]["passed"])
        text = json.dumps(found) + "\n"
        (self.logs / f"{arm.name}.development.json").write_text(text, encoding="utf-8")
        (folder / "development.part").write_text(text, encoding="utf-8")
        (folder / "development.part").rename(folder / "development.json")

    def pick(self, arm: Arm) -> None:
        """The number of steps that does best on the development tasks, over all seeds; of equals the smaller."""
        tuned = [json.loads((self.work / name).read_text(encoding="utf-8")) for name in arm.needs]
        means = {int(step): sum(one[step]["passed"] for one in tuned) / len(tuned) for step in tuned[0]}
        best = max(means, key=lambda step: (means[step], -step))
        self.log(arm=arm.name, means=means, picked=best)
        (self.logs / "pick.json").write_text(json.dumps({"means": means, "picked": best}) + "\n", encoding="utf-8")
        (self.work / "picked.part").write_text(json.dumps(best), encoding="utf-8")
        (self.work / "picked.part").rename(self.work / PICKED)

    def picked(self) -> int:
        """How many steps stage 3 takes."""
        return json.loads((self.work / PICKED).read_text(encoding="utf-8"))

    def prepare(self) -> None:
        """Have every supervised set as tokens once, for all arms that learn from it.

        `NAME.tokens.parquet` beside a set holds them already (`--tokens` writes it).
        """
        from datasets import Dataset
        from pyarrow import parquet
        from transformers import AutoTokenizer

        from bylaw.align.training import supervised
        from bylaw.align.training.dialect import Dialect
        from bylaw.align.training.preset import PRESETS

        dialect = Dialect(AutoTokenizer.from_pretrained(self.base))
        longest = PRESETS[self.preset].supervised.longest
        plain = supervised.examples
        done: dict[int, Any] = {}
        for file in sorted(self.data.glob("*.jsonl*")):
            name = file.name.split(".")[0]
            self.rows[name] = training_rows(file, 3 if name == "rl" else 1)[: self.limit]
            if name != "rl":
                done[id(self.rows[name])] = plain(self.rows[name], dialect, longest)
                if self.writes_tokens:
                    done[id(self.rows[name])][0].to_parquet(self.data / f"{name}.tokens.parquet")
        for file in self.data.glob("*.tokens.parquet"):
            name = file.name.split(".")[0]
            if name not in self.rows:
                self.rows[name] = [{} for _ in range(parquet.read_metadata(file).num_rows)]
                done[id(self.rows[name])] = Dataset(parquet.read_table(file)), 0

        def examples(rows: Any, *others: Any) -> Any:
            return done[id(rows)] if id(rows) in done else plain(rows, *others)

        supervised.examples = examples

    def warm(self) -> None:
        """Compile what a GPU needs compiled before the weights are there, and check its gradients with random ones."""
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM

        from bylaw.align.training import shared_prefix
        from bylaw.align.training.generator import Generator

        if not torch.cuda.is_available():
            return
        began = time.monotonic()
        torch.manual_seed(0)
        config = AutoConfig.from_pretrained(self.base)
        model: Any = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).cuda()
        exact: Any = AutoModelForCausalLM.from_config(config, dtype=torch.float32).cuda()
        exact.load_state_dict(model.state_dict())
        shared_prefix.share_prefix(model)
        usual, off = shared_prefix.LEAST, dict[int, float]()
        for least in (10**9, usual):
            # Without and with what answers to one prompt share.
            shared_prefix.LEAST = least
            off[least] = max(gradient_off(model, exact, width) for width in (120, 96))
        if off[usual] > 1.5 * off[10**9] + 0.005:
            shared_prefix.LEAST = 10**9
        self.log(gradient_off={"alone": off[10**9], "sharing": off[usual]}, least=shared_prefix.LEAST)
        del exact
        generator = Generator(model, ends=[-1], slots=64, room=512)
        generator.generate([[5, 6, place] for place in range(64)], longest=17, temperature=1.0)
        del generator, model
        self.clean()
        self.log(warm=round(time.monotonic() - began, 1))

    def train(self, arm: Arm, folder: Path) -> dict[str, Any]:
        """Train one arm; with half as many rows at once where the GPU's memory is too small."""
        import torch

        at_once = self.changed(arm.stage or 1, "at_once")
        if arm.data in ("stage2", "unfiltered"):
            at_once //= 2  # Its conversations have twice as many tokens of their own.
        while True:
            try:
                return self.attempt(arm, folder, at_once)
            except torch.OutOfMemoryError:
                at_once //= 2
                self.log(arm=arm.name, at_once=at_once)
            self.clean()

    def changed(self, stage: int, name: str) -> Any:
        """A setting of a stage."""
        from bylaw.align.training.preset import settings_of

        return getattr(settings_of(self.preset, stage, self.reinforced if stage == 3 else {}), name)

    def attempt(self, arm: Arm, folder: Path, at_once: int) -> dict[str, Any]:
        from bylaw.align.training.run import train

        start = self.base if arm.start == "base" else self.work / arm.start
        if arm.stage == 3:
            self.load(start)
        else:
            # Its memory is needed.
            self.player = None
            self.clean()
        changes = {"epochs": arm.epochs, "at_once": at_once}
        stop = self.picked() if arm.stage == 3 and not arm.keep else None
        run = self.settings(folder, start, arm.stage, changes, arm.seed, arm.steps, arm.keep, stop)
        reward = scorer(arm.reward, pool=self.pool) if arm.stage == 3 else None
        (folder / "metrics.jsonl").unlink(missing_ok=True)
        done = train(run, self.rows[arm.data], reward, self.player.generator if arm.stage == 3 else None)
        shutil.copy(folder / "metrics.jsonl", self.logs / f"{arm.name}.train.jsonl")
        self.clean()
        return done

    def settings(
        self,
        folder: Path,
        start: Path,
        stage: Any,
        changes: dict[str, Any],
        seed: int = 1,
        steps: int | None = None,
        keep: tuple[int, ...] = (),
        stop: int | None = None,
    ) -> Any:
        from bylaw.align.training.run import Run

        changes = {**self.reinforced, **changes} if stage == 3 else changes

        return Run(
            stage=stage,
            model=start,
            out=folder,
            preset=self.preset,
            seed=seed,
            changes=changes,
            steps=steps,
            keep=keep,
            stop=stop,
            save_every=None,
            tensorboard=False,
            resume=False,
        )

    def load(self, folder: Path) -> None:
        """Make the model in `folder` the one that plays."""
        from safetensors.torch import load_file

        from bylaw.align.training.checkpoint import open_checkpoint

        if self.player is None:
            self.player = open_checkpoint(folder, slots=SLOTS, room=3072)
            self.player.longest = self.longest
        else:
            weights = load_file(folder / "model.safetensors", device=str(self.player.generator.device))
            self.player.generator.load(weights)

    def clean(self) -> None:
        import torch

        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def evaluate(self, arm: Arm, policy: str) -> dict[str, Any]:
        """pass@1 and the words it took, on the test tasks."""
        began = time.monotonic()
        self.player.generator.forget()
        outcomes = play(self.tasks, self.player, policy=policy, side_by_side=len(self.tasks))  # pyright: ignore[reportArgumentType]
        played = time.monotonic() - began
        scores = list(self.pool.map(score, self.tasks, outcomes, chunksize=16))
        found: dict[str, Any] = msgspec.to_builtins(evaluate(self.tasks, scores))
        found["hallucination"] = self.hallucination(outcomes)
        found["seconds"] = round(played, 1)
        lines = b"".join(msgspec.json.encode(one) + b"\n" for one in scores)
        (self.logs / f"{arm.model}.{policy}.tasks.jsonl").write_bytes(lines)
        with (self.logs / f"{arm.model}.{policy}.talks.jsonl").open("wb") as file:
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
        outcomes = play(
            tasks, self.player, policy="none", side_by_side=len(tasks), overrides=[words for _, words in self.overrides]
        )
        passed = [outcome.success for outcome in outcomes]
        found = {"tasks": len(passed), "passed": sum(passed) / len(passed), "each": [int(each) for each in passed]}
        self.log(arm=arm.name, override=found["passed"], seconds=round(time.monotonic() - began, 1))
        return found


def gradient_off(model: Any, exact: Any, width: int) -> float:
    """How far gradients of packed answers that share prompts are from those of plain rows in float32."""
    import torch

    random = torch.Generator().manual_seed(width)
    ids = torch.randint(5, 100_000, (12, 400 + width), generator=random)
    ids[:, :200] = ids[0, :200]
    for first in range(0, 12, 4):
        ids[first : first + 4, :400] = ids[first, :400]
    ids = ids.cuda()
    slope = torch.randn(12, width, model.config.hidden_size, generator=random).cuda()
    found: list[Any] = []
    for one in (model, exact):
        one.zero_grad()
        states = one.base_model(input_ids=ids).last_hidden_state[:, -width:]
        (states.float() * slope).mean().backward()
        found.append(torch.cat([weight.grad.float().flatten() for weight in one.base_model.layers[3:6].parameters()]))
    model.zero_grad()
    return round(float((found[0] - found[1]).norm() / found[1].norm()), 4)


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
    if kept == "none":
        return []
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
    options.add_argument("--keep", default="12,24", help="steps of stage 3 that are tried on the development tasks")
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
    options.add_argument(
        "--overrides", default="", help="a pickle of the override tasks, which take a minute to make, or none"
    )
    options.add_argument("--tokens", action="store_true", help="write the tokens of the sets beside them, and end")
    options.add_argument("--wait", default="", help="begin the first arm when this file is there")
    given = options.parse_args()
    # Workers are forked before anything touches the GPU.
    with ProcessPoolExecutor(given.cores, mp_context=multiprocessing.get_context("fork")) as pool:
        list(pool.map(_warm, range(4 * given.cores)))
        experiment = Experiment(given, pool)
        took = dict(GUESS)
        experiment.log(begun=vars(given), tasks=len(experiment.tasks))
        experiment.prepare()
        experiment.log(ready=True)
        if given.tokens:
            return
        experiment.guarded("kernels", experiment.kernels)
        experiment.guarded("warm", experiment.warm)
        while given.wait and not Path(given.wait).exists():
            time.sleep(0.1)
        if given.first:
            experiment.guarded("overfit", experiment.overfit)
        planned = arms(given.passes, given.steps, tuple(map(int, given.keep.split(","))))
        only = given.only.split(",") if given.only else [arm.name for arm in planned]
        for arm in queue(experiment, [arm for arm in planned if arm.name in only]):
            left = experiment.left()
            if left < took.get(arm.kind, 60):
                experiment.log(arm=arm.name, skipped=f"{left:.0f} s left")
                continue
            began = time.monotonic()
            if experiment.guarded(arm.name, experiment.run, arm):
                took[arm.kind] = time.monotonic() - began
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
            failed = {path.stem for path in experiment.work.glob("*.failed")}
            hopeless = [arm for arm in open_arms if failed & {name.split("/")[0] for name in arm.needs}]
            open_arms = [arm for arm in open_arms if arm not in hopeless]
            if experiment.left() < 0:
                return
            time.sleep(0.3)


def _warm(_: int) -> None:
    _matcher()
    time.sleep(0.05)


if __name__ == "__main__":
    main()
