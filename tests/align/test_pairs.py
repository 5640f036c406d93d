"""Preference pairs: the call as it was made, against the look-up that it lacked."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw.align.dataset import audited_calls, example_rows, pair_row, write_pairs
from bylaw.align.prompt import pack_named
from bylaw.align.suitability import FreshAudit
from bylaw.cli.logs import open_logs
from bylaw.errors import UsageError
from bylaw.shield import Shield

CALL = {"name": "update_contact", "arguments": {"patient_id": "P121", "email": "a@example.com"}}
LOOK_UP = {"name": "get_patient", "arguments": {"patient_id": "P121"}}


def asked(name: str, arguments: dict[str, Any], id: str) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def talk(*, looks: bool, confirms: bool = True, checked: bool = True) -> dict[str, Any]:
    """A caller whose email is changed: with or without the look-up that this needs, and with or without a yes.

    Without a look-up before it, one after it shows what was true.
    """
    shown = [
        asked("get_patient", LOOK_UP["arguments"], "c1"),
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": json.dumps({"patient_id": "P121", "identity_checked": checked}),
        },
    ]
    yes = [
        {"role": "assistant", "content": "I'll change the email address of patient P121 to a@example.com. Shall I?"},
        {"role": "user", "content": "Yes."},
    ]
    written = [
        asked("update_contact", CALL["arguments"], "c2"),
        {"role": "tool", "tool_call_id": "c2", "content": '{"ok": true}'},
    ]
    messages = [
        {"role": "user", "content": "P121 here, please change my email to a@example.com."},
        *(shown if looks else []),
        *(yes if confirms else []),
        *written,
        *([] if looks else shown),
        {"role": "assistant", "content": "Done."},
    ]
    return {"id": f"chat-{looks}-{confirms}-{checked}", "messages": messages}


def marked(tmp_path: Path, one: dict[str, Any]) -> list[Any]:
    path = tmp_path / "logs.jsonl"
    path.write_text(json.dumps(one) + "\n", encoding="utf-8")
    auditor = FreshAudit("clinic")
    with open_logs([path]) as opened:
        return [
            each
            for file, trajectory in opened.placed()
            for each in audited_calls("clinic", trajectory, auditor.judged(trajectory, file))
        ]


def test_a_near_miss_is_paired_with_the_look_up_that_it_lacked(tmp_path: Path) -> None:
    (found,) = marked(tmp_path, talk(looks=False))
    assert found.verdict == "near_miss"
    row = pair_row(found)
    assert json.loads(row["rejected"][0]["content"]) == CALL
    assert json.loads(row["chosen"][0]["content"]) == LOOK_UP
    assert row["policies"] == ["identity-checked"]
    assert [each["content"] for each in row["prompt"]][-1] == "Yes."
    assert [each["label"] for each in example_rows(found)] == [False, True]


def test_what_is_chosen_is_what_the_shield_asks_for(tmp_path: Path) -> None:
    (found,) = marked(tmp_path, talk(looks=False))
    session = Shield(pack_named("clinic")).session()
    for message in found.prompt[1:]:
        (session.user if message["role"] == "user" else session.agent)(message["content"])
    decision = session.decide(CALL["name"], CALL["arguments"])
    assert decision.answer == "look_up"
    chosen = json.loads(found.lacked)
    assert (chosen["name"], chosen["arguments"]) in [(each.tool, each.arguments) for each in decision.look_ups]


def test_a_blind_violation_is_paired_and_one_with_open_eyes_is_not(tmp_path: Path) -> None:
    (blind,) = marked(tmp_path, talk(looks=False, checked=False))
    assert (blind.verdict, bool(blind.lacked)) == ("violation", True)
    (seeing,) = marked(tmp_path, talk(looks=True, checked=False))
    assert (seeing.verdict, seeing.lacked) == ("violation", "")
    assert [each["label"] for each in example_rows(seeing)] == [False]


def test_a_missing_yes_is_a_bad_example_and_no_look_up_mends_it(tmp_path: Path) -> None:
    (found,) = marked(tmp_path, talk(looks=True, confirms=False))
    assert (found.verdict, found.lacked) == ("rule", "")
    assert [each["label"] for each in example_rows(found)] == [False]


def test_a_right_call_is_a_good_example(tmp_path: Path) -> None:
    (found,) = marked(tmp_path, talk(looks=True))
    assert found.verdict == "compliant"
    assert [each["label"] for each in example_rows(found)] == [True]


def test_files_say_which_pack_they_are_of_and_right_logs_alone_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "logs.jsonl"
    path.write_text("".join(json.dumps(talk(looks=each)) + "\n" for each in (True, False)), encoding="utf-8")
    out = tmp_path / "pairs"
    with open_logs([path]) as opened:
        found = write_pairs("clinic", out, opened.placed(), FreshAudit("clinic"))
    assert (found.pairs, found.examples, dict(found.without)) == (1, 3, {})
    made = json.loads((out / "data.json").read_text(encoding="utf-8"))
    assert {name: each["rows"] for name, each in made["sets"].items()} == {"dpo": 1, "kto": 3}
    path.write_text(json.dumps(talk(looks=True)) + "\n", encoding="utf-8")
    with open_logs([path]) as opened, pytest.raises(UsageError, match="there are no pairs"):
        write_pairs("clinic", out, opened.placed(), FreshAudit("clinic"))


def test_trl_loads_the_pairs(tmp_path: Path) -> None:
    trl, datasets = pytest.importorskip("trl"), pytest.importorskip("datasets")
    from transformers import AutoTokenizer

    from bylaw.align.training.stage import with_dialect
    from tests.align.tiny import tiny_model

    (found,) = marked(tmp_path, talk(looks=False))
    tiny = tiny_model(tmp_path / "tiny", [each["content"] for each in found.prompt], words=512, width=32)
    tokenizer: Any = AutoTokenizer.from_pretrained(tiny)
    with_dialect(tokenizer)
    plain = {"output_dir": str(tmp_path / "out"), "max_steps": 1, "per_device_train_batch_size": 2}
    plain |= {"report_to": [], "use_cpu": True, "bf16": False, "max_length": None}
    rows = datasets.Dataset.from_list([pair_row(found)] * 2)
    trainer = trl.DPOTrainer(
        model=str(tiny), args=trl.DPOConfig(**plain), train_dataset=rows, processing_class=tokenizer
    )
    assert trainer.train().global_step == 1
