"""A training stage: its rows from `bylaw align data`, the pack and reward that grade them, and the model card.

A conversation becomes ChatML text, with tool results in Hermes format. Training, evaluation and servers use the same
template. The system message lists the tools, and calls are ordinary text. `chatml.jinja` marks the agent's turns, so
TRL trains only on them.
"""

import gzip
import hashlib
from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Literal

import msgspec

from bylaw.align.dataset import digest_of, find_manifest
from bylaw.align.grader import Grader, ModelJudge, gold_of
from bylaw.align.prompt import pack_named
from bylaw.align.reward import Mismatch, Switches
from bylaw.align.training.preset import Stage
from bylaw.errors import UsageError
from bylaw.llm.source import open_chat

OPEN, CLOSE = "<|im_start|>", "<|im_end|>"
_TEMPLATE = Path(__file__).parent / "chatml.jinja"
FILES: dict[Stage, str] = {1: "stage1", 2: "stage2", 3: "rl", "dpo": "dpo"}


def _remedy(stage: Stage) -> str:
    return f"write it with `bylaw align {'pairs' if stage == 'dpo' else 'data'}`"


def pack_of(data: Path, named: str | None) -> str:
    """Return the name of the pack for grading: the given pack or, by default, the one in `data.json`.

    Raises an error if there is neither, or if the pack has changed since the rows were written.
    """
    made = find_manifest(data)
    if named is None and made is None:
        raise UsageError(f"cannot tell which pack `{data}` was made with", hint="name the pack with --pack")
    name = named or (made.pack if made is not None else "")
    if made is not None and named is None and pack_named(name).digest != made.pack_digest:
        raise UsageError(
            f"pack `{name}` has changed since the rows were written",
            place=str(data),
            hint="write them again with `bylaw align data`, or pass --pack to grade with the changed pack anyway",
        )
    return name


def rows_file(path: Path, stage: Stage) -> Path:
    """Return the file of rows for a stage. `path` is that file, or a folder that contains it."""
    if path.is_dir():
        named = [path / f"{FILES[stage]}{ending}" for ending in (".jsonl", ".jsonl.gz")]
        found = next((file for file in named if file.exists()), None)
        if found is None:
            raise UsageError(f"there is no `{named[0].name}` in `{path}`", hint=_remedy(stage))
        path = found
    if not path.exists():
        raise UsageError(f"there is no file `{path}`", hint=_remedy(stage))
    return path


def training_rows(path: Path, stage: Stage) -> list[dict[str, Any]]:
    """Return the rows from a file, or from the file of the stage in a folder. JSON lines may be compressed."""
    path = rows_file(path, stage)
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows: list[dict[str, Any]] = []
    wanted = {3: "prompt", "dpo": "chosen"}.get(stage, "messages")
    for number, line in enumerate(raw.splitlines(), start=1):
        try:
            row = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise UsageError(f"not a row: {error}", place=f"{path}:{number}") from None
        if wanted not in row:
            raise UsageError(f"a row for stage {stage} requires `{wanted}`", place=f"{path}:{number}")
        rows.append(row)
    if not rows:
        raise UsageError(f"`{path}` has no rows", hint=_remedy(stage))
    return rows


def with_dialect(tokenizer: Any) -> Any:
    """Set the tokenizer's template and its end-of-turn token."""
    tokenizer.chat_template = _TEMPLATE.read_text(encoding="utf-8").strip()
    tokenizer.eos_token = CLOSE
    tokenizer.pad_token = tokenizer.pad_token or CLOSE
    return tokenizer


Term = Literal["format", "turn", "policy_recall", "hallucination", "length", "compliance"]
PARTS: dict[str, tuple[Term, ...]] = {
    "tf": ("format", "turn"),
    "pr": ("policy_recall",),
    "hp": ("hallucination",),
    "lp": ("length",),
    "vc": ("compliance",),
}
"""The reward terms in the paper's Table 5, and `vc`, the compliance term. `vc=3` gives it a weight of 3."""
FULL = "tf+pr+hp+lp"
_PENALTIES = frozenset(("hallucination", "length", "compliance"))


def terms_of(said: str) -> tuple[tuple[Term, ...], float]:
    """Parse a text such as `tf+pr+vc=3` into terms and a weight for compliance. `full` is the paper's reward."""
    terms: list[Term] = []
    weight = 0.0
    parts = (FULL if part == "full" else part for part in said.split("+"))
    for part in "+".join(parts).split("+"):
        name, given, number = part.partition("=")
        if name not in PARTS or (given and name != "vc"):
            raise UsageError(
                f"unknown reward term `{part}`", hint=f"use full, or join some of the terms {', '.join(PARTS)} with +"
            )
        if name == "vc":
            weight = _weight(number) if given else 1.0
        terms += PARTS[name]
    return tuple(terms), weight


def _weight(number: str) -> float:
    try:
        found = float(number)
    except ValueError:
        found = 0.0
    if not 0 < found < inf:
        raise UsageError(f"`{number}` is not a weight", hint="pass a number above 0, as in vc=3")
    return found


