"""One stage of training, from a model and a data set to a folder with the model that learned."""
# pyright: basic, reportMissingImports=false

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from msgspec import Struct, to_builtins
from transformers import AutoModelForCausalLM, AutoTokenizer

from bylaw.align.training import reinforced, supervised
from bylaw.align.training.dialect import Dialect
from bylaw.align.training.model_card import write_model_card
from bylaw.align.training.optimizer import RoundedAdamW
from bylaw.align.training.preset import PresetName, Reinforced, Supervised, settings_of
from bylaw.align.training.record import SAVE_EVERY, Clock, Lines, last_checkpoint
from bylaw.align.training.shared_prefix import share_prefix

Stage = Literal[1, 2, 3]


class Run(Struct, frozen=True, kw_only=True):
    """What one run of a stage is to do."""

    stage: Stage
    model: Path
    """The folder of the model to begin with."""
    out: Path
    preset: PresetName = "small"
    seed: int = 1
    lora: int | None = None
    """Rank of the adapters; all weights are trained without it."""
    steps: int | None = None
    """Steps to take, where it is not the preset's epochs that say it."""
    changes: Mapping[str, Any] = {}
    """Settings of the preset to change."""
    save_every: float | None = SAVE_EVERY
    """Seconds between checkpoints; None for none."""
    until: float | None = None
    """Where `time.monotonic()` ends the run, finished or not."""
    resume: bool = True
    """Go on from the last checkpoint in `out`, where there is one."""
    tensorboard: bool = True
    source: Mapping[str, Any] = {}
    """Where rows, first weights and reward came from, for the record."""


def train(run: Run, rows: Sequence[Mapping[str, Any]], score: reinforced.Score | None = None) -> dict[str, Any]:
    """Run the stage over `rows`; stage 3 needs `score`. Leaves the model in `run.out`; says what it did."""
    began = time.monotonic()
    run.out.mkdir(parents=True, exist_ok=True)
    tokenizer = AutoTokenizer.from_pretrained(run.model)
    dialect = Dialect(tokenizer)
    cuda = torch.cuda.is_available()
    model: Any = AutoModelForCausalLM.from_pretrained(run.model, dtype=torch.bfloat16 if cuda else torch.float32)
    settings = settings_of(run.preset, run.stage, run.changes)
    if not settings.recompute:
        share_prefix(model)
    adapters = None
    if run.lora:
        from peft import LoraConfig

        adapters = LoraConfig(r=run.lora, lora_alpha=2 * run.lora, target_modules="all-linear")
    others: dict[str, Any] = {
        "peft_config": adapters,
        "callbacks": [Lines(run.out / "metrics.jsonl"), Clock(run.save_every, run.until)],
    }
    if adapters is None:
        others["optimizers"] = (RoundedAdamW(model.parameters(), lr=settings.learning_rate), None)
    shared = arguments(run, settings)
    left_out = 0
    if isinstance(settings, Reinforced):
        assert score is not None
        trainer: Any = reinforced.trainer(model, rows, dialect, settings, shared, score, **others)
        if trainer.ref_model is not None and not settings.recompute:
            share_prefix(trainer.accelerator.unwrap_model(trainer.ref_model))
    else:
        data, left_out = supervised.examples(rows, dialect, settings.longest)
        trainer = supervised.trainer(model, data, dialect, settings, shared, **others)
    found = last_checkpoint(run.out) if run.resume else None
    result = trainer.train(resume_from_checkpoint=str(found) if found else None)
    trained = trainer.accelerator.unwrap_model(trainer.model)
    if trainer.accelerator.is_main_process:
        if adapters is not None:
            trained.save_pretrained(run.out / "adapter")
            trained = trained.merge_and_unload()
        trained.save_pretrained(run.out)
        tokenizer.save_pretrained(run.out)
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
        (run.out / "run.json").write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
        write_model_card(run.out, done)
    return done


def arguments(run: Run, settings: Supervised | Reinforced) -> dict[str, Any]:
    """The trainer's arguments that every stage shares."""
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
