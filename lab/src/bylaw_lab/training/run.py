"""The stages of `bylaw align train` with the lab's kernels: shared prefixes, packed rows, weights in bfloat16."""
# pyright: basic, reportMissingImports=false

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import torch
from transformers import AutoModelForCausalLM
from trl import SFTTrainer

from bylaw.align.training import preset
from bylaw.align.training import run as wheel
from bylaw.align.training.dialect import Dialect
from bylaw.align.training.run import Made, Row, Run, Score, arguments, examples, extras, sft_config
from bylaw_lab.training import reinforced
from bylaw_lab.training.optimizer import RoundedAdamW
from bylaw_lab.training.shared_prefix import share_prefix

__all__ = ["Reinforced", "Run", "settings_of", "train"]


class Reinforced(preset.Reinforced, frozen=True, forbid_unknown_fields=True):
    """Settings of stage 3 with the lab's trainer."""

    learn_from: Literal["all", "differing", "balanced"] = "all"
    """Prompts that a step learns from, of those it tries: all; those whose answers differ in their rewards; or the
    latter, with turns where it is right to refuse weighing as much as those where it is right to go on."""


def settings_of(run: Run) -> preset.Supervised | Reinforced:
    """The settings of a run; those of stage 3 have `learn_from`."""
    changes = dict(run.changes)
    learn_from = changes.pop("learn_from", "all")
    found = preset.settings_of(run.preset, run.stage, changes)
    if isinstance(found, preset.Supervised):
        return found
    return msgspec.convert({**msgspec.to_builtins(found), "learn_from": learn_from}, Reinforced)


def train(run: Run, rows: Sequence[Mapping[str, Any]], score: Score | None = None) -> dict[str, Any]:
    """Run the stage over `rows`, as `bylaw.align.training.run.train` does."""
    return wheel.train(run, rows, score, settings=settings_of(run), make=make_trainer)


def make_trainer(run: Run, settings: Any, dialect: Dialect, rows: Sequence[Row], score: Score | None = None) -> Made:
    """A trainer whose model computes what rows share once."""
    dtype = torch.bfloat16 if torch.cuda.is_available() else torch.float32
    model: Any = AutoModelForCausalLM.from_pretrained(run.model, dtype=dtype)
    if not settings.recompute:
        share_prefix(model)
    others = extras(run)
    if not run.lora:
        others["optimizers"] = (RoundedAdamW(model.parameters(), lr=settings.learning_rate), None)
    shared = arguments(run, settings)
    if isinstance(settings, preset.Supervised):
        data, left_out = examples(rows, dialect, settings.longest)
        given: dict[str, Any] = {"processing_class": dialect.tokenizer, **others}
        return Made(SFTTrainer(model=model, args=sft_config(shared), train_dataset=data, **given), left_out)
    assert score is not None
    trainer: Any = reinforced.trainer(model, rows, dialect, settings, shared, score, **others)
    if trainer.ref_model is not None and not settings.recompute:
        share_prefix(trainer.accelerator.unwrap_model(trainer.ref_model))
    return Made(trainer)
