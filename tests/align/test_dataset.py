"""The sets: what a row holds, that they are made the same each time, and which logs are left out."""

import bz2
import json
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from bylaw.align.dataset import SHAPES, Source, build_from_logs, conversation_row, read_rows, turn_rows, write_sets
from bylaw.align.episode import Episode
from bylaw.align.lesson import LessonSeries, gold
from bylaw.align.output import read_output
from bylaw.align.prompt import pack_named
from bylaw.align.suitability import hallucinated
from bylaw.cli.app import app
from bylaw.errors import BylawError, UsageError
from bylaw.trace import Call, Message, Result, Trajectory, read
from bylaw.trace.event import Event
from bylaw_lab.clinic.tasks import scenarios

PACK = pack_named("clinic")
DEMO = Path(PACK.root) / "demo" / "logs.jsonl.bz2"


@pytest.fixture(scope="module")
def talks() -> list[LessonSeries]:
    return [gold(task) for task in scenarios("development")[:16]]


def test_playing_a_row_s_answers_passes_the_task(talks: list[LessonSeries]) -> None:
    """What is learned is what passes: each set's answers, played as a model would write them."""
    tasks = {task.id: task for task in scenarios("development")}
    for talk in talks:
        for shape in SHAPES.values():
            row = conversation_row("clinic", talk, shape)
            episode = Episode(tasks[talk.id], policy=shape.policy)
            for place, message in enumerate(row["messages"]):
                if message["role"] == "assistant":
                    assert episode.messages == row["messages"][:place]
                    assert bool(read_output(message["content"]).thought) == shape.thoughts
                    episode.step(message["content"])
            assert episode.done
            assert episode.outcome().success


def test_the_policy_stands_in_stage_1_alone(talks: list[LessonSeries]) -> None:
    rows = {name: conversation_row("clinic", talks[0], shape) for name, shape in SHAPES.items()}
    sentence = "Only an invoice whose status is paid is refunded."
    assert [name for name, row in rows.items() if sentence in row["messages"][0]["content"]] == ["stage1"]
    assert {tool["function"]["name"] for tool in json.loads(rows["stage2"]["tools"])} == set(PACK.schema.tools)


def test_turns_to_be_tried_hold_what_their_rewards_need(talks: list[LessonSeries]) -> None:
    rows = turn_rows("clinic", talks, 60)
    assert len(rows) == 60
    assert len({(row["task"], row["turn"]) for row in rows}) == 60
    for row in rows:
        assert row["prompt"][-1]["role"] in ("user", "tool")
        assert set(row["policies"]) == set(row["required"]) <= set(PACK.policies)
        events = msgspec.json.decode(row["events"], type=list[Event])
        assert len([event for event in events if isinstance(event, Call)]) == sum(
            message["role"] == "tool" for message in row["prompt"]
        )
        told = read_output(row["gold"])
        if "tool" in row["expected"]:
            assert (told.tool, told.arguments) == (row["expected"]["tool"], row["expected"]["arguments"])
        else:
            assert told.text == row["expected"]["text"]
            assert row["slots"]
    assert any(row["purpose"] == "refuse" and len(row["required"]) == 1 for row in rows)


def test_sets_are_the_same_each_time_and_the_card_counts_them(talks: list[LessonSeries], tmp_path: Path) -> None:
    for name in ("one", "two"):
        source = Source("Gold conversations.", "a command", {"failed": 3})
        write_sets("clinic", tmp_path / name, talks[4:], talks[:4], turns=12, seed=5, source=source)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == ["README.md", "answers.jsonl", "data.json", "rl.jsonl", "stage1.jsonl", "stage2.jsonl"]
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    card = (tmp_path / "one" / "README.md").read_text()
    assert f"| `stage2` | {len(talks) - 4} |" in card
    assert "| `rl` | 12 | 12 |" in card
    assert "| failed | 3 |" in card


def talk(*events: Any) -> Trajectory:
    return Trajectory("t", [Message("user", "I am P121, my email is a@example.com now.", turn=1), *events])


def placed(*found: Trajectory | BylawError) -> list[tuple[Path, Trajectory | BylawError]]:
    return [(DEMO, each) for each in found]


READ = Call("get_patient", {"patient_id": "P121"}, turn=2)
SHOWN = Result(1, '{"patient_id": "P121", "identity_checked": true}', tool="get_patient")


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ((READ, SHOWN, Message("agent", "You are known here.", turn=3)), None),
        ((), "no turn"),
        ((Call("fetch_patient", {"patient_id": "P121"}, turn=2),), "unknown tool"),
        ((Call("get_patient", {"patient": "P121"}, turn=2),), "unfit arguments"),
        ((Call("get_consent", {"patient_id": "P121", "kind": "any"}, turn=2),), "unfit arguments"),
        ((Call("get_patient", {}, turn=2, fault="the arguments are not JSON"),), "unreadable call"),
        ((Call("get_patient", {"patient_id": "P999"}, turn=2),), "made-up id"),
    ],
)
def test_made_up_calls_are_found(events: tuple[Event, ...], why: str | None) -> None:
    assert hallucinated(PACK, talk(*events)) == why


