"""What a training run leaves behind while it goes on: a line of metrics for each step, and checkpoints by the clock."""
# pyright: basic, reportMissingImports=false

import json
import shutil
import time
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

SAVE_EVERY = 90.0
"""Seconds between checkpoints: a run that is killed loses less than two minutes."""


class Lines(TrainerCallback):
    """Appends every logged set of metrics to `metrics.jsonl`, with its step and the seconds since the run began."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.began = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        if not state.is_world_process_zero or not logs:
            return
        line = {"step": state.global_step, "seconds": round(time.monotonic() - self.began, 2)}
        line |= {name: round(value, 6) if isinstance(value, float) else value for name, value in logs.items()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


class Clock(TrainerCallback):
    """Asks for a checkpoint when the last one is older than `seconds`, and ends a run whose time is up."""

    def __init__(self, seconds: float | None, until: float | None = None) -> None:
        self.seconds = seconds
        self.until = until
        self.saved = time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.saved = time.monotonic()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if self.seconds is not None and time.monotonic() - self.saved >= self.seconds:
            control.should_save = True
        if self.until is not None and time.monotonic() >= self.until:
            control.should_training_stop = True

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.saved = time.monotonic()


def last_checkpoint(out: Path) -> Path | None:
    """The newest whole checkpoint. One that a kill left half written is removed."""
    found = sorted(out.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    while found:
        # The trainer writes its own state last.
        if (found[-1] / "trainer_state.json").exists():
            return found[-1]
        shutil.rmtree(found.pop())
    return None
