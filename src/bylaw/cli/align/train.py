"""`bylaw align train`: one stage of training."""

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import click

from bylaw.align.reward import Mismatch
from bylaw.align.training.data import pack_of, rows_file, training_rows
from bylaw.align.training.model_card import source_of
from bylaw.align.training.preset import PresetName, settings_of
from bylaw.align.training.scoring import graded, open_judge, scorer
from bylaw.cli.command import Count, command
from bylaw.errors import MissingExtra, UsageError


@command("train")
def train_command(
    *,
    stage: Annotated[str, click.Choice(["1", "2", "3"]), "1 and 2: SFT; 3: GRPO."],
    model: Annotated[Path, "--model FOLDER", "The model to start from."],
    data: Annotated[Path, "--data FOLDER|FILE", "The data sets."],
    out: Annotated[Path, "--out FOLDER", "Folder for the trained model."],
    preset: Annotated[PresetName, "Settings to start from."] = "small",
    lora: Annotated[Count | None, "--lora RANK", "Train adapters of this rank instead of all weights."] = None,
    steps: Annotated[Count | None, "Train for this many steps, regardless of epochs."] = None,
    seed: Annotated[int, "--seed N", "Seed for the order of rows and the sampled answers."] = 1,
    changes: Annotated[tuple[str, ...], "--set NAME=VALUE", "Change a setting of the preset; may be repeated."] = (),
    terms: Annotated[
        str,
        "--reward TERMS",
        "Stage 3: full, or a sum of tf, pr, hp, lp and vc; vc=3 gives compliance the weight 3.",
    ] = "full",
    pack: Annotated[
        str | None, "--pack PACK", "Stage 3: the pack to grade by; by default the one in `data.json`."
    ] = None,
    judge: Annotated[
        str | None,
        "--judge MODEL",
        "Stage 3: a model at OPENAI_BASE_URL that grades texts, as in the paper, instead of their slots.",
    ] = None,
    mismatch: Annotated[
        Mismatch, "Stage 3: reward of a call instead of text, or the reverse: -3, or 0 as in the paper."
    ] = "floor",
    fresh: Annotated[bool, "Start over even if the folder has a checkpoint."] = False,
) -> None:
    """Train one of the three stages.

    A killed run resumes from its last checkpoint, at most two minutes old.
    """
    changed = dict(map(_setting, changes))
    settings_of(preset, int(stage), changed)
    if not (model / "config.json").exists():
        raise UsageError(f"there is no model in `{model}`", hint="a folder with config.json, weights and a tokenizer")
    rows: Sequence[Mapping[str, Any]] = training_rows(data, int(stage))
    score: Any = None
    ungraded = 0
    reward: dict[str, Any] = {}
    if stage == "3":
        held = pack_of(data, pack)
        rows, ungraded = graded(rows, held.name, has_judge=judge is not None)
        score = scorer(terms, pack=held.name, mismatch=mismatch, judge=open_judge(judge))
        reward = {"terms": terms, "mismatch": mismatch, "judge": judge, "pack": held.name}
        reward = {"reward": reward | {"pack_sha256": held.pack.digest}}
    elif pack is not None or judge is not None:
        raise UsageError("--pack and --judge are for stage 3", hint="leave them out")
    if ungraded:
        click.echo(f"{ungraded} texts are left out: only a judge can grade them (--judge)", err=True)
    try:
        run: Any = importlib.import_module("bylaw.align.training.run")
    except ModuleNotFoundError as error:
        raise MissingExtra(f"training needs `{error.name}`", "train") from None
    request = run.Run(
        stage=int(stage),
        model=model,
        out=out,
        preset=preset,
        lora=lora,
        steps=steps,
        seed=seed,
        changes=changed,
        resume=not fresh,
        source=source_of(data, rows_file(data, int(stage)), model) | reward,
    )
    click.echo(json.dumps(run.train(request, rows, score)))


def _setting(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    if not name or not value:
        raise UsageError(f"`{text}` is not a setting", hint="as in --set learning_rate=1e-5")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value
