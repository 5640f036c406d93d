"""The whole path on a CPU with a tiny model of random weights: data, three stages, evaluation; resumed and killed runs.

Run with `pytest -m train -n 0`; needs the extra `train`.
"""

import json
import multiprocessing
import signal
import time
from itertools import islice
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")
pytest.importorskip("peft")

from transformers import AutoTokenizer  # noqa: E402

from bylaw.align.dataset import SHAPES, conversation_row, turn_rows, write_rows  # noqa: E402
from bylaw.align.desk import open_agent  # noqa: E402
from bylaw.align.episode import play  # noqa: E402
from bylaw.align.evaluation import evaluate, score  # noqa: E402
from bylaw.align.lesson import gold  # noqa: E402
from bylaw.align.prompt import pack_named  # noqa: E402
from bylaw.align.training.preset import settings_of  # noqa: E402
from bylaw.align.training.run import (  # noqa: E402
    Run,
    last_checkpoint,
    make_trainer,
    train,
)
from bylaw.align.training.stage import scorer, training_rows, with_dialect  # noqa: E402  # noqa: E402
from bylaw.errors import UsageError  # noqa: E402
from bylaw_lab.clinic.tasks.sets import pairs, scenarios  # noqa: E402
from tests.align.tiny import tiny_model  # noqa: E402

