"""What `bylaw align train` says where it cannot begin. Training itself is tested in `tests/align/training`."""

import importlib
import json

import pytest
from click.testing import CliRunner

from bylaw.cli.align import train_command
from bylaw.errors import UsageError


def ask(tmp_path, *more):
    (tmp_path / "config.json").touch()
    (tmp_path / "stage1.jsonl").write_text('{"messages": []}\n')
    arguments = ["--stage", "1", "--model", str(tmp_path), "--data", str(tmp_path), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(train_command, [*arguments, *more])
    assert isinstance(done.exception, UsageError), done.output
    return str(done.exception)


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch):
    def missing(name):
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(importlib, "import_module", missing)
    assert ask(tmp_path) == "training requires `torch`; in your clone of Bylaw: pip install '.[train]'"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("learning_rate", "`learning_rate` is not a setting"),
        ("rate=1", "no such setting: object contains unknown field `rate`"),
        ('epochs="two"', "no such setting: expected `float`, got `str` - at `$.epochs`"),
    ],
)
def test_a_setting_that_is_none_is_named(tmp_path, said, why):
    assert ask(tmp_path, "--set", said).startswith(why)


def test_what_is_not_there_is_said_before_torch_is_imported(tmp_path, monkeypatch):
    def asked(name):
        raise AssertionError(f"{name} was imported")

    monkeypatch.setattr(importlib, "import_module", asked)
    assert ask(tmp_path, "--model", "nope").startswith("there is no model in `nope`")
    assert ask(tmp_path, "--stage", "2").startswith("there is no `stage2.jsonl`")


ROW = {"prompt": [], "required": ["visit-copay"], "expected": {"tool": "t", "arguments": {}}}


def test_stage_3_is_graded_by_the_pack_of_its_rows_and_by_no_other(tmp_path):
    """Rows of an airline were once graded by the clinic's policies, whatever was meant."""
    (tmp_path / "rl.jsonl").write_text(json.dumps(ROW) + "\n")
    assert ask(tmp_path, "--stage", "3").startswith("cannot tell which pack")
    said = ask(tmp_path, "--stage", "3", "--pack", "tau-airline/tau2")
    assert said.startswith("row 1 needs the policy `visit-copay`, which is not in pack `tau-airline/tau2`")
    text = {**ROW, "expected": {"text": "All set."}, "slots": []}
    (tmp_path / "rl.jsonl").write_text(json.dumps(text) + "\n")
    assert ask(tmp_path, "--stage", "3", "--pack", "clinic").startswith("no row can be graded; use --judge MODEL")
    assert ask(tmp_path, "--pack", "clinic").startswith("--pack and --judge are for stage 3")
