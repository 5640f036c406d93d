"""A user's own logs by the commands of the guide: data, score, three tiny stages on a CPU, and every export."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("pyarrow")

from bylaw.align.dataset import read_rows
from bylaw.align.prompt import pack_named
from tests.align.own_logs import AIRLINE, audited_airline, audited_demo, faulty, learned, lines, run
from tests.align.tiny import tiny_model
from tests.command import bylaw

pytestmark = [pytest.mark.train, pytest.mark.timeout(600)]


def test_the_demo_s_logs_go_all_the_way(tmp_path: Path) -> None:
    goes_all_the_way(audited_demo(tmp_path), "clinic", pack_named("clinic").document.text)


@pytest.mark.shared
def test_an_airline_s_run_goes_all_the_way(tmp_path: Path) -> None:
    if not AIRLINE.exists():
        pytest.skip("the recorded conversations are not here")
    goes_all_the_way(audited_airline(tmp_path), "tau-airline/tau2", (AIRLINE / "tau2" / "policy.md").read_text())


def goes_all_the_way(root: Path, pack: str, document: str) -> None:
    """From an audit in `root` to models and to what other trainers load."""
    data = root / "data"
    # The first lines of the document will do: plain attention on a CPU takes the square of their length.
    (root / "policy.md").write_text(document[:800])
    run("align", "data", "--audit", root / "audit", "--document", root / "policy.md", "--out", data)
    assert learned(data)
    assert not learned(data) & faulty(root / "audit")
    rows = list(read_rows(data / "rl.jsonl"))
    is_scored_as_it_should_be(root, rows)
    is_learned_from(root, pack)
    for trainer in ("trl", "verl", "swift", "verifiers"):
        run("align", "export", data, "--for", trainer, "--out", root / trainer)
        assert {path.stem for path in (root / trainer).iterdir()} >= {"stage1", "stage2", "rl", "reward"}
    is_graded_by_the_exports(root, rows)
    run("align", "pairs", "--audit", root / "audit", "--out", root / "pairs")
    assert any(not row["label"] for row in lines(root / "pairs" / "kto.jsonl"))


def is_scored_as_it_should_be(root: Path, rows: list[dict[str, Any]]) -> None:
    """The turn that was taken has all that a turn can have; "ok" earns at most 1."""
    asked = [{"answer": answer, "row": place + 1} for place, row in enumerate(rows) for answer in (row["gold"], "ok")]
    ran = bylaw(root, "align", "score", "--rows", "data/rl.jsonl", stdin="\n".join(map(json.dumps, asked)).encode())
    assert ran.returncode == 0, ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert all(gold["turn"] == 3 and ok["total"] <= 1 for gold, ok in zip(found[::2], found[1::2], strict=True))


def is_learned_from(root: Path, pack: str) -> None:
    """Each stage begins with the model of the one before, and says what it was made from."""
    data = root / "data"
    said = [each["content"] for row in read_rows(data / "stage2.jsonl") for each in row["messages"]]
    tiny_model(root / "model0", said, words=1500, width=32)
    for stage, settings in ((1, ("batch=2", "at_once=2")), (2, ("batch=2", "at_once=2")), (3, ())):
        before, after = root / f"model{stage - 1}", root / f"model{stage}"
        changes = [part for setting in settings for part in ("--set", setting)]
        given = ("--stage", stage, "--model", before, "--data", data, "--out", after, "--preset", "tiny", "--steps", 1)
        run("align", "train", *given, *changes)
        record = json.loads((after / "run.json").read_text())
        source = record["source"]
        assert (record["steps"], source["data"]["as_made"]) == (1, True)
        assert source["pack"]["sha256"] == pack_named(pack).digest
        assert source["pack"]["sha256"][:16] in (after / "README.md").read_text()
        assert source.get("reward", {}).get("pack") == (pack if stage == 3 else None)


def is_graded_by_the_exports(root: Path, rows: list[dict[str, Any]]) -> None:
    """The rewards of TRL and verl, which need no library of theirs."""
    held = lines(root / "trl" / "rl.jsonl")
    columns = {name: [row[name] for row in held] for name in ("required", "expected", "slots")}
    prompts = [row["prompt"] for row in held]
    score, rate = reward(root, "verl").compute_score, reward(root, "trl").bylaw_reward
    truths = [json.dumps({**row, "prompt": row["prompt"]}) for row in rows]
    for is_good in (True, False):
        answers = [row["gold"] if is_good else "ok" for row in rows]
        completions = [[{"role": "assistant", "content": answer}] for answer in answers]
        earned = rate(prompts=prompts, completions=completions, **columns)
        pairs = zip(answers, truths, strict=True)
        same = [score(data_source="bylaw", solution_str=answer, ground_truth=truth)["score"] for answer, truth in pairs]
        assert same == earned
        assert all(each > 3 if is_good else each <= 1 for each in earned)


def reward(root: Path, trainer: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"own_logs_{trainer}", root / trainer / "reward.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found