pytestmark = [pytest.mark.train, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Data sets of a few tasks, and a tiny model whose tokenizer knows their words."""
    root = tmp_path_factory.mktemp("train")
    (root / "data").mkdir()
    golds = [gold(task) for pair in islice(pairs("training"), 3) for task in pair]
    # The first lines of the handbook will do: plain attention on a CPU takes the square of their length.
    lines = pack_named("clinic").document.text[:800]
    for name, shape in SHAPES.items():
        rows = (conversation_row("clinic", one, shape, document=lines) for one in golds)
        write_rows(root / "data" / f"{name}.jsonl", rows)
    write_rows(root / "data" / "rl.jsonl", turn_rows("clinic", golds, 4))
    texts = [
        message["content"]
        for name in ("stage1", "stage2")
        for row in training_rows(root / "data" / f"{name}.jsonl", 1)
        for message in row["messages"]
    ]
    tiny_model(root / "base", texts, words=1500, width=32)
    return root


def run_of(place, stage, start, name, **others):
    options = {"preset": "tiny", "save_every": None, "tensorboard": False, **others}
    return Run(stage=stage, model=place / start, out=place / name, **options)


def losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def test_data_to_stages_to_evaluation(place):
    rows = {stage: training_rows(place / "data", stage)[:2] for stage in (1, 2, 3)}
    small = {"batch": 2, "at_once": 2}
    first = train(run_of(place, 1, "base", "one", tensorboard=True, changes=small), rows[1])
    second = train(run_of(place, 2, "one", "two", changes=small), rows[2])
    third = train(run_of(place, 3, "two", "three", steps=1), rows[3], scorer("full"))
    assert [first["steps"], second["steps"], third["steps"]] == [1, 1, 1]
    assert list((place / "one" / "tensorboard").iterdir())
    [line] = [json.loads(text) for text in (place / "three" / "metrics.jsonl").read_text().splitlines()][:1]
    assert {"reward/format", "reward/policy_recall", "reward/total", "kl"} <= line.keys()
    agent = open_agent(str(place / "three"))
    agent.longest = 8
    tasks = scenarios("test")[:4]
    outcomes = play(tasks, agent, policy="none")
    found = evaluate(tasks, [score(task, outcome) for task, outcome in zip(tasks, outcomes, strict=True)])
    assert found.tasks == 4
    assert found.words > 500


def test_a_resumed_run_ends_with_the_same_losses(place):
    rows = training_rows(place / "data", 1)
    small = {"batch": 2, "at_once": 2}
    train(run_of(place, 1, "base", "whole", steps=3, changes=small), rows)
    halves = {"save_every": 0.0, "steps": 3, "changes": small}
    # A run that is stopped after the first of its three steps, then goes on.
    train(run_of(place, 1, "base", "halves", until=time.monotonic(), **halves), rows)
    assert last_checkpoint(place / "halves") is not None
    done = train(run_of(place, 1, "base", "halves", **halves), rows)
    assert done["resumed_from"] == "checkpoint-1"
    assert losses(place / "halves") == pytest.approx(losses(place / "whole"), abs=1e-5)


def test_a_killed_run_goes_on(place):
    out = place / "killed"
    options = {"steps": 4, "save_every": 0.0, "changes": {"batch": 2, "at_once": 2}}
    rows = training_rows(place / "data", 1)
    # The child is a copy of this process, which has loaded all it needs.
    run = run_of(place, 1, "base", "killed", **options)
    child = multiprocessing.get_context("fork").Process(target=train, args=(run, rows))
    child.start()
    try:
        while last_checkpoint_of(out) is None:
            assert child.is_alive(), "the run ended before it was killed"
            time.sleep(0.1)
    finally:
        child.kill()
        child.join()
    assert child.exitcode == -signal.SIGKILL
    before = len(losses(out))
    done = train(run, rows)
    assert done["resumed_from"].startswith("checkpoint-")
    assert done["steps"] == 4
    assert len(losses(out)) > before
    assert (out / "run.json").exists()


def last_checkpoint_of(out: Path):
    return next(iter(sorted(out.glob("checkpoint-*/trainer_state.json"))), None)


def test_a_half_written_checkpoint_is_not_used(tmp_path):
    for step in (1, 2):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "checkpoint-1" / "trainer_state.json").write_text("{}")
    assert last_checkpoint(tmp_path) == tmp_path / "checkpoint-1"
    assert not (tmp_path / "checkpoint-2").exists()


def test_adapters_alone_learn_and_are_merged(place):
    rows = training_rows(place / "data", 2)[:2]
    done = train(run_of(place, 2, "base", "adapters", steps=1, lora=2), rows)
    assert done["lora"] == 2
    assert not (place / "adapters" / "adapter_config.json").exists()
    assert (place / "adapters" / "model.safetensors").exists()
    assert "Adapters of rank 2" in (place / "adapters" / "README.md").read_text()


def test_adapters_lie_beside_the_model_and_make_it_of_the_first(place):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    rows = training_rows(place / "data", 2)[:2]
    changes = {"learning_rate": 0.05, "warmup": 0.0}
    train(run_of(place, 2, "base", "beside", steps=2, lora=2, changes=changes), rows)
    first, merged = (AutoModelForCausalLM.from_pretrained(place / name) for name in ("base", "beside"))
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        before, wanted = first(ids).logits, merged(ids).logits
        found = PeftModel.from_pretrained(first, str(place / "beside" / "adapter"))(ids).logits
    assert torch.allclose(found, wanted, atol=1e-4)
    assert not torch.allclose(before, wanted, atol=1e-2)


def test_only_the_agents_words_are_learned_and_servers_see_the_same_text(place):
    tokenizer = with_dialect(AutoTokenizer.from_pretrained(place / "base"))
    rows = training_rows(place / "data", 2)
    messages = rows[0]["messages"]
    run = run_of(place, 2, "base", "masked")
    trainer, left_out = make_trainer(run, settings_of("tiny", 2, {}), tokenizer, rows[:1])
    assert left_out == 0
    example = trainer.train_dataset[0]
    learned = tokenizer.decode([label for label in example["labels"] if label >= 0])
    assert learned == "".join(one["content"] + "<|im_end|>" for one in messages if one["role"] == "assistant")
    assert tokenizer.decode(example["input_ids"]) == "".join(map(shown, messages))
    prompt = tokenizer.apply_chat_template(messages[:2], add_generation_prompt=True, return_dict=True)["input_ids"]
    assert prompt == example["input_ids"][: len(prompt)]
    longest = len(example["input_ids"]) - 1
    _, left_out = make_trainer(run, settings_of("tiny", 2, {"longest": longest}), tokenizer, rows)
    assert left_out >= 1


def shown(message) -> str:
    """A message as a model reads it."""
    role, content = message["role"], message["content"]
    if role == "tool":
        role, content = "user", f"<tool_response>\n{content}\n</tool_response>"
    return f"<|im_start|>{role}\n{content}<|im_end|>\n"


def test_rewards_count_the_terms_they_are_asked_for(place):
    row = training_rows(place / "data", 3)[0]
    [full], [short] = scorer("full")([row["gold"]], [row]), scorer("tf")([row["gold"]], [row])
    assert short["total"] == full["format"] + full["turn"] == 4.0
    assert full["total"] == pytest.approx(4 + full["policy_recall"] - full["hallucination"] - full["length"])
    assert full["policy_recall"] > 0.9
    with pytest.raises(UsageError, match="unknown reward term `xx`"):
        scorer("tf+xx")


def test_settings_that_there_are_not_are_named():
    assert settings_of("paper", 3, {"epochs": 2}).epochs == 2
    with pytest.raises(UsageError, match=r"object contains unknown field `learning`.*stage 1 has learning_rate"):
        settings_of("small", 1, {"learning": 1})


def test_bad_rows_are_named_with_their_line(tmp_path):
    (tmp_path / "stage1.jsonl").write_text('{"messages": []}\n{"prompt": []}\n')
    with pytest.raises(UsageError, match=r"stage1\.jsonl:2: a row of stage 1 requires `messages`"):
        training_rows(tmp_path, 1)
    with pytest.raises(UsageError, match=r"there is no `rl\.jsonl`"):
        training_rows(tmp_path, 3)


def test_the_command_trains_and_says_what_it_did(place):
    from click.testing import CliRunner

    from bylaw.cli.align import train_command

    named = {"--stage": "2", "--preset": "tiny", "--steps": "1", "--set": "batch=2"}
    paths = {"--model": place / "base", "--data": place / "data", "--out": place / "commanded"}
    arguments = [str(part) for pair in {**named, **paths}.items() for part in pair]
    done = CliRunner().invoke(train_command, arguments, catch_exceptions=False)
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["stage"], said["steps"], said["settings"]["batch"]) == (2, 1, 2)
    assert (place / "commanded" / "model.safetensors").exists()


def test_conversations_of_similar_length_are_computed_together_in_an_order_that_depends_on_the_seed(place):
    """Each step draws conversations at random. Only inside a step are they sorted by length."""
    rows = training_rows(place / "data", 2)
    changes = {"batch": 4, "at_once": 2}
    orders = []
    for seed in (1, 2):
        run = run_of(place, 2, "base", f"order-{seed}", seed=seed, changes=changes)
        tokenizer = with_dialect(AutoTokenizer.from_pretrained(run.model))
        trainer, _ = make_trainer(run, settings_of("tiny", 2, changes), tokenizer, rows)
        parts = [batch["attention_mask"].sum(1).tolist() for batch in trainer.get_train_dataloader()]
        assert sum(map(len, parts)) == len(rows)
        long, short = sorted(parts[:2], reverse=True)
        assert min(long) >= max(short)
        orders.append(parts)
    assert orders[0] != orders[1]
