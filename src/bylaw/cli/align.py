"""The command `bylaw align` trains a model to recall the right policy.

Each subcommand imports only the modules that it uses.
"""

import importlib
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import click
import msgspec
from msgspec import Struct

from bylaw.align.reward import Mismatch
from bylaw.align.training.preset import PresetName
from bylaw.cli.command import Count, File, Folder, GivenFile, Name, PackOption, command
from bylaw.cli.group import InOrder
from bylaw.cli.logs import open_logs
from bylaw.errors import BylawError, MissingExtra, UsageError
from bylaw.trace.event import Trajectory
from bylaw.trace.source import LogFile

if TYPE_CHECKING:
    from bylaw.align.export import Trainer
    from bylaw.align.suitability import Auditor


@click.group("align", cls=InOrder)
def align_command() -> None:
    """Train a model to recall the right policy, and evaluate it."""


Placed = tuple[LogFile, Trajectory | BylawError]

SomeLogs = Annotated[tuple[Path, ...], "[LOGS]..."]
SomePack = Annotated[
    str | None,
    "--pack PACK",
    "The folder of a pack, or the name of a built-in pack (default: the audit's pack, or `clinic`).",
]
EarlierAudit = Annotated[
    Path | None,
    "--audit DIR",
    click.Path(path_type=Path, exists=True, file_okay=False),
    "Use this audit instead of auditing the logs again.",
]


class Sources(Struct, frozen=True):
    logs: tuple[Path, ...]
    pack: str
    auditor: "Auditor"
    agent: str | None = None
    expected: int | None = None
    """The number of conversations that an earlier audit judged, or None if there is no audit."""

    def checked(self, placed: Iterable[Placed]) -> Iterator[Placed]:
        """Yield the conversations.

        At the end, raise UsageError if their number differs from the number in the audit.
        """
        count = 0
        for file, each in placed:
            count += isinstance(each, Trajectory)
            yield file, each
        if self.expected is not None and count != self.expected:
            hint = "pass the logs that were audited, or audit the logs here with --world"
            raise UsageError(f"the audit judged {self.expected} conversations, but the logs have {count}", hint=hint)


def command_line() -> str:
    """Return the command as the user typed it."""
    return shlex.join(["bylaw", *sys.argv[1:]])


def sources(
    logs: Sequence[Path], pack: str | None, world: Path | None, audit: Path | None, document: Path | None
) -> Sources:
    """Return the sources that the options name. If an audit is given, use its logs and its pack."""
    from bylaw.align.prompt import pack_named
    from bylaw.align.suitability import FreshAudit, KeptAudit

    if audit is None:
        name = pack or "clinic"
        return Sources(tuple(logs), name, FreshAudit(name, world=world, document=document))
    if world is not None:
        raise UsageError("--audit and --world cannot be combined", hint="pass only one of them")
    kept = KeptAudit(audit)
    audited = kept.audited
    if audited is None:
        hint = "audit them here with --world"
        raise UsageError("a redacted audit does not record where its logs are", place=str(audit), hint=hint)
    if kept.store.summary["skipped"] and kept.store.summary["repeated_ids"]:
        raise UsageError(
            "the audit skipped some conversations and some ids are repeated, so Bylaw cannot match the audit's lines to"
            " the logs",
            place=str(audit),
            hint="audit the logs here with --world",
        )
    name = pack or audited.pack
    if pack_named(name).digest not in kept.digests:
        hint = "audit the logs again"
        raise UsageError(f"the audit used another version of pack `{name}`", place=str(audit), hint=hint)
    found = tuple(logs) or tuple(map(Path, audited.logs))
    return Sources(found, name, kept, audited.agent, kept.conversations)


