"""`bylaw align train`: one stage of training, from a model and a data set to a model that learned."""

import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from bylaw.align.reward import Mismatch
from bylaw.align.training.data import pack_of, rows_file, training_rows
from bylaw.align.training.model_card import source_of
from bylaw.align.training.preset import PresetName, settings_of
from bylaw.align.training.scoring import graded, open_judge, scorer
from bylaw.errors import UsageError


@click.command("train")
@click.option("--stage", type=click.Choice(["1", "2", "3"]), required=True, help="1 and 2: SFT; 3: GRPO.")
@click.option(
    "--model", metavar="FOLDER", type=click.Path(path_type=Path), required=True, help="The model to begin with."
)
@click.option("--data", metavar="FOLDER|FILE", type=click.Path(path_type=Path), required=True, help="The data sets.")
@click.option("--out", metavar="FOLDER", type=click.Path(path_type=Path), required=True, help="Where the model goes.")
@click.option(
    "--preset", type=click.Choice(["paper", "small", "tiny"]), default="small", help="Settings to begin with."
)
@click.option(
    "--lora", metavar="RANK", type=click.IntRange(min=1), help="Train adapters of this rank, not all weights."
)
@click.option("--steps", metavar="N", type=click.IntRange(min=1), help="Take this many steps, whatever the epochs.")
@click.option("--seed", metavar="N", type=int, default=1, help="Seed for the order of rows and the answers tried.")
@click.option(
    "--set", "changes", metavar="NAME=VALUE", multiple=True, help="Change a setting of the preset. May be repeated."
)
@click.option(
    "--reward",
    "terms",
    default="full",
    metavar="TERMS",
    help="Stage 3: full, or some of tf, pr, hp, lp, vc joined by +; vc=3 gives compliance weight 3.",
)
@click.option("--pack", metavar="PACK", help="Stage 3: the pack to grade by, unless `data.json` beside the rows tells.")
@click.option(
    "--judge",
    metavar="MODEL",
    help="Stage 3: a model at OPENAI_BASE_URL marks texts, as in the paper; by default their slots do.",
)
@click.option(
    "--mismatch",
    type=click.Choice(["floor", "paper"]),
    default="floor",
    help="Stage 3: what a call is worth where text was due, or the reverse: -3, or the paper's 0.",
)
@click.option("--fresh", is_flag=True, help="Start over even if the folder holds a checkpoint.")
def train_command(
    stage: str,
    model: Path,
    data: Path,
    out: Path,
    preset: PresetName,
    lora: int | None,
    steps: int | None,
    seed: int,
    changes: tuple[str, ...],
    terms: str,
    pack: str | None,
    judge: str | None,
    mismatch: Mismatch,
    fresh: bool,
) -> None:
    """Train one stage. A run that was killed goes on from its last checkpoint, at most two minutes back."""
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
        raise UsageError("--pack and --judge are for stage 3", hint="leave them out: stages 1 and 2 grade nothing")
    if ungraded:
        click.echo(f"{ungraded} texts are left out: only a judge can mark them (--judge)", err=True)
    try:
        run: Any = importlib.import_module("bylaw.align.training.run")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"training needs `{error.name}`", hint="in your clone of Bylaw: pip install '.[train]'"
        ) from None
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
