"""`bylaw explain` and the report tell where the values of a flagged call came from."""

import json
from pathlib import Path

from click.testing import CliRunner

from bylaw.cli.app import app
from bylaw.engine.wording import origin_words

FILES = {
    "pack.yaml": "{format: 1, name: bank, document: policy.md}",
    "policy.md": "Money goes to known accounts.",
    "policies.yaml": "policies: [{id: known, kind: guard, tools: [pay], spans: [Money goes to known accounts.]}]",
    "tools.yaml": """
tools:
  read_mail: {effect: read, parameters: {}}
  pay: {effect: write, parameters: {account: string, amount: number}, changes: []}
""",
    "guards/known.py": """
def known(call, facts):
    return permit() if provenance(call.account).source in ["user", "record"] else deny("a strange account")
""",
}


def call(name: str, arguments: dict[str, object], id: str) -> dict[str, object]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]}


def test_explain_and_report_say_where_each_value_came_from(tmp_path: Path) -> None:
    pack = tmp_path / "bank"
    for name, text in FILES.items():
        (pack / name).parent.mkdir(parents=True, exist_ok=True)
        (pack / name).write_text(text)
    messages = [
        {"role": "user", "content": "Please pay 20 as my mail says."},
        call("read_mail", {}, "1"),
        {"role": "tool", "tool_call_id": "1", "content": "Dear Ann, send it to QQ7777 today."},
        call("pay", {"account": "QQ7777", "amount": 20}, "2"),
        {"role": "tool", "tool_call_id": "2", "content": '{"ok": true}'},
    ]
    (tmp_path / "logs.jsonl").write_text(json.dumps({"id": "ann", "messages": messages}) + "\n")
    out = tmp_path / "out"
    runner = CliRunner()
    runner.invoke(app, ["audit", str(tmp_path / "logs.jsonl"), "--pack", str(pack), "--out", str(out)])
    (line,) = [json.loads(each) for each in (out / "calls.jsonl").read_text().splitlines()]
    account, amount = line["origins"]
    assert account == {
        "argument": "account",
        "source": "content",
        "how": "exact",
        "step": 2,
        "tool": "read_mail",
        "whole": False,
        "named_by_user": False,
    }
    assert (amount["argument"], amount["source"]) == ("amount", "user")
    told = " ".join(runner.invoke(app, ["explain", str(out), "ann"]).output.split())
    assert "`account`: content: a result of `read_mail` at step 2, inside a text" in told
    assert "`amount`: said by the user at step 0" in told
    page = runner.invoke(app, ["report", str(out)])
    assert page.exit_code == 0, page.output
    assert "a result of `read_mail`, inside a text" in (out / "report.html").read_text()


def test_words_of_every_source() -> None:
    assert origin_words({"argument": "x", "source": "agent", "how": "exact"}).endswith("no known source")
    summed = origin_words({"argument": "x", "source": "agent", "how": "derived", "parts": ["record", "user"]})
    assert "may be a sum of values from: record, user" in summed
    written = {
        "argument": "x",
        "source": "content",
        "how": "exact",
        "tool": "t",
        "field": "f",
        "step": 2,
        "whole": True,
    }
    again = origin_words(written | {"written_at": [3, 7], "shown_again_at": [6]})
    assert "(`f`) at step 2" in again
    assert again.endswith("written at step 3, 7 and shown again at step 6")
    assert "the host" in origin_words({"argument": "x", "source": "host", "how": "exact"})
