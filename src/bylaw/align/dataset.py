"""The data sets for the three stages, in the format of TRL and ms-swift: `messages`, and `tools` as JSON text.

A model learns the assistant messages. Stage 1 has the policy in the system message and no thoughts. Stage 2 has
thoughts and no policy. `answers` has neither, to measure the effect of the thoughts. `rl` contains turns with a reward.
The source is the tasks of a pack or recorded conversations.

Preference pairs come from an audit: a flagged call, and the look-up that was missing before it. The pairs have no
thoughts: a true thought can lead to the look-up but not to the flagged call, so a model would only learn to notice
whether a thought is present.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.align.desk import load_tasks
from bylaw.align.lesson import (
    CannotPassError,
    Lesson,
    LessonSeries,
    Thoughts,
    acts,
    gold,
    lessons_of,
    messages_of,
    turns_of,
    written,
)
from bylaw.align.output import write_call
from bylaw.align.prompt import PolicyPlace, pack_named, system_message, tool_schemas
from bylaw.align.suitability import Auditor, FreshAudit, JudgedCalls, unfit
from bylaw.errors import BylawError, UsageError
from bylaw.pack import Criterion, Pack
from bylaw.trace.event import Trajectory
from bylaw.trace.source import LogFile

SetName = Literal["stage1", "stage2", "answers"]
Row = dict[str, Any]


class Shape(Struct, frozen=True):
    policy: PolicyPlace
    thoughts: bool


SHAPES: dict[SetName, Shape] = {
    "stage1": Shape("context", thoughts=False),
    "stage2": Shape("none", thoughts=True),
    "answers": Shape("none", thoughts=False),
}


@cache
def tools_text(pack: str) -> str:
    return msgspec.json.encode(tool_schemas(pack)).decode()


def conversation_row(pack: str, talk: LessonSeries, shape: Shape, *, document: str = "") -> Row:
    """Return a row with a whole conversation, from whose assistant messages a model learns."""
    system = system_message(pack, shape.policy, document=document)
    messages = messages_of(system, talk.lessons, thoughts=shape.thoughts)
    return {"messages": messages, "tools": tools_text(pack), "id": talk.id}


def turn_row(pack: str, talk: LessonSeries, lesson: Lesson) -> Row:
    """Return a row with a turn for a model to try: the messages before the turn, and the data for its reward."""
    prompt = messages_of(system_message(pack, "none"), talk.lessons, thoughts=True, upto=lesson.turn)
    policies = pack_named(pack).policies
    required = sorted(lesson.evidence.required)
    expected: Row = {"text": lesson.answer}
    if lesson.call is not None:
        expected = {"tool": lesson.call[0], "arguments": lesson.call[1]}
    return {
        "prompt": prompt,
        "tools": tools_text(pack),
        "task": talk.id,
        "turn": lesson.turn,
        "purpose": lesson.evidence.purpose,
        "expected": expected,
        "required": required,
        "policies": {id: policies[id].definition for id in required},
        "slots": msgspec.to_builtins(lesson.slots),
        "gold": written(lesson),
        "events": msgspec.json.encode(lesson.before).decode(),
    }


def turn_rows(
    pack: str, talks: Sequence[LessonSeries], count: int, *, seed: int = 0, for_judge: bool = False
) -> list[Row]:
    """Return `count` random turns from some conversations, in order.

    Texts that only a model could check are left out, unless `for_judge` is set.
    """
    turns = [(talk, lesson) for talk in talks for lesson in talk.lessons if for_judge or is_graded(lesson)]
    drawn = sorted(random.Random(seed).sample(range(len(turns)), min(count, len(turns))))
    return [turn_row(pack, *turns[place]) for place in drawn]


def is_graded(lesson: Lesson) -> bool:
    """Whether outputs for this turn can be graded without a judge: the turn is a call, or a text with slots."""
    return lesson.call is not None or bool(lesson.slots)


def write_rows(path: Path, rows: Iterable[Row]) -> int:
    """Write rows as JSON lines and return the number of rows."""
    count = 0
    with path.open("wb") as stream:
        for row in rows:
            stream.write(msgspec.json.encode(row) + b"\n")
            count += 1
    return count


def read_rows(path: Path) -> Iterator[Row]:
    with path.open("rb") as stream:
        for line in stream:
            yield msgspec.json.decode(line)


NESTED = ("expected", "policies", "slots")
"""Columns without a fixed structure. Parquet stores them as JSON text."""


def write_parquet(out: Path) -> None:
    """Also write each set in a folder as a Parquet file."""
    for file in sorted(out.glob("*.jsonl")):
        rows = (
            {name: msgspec.json.encode(value).decode() if name in NESTED else value for name, value in row.items()}
            for row in read_rows(file)
        )
        write_table(file.with_suffix(".parquet"), rows)


def write_table(path: Path, rows: Iterable[Row]) -> None:
    try:
        table: Any = import_module("pyarrow").Table
        write: Any = import_module("pyarrow.parquet").write_table
    except ModuleNotFoundError:
        raise UsageError("Parquet needs pyarrow", hint="install `bylaw[parquet]`") from None
    write(table.from_pylist(list(rows)), path)


NAME = "data.json"
SCHEMA = "bylaw.align.data/1"


class SetFile(Struct, frozen=True):
    rows: int
    sha256: str


class Manifest(Struct, frozen=True):
    """Describes how the data sets in a folder were made."""

    schema: str
    pack: str
    """The pack as it was named in the command."""
    pack_version: str
    pack_digest: str
    command: str
    sets: dict[str, SetFile]


def write_manifest(out: Path, name: str, pack: Pack, command: str, sets: Iterable[str]) -> Manifest:
    paths = {each: out / f"{each}.jsonl" for each in sets}
    files = {name: SetFile(len(path.read_bytes().splitlines()), digest_of(path)) for name, path in paths.items()}
    found = Manifest(SCHEMA, name, pack.version, pack.digest, command, files)
    (out / NAME).write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return found


def find_manifest(data: Path) -> Manifest | None:
    """Return the manifest of a folder, or of the folder that contains a file of rows. None if there is none."""
    path = (data if data.is_dir() else data.parent) / NAME
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except msgspec.DecodeError as error:
        raise UsageError(
            f"not a manifest: {error}", place=str(path), hint="create the data again with `bylaw align data`"
        ) from None


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


WHAT = {
    "stage1": "tool calling with the policy in the system message, without thoughts",
    "stage2": "the same conversations without the policy; every turn begins with a thought in `<think>`",
    "answers": "the same conversations without the policy or the thoughts",
    "rl": "turns held out from the other sets, for reinforcement learning",
}


SHAPE = """\
Rows are JSON lines with `messages` (chat messages) and `tools` (JSON text). The system message lists the tools, and the
model writes a call as plain text. Train only on the assistant's messages, and do not pass `tools` to a chat template,
which would list the tools again. `bylaw align export` converts the rows for TRL, verl, ms-swift and verifiers. Rows of
`rl` contain the `prompt`, the `expected` turn, the `required` policies, the `slots` that a reply must fill, the `gold`
turn, and the preceding `events`."""
THOUGHTS = {
    "verified": "The thoughts were assembled from the guards' results at each turn. No model wrote them.",
    "written": "A model wrote the thoughts. Thoughts below the rubrics' thresholds were left out.",
}


class Source(Struct, frozen=True):
    what: str
    """A one-sentence description."""
    command: str
    dropped: Mapping[str, int]
    """The number of conversations left out, by reason."""
    thoughts: Literal["verified", "written"] = "verified"


def sets_in(out: Path) -> list[str]:
    return [name for name in WHAT if (out / f"{name}.jsonl").exists()]


def write_card(out: Path, pack: Pack, source: Source, *, ungraded: int = 0) -> Path:
    """Write `README.md` for the sets. `ungraded` is the number of held-out texts that are missing from `rl`."""
    files = sets_in(out)
    configs = "\n".join(f"  - config_name: {name}\n    data_files: {name}.jsonl" for name in files)
    dropped = "\n".join(f"| {why} | {count} |" for why, count in sorted(source.dropped.items()))
    parts = [
        f"---\nconfigs:\n{configs}\n---",
        f"# Learning the policies of {pack.title}",
        f"{source.what} Made by `{source.command}` with pack `{pack.name}` {pack.version} (`{pack.digest[:16]}`).",
        "| set | rows | turns | words per row | thought words per turn | contents |\n|---|---|---|---|---|---|",
    ]
    parts[-1] += "".join(f"\n{_line(name, list(read_rows(out / f'{name}.jsonl')))}" for name in files)
    if (out / "rl.jsonl").exists() and (turns := list(read_rows(out / "rl.jsonl"))):
        parts.append(_policies(turns))
    if dropped:
        parts.append(f"Conversations left out:\n\n| why | conversations |\n|---|---|\n{dropped}")
    if ungraded:
        parts.append(
            f"{ungraded} replies from the held-out conversations are not in `rl`: they contain no value from a result,"
            " a guard or the next write, or they deny something, so only a judge model can grade them (`--for-judge`)."
        )
    parts += [SHAPE, THOUGHTS[source.thoughts]]
    path = out / "README.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def _line(name: str, rows: Sequence[dict[str, Any]]) -> str:
    messages = [message for row in rows for message in row.get("messages") or row["prompt"]]
    written = [message["content"] for message in messages if message["role"] == "assistant"]
    words = sum(len(message["content"].split()) for message in messages)
    thought = [len(text.split("</think>")[0].split()) for text in written if text.startswith("<think>")]
    turns = len(rows) if name == "rl" else len(written)
    mean = f"{sum(thought) / len(thought):.0f}" if thought else ""
    return f"| `{name}` | {len(rows)} | {turns} | {words / max(1, len(rows)):.0f} | {mean} | {WHAT[name]} |"


def _policies(rows: Sequence[dict[str, Any]]) -> str:
    counts = Counter(policy for row in rows for policy in row["required"])
    kinds = Counter(row["purpose"] for row in rows)
    listed = "\n".join(f"| {policy} | {count} |" for policy, count in counts.most_common())
    told = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
    said = f"Purposes of the turns in `rl`: {told}."
    return (
        f"{said}\n\n| policy | turns in `rl` that need it |\n|---|---|\n{listed}"
        if listed
        else f"{said} No policy is needed in any of these turns."
    )


FLAGGED = ("near_miss", "violation")


class AuditedCall(Struct, frozen=True):
    """A call that an audit judged, and its location."""

    place: str
    """The conversation and the step of the call."""
    verdict: str
    policies: tuple[str, ...]
    """The policies that the call broke, or that it complied with only by luck."""
    prompt: tuple[dict[str, Any], ...]
    made: str
    """The call as a model would write it."""
    lacked: str = ""
    """The look-up that would have shown the missing facts. Empty if the audit names none."""

    @property
    def is_flagged(self) -> bool:
        """Whether making the call at this point was a mistake."""
        return self.verdict != "compliant"


class Pairs(Struct, frozen=True):
    pairs: int
    examples: int
    """The number of labelled rows for KTO."""
    without: Mapping[str, int]
    """The number of flagged calls that have no pair because no look-up was missing, by verdict."""


def audited_calls(pack: str, trajectory: Trajectory, judged: JudgedCalls) -> Iterator[AuditedCall]:
    """Yield the flagged calls of a conversation, and the calls that are certainly correct."""
    if not judged.calls:
        return
    made = list(turns_of(trajectory))
    turns = {each.span.start: turn for turn, each in enumerate(made)}
    for call in judged.calls:
        verdict = _verdict(call, judged.criterion)
        turn = turns.get(call["step"])
        if verdict is None or turn is None or made[turn].call is None:
            continue
        against = [each for each in call["policies"] if each[judged.criterion] in FLAGGED]
        broken = [*(each["id"] for each in against), *(each["rule"] for each in call["rules"])]
        yield AuditedCall(
            f"{trajectory.id}@{call['step']}",
            verdict,
            tuple(broken),
            tuple(messages_of(system_message(pack, "none"), made, upto=turn)),
            made[turn].answer,
            _lacked(against, judged.criterion) if verdict in FLAGGED else "",
        )


def _verdict(call: Mapping[str, Any], criterion: Criterion) -> str | None:
    """Return the verdict of a guard, or `rule` if only a rule flags the call. None if the guard's result is
    undecided.
    """
    verdict = call[criterion]
    if verdict in FLAGGED:
        return verdict
    if call["rules"]:
        return "rule"
    return "compliant" if verdict == "compliant" and not call["open_rules"] else None


def _lacked(against: Iterable[Mapping[str, Any]], criterion: Criterion) -> str:
    for policy in against:
        for missing in policy["missing"]:
            look_up = missing["lookup"]
            is_needed = missing["decisive"] or criterion == "strict"
            if is_needed and look_up is not None and None not in look_up["args"].values():
                return write_call(look_up["tool"], look_up["args"])
    return ""


def pair_row(audited: AuditedCall) -> Row:
    return {
        "prompt": list(audited.prompt),
        "chosen": [{"role": "assistant", "content": audited.lacked}],
        "rejected": [{"role": "assistant", "content": audited.made}],
        "id": audited.place,
        "verdict": audited.verdict,
        "policies": list(audited.policies),
    }


def example_rows(audited: AuditedCall) -> list[Row]:
    """Return rows for KTO: the labelled call, and the look-up that should have come before it."""
    said = [(audited.made, not audited.is_flagged), *([(audited.lacked, True)] if audited.lacked else [])]
    return [
        {
            "prompt": list(audited.prompt),
            "completion": [{"role": "assistant", "content": text}],
            "label": label,
            "id": audited.place,
        }
        for text, label in said
    ]


def write_pairs(
    pack: str,
    out: Path,
    logs: Iterable[tuple[LogFile, Trajectory | BylawError]],
    auditor: Auditor,
    *,
    command: str = "",
) -> Pairs:
    """Write `dpo.jsonl`, `kto.jsonl` and `data.json` from recorded conversations and their audit."""
    found = [
        audited
        for file, each in logs
        if not isinstance(each, BylawError)
        for audited in audited_calls(pack, each, auditor.judged(each, file))
    ]
    pairs = [pair_row(each) for each in found if each.lacked]
    if not any(each.is_flagged for each in found):
        raise UsageError("the audit flagged no call, so there are no pairs", hint="see `bylaw audit`")
    examples = [row for each in found for row in example_rows(each)]
    out.mkdir(parents=True, exist_ok=True)
    write_rows(out / "dpo.jsonl", pairs)
    write_rows(out / "kto.jsonl", examples)
    write_manifest(out, pack, pack_named(pack), command, ("dpo", "kto"))
    without = Counter(each.verdict for each in found if each.is_flagged and not each.lacked)
    return Pairs(len(pairs), len(examples), without)


HELD_OUT = 0.1
"""The share of recorded conversations that is set aside for RL turns. If there are two or more, at least one is set
aside.
"""
Keep = Literal["failed", "flagged", "open"]
"""A kind of conversation to keep that would otherwise be left out: failed, flagged by an audit, or undecided."""
Watch = Callable[[str, int, int], None]
"""Called with the name of the current work, the number of finished items, and the total."""


def build_from_tasks(
    pack: str,
    out: Path,
    *,
    turns: int = 900,
    times: int = 1,
    rl_times: int = 1,
    seed: int = 0,
    command: str = "",
    watch: Watch | None = None,
) -> Path:
    """Make sets from the practice tasks of a pack. Return the path of the data card.

    `times` and `rl_times` multiply the usual numbers of tasks for training and for RL.
    """
    dropped: Counter[str] = Counter()
    training = gold_series("training", pack, times, seed, dropped, watch)
    tried = gold_series("rl", pack, rl_times, seed, dropped, watch)
    source = Source(
        "Gold conversations for the desk's training tasks, in which the desk's expert plays the agent.",
        command,
        dropped,
    )
    return write_sets(pack, out, training, tried, turns=turns, seed=seed, source=source)


def gold_series(
    part: str, pack: str, times: int, seed: int, dropped: Counter[str], watch: Watch | None = None
) -> list[LessonSeries]:
    """Return the expert's correct conversations for one part of the tasks. `dropped` counts the tasks that the expert
    fails.
    """
    tasks = load_tasks(part, pack, times=times)
    found: list[LessonSeries] = []
    for done, task in enumerate(tasks, start=1):
        try:
            found.append(gold(task, seed=seed))
        except CannotPassError:
            dropped["a caller who contradicts themselves"] += 1
        if watch is not None:
            watch(part, done, len(tasks))
    return found


def build_from_logs(
    pack: str,
    out: Path,
    logs: Iterable[tuple[LogFile, Trajectory | BylawError]],
    *,
    auditor: Auditor | None = None,
    thoughts: Thoughts | None = None,
    keep: Collection[Keep] = (),
    turns: int = 900,
    seed: int = 0,
    command: str = "",
    document: str = "",
    for_judge: bool = False,
) -> Path:
    """Make sets from suitable recorded conversations. Return the path of the data card.

    `auditor` says which conversations are flagged or undecided. By default, they are audited here, without a
    ground-truth database.
    """
    held = pack_named(pack)
    audited = auditor or FreshAudit(pack)
    dropped: Counter[str] = Counter()
    kept: list[LessonSeries] = []
    cut = 0
    for file, each in logs:
        if isinstance(each, BylawError):
            dropped["unreadable"] += 1
        elif (why := _left_out(held, each, file, audited, keep)) is not None:
            dropped[why] += 1
        else:
            found = lessons_of(held, each, seed=seed, thoughts=thoughts)
            if not found.lessons:
                dropped["no written thought for the first turn"] += 1
                continue
            kept.append(found)
            cut += len(found.lessons) < sum(1 for _ in acts(each.events))
    if not kept:
        counts = ", ".join(f"{why} {count}" for why, count in dropped.items()) or "there were no conversations"
        raise UsageError(f"no conversations left to learn from ({counts})", hint=_remedy(dropped, keep))
    random.Random(seed).shuffle(kept)
    apart = max(1, round(HELD_OUT * len(kept))) if len(kept) > 1 else 0
    said = ["Recorded conversations."]
    said += (
        [f"In {cut} of them, a turn has no acceptable written thought; that turn and all later turns were left out."]
        if cut
        else []
    )
    said += [] if apart else ["There is only one conversation, so none is held out for `rl`."]
    source = Source(" ".join(said), command, dropped, thoughts="verified" if thoughts is None else "written")
    training, tried = kept[apart:], kept[:apart]
    return write_sets(
        pack, out, training, tried, turns=turns, seed=seed, source=source, document=document, for_judge=for_judge
    )


def _left_out(
    pack: Pack, trajectory: Trajectory, file: LogFile, auditor: Auditor, keep: Collection[Keep]
) -> str | None:
    why = unfit(pack, trajectory)
    if why is not None and not (why == "failed" and "failed" in keep):
        return why
    judged = auditor.judged(trajectory, file)
    if judged.flagged and "flagged" not in keep:
        return f"flagged: {judged.flagged[0]}"
    if judged.open and "open" not in keep:
        return f"open: {judged.open[0]}"
    return None


def _remedy(dropped: Counter[str], keep: Collection[Keep]) -> str:
    """Return advice for the case that no conversation is left."""
    if "open" not in keep and any(why.startswith("open: ") for why in dropped):
        return "pass --world to settle undecided conversations, or --keep-open to keep them"
    if "failed" not in keep and set(dropped) - {"unreadable"}:
        return "pass --keep-all to keep failed, flagged and undecided conversations"
    return "run `bylaw scan` to see the contents of the logs"


def write_sets(
    pack: str,
    out: Path,
    training: Sequence[LessonSeries],
    apart: Sequence[LessonSeries],
    *,
    turns: int,
    seed: int,
    source: Source,
    document: str = "",
    for_judge: bool = False,
) -> Path:
    """Write the sets, `data.json` and the card. Stage 1 needs the policy document."""
    out.mkdir(parents=True, exist_ok=True)
    held = pack_named(pack)
    (out / "stage1.jsonl").unlink(missing_ok=True)
    for name, shape in SHAPES.items():
        if shape.policy == "none" or document or held.document is not None:
            rows = (conversation_row(pack, talk, shape, document=document) for talk in training)
            write_rows(out / f"{name}.jsonl", rows)
    write_rows(out / "rl.jsonl", turn_rows(pack, apart, turns, seed=seed, for_judge=for_judge))
    ungraded = sum(not is_graded(lesson) for talk in apart for lesson in talk.lessons)
    write_manifest(out, pack, held, source.command, sets_in(out))
    return write_card(out, held, source, ungraded=0 if for_judge else ungraded)
