"""The sets as trainers load them. Where a trainer is installed, it loads them itself: TRL 1.16, verl 0.9.1, ms-swift
4.6 and verifiers 0.4 were; each test skips where its library is not there."""

import asyncio
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bylaw.align.dataset import Source, write_sets
from bylaw.align.desk import load_tasks
from bylaw.align.export import Trainer, export
from bylaw.align.lesson import gold
from bylaw.errors import UsageError


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sets of four of the clinic's conversations."""
    out = tmp_path_factory.mktemp("sets")
    talks = [gold(task) for task in load_tasks("development")[:6]]
    write_sets("clinic", out, talks[:4], talks[4:], turns=6, seed=0, source=Source("Some.", "a test", {}))
    return out


@pytest.fixture
def exported(data: Path, tmp_path: Path) -> Any:
    """Writes what a trainer needs, and gives the folder."""

    def write(trainer: Trainer) -> Path:
        export(data, trainer, tmp_path)
        return tmp_path

    return write


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"exported_{path.parent.name}", path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture(scope="module")
def tiny(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model small enough for a CPU."""
    pytest.importorskip("trl")
    from tests.align.tiny import tiny_model

    texts = [message["content"] for row in lines(data / "stage2.jsonl") for message in row["messages"]]
    return tiny_model(tmp_path_factory.mktemp("tiny"), texts, words=1024, width=32)


@pytest.mark.parametrize("trainer", ["trl", "swift"])
def test_no_row_tells_the_tools_a_second_time(exported: Any, trainer: Trainer) -> None:
    folder = exported(trainer)
    for file in folder.glob("*.jsonl"):
        for row in lines(file):
            assert "tools" not in row
            said = "\n".join(each["content"] for each in row.get("messages") or row["prompt"])
            assert said.count("Tools:\n") == 1


def test_the_exported_reward_gives_the_gold_turn_all_that_the_grader_gives(exported: Any, data: Path) -> None:
    from bylaw.align.dataset import find_manifest
    from bylaw.align.export import pinned_grader
    from bylaw.align.grader import gold_of

    made = find_manifest(data)
    assert made is not None
    grader = pinned_grader("clinic", made.pack_digest)
    rows = lines(data / "rl.jsonl")
    wanted = [grader.grade(row["gold"], gold_of(row)).total for row in rows]
    assert min(wanted) > 3
    folder = exported("trl")
    columns = lines(folder / "rl.jsonl")
    held = {name: [row[name] for row in columns] for name in ("required", "expected", "slots")}
    prompts = [row["prompt"] for row in columns]
    completions = [[{"role": "assistant", "content": row["gold"]}] for row in rows]
    assert module(folder / "reward.py").bylaw_reward(prompts=prompts, completions=completions, **held) == wanted


def test_a_pack_that_has_changed_since_grades_nothing(exported: Any) -> None:
    folder = exported("trl")
    reward = folder / "reward.py"
    digest = reward.read_text(encoding="utf-8").split("'")[-2]
    reward.write_text(reward.read_text(encoding="utf-8").replace(digest, "0" * 64), encoding="utf-8")
    with pytest.raises(UsageError, match="has changed"):
        module(reward)


def test_a_folder_that_is_no_folder_of_sets_is_refused(tmp_path: Path, data: Path) -> None:
    with pytest.raises(UsageError, match=r"data\.json"):
        export(tmp_path, "trl", tmp_path / "out")
    with pytest.raises(UsageError, match="are already in this folder"):
        export(data, "trl", data)


def test_trl_learns_every_thought_and_tells_the_tools_once(exported: Any, tiny: Path) -> None:
    datasets, trl = pytest.importorskip("datasets"), pytest.importorskip("trl")
    from transformers import AutoTokenizer

    folder = exported("trl")
    rows = lines(folder / "stage2.jsonl")
    tokenizer: Any = AutoTokenizer.from_pretrained(tiny)
    tokenizer.chat_template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    config = trl.SFTConfig(
        output_dir=str(folder / "out"),
        assistant_only_loss=True,
        max_steps=1,
        max_length=None,
        per_device_train_batch_size=1,
        report_to=[],
        use_cpu=True,
        bf16=False,
    )
    sets = datasets.Dataset.from_list(rows)
    trainer = trl.SFTTrainer(model=str(tiny), args=config, train_dataset=sets, processing_class=tokenizer)
    for row, tokens in zip(rows, trainer.train_dataset, strict=True):
        learned = tokenizer.decode([label for label in tokens["labels"] if label != -100])
        assert tokenizer.decode(tokens["input_ids"]).count("Tools:\n") == 1
        for message in row["messages"]:
            if message["role"] == "assistant":
                assert message["content"].startswith("<think>")
                assert message["content"] in learned
    assert trainer.train().global_step == 1


def test_trl_practises_by_the_exported_reward(exported: Any, tiny: Path) -> None:
    datasets, trl = pytest.importorskip("datasets"), pytest.importorskip("trl")
    from transformers import AutoTokenizer

    folder = exported("trl")
    tokenizer: Any = AutoTokenizer.from_pretrained(tiny)
    tokenizer.chat_template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    config = trl.GRPOConfig(
        output_dir=str(folder / "out"),
        max_steps=1,
        num_generations=2,
        per_device_train_batch_size=2,
        max_completion_length=4,
        report_to=[],
        use_cpu=True,
        bf16=False,
        logging_steps=1,
    )
    trainer = trl.GRPOTrainer(
        model=str(tiny),
        args=config,
        reward_funcs=module(folder / "reward.py").bylaw_reward,
        train_dataset=datasets.Dataset.from_list(lines(folder / "rl.jsonl")),
        processing_class=tokenizer,
    )
    trainer.train()
    assert any("rewards/bylaw_reward/mean" in each for each in trainer.state.log_history)


def test_verl_loads_the_rows_and_the_reward(exported: Any, tiny: Path, data: Path) -> None:
    pytest.importorskip("verl")
    from omegaconf import OmegaConf  # pyright: ignore[reportMissingImports]
    from transformers import AutoTokenizer
    from verl.trainer.ppo.reward import get_custom_reward_fn  # pyright: ignore[reportMissingImports]
    from verl.utils.dataset.rl_dataset import RLHFDataset  # pyright: ignore[reportMissingImports]

    folder = exported("verl")
    tokenizer: Any = AutoTokenizer.from_pretrained(tiny)
    tokenizer.chat_template = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    config = OmegaConf.create({"max_prompt_length": 100_000, "cache_dir": str(folder / "cache")})
    found = RLHFDataset(str(folder / "rl.parquet"), tokenizer, config)
    rows = lines(data / "rl.jsonl")
    assert len(found) == len(rows)
    reward = {"custom_reward_function": {"path": str(folder / "reward.py"), "name": "compute_score"}}
    score: Any = get_custom_reward_fn(OmegaConf.create({"reward": reward}))
    for place, row in enumerate(rows):
        item = found[place]
        told = {"data_source": item["data_source"], "extra_info": item["extra_info"]}
        truth = item["reward_model"]["ground_truth"]
        good = score(solution_str=row["gold"], ground_truth=truth, **told)["score"]
        assert good > 3 > score(solution_str="ok", ground_truth=truth, **told)["score"]


def test_ms_swift_makes_the_reward_by_its_own_constructor_and_keeps_the_columns(exported: Any, data: Path) -> None:
    pytest.importorskip("swift.rewards")
    from swift.dataset import load_dataset  # pyright: ignore[reportMissingImports]
    from swift.rewards import orms  # pyright: ignore[reportMissingImports]

    folder = exported("swift")
    module(folder / "reward.py")
    reward: Any = orms["bylaw"](args=None)
    rows = lines(data / "rl.jsonl")
    loaded, _ = load_dataset([str(folder / "rl.jsonl")], remove_unused_columns=False)
    assert {"messages", "required", "expected", "slots"} <= set(loaded.column_names)
    columns = {name: list(loaded[name]) for name in ("required", "expected", "slots")}
    for answers, is_good in (([row["gold"] for row in rows], True), (["ok"] * len(rows), False)):
        pairs = zip(loaded["messages"], answers, strict=True)
        messages = [[*said, {"role": "assistant", "content": answer}] for said, answer in pairs]
        assert all((each > 3) == is_good for each in reward(answers, messages=messages, **columns))


def test_verifiers_loads_the_turns_and_scores_them(exported: Any, data: Path) -> None:
    vf = pytest.importorskip("verifiers.v1")
    found = module(exported("verifiers") / "reward.py")
    tasks = list(found.Turns(vf.TasksetConfig()).load())
    rows = lines(data / "rl.jsonl")
    assert len(tasks) == len(rows)
    for task, row in zip(tasks, rows, strict=True):
        said = [vf.SystemMessage(content=task.data.system_prompt), *task.data.prompt]
        said.append(vf.AssistantMessage(content=row["gold"]))
        nodes = [
            vf.MessageNode(parent=place - 1 if place else None, message=message, sampled=place == len(said) - 1)
            for place, message in enumerate(said)
        ]
        trace = vf.Trace.model_construct(
            task=vf.TraceTask(type="Turn", data=task.data),
            nodes=nodes,
            calls=[],
            rewards={},
            metrics={},
            root_reply=None,
        )
        asyncio.run(task.score(trace))
        assert trace.rewards["bylaw"].value > 3
