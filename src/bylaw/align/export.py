"""Exports the data sets and the reward for TRL, verl, ms-swift and verifiers, without importing them.

Rows have no `tools` column: the system message already lists the tools, and a chat template would list them again in
another format. The chat template is exported too, because the templates of some models drop the thoughts of earlier
turns.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import msgspec

from bylaw.align.dataset import Manifest, Row, find_manifest, read_rows, write_rows, write_table
from bylaw.align.grader import Grader, gold_of
from bylaw.errors import UsageError
from bylaw.pack import load_pack
from bylaw.trace.event import decode_text

Trainer = Literal["trl", "verl", "swift", "verifiers"]
LEARNED = ("stage1", "stage2", "answers")
GRADED = ("required", "expected", "slots")
"""The fields that a reward needs in addition to the prompt."""
TEMPLATES = Path(__file__).parent / "exports"
CHAT = Path(__file__).parent / "training" / "chatml.jinja"


def export(data: Path, trainer: Trainer, out: Path) -> list[Path]:
    """Write the files for a trainer from a folder of sets, and return their paths."""
    made = find_manifest(data)
    if made is None:
        raise UsageError("there is no `data.json`", place=str(data), hint="create the sets with `bylaw align data`")
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
        raise UsageError("there are no sets", place=str(data), hint="create them with `bylaw align data`")
    return [*written, template]


def _is_there(data: Path, name: str) -> bool:
    file = data / f"{name}.jsonl"
    return file.is_file() and file.stat().st_size > 0


def _graded(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the data for the reward as JSON text, because a column can contain only one type."""
    return {name: msgspec.json.encode(row[name]).decode() for name in GRADED}


def _tried(row: Row, place: int, trainer: Trainer, made: Manifest) -> Row:
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
    path = out / (f"{name}.parquet" if trainer == "verl" else f"{name}.jsonl")
    if trainer == "verl":
        write_table(path, rows)
    else:
        write_rows(path, rows)
    return path


def _write_reward(out: Path, trainer: Trainer, made: Manifest) -> Path:
    """Write a module that grades rows with the pack version that made them."""
    pack = str(Path(made.pack).resolve()) if Path(made.pack).is_dir() else made.pack
    text = (TEMPLATES / f"{trainer}.txt").read_text(encoding="utf-8")
    path = out / "reward.py"
    path.write_text(text.replace("{pack}", repr(pack)).replace("{digest}", repr(made.pack_digest)), encoding="utf-8")
    return path


def pinned_grader(pack: str, digest: str) -> Grader:
    """Return a grader with the pack version that made the rows. Raises an error if the pack has changed."""
    held = load_pack(pack)
    if held.digest != digest:
        raise UsageError(
            f"pack `{pack}` has changed since the rows were written",
            hint="write them again with `bylaw align data`, and export them again",
        )
    return Grader(held)


def _totals(grader: Grader, outputs: Sequence[str], prompts: Iterable[Any], columns: Mapping[str, Any]) -> list[float]:
    """Return the total reward of each output. The guards read the facts of the case from the messages in `prompts`."""
    held = {name: cast(Sequence[Any], columns[name]) for name in GRADED if columns.get(name) is not None}
    return [
        grader.grade(output, gold_of({name: values[place] for name, values in held.items()} | _prompted(prompt))).total
        for place, (output, prompt) in enumerate(zip(outputs, prompts, strict=True))
    ]


def _prompted(prompt: Any) -> dict[str, Any]:
    """Return the part of a row that contains the prompt. Empty if the messages are unknown."""
    return {} if prompt is None or isinstance(prompt, str) else {"prompt": prompt}


def for_trl(grader: Grader) -> Callable[..., list[float]]:
    """Return a reward function for TRL's GRPO.

    TRL passes prompts, completions and other columns as lists. A completion is a text or a list of messages. If it has
    several messages, only the first belongs to the turn.
    """

    def bylaw_reward(
        *, prompts: Sequence[Any], completions: Sequence[Any], completion_ids: Any = None, **columns: Any
    ) -> list[float]:
        return _totals(grader, [output_of(completion) for completion in completions], prompts, columns)

    return bylaw_reward


def for_verl(grader: Grader) -> Callable[..., dict[str, float]]:
    """Return `compute_score` for verl, which scores one output.

    `ground_truth` is a row or its JSON text. The guards need the row's `prompt`, which may also be in `extra_info`.
    """

    def compute_score(
        data_source: str,
        solution_str: str,
        ground_truth: str | Mapping[str, Any],
        extra_info: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> dict[str, float]:
        row = msgspec.json.decode(ground_truth) if isinstance(ground_truth, str) else ground_truth
        found = grader.grade(solution_str, gold_of({**row, **_prompted((extra_info or {}).get("prompt"))}))
        return {"score": found.total, **{n: float(value or 0) for n, value in msgspec.to_builtins(found).items()}}

    return compute_score


class ForSwift:
    """An outcome reward for ms-swift. Takes texts, followed by columns as lists. The last of the `messages` is the
    completion.
    """

    def __init__(self, grader: Grader) -> None:
        self._grader = grader

    def __call__(self, completions: Sequence[str], **columns: Any) -> list[float]:
        messages = columns.get("messages") or [None] * len(completions)
        prompts = [None if said is None else list(said)[:-1] for said in messages]
        return _totals(self._grader, completions, prompts, columns)


class _Said(Protocol):
    """The parts of a trace from `verifiers` that the reward reads."""

    @property
    def messages(self) -> Sequence[Any]: ...
    @property
    def assistant_messages(self) -> Sequence[Any]: ...


def for_verifiers(grader: Grader) -> Callable[..., Awaitable[float]]:
    """Return a reward for `verifiers`. It grades the model's first message against `gold`, the row of the task."""

    async def bylaw_reward(task: Any, trace: _Said) -> float:
        first = trace.assistant_messages[0] if trace.assistant_messages else None
        messages = [_plain(message) for message in trace.messages]
        at = next((place for place, each in enumerate(trace.messages) if each is first), len(messages))
        gold = gold_of({"prompt": messages[:at], **task.gold})
        return grader.grade(output_of([_plain(first)] if first is not None else ""), gold).total

    return bylaw_reward


def output_of(completion: Any) -> str:
    """Return the model's output for this turn as one text. A call in a separate field is appended to the text."""
    if isinstance(completion, str):
        return completion
    messages = cast(Sequence[Mapping[str, Any]], completion)
    if not messages:
        return ""
    first = messages[0]
    text = str(first.get("content") or "")
    calls = [_call(call) for call in cast(Sequence[Mapping[str, Any]], first.get("tool_calls") or ())]
    return "\n".join([text, *(msgspec.json.encode(call).decode() for call in calls)]) if calls else text


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = cast(Mapping[str, Any], call.get("function") or call)
    arguments: Any = function.get("arguments")
    if isinstance(arguments, str):
        # If the arguments are not JSON, keep their text, so that the format reward can see that it is not a call.
        arguments = decode_text(arguments)
    return {"name": function.get("name"), "arguments": arguments if arguments is not None else {}}


def _plain(message: Any) -> dict[str, Any]:
    if isinstance(message, Mapping):
        return dict(cast(Mapping[str, Any], message))
    return cast(dict[str, Any], message.model_dump())