def test_logs_become_sets_and_what_is_left_out_is_counted(tmp_path: Path) -> None:
    card = build_from_logs("clinic", tmp_path, placed(*read(DEMO))[:40], turns=10).read_text()
    rows = list(read_rows(tmp_path / "stage2.jsonl"))
    assert rows
    assert "| failed |" in card
    assert "| flagged: confirm-before-change not kept |" in card
    assert "| open: an uninformed write |" in card
    for row in rows:
        roles = [message["role"] for message in row["messages"]]
        assert roles[:2] == ["system", "user"]
        assert all(one != "tool" or before == "assistant" for before, one in pairwise(roles))
    apart = {row["task"] for row in read_rows(tmp_path / "rl.jsonl")}
    assert apart
    assert not apart & {row["id"] for row in rows}


def test_a_document_that_is_given_stands_in_stage_1(tmp_path: Path) -> None:
    build_from_logs("clinic", tmp_path, placed(*read(DEMO))[:12], turns=3, document="Be kind.")
    rows = list(read_rows(tmp_path / "stage1.jsonl"))
    assert rows
    assert all(row["messages"][0]["content"].endswith("\n\nBe kind.") for row in rows)


def test_logs_with_nothing_to_learn_from_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no conversations left"):
        build_from_logs("clinic", tmp_path, placed(talk()))
    with pytest.raises(UsageError, match="there were no conversations"):
        build_from_logs("clinic", tmp_path, [])


def test_a_single_conversation_is_learned_from_and_nothing_is_held_out(tmp_path: Path) -> None:
    (tmp_path / "rl.jsonl").write_text('{"of": "an earlier time"}\n')
    alone = talk(READ, SHOWN, Message("agent", "You are known here.", turn=3))
    card = build_from_logs("clinic", tmp_path, placed(alone))
    assert [row["id"] for row in read_rows(tmp_path / "stage2.jsonl")] == ["t"]
    assert list(read_rows(tmp_path / "rl.jsonl")) == []
    assert "There is only one conversation, so none is held out for `rl`." in card.read_text()


def test_parquet_holds_the_same_rows(talks: list[LessonSeries], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    from bylaw.align.dataset import write_parquet

    write_sets("clinic", tmp_path, talks[2:4], talks[:2], turns=5, seed=0, source=Source("", "", {}))
    write_parquet(tmp_path)
    for file in tmp_path.glob("*.parquet"):
        rows = list(read_rows(file.with_suffix(".jsonl")))
        again = parquet.read_table(file).to_pylist()
        assert len(again) == len(rows)
        assert [row.get("messages") or row["prompt"] for row in again] == [
            row.get("messages") or row["prompt"] for row in rows
        ]


def test_the_commands_work_from_a_folder_of_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    with bz2.open(DEMO) as file:
        (logs / "demo.jsonl").write_bytes(b"".join(islice(file, 30)))
    typed = ["align", "data", str(logs), "--out", str(tmp_path / "data"), "--turns", "10"]
    monkeypatch.setattr("sys.argv", ["bylaw", *typed])
    made = CliRunner().invoke(app, typed)
    assert made.exit_code == 0, made.output
    assert f"Made by `bylaw {' '.join(typed)}`" in (tmp_path / "data" / "README.md").read_text()
    played = ["align", "eval", "--agent", "careful", "--limit", "6", "--out", str(tmp_path), "--name", "careful"]
    done = CliRunner().invoke(app, played)
    assert done.exit_code == 0, done.output
    assert json.loads((tmp_path / "careful.json").read_bytes())["passed"]["mean"] == 1
    assert len((tmp_path / "careful.jsonl").read_text().splitlines()) == 6


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (["LOGS", "--times", "2"], "cannot be multiplied"),
        (["LOGS", "--rl-times", "2"], "cannot be multiplied"),
        (["--keep-all"], "require logs"),
        (["--document", "LOGS"], "require logs"),
    ],
)
def test_an_option_that_would_do_nothing_is_told(said: list[str], why: str, tmp_path: Path) -> None:
    logs = tmp_path / "demo.jsonl"
    with bz2.open(DEMO) as file:
        logs.write_bytes(b"".join(islice(file, 2)))
    given = [str(logs) if word == "LOGS" else word for word in said]
    done = CliRunner().invoke(app, ["align", "data", *given, "--out", str(tmp_path / "data")])
    assert isinstance(done.exception, UsageError)
    assert why in str(done.exception)
    assert not (tmp_path / "data").exists()