def scorer(
    said: str = "full", *, pack: str = "clinic", mismatch: Mismatch = "floor", judge: ModelJudge | None = None
) -> Callable[[Sequence[str], Sequence[Mapping[str, Any]]], list[dict[str, float]]]:
    """Return a function that grades outputs against their rows. `total` is the sum of the terms that `said` names."""
    terms, weight = terms_of(said)
    grader = Grader(pack_named(pack), judge=judge, switches=Switches(mismatch=mismatch, compliance=weight))

    def grades(outputs: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
        golds = [gold_of(row) for row in rows]
        grader.prepare(zip(outputs, golds, strict=True))
        found: list[dict[str, float]] = []
        for output, gold in zip(outputs, golds, strict=True):
            reward = grader.grade(output, gold)
            values = {term: getattr(reward, term) or 0.0 for part in PARTS.values() for term in part}
            total = sum(-values[term] if term in _PENALTIES else values[term] for term in terms)
            found.append({**values, "total": total})
        return found

    return grades


def graded(
    rows: Sequence[Mapping[str, Any]], pack: str, *, has_judge: bool = False
) -> tuple[list[Mapping[str, Any]], int]:
    """Return the rows that can be graded, and the number of rows that cannot. Raises UsageError for a row of another
    pack.
    """
    known = pack_named(pack).policies
    for number, row in enumerate(rows, start=1):
        if strange := [name for name in gold_of(row).required if name not in known]:
            raise UsageError(
                f"row {number} needs the policy `{strange[0]}`, which is not in pack `{pack}`",
                hint="pass --pack with the pack that the rows were written with",
            )
    kept = [row for row in rows if has_judge or not gold_of(row).needs_judge]
    if not kept:
        raise UsageError("no row can be graded", hint="use --judge MODEL to have a model grade the replies")
    return kept, len(rows) - len(kept)


def open_judge(said: str | None) -> ModelJudge | None:
    """Return the judge from `--judge`, or None to grade texts by slots."""
    return None if said is None else ModelJudge(open_chat(said, concurrency=16))


STAGES: dict[Stage, str] = {
    1: "supervised fine-tuning with the policy in the prompt (stage 1)",
    2: "supervised fine-tuning with thoughts and without the policy (stage 2)",
    3: "GRPO over single turns (stage 3)",
    "dpo": "DPO on preference pairs",
}


def source_of(data: Path, file: Path, model: Path) -> dict[str, Any]:
    """Return the origin and hash of a run's rows and initial weights."""
    found: dict[str, Any] = {
        "data": {"file": file.name, "sha256": digest_of(file)},
        "model": {"name": model.name, "sha256": weights_digest(model)},
    }
    if (made := find_manifest(data)) is not None:
        listed = made.sets.get(file.name.split(".")[0])
        found["data"] |= {"command": made.command, "as_made": listed is not None and listed.sha256 == digest_of(file)}
        found["pack"] = {"name": made.pack, "version": made.pack_version, "sha256": made.pack_digest}
    return found


def weights_digest(folder: Path) -> str:
    """Return a hash of the weight files of a model, in order of name."""
    whole = hashlib.sha256()
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()


def write_model_card(out: Path, done: Mapping[str, Any]) -> Path:
    """Write `README.md` for the model from the record of the run."""
    source: Mapping[str, Any] = done.get("source") or {}
    lines = [f"Trained by `bylaw align train`: {STAGES[done['stage']]}, {done['steps']} steps, seed {done['seed']}."]
    if model := source.get("model"):
        lines.append(f"It started from `{model['name']}` (weights `{model['sha256'][:16]}`).")
    if data := source.get("data"):
        told = f"It learned from {done['rows']} rows of `{data['file']}` (`{data['sha256'][:16]}`)"
        lines.append(f"{told}, made by `{data['command']}`." if data.get("command") else f"{told}.")
        if data.get("as_made") is False:
            lines.append("The rows were changed after they were written.")
    if pack := source.get("pack"):
        lines.append(f"The policies are those of pack `{pack['name']}` {pack['version']} (`{pack['sha256'][:16]}`).")
    if reward := source.get("reward"):
        judge = f", replies graded by `{reward['judge']}`" if reward.get("judge") else ""
        terms = f"`{reward['terms']}`, mismatches scored by `{reward['mismatch']}`{judge}"
        lines.append(f"The reward: {terms}, graded by pack `{reward['pack']}` (`{reward['pack_sha256'][:16]}`).")
    if done.get("lora"):
        lines.append(
            f"Adapters of rank {done['lora']} were trained. They are in `adapter/`; the weights already include them."
        )
    settings = msgspec.json.format(msgspec.json.encode(done["settings"]), indent=1).decode()
    text = "\n\n".join(
        [
            "# A model that learned policies",
            "\n".join(f"- {line}" for line in lines),
            "The model writes a thought in `<think>`, and then a message or one call as JSON. `chat_template.jinja`"
            " defines the prompt format. **This card does not say how good the model is**: measure it with `bylaw align"
            " eval --agent FOLDER`, and run it behind a shield, because it still breaks policies at times.",
            f"Settings:\n\n```json\n{settings}\n```",
        ]
    )
    path = out / "README.md"
    path.write_text(text + "\n", encoding="utf-8")
    return path
