"""Runs one stage of training with TRL on a model and a data set, and writes the trained model to a folder."""
# pyright: basic, reportMissingImports=false

import json
import os
import random
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from msgspec import Struct, to_builtins
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import DPOConfig, DPOTrainer, GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

from bylaw.align.export import output_of
from bylaw.align.training.preset import Preferred, PresetName, Reinforced, Settings, Stage, Supervised, settings_of
from bylaw.align.training.stage import with_dialect, write_model_card

# With a mask, PyTorch 2.11 chooses cuDNN's attention on Hopper GPUs. Its gradients are NaN for some lengths
# (pytorch/pytorch#196678).
torch.backends.cuda.enable_cudnn_sdp(False)

SAVE_EVERY = 90.0
"""The number of seconds between checkpoints. A killed run loses at most this much work."""


class Lines(TrainerCallback):
    """Appends metrics to `metrics.jsonl`, with the step and the seconds since the start."""

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
    """Requests a checkpoint if the last one is older than `seconds`, and stops a run at its time limit."""

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
    """Return the newest complete checkpoint. Removes an incomplete one."""
    found = sorted(out.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    while found:
        # The trainer writes its own state last.
        if (found[-1] / "trainer_state.json").exists():
            return found[-1]
        shutil.rmtree(found.pop())
    return None


Row = Mapping[str, Any]
Score = Callable[[Sequence[str], Sequence[Row]], list[Mapping[str, float]]]
"""Returns the reward terms and the `total` for each completion of the turn in a row."""


class Run(Struct, frozen=True, kw_only=True):
    stage: Stage
    model: Path
    """The folder of the initial model."""
    out: Path
    preset: PresetName = "small"
    seed: int = 1
    lora: int | None = None
    """The rank of the adapters. Without adapters, all weights are trained."""
    steps: int | None = None
    """The number of training steps. It replaces the number of epochs in the preset."""
    changes: Mapping[str, Any] = {}
    """Changes to the preset's settings."""
    save_every: float | None = SAVE_EVERY
    """The number of seconds between checkpoints. None means no checkpoints."""
    until: float | None = None
    """The `time.monotonic()` value at which the run stops, even if unfinished."""
    resume: bool = True
    """Whether to continue from the last checkpoint in `out`."""
    tensorboard: bool = True
    source: Mapping[str, Any] = {}
    """The origin of the rows, weights and reward, for the record of the run."""


def train(run: Run, rows: Sequence[Row], score: Score | None = None) -> dict[str, Any]:
    """Train on `rows`, save the model in `run.out`, and return the record of the run. Stage 3 needs `score`."""
    began = time.monotonic()
    run.out.mkdir(parents=True, exist_ok=True)
    settings = settings_of(run.preset, run.stage, run.changes)
    tokenizer = with_dialect(AutoTokenizer.from_pretrained(run.model))
    trainer, left_out = make_trainer(run, settings, tokenizer, rows, score)
    found = last_checkpoint(run.out) if run.resume else None
    result = trainer.train(resume_from_checkpoint=str(found) if found else None)
    trained = trainer.accelerator.unwrap_model(trainer.model)
    done = {
        "stage": run.stage,
        "seed": run.seed,
        "preset": run.preset,
        "lora": run.lora,
        "rows": len(rows),
        "left_out": left_out,
        "steps": trainer.state.global_step,
        "resumed_from": found.name if found else None,
        "loss": result.training_loss,
        "seconds": round(time.monotonic() - began, 2),
        "settings": to_builtins(settings),
        "source": dict(run.source),
    }
    if trainer.accelerator.is_main_process:
        if run.lora:
            trained.save_pretrained(run.out / "adapter")
            trained = trained.merge_and_unload()
        trained.save_pretrained(run.out)
        tokenizer.save_pretrained(run.out)
        (run.out / "run.json").write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
        write_model_card(run.out, done)
    return done


def make_trainer(
    run: Run, settings: Settings, tokenizer: Any, rows: Sequence[Row], score: Score | None = None
) -> tuple[Any, int]:
    """Return TRL's trainer and the number of overlong rows.

    The trainer is SFT in stages 1 and 2, GRPO in stage 3, or DPO.
    """
    given: dict[str, Any] = {
        "model": AutoModelForCausalLM.from_pretrained(run.model, dtype=torch.float32),
        "processing_class": tokenizer,
        **extras(run),
    }
    shared = arguments(run, settings) | {"bf16": torch.cuda.is_available()}
    if isinstance(settings, Supervised):
        kept = [{"messages": row["messages"]} for row in rows if _tokens(tokenizer, row) <= settings.longest]
        # The sampler ignores the seed, so shuffle the rows here.
        random.Random(run.seed).shuffle(kept)
        data = Dataset.from_list(kept)
        # Train only on the agent's turns. Each step processes conversations of similar length together.
        chosen = {"assistant_only_loss": True, "train_sampling_strategy": "batch_rebalance"}
        config = SFTConfig(**shared, **chosen, max_length=None, packing=False, loss_type="nll")
        return SFTTrainer(args=config, train_dataset=data, **given), len(rows) - len(kept)
    if isinstance(settings, Preferred):
        pairs = Dataset.from_list([{name: row[name] for name in ("prompt", "chosen", "rejected")} for row in rows])
        return DPOTrainer(args=dpo_config(shared, settings), train_dataset=pairs, **given), 0
    assert score is not None
    prompts = Dataset.from_list([{"prompt": row["prompt"], "row": place} for place, row in enumerate(rows)])
    reward = rewarded(rows, score)
    return GRPOTrainer(args=grpo_config(shared, settings), train_dataset=prompts, reward_funcs=reward, **given), 0


def extras(run: Run) -> dict[str, Any]:
    """Return the arguments that all trainers share: for metrics, timed checkpoints and adapters."""
    adapters = None
    if run.lora:
        from peft import LoraConfig

        adapters = LoraConfig(r=run.lora, lora_alpha=2 * run.lora, target_modules="all-linear")
    callbacks = [Lines(run.out / "metrics.jsonl"), Clock(run.save_every, run.until)]
    return {"peft_config": adapters, "callbacks": callbacks}


def arguments(run: Run, settings: Settings) -> dict[str, Any]:
    devices = int(os.environ.get("WORLD_SIZE", "1"))
    at_once = min(settings.at_once, settings.batch)
    if run.tensorboard:
        os.environ["TENSORBOARD_LOGGING_DIR"] = str(run.out / "tensorboard")
    return {
        "output_dir": str(run.out),
        "seed": run.seed,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "cosine_with_min_lr",
        "lr_scheduler_kwargs": {"min_lr": settings.least_learning_rate},
        "warmup_steps": settings.warmup,
        "num_train_epochs": settings.epochs,
        "max_steps": run.steps or -1,
        "per_device_train_batch_size": at_once,
        "gradient_accumulation_steps": max(1, settings.batch // (at_once * devices)),
        "max_grad_norm": settings.gradient_norm,
        "gradient_checkpointing": settings.recompute,
        "bf16": False,
        "fp16": False,
        "logging_steps": 1,
        "save_strategy": "no" if run.save_every is None else "steps",
        "save_steps": 10**9,
        "save_total_limit": 2,
        "report_to": ["tensorboard"] if run.tensorboard else [],
        "disable_tqdm": True,
    }


def _tokens(tokenizer: Any, row: Row) -> int:
    return len(tokenizer.apply_chat_template(row["messages"], tokenize=True, return_dict=True)["input_ids"])


def dpo_config(shared: dict[str, Any], settings: Preferred) -> DPOConfig:
    losses = {"loss_type": ["sigmoid", "sft"], "loss_weights": [1.0, settings.imitation]}
    return DPOConfig(**shared, **losses, beta=settings.beta, max_length=None)


def grpo_config(shared: dict[str, Any], settings: Reinforced) -> GRPOConfig:
    """Return the configuration for stage 3, with the paper's loss."""
    return GRPOConfig(
        **shared,
        beta=settings.beta,
        num_generations=settings.generations,
        num_iterations=settings.iterations,
        temperature=settings.temperature,
        max_completion_length=settings.longest_answer,
        generation_batch_size=settings.rollout,
        loss_type="grpo",
        scale_rewards=settings.scale,
        remove_unused_columns=False,
    )


def rewarded(rows: Sequence[Row], score: Score) -> Callable[..., list[float]]:
    """Return `score` as a TRL reward. Logs the mean of each term under its name."""

    def reward(completions: Any, row: list[int], log_metric: Any = None, **_: Any) -> list[float]:
        terms = score([output_of(each) for each in completions], [rows[place] for place in row])
        if log_metric is not None:
            for name in terms[0]:
                log_metric(f"reward/{name}", sum(one[name] for one in terms) / len(terms))
        return [one["total"] for one in terms]

    return reward
