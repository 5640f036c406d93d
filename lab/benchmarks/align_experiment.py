"""The alignment experiment: every arm trained and evaluated in the order that leaves the most if it ends early.

    python lab/benchmarks/align_experiment.py --data DATA --base MODEL --work WORK --logs LOGS --seconds 1200

Several of these may run side by side on one GPU, as lanes: each takes the first arm that can begin and that no other
has taken. None is begun that could not end in time, one that fails does not stop the others, and a lane that was
killed takes its arm up again when it is begun anew. LOGS gets, for each arm, the metrics of its training, a line per
test task, and a summary; `lab/benchmarks/align_page.py` makes the page of results from them.
"""

import argparse
import gc
import json
import multiprocessing
import os
import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from align_arms import GUESS, SEEDS, Arm, plan
from align_changes import held_out_overrides
from align_episodes import practise_episodes, try_tasks
from align_examiner import Examiner, matcher
from align_readiness import kernels, warm

from bylaw.align.desk import load_tasks
from bylaw.align.training.data import training_rows

LEAST_SLOTS = 16
"""With fewer conversations side by side than this it is not worth going on."""
ROOMY = 0.9
"""A lane with at least this share of the GPU's memory trains beside the model that plays."""


class Experiment:
    """Runs arms one after the other, with one generator for all of them."""

    def __init__(self, options: argparse.Namespace, pool: Executor) -> None:
        self.data, self.base = Path(options.data), Path(options.base)
        self.work, self.logs = Path(options.work), Path(options.logs)
        self.began, self.seconds = options.began or time.time(), options.seconds
        self.preset = options.preset
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.longest = options.longest
        self.pool = pool
        self.tasks = load_tasks("test")[: options.tasks]
        self.development = load_tasks("development")[: options.tasks]
        self.changed = held_out_overrides()[: options.tasks]
        self.limit = options.rows
        self.asked = options.tasks
        self.player: Any = None
        self.examiner = Examiner(self)
        self.lane, self.share, self.slots = options.lane, options.share, options.slots
        self.practice: str = options.practice
        self.episodes: dict[str, Any] = json.loads(options.episodes)
        self.seeds = [int(each) for each in options.seeds.split(",")]
        self.took = dict(GUESS)
        self.tokens: dict[int, Any] = {}
        """By the list of rows that they stand for, the tokens to learn from."""
        self.logs.mkdir(parents=True, exist_ok=True)

    def left(self) -> float:
        """Seconds that are left. A file `ends` in the work folder says when, by the clock, once that is known."""
        ends = self.work / "ends"
        return (float(ends.read_text()) if ends.exists() else self.began + self.seconds) - time.time()

    def log(self, **values: Any) -> None:
        line = {"at": round(time.time() - self.began, 1), "lane": self.lane, **values}
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
        self.player = None
        self.clean()
        if self.is_broken():
            # Nothing works in this process any more. Whoever began the lane begins it again.
            self.log(arm=name, broken=True)
            os._exit(3)
        return False

    def is_broken(self) -> bool:
        """Whether the GPU no longer answers this process, as after a fault in a kernel."""
        import torch

        if not torch.cuda.is_available():
            return False
        try:
            return bool(torch.zeros(1, device="cuda").sum().item())
        except Exception:
            return True

    def make_ready(self) -> None:
        """Check the GPU, and compile for it. A file `eager` in the work folder says not to.

        A file `plain` says to write answers without flash kernels (`align_decoding.py` tells whether these are right).
        """
        if found := kernels(self.share, not (self.work / "eager").exists(), not (self.work / "plain").exists()):
            self.log(**found)
            self.log(**warm(self.base))
            self.clean()

    def run(self, arm: Arm) -> None:
        """Train or play one arm."""
        began = time.monotonic()
        folder = self.base if arm.model == "base" else self.work / arm.model
        if arm.stage and not (folder / "run.json").exists():
            done = self.train(arm, folder)
            self.log(arm=arm.name, trained=done["seconds"], loss=done["loss"], steps=done["steps"])
        if arm.is_episodic and not (folder / "run.json").exists():
            practise_episodes(self, arm, folder, self.spare(arm))
        if arm.tries:
            self.fitting(arm, self.attempt_tasks, folder)
        if arm.policy:
            self.fitting(arm, self.test, folder)
        self.log(arm=arm.name, seconds=round(time.monotonic() - began, 1))

    def fitting(self, arm: Arm, play_it: Callable[[Arm, Path], None], folder: Path) -> None:
        """Play a model; with half as many conversations at once where the GPU's memory is too small."""
        import torch

        while True:
            try:
                return play_it(arm, folder)
            except torch.OutOfMemoryError:
                if self.slots <= LEAST_SLOTS:
                    raise
                self.slots //= 2
                self.log(arm=arm.name, slots=self.slots)
            self.player = None
            self.clean()

    def attempt_tasks(self, arm: Arm, folder: Path) -> None:
        """Every practice task once."""
        self.load(folder)
        try_tasks(self, arm)

    def spare(self, arm: Arm) -> float:
        """Seconds that one seed may practise for, so that the others can do the same."""
        later = len(self.seeds) - 1 - self.seeds.index(arm.seed)
        rest = self.took["control"] + 3 * self.took["test"]
        chain = self.took["stage2"] + self.took["tried"] + rest
        return (self.left() - rest - later * chain) / (1 + later)

    def test(self, arm: Arm, folder: Path) -> None:
        """The test tasks, and the knowledge test."""
        done = folder / "run.json"
        training = json.loads(done.read_text()) if done.exists() else None
        summary: dict[str, Any] = {"arm": msgspec.to_builtins(arm), "training": training}
        self.load(folder)
        summary[arm.policy] = self.examiner.evaluate(arm)
        summary["held_out"] = self.examiner.held_out(arm)
        summary["changed"] = self.examiner.changed(arm)
        (self.logs / f"{arm.label}.json").write_text(json.dumps(summary) + "\n", encoding="utf-8")

    def write_development(self, arm: Arm, passed: Sequence[bool]) -> None:
        """What became of the development tasks."""
        found = {
            "passed": sum(passed) / len(passed),
            "each": {task.id: int(one) for task, one in zip(self.development, passed, strict=True)},
        }
        self.log(arm=arm.name, development=found["passed"])
        (self.logs / f"{arm.label}.development.json").write_text(json.dumps(found) + "\n", encoding="utf-8")

    def prepare(self) -> None:
        """Have every supervised set as tokens once, for all arms that learn from it.

        `NAME.tokens.parquet` in place of a set holds them already (`align_data.py --tokens` writes it). A file
        `pending` in the folder says that it is still being written.
        """
        from datasets import Dataset
        from pyarrow import parquet
        from transformers import AutoTokenizer

        from bylaw.align.training.dialect import Dialect
        from bylaw.align.training.preset import PRESETS
        from bylaw_lab.training import run as training

        while (self.data / "pending").exists():
            time.sleep(0.1)
        self.tokenizer = AutoTokenizer.from_pretrained(self.base)
        dialect = Dialect(self.tokenizer)
        longest = PRESETS[self.preset].supervised.longest
        plain = training.examples
        done = self.tokens
        for file in sorted(self.data.glob("*.jsonl*")):
            name = file.name.split(".")[0]
            self.rows[name] = training_rows(file, 1)[: self.limit]
            done[id(self.rows[name])] = plain(self.rows[name], dialect, longest)
        for file in self.data.glob("*.tokens.parquet"):
            name = file.name.split(".")[0]
            if name not in self.rows:
                table = parquet.read_table(file)[: self.limit]
                self.rows[name] = [{} for _ in range(table.num_rows)]
                done[id(self.rows[name])] = Dataset(table), 0

        def examples(rows: Any, *others: Any) -> Any:
            return done[id(rows)] if id(rows) in done else plain(rows, *others)

        training.examples = examples

    def train(self, arm: Arm, folder: Path) -> dict[str, Any]:
        """Train one arm; with half as many rows at once where the GPU's memory is too small."""
        import torch

        from bylaw.align.training.preset import PRESETS

        at_once = PRESETS[self.preset].supervised.at_once
        if arm.stage == 2:
            at_once //= 2  # Its conversations have twice as many tokens of their own.
        while True:
            try:
                return self.attempt(arm, folder, at_once)
            except torch.OutOfMemoryError:
                at_once //= 2
                self.log(arm=arm.name, at_once=at_once)
            self.clean()

    def attempt(self, arm: Arm, folder: Path, at_once: int) -> dict[str, Any]:
        from bylaw_lab.training.run import Run, train

        start = self.base if arm.start == "base" else self.work / arm.start
        if self.share < ROOMY:
            # Its memory is needed.
            self.player = None
            self.clean()
        changes = {"epochs": arm.epochs, "at_once": at_once, **arm.changes}
        run = Run(
            stage=1 if arm.stage == 1 else 2,
            model=start,
            out=folder,
            preset=self.preset,
            seed=arm.seed,
            changes=changes,
            steps=json.loads((self.work / arm.matches / "run.json").read_text())["steps"] if arm.matches else None,
            save_every=None,
            tensorboard=False,
            resume=False,
        )
        (folder / "metrics.jsonl").unlink(missing_ok=True)
        done = train(run, self.rows[arm.data])
        shutil.copy(folder / "metrics.jsonl", self.logs / f"{arm.name}.train.jsonl")
        self.clean()
        return done

    def load(self, folder: Path) -> None:
        """Make the model in `folder` the one that plays."""
        from safetensors.torch import load_file

        from bylaw_lab.training.checkpoint import open_checkpoint

        if self.player is None:
            self.player = open_checkpoint(folder, slots=self.slots, room=3072)
            self.player.longest = self.longest
        else:
            weights = load_file(folder / "model.safetensors", device=str(self.player.generator.device))
            self.player.generator.load(weights)

    def clean(self) -> None:
        import torch

        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def main() -> None:
    """Run what there is time for."""
    options = argparse.ArgumentParser()
    for name in ("data", "base", "work", "logs"):
        options.add_argument(f"--{name}", required=True)
    options.add_argument("--seconds", type=float, default=1e9)
    options.add_argument("--began", type=float, help="when the seconds began, by the clock; now without it")
    options.add_argument("--preset", default="small")
    options.add_argument("--passes", type=float, default=2.0, help="over the conversations, in each of stages 1 and 2")
    options.add_argument("--share", type=float, default=1.0, help="of the GPU's memory that this lane may take")
    options.add_argument("--lane", default="a", help="the name of this one of several that run side by side")
    options.add_argument("--slots", type=int, default=256, help="conversations that are played side by side")
    options.add_argument("--plays", action="store_true", help="this lane trains nothing")
    options.add_argument("--practice", required=True, help="tasks to practise on, as gzipped JSON lines")
    options.add_argument("--episodes", default="{}", help="settings of practice on whole conversations, as JSON")
    options.add_argument("--seeds", default=",".join(map(str, SEEDS)), help="which")
    options.add_argument(
        "--parts", default="worked,fair", help="of worked, fair, asked, checked, episodes: what to run, in order"
    )
    options.add_argument("--rows", type=int)
    options.add_argument("--tasks", type=int)
    options.add_argument("--longest", type=int, default=200)
    options.add_argument("--cores", type=int, default=multiprocessing.cpu_count())
    options.add_argument("--only", default="")
    options.add_argument("--wait", default="", help="begin the first arm when this file is there")
    given = options.parse_args()
    # Workers are forked before anything touches the GPU.
    with ProcessPoolExecutor(given.cores, mp_context=multiprocessing.get_context("fork")) as pool:
        list(pool.map(_warm, range(4 * given.cores)))
        experiment = Experiment(given, pool)
        took = experiment.took
        experiment.log(begun=vars(given), tasks=len(experiment.tasks))
        experiment.guarded("readiness", experiment.make_ready)
        experiment.prepare()
        experiment.log(ready=True)
        while given.wait and not Path(given.wait).exists():
            time.sleep(0.1)
        arms = plan(given.parts.split(","), given.passes, experiment.seeds)
        planned = [arm for arm in arms if not (given.plays and arm.is_training)]
        only = given.only.split(",") if given.only else [arm.name for arm in planned]
        for arm in queue(experiment, [arm for arm in planned if arm.name in only]):
            left, needed = experiment.left(), took[arm.kind]
            if (arm.stage or arm.is_episodic) and not arm.name.startswith("stage1"):
                needed += took["test"]  # A model that is not played is worth nothing.
            if left < needed:
                experiment.log(arm=arm.name, skipped=f"{left:.0f} s left")
                (experiment.work / "failed" / arm.name).touch()
                continue
            began = time.monotonic()
            if experiment.guarded(arm.name, experiment.run, arm):
                took[arm.kind] = time.monotonic() - began
                (experiment.work / "done" / arm.name).touch()
            else:
                (experiment.work / "failed" / arm.name).touch()
        experiment.log(ended=True)


