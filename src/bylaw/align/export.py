"""The sets as a trainer loads them, with the reward beside them: TRL, verl, ms-swift, verifiers.

No row has a `tools` column: the tools stand in the system message, and a template that is handed a column as well tells
them a second time, in a form that contradicts the first. The chat template goes along, since some models' own templates
take thoughts out of earlier turns.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from bylaw.align.dataset import Manifest, Row, find_manifest, read_rows, write_rows, write_table
from bylaw.errors import UsageError

Trainer = Literal["trl", "verl", "swift", "verifiers"]
LEARNED = ("stage1", "stage2", "answers")
GRADED = ("required", "expected", "slots")
"""What a reward looks at, beside the prompt."""
TEMPLATES = Path(__file__).parent / "exports"
CHAT = Path(__file__).parent / "training" / "chatml.jinja"


def export(data: Path, trainer: Trainer, out: Path) -> list[Path]:
    """Write what a trainer needs of a folder of sets; the files that were written."""
    made = find_manifest(data)
    if made is None:
        raise UsageError("there is no `data.json`", place=str(data), hint="make the sets with `bylaw align data`")
    if out.resolve() == data.resolve():
        raise UsageError("the sets are already in this folder", place=str(out), hint="name another folder with --out")
    out.mkdir(parents=True, exist_ok=True)
    written = [
        _write(out, name, trainer, ({"messages": row["messages"]} for row in read_rows(data / f"{name}.jsonl")))
        for name in LEARNED
        if _is_there(data, name)
    ]
    if _is_there(data, "rl"):
        rows = (_tried(row, place, trainer, made) for place, row in enumerate(read_rows(data / "rl.jsonl")))
        written.append(_write(out, "rl", trainer, rows))
        written.append(_write_reward(out, trainer, made))
    template = out / "chat_template.jinja"
    template.write_bytes(CHAT.read_bytes())
    if not written:
        raise UsageError("there are no sets", place=str(data), hint="make them with `bylaw align data`")
    return [*written, template]


def _is_there(data: Path, name: str) -> bool:
    file = data / f"{name}.jsonl"
    return file.is_file() and file.stat().st_size > 0


def _graded(row: Mapping[str, Any]) -> dict[str, str]:
    """What the reward needs as JSON text: its shape differs from row to row, and a column has one."""
    return {name: msgspec.json.encode(row[name]).decode() for name in GRADED}


def _tried(row: Row, place: int, trainer: Trainer, made: Manifest) -> Row:
    """A turn to be tried, as a trainer has it."""
    prompt, at = row["prompt"], {"task": row["task"], "turn": row["turn"]}
    match trainer:
        case "trl":
            return {"prompt": prompt, **_graded(row)}
        case "swift":
            return {"messages": prompt, **_graded(row)}
        case "verifiers":
            return {"prompt": prompt, "gold": _graded(row), "id": f"{row['task']}/{row['turn']}"}
        case "verl":
            truth = {**{name: row[name] for name in GRADED}, "prompt": prompt}
            return {
                "data_source": f"bylaw/{Path(made.pack).name}",
                "prompt": prompt,
                "ability": "policy",
                "reward_model": {"style": "rule", "ground_truth": msgspec.json.encode(truth).decode()},
                "extra_info": {"index": place, **at},
            }


def _write(out: Path, name: str, trainer: Trainer, rows: Iterable[Row]) -> Path:
    """Rows in the file format of a trainer."""
    path = out / (f"{name}.parquet" if trainer == "verl" else f"{name}.jsonl")
    if trainer == "verl":
        write_table(path, rows)
    else:
        write_rows(path, rows)
    return path


def _write_reward(out: Path, trainer: Trainer, made: Manifest) -> Path:
    """A module that grades the rows by the pack they were made with, and by no other version of it."""
    pack = str(Path(made.pack).resolve()) if Path(made.pack).is_dir() else made.pack
    text = (TEMPLATES / f"{trainer}.txt").read_text(encoding="utf-8")
    path = out / "reward.py"
    path.write_text(text.replace("{pack}", repr(pack)).replace("{digest}", repr(made.pack_digest)), encoding="utf-8")
    return path