@command("thoughts", align_command)
def thoughts_command(
    logs: Annotated[tuple[Path, ...], "Recorded conversations: files or folders."],
    *,
    pack: PackOption,
    out: Annotated[File, "Output file (default: standard output)."] = None,
    seed: Annotated[int, "--seed N", "Seed for the wording."] = 1,
    limit: Annotated[Count | None, "Stop after this many turns."] = None,
    written: Annotated[bool, "Let a model write and refine thoughts, instead of deriving them from guards."] = False,
    llm: Annotated[str, "--llm MODEL", "A model at OPENAI_BASE_URL, batch:DIR, or recorded."] = "",
    kept: Annotated[Folder, "Folder for questions and answers."] = None,
    thresholds: Annotated[str, "--thresholds RUBRIC=N,...", "The minimum score for each rubric."] = "",
    rounds: Annotated[int, "--rounds N", click.IntRange(min=0), "Maximum number of refinements per thought."] = 4,
    whole_policy: Annotated[bool, "Show the model the whole document, not one sentence per policy."] = False,
    dry_run: Annotated[bool, "Print the number and cost of requests, and exit."] = False,
) -> int:
    """Write a thought for each recorded turn, from the guards or a model."""
    from bylaw.align.thoughts import verified_lines, written_lines
    from bylaw.pack import load_pack

    held = load_pack(pack)
    if not written and (llm or dry_run):
        raise UsageError("verified thoughts do not use a model", hint="add --written, or remove --llm and --dry-run")
    model: dict[str, Any] = {"llm": llm, "kept": kept, "thresholds": _thresholds(thresholds), "rounds": rounds}
    model |= {"whole_policy": whole_policy, "dry_run": dry_run}
    lines_of = partial(written_lines, **model) if written else verified_lines
    with open_logs(list(logs)) as opened:
        lines = lines_of(held, opened.readable(), seed=seed, limit=limit)
        if out is None:
            for line in lines:
                sys.stdout.buffer.write(line)
        else:
            out.write_bytes(b"".join(lines))
            print(f"wrote {out}")
    return opened.report_faults()


def _thresholds(said: str) -> dict[Any, int]:
    from bylaw.align.thoughts import RUBRICS, THRESHOLDS

    found: dict[Any, int] = dict(THRESHOLDS)
    for part in filter(None, said.split(",")):
        name, _, number = part.partition("=")
        if name not in RUBRICS or not number.isdigit() or not 1 <= int(number) <= 10:
            hint = f"write {RUBRICS[0]}=10,{RUBRICS[1]}=9; the rubrics are {', '.join(RUBRICS)}"
            raise UsageError(f"`{part}` is not a threshold", hint=hint)
        found[name] = int(number)
    return found


@command("data", align_command)
def data_command(
    logs: SomeLogs = (),
    *,
    pack: SomePack = None,
    world: Annotated[
        File,
        click.Path(path_type=Path, exists=True),
        "Database state before the conversations, for the audit that filters the logs.",
    ] = None,
    audit: EarlierAudit = None,
    thoughts: Annotated[GivenFile, "Thoughts from `bylaw align thoughts --written`, instead of verified ones."] = None,
    out: Annotated[Path, "--out DIR", "Folder for the data sets."],
    document: Annotated[GivenFile, "The text of the policy, if the pack does not contain it."] = None,
    turns: Annotated[Count, "Number of turns to hold out for RL."] = 900,
    times: Annotated[Count, "Without logs: multiply the training tasks by N."] = 1,
    rl_times: Annotated[Count, "Without logs: multiply the tasks for RL turns by N."] = 1,
    seed: Annotated[int, "--seed N", "Seed for the wording of thoughts."] = 0,
    keep_open: Annotated[bool, "Keep conversations with undecided calls."] = False,
    keep_all: Annotated[bool, "Keep undecided, failed and flagged conversations."] = False,
    for_judge: Annotated[bool, "Keep RL replies that only a judge model can grade (`train --judge`)."] = False,
    parquet: Annotated[bool, "Also write Parquet files (requires the `parquet` extra)."] = False,
) -> int:
    """Build the data sets for the three stages, with a data card.

    Uses LOGS or, if none are given, the practice tasks of the pack.
    """
    from bylaw.align.dataset import build_from_logs, build_from_tasks, write_parquet
    from bylaw.align.thoughts import read_thoughts

    pack = pack or (None if audit is not None else "clinic")
    if logs or audit is not None:
        if times > 1 or rl_times > 1:
            raise UsageError("logs cannot be multiplied", hint="remove --times and --rl-times, or the logs")
        wanted = sources(logs, pack, world, audit, document)
        with open_logs(list(wanted.logs), without=out) as opened:
            card = build_from_logs(
                wanted.pack,
                out,
                wanted.checked(opened.placed(agent=wanted.agent)),
                auditor=wanted.auditor,
                thoughts=read_thoughts(thoughts) if thoughts is not None else None,
                keep=("failed", "flagged", "open") if keep_all else ("open",) if keep_open else (),
                turns=turns,
                seed=seed,
                command=command_line(),
                document=document.read_text(encoding="utf-8") if document is not None else "",
                for_judge=for_judge,
            )
        if not (out / "rl.jsonl").stat().st_size:
            click.echo(
                "`rl.jsonl` (stage 3) is empty: there are too few conversations, or no turn can be graded", err=True
            )
    else:
        if any((document, keep_open, keep_all, for_judge, world, thoughts)):
            names = "--document, --world, --thoughts, --keep-open, --keep-all and --for-judge"
            raise UsageError(f"{names} require logs", hint="pass the logs, or leave out these options")
        card = build_from_tasks(
            pack or "clinic",
            out,
            turns=turns,
            times=times,
            rl_times=rl_times,
            seed=seed,
            command=command_line(),
            watch=_tell_part,
        )
    if parquet:
        write_parquet(out)
    print(f"wrote {card}")
    return 0


