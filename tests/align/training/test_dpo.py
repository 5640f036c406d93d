"""DPO on preference pairs, on a CPU with a tiny model of random weights. Run with `pytest -m train -n 0`."""
# pyright: basic, reportMissingImports=false

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("trl")

from bylaw.align.dataset import write_rows
from bylaw.align.training.run import Run, train
from bylaw.align.training.stage import training_rows
from bylaw.errors import UsageError
from tests.align.tiny import tiny_model

pytestmark = [pytest.mark.train, pytest.mark.timeout(300)]


def test_it_learns_to_prefer_the_chosen_call(tmp_path: Path) -> None:
    """With beta 1 and no supervised loss, the margin between the two calls grows from 0."""
    prompt = [{"role": "user", "content": "P121 here, please refill X1."}]
    look_up, write = ({"role": "assistant", "content": f'{{"name": "{name}"}}'} for name in ("get_patient", "refill"))
    write_rows(tmp_path / "dpo.jsonl", [{"prompt": prompt, "chosen": [look_up], "rejected": [write]}] * 2)
    tiny_model(tmp_path / "base", [each["content"] for each in (*prompt, look_up, write)], words=400, width=32)
    changes = {"beta": 1.0, "imitation": 0.0, "learning_rate": 0.01, "warmup": 0.0}
    options = {"preset": "tiny", "save_every": None, "tensorboard": False, "steps": 4, "changes": changes}
    run = Run(stage="dpo", model=tmp_path / "base", out=tmp_path / "out", **options)
    train(run, training_rows(tmp_path, "dpo"))
    lines = [json.loads(text) for text in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()]
    margins = [line["rewards/margins"] for line in lines if "rewards/margins" in line]
    assert margins[0] == 0
    assert margins[-1] > 0.1
    assert "DPO on preference pairs" in (tmp_path / "out" / "README.md").read_text()


def test_missing_pairs_name_the_command_that_writes_them(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="write it with `bylaw align pairs`"):
        training_rows(tmp_path, "dpo")