def queue(experiment: Experiment, wanted: Sequence[Arm]) -> Iterator[Arm]:
    """Arms that no lane has taken, the first that can begin each time; waits where all wait for others."""
    claims, done, failed = (experiment.work / name for name in ("claims", "done", "failed"))
    for folder in (claims, done, failed):
        folder.mkdir(parents=True, exist_ok=True)
    for claim in claims.iterdir():
        # What this lane was at when it was killed. What killed it twice is given up.
        lane, *again = claim.read_text().split()
        if lane != experiment.lane or any((one / claim.name).exists() for one in (done, failed)):
            continue
        if again:
            (failed / claim.name).touch()
        else:
            claim.write_text(f"{lane} again")
            yield next(arm for arm in wanted if arm.name == claim.name)
    open_arms = list(wanted)
    while open_arms:
        open_arms = [arm for arm in open_arms if not (claims / arm.name).exists()]
        for arm in open_arms:
            if all((done / name).exists() for name in arm.needs):
                try:
                    with (claims / arm.name).open("x") as claim:
                        claim.write(experiment.lane)
                except FileExistsError:
                    break
                yield arm
                break
        else:
            lost = {path.name for path in failed.iterdir()}
            for arm in [arm for arm in open_arms if lost & set(arm.needs)]:
                (failed / arm.name).touch()
                open_arms.remove(arm)
            if experiment.left() < 0:
                return
            time.sleep(0.3)


def _warm(_: int) -> None:
    matcher()
    time.sleep(0.05)


if __name__ == "__main__":
    main()