def _tell_part(part: str, done: int, count: int) -> None:
    if done % 500 == 0 or done == count:
        click.echo(f"{part}: {done} of {count} conversations", err=True)


@command("pairs", align_command)
def pairs_command(
    logs: SomeLogs = (),
    *,
    pack: SomePack = None,
    world: Annotated[File, click.Path(path_type=Path, exists=True), "Database state before the conversations."] = None,
    audit: EarlierAudit = None,
    out: Annotated[Path, "--out DIR", "Folder for the rows."],
) -> int:
    """Pair flagged calls with missing look-ups, for DPO and KTO."""
    from bylaw.align.dataset import write_pairs

    if not logs and audit is None:
        raise UsageError("no logs given", hint="pass logs, or pass the folder of an audit with --audit")
    wanted = sources(logs, pack or (None if audit is not None else "clinic"), world, audit, None)
    with open_logs(list(wanted.logs), without=out) as opened:
        placed = wanted.checked(opened.placed(agent=wanted.agent))
        found = write_pairs(wanted.pack, out, placed, wanted.auditor, command=command_line())
    left = sum(found.without.values())
    counts = ", ".join(f"{verdict} {count}" for verdict, count in sorted(found.without.items()))
    print(f"{found.pairs} pairs, {found.examples} labelled rows")
    if left:
        print(f"{left} flagged calls have no pair: no look-up would have helped ({counts})")
    print(f"wrote {out}")
    return 0


@command("export", align_command)
def export_command(
    data: Annotated[Path, "DATA", click.Path(path_type=Path, exists=True, file_okay=False)],
    *,
    trainer: Annotated[str, "--for", click.Choice(("trl", "verl", "swift", "verifiers")), "The trainer."],
    out: Annotated[Path, "--out DIR", "Folder for the files."],
) -> int:
    """Export the data sets of DATA for a trainer, with the reward and the chat template."""
    from bylaw.align.export import export

    for file in export(data, cast("Trainer", trainer), out):
        print(f"wrote {file}")
    return 0


@command("score", align_command)
def score_command(
    *,
    rows: Annotated[
        GivenFile, 'Grade answers ({"answer": ..., "row": 1} per line) against these rows of `rl.jsonl`.'
    ] = None,
    pack: Annotated[
        str | None, "--pack PACK", "With --rows: the pack to grade against (default: the pack in `data.json`)."
    ] = None,
    judge: Annotated[
        str | None,
        "--judge MODEL",
        "With --rows: the model that grades replies, at OPENAI_BASE_URL or batch:DIR.",
    ] = None,
    mismatch: Annotated[
        str | None,
        click.Choice(["paper", "floor"]),
        "Reward if the answer is a call but should be text, or the reverse: paper (0), or floor (-3, the default with"
        " --rows).",
    ] = None,
    compliance: Annotated[
        float,
        "--compliance WEIGHT",
        click.FloatRange(min=0),
        "Penalty for a write that has a bad `verdict` or, with --rows, is flagged by a guard.",
    ] = 0.0,
) -> int:
    """Compute the rewards of turns from stdin (JSON lines)."""
    from bylaw.align.grader import Grader
    from bylaw.align.lines import score_answers, score_lines
    from bylaw.align.prompt import pack_named
    from bylaw.align.reward import Switches
    from bylaw.align.training.stage import graded, open_judge, pack_of, training_rows

    if not isfinite(compliance):
        raise UsageError(f"`{compliance}` is not a weight", hint="pass a number of 0 or more, as in --compliance 1")
    chosen = mismatch or ("paper" if rows is None else "floor")
    switches = msgspec.convert({"mismatch": chosen, "compliance": compliance}, Switches)
    if rows is None:
        if pack is not None or judge is not None:
            raise UsageError("--pack and --judge require --rows", hint="pass the rows with --rows data/rl.jsonl")
        return score_lines(sys.stdin.buffer, sys.stdout.buffer, switches)
    found = training_rows(rows, 3)
    held = pack_of(rows, pack)
    graded(found, held, has_judge=True)
    grader = Grader(pack_named(held), judge=open_judge(judge), switches=switches)
    return score_answers(sys.stdin.buffer, sys.stdout.buffer, found, grader)


@command("train", align_command)
def train_command(
    *,
    stage: Annotated[Any, click.Choice([1, 2, 3, "dpo"]), "1 and 2: SFT; 3: GRPO; dpo: DPO."],
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
        "Stage 3 reward: full, or any of tf, pr, hp, lp and vc joined with +, each with an optional weight (vc=3).",
    ] = "full",
    pack: Annotated[
        str | None, "--pack PACK", "Stage 3: the pack to grade against (default: the pack in `data.json`)."
    ] = None,
    judge: Annotated[
        str | None,
        "--judge MODEL",
        "Stage 3: a model at OPENAI_BASE_URL that grades replies, as in the paper, instead of grading by slots.",
    ] = None,
    mismatch: Annotated[
        Mismatch, "Stage 3: reward if the answer is a call but should be text, or the reverse: paper (0) or floor (-3)."
    ] = "floor",
    fresh: Annotated[bool, "Start over even if the folder has a checkpoint."] = False,
) -> None:
    """Run one stage of training.

    A killed run resumes from its last checkpoint, at most two minutes old.
    """
    from bylaw.align.prompt import pack_named
    from bylaw.align.training.preset import settings_of
    from bylaw.align.training.stage import graded, open_judge, pack_of, rows_file, scorer, source_of, training_rows

    changed = dict(map(_setting, changes))
    settings_of(preset, stage, changed)
    if not (model / "config.json").exists():
        raise UsageError(
            f"there is no model in `{model}`", hint="pass a folder with config.json, weights and a tokenizer"
        )
    rows: Sequence[Mapping[str, Any]] = training_rows(data, stage)
    score: Any = None
    ungraded = 0
    reward: dict[str, Any] = {}
    if stage == 3:
        held = pack_of(data, pack)
        rows, ungraded = graded(rows, held, has_judge=judge is not None)
        score = scorer(terms, pack=held, mismatch=mismatch, judge=open_judge(judge))
        reward = {"terms": terms, "mismatch": mismatch, "judge": judge, "pack": held}
        reward = {"reward": reward | {"pack_sha256": pack_named(held).digest}}
    elif pack is not None or judge is not None:
        raise UsageError("--pack and --judge are for stage 3", hint="leave them out")
    if ungraded:
        click.echo(f"{ungraded} turns with text are left out: only a judge model can grade them (--judge)", err=True)
    try:
        run: Any = importlib.import_module("bylaw.align.training.run")
    except ModuleNotFoundError as error:
        raise MissingExtra(f"training requires `{error.name}`", "train") from None
    request = run.Run(
        stage=stage,
        model=model,
        out=out,
        preset=preset,
        lora=lora,
        steps=steps,
        seed=seed,
        changes=changed,
        resume=not fresh,
        source=source_of(data, rows_file(data, stage), model) | reward,
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


@command("eval", align_command)
def eval_command(
    *,
    agent: Annotated[
        str, "--agent URL|DIR|SCRIPT", "An endpoint, a checkpoint, or a scripted agent for the practice tasks."
    ],
    model: Annotated[Name, "Name of the model at the endpoint."] = "",
    policy: Annotated[Any, click.Choice(["context", "none"]), "Whether the context contains the policy."] = "none",
    pack: Annotated[str, "--pack PACK", "The pack with the practice tasks."] = "clinic",
    part: Annotated[str, "--part PART", "The tasks to run: development or test."] = "development",
    limit: Annotated[Count | None, "Run only the first N tasks."] = None,
    out: Annotated[Folder, "Folder for a file with one line per task."] = None,
    name: Annotated[Name, "Name of the files in --out."] = "eval",
) -> int:
    """Evaluate an agent on practice tasks: pass@1, near-misses."""
    from bylaw.align.desk import open_agent
    from bylaw.align.evaluation import perform

    def tell(turn: int, live: int) -> None:
        click.echo(f"turn {turn}: {live} conversations", err=True)

    played = open_agent(agent, model, pack)
    lines, summary = perform(played, pack, part, policy, limit=limit, watch=tell)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / f"{name}.jsonl").write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        (out / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")
    print(msgspec.json.format(msgspec.json.encode(summary), indent=1).decode())
    return 0
