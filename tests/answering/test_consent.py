"""An open consent is shown as work to do; a model's one answer settles it only with the user's own words."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.command import bylaw

FILES = {
    "pack.yaml": "{format: 1, name: desk, document: policy.md}",
    "policy.md": "Tell the customer what you cancel and wait for a yes.",
    "tools.yaml": (
        "tools:\n  cancel_order:\n    {effect: write, parameters: {order_id: string, channel: string},"
        " put_as: 'cancel order {order_id}', description: Cancels an order.}\n"
    ),
    "policies.yaml": "policies: [{id: confirm, kind: rule, spans: [Tell the customer what you cancel]}]",
    "rules.yaml": (
        "predicates: {change: {effect: write}, agreed: {consented: told}}\n"
        "rules: [{id: confirm, formula: ALWAYS (change IMPLIES agreed)}]\n"
    ),
}
ASK, AGREES, OPEN = "Shall I cancel order R-7?", "Yes, please.", "Well, that would not be the worst of ideas."


def talk(name: str, answer: str) -> dict[str, Any]:
    function = {"name": "cancel_order", "arguments": '{"order_id": "R-7"}'}
    messages = [
        {"role": "user", "content": "I have no use for R-7 any more."},
        {"role": "assistant", "content": ASK},
        {"role": "user", "content": answer},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "1", "content": "cancelled"},
    ]
    return {"id": name, "messages": messages}


@pytest.fixture(name="folder")
def write(tmp_path: Path) -> Path:
    (tmp_path / "desk").mkdir()
    for name, text in FILES.items():
        (tmp_path / "desk" / name).write_text(text, encoding="utf-8")
    talks = [talk("clear", AGREES), talk("one", OPEN), talk("two", OPEN + " I think.")]
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    return tmp_path


AUDIT = ("audit", "talk.jsonl", "--pack", "desk")
ASKING = (*AUDIT, "--llm", "batch:asked")


def summary(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "out" / "summary.json").read_bytes())


def requests(folder: Path) -> dict[str, str]:
    """What was written down, by id: the question's text."""
    files = sorted((folder / "asked" / "requests").glob("*.jsonl"))
    asked = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return {each["custom_id"]: each["body"]["messages"][1]["content"] for each in asked}


def answer(folder: Path, **said: Any) -> None:
    lines = [json.dumps({"custom_id": name, "text": json.dumps(said)}) for name in requests(folder)]
    (folder / "asked" / "answers.jsonl").write_text("\n".join(lines), encoding="utf-8")


def test_what_is_open_is_counted_by_rule_and_reason(folder: Path) -> None:
    done = bylaw(folder, *AUDIT, "--report")
    assert done.returncode == 0
    assert summary(folder)["open"] == {
        "calls": 2,
        "rules": {"confirm": {"calls": 2, "trajectories": 2, "reasons": {"unclear": 2}}},
    }
    assert "Undecided: 2 calls to review" in done.stdout
    assert "use --llm MODEL or `bylaw view`" in " ".join(done.stdout.split())
    report = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert '"open":{"calls":2' in report.replace(" ", "")


def test_one_question_is_asked_for_each_open_consent_and_shows_what_was_said(folder: Path) -> None:
    done = bylaw(folder, *ASKING)
    assert done.returncode == 3
    asked = list(requests(folder).values())
    assert len(asked) == 2, "the clear yes is no question"
    assert f"[1] agent: {ASK}" in asked[0]
    assert f"[2] user: {OPEN}" in asked[0]
    assert 'cancel_order({"order_id":"R-7"})' in asked[0]
    assert "wait for a yes" in asked[0], "the policy stands in it"


@pytest.mark.parametrize(
    ("said", "value", "broken"),
    [
        ({"answer": "yes", "quotes": [{"step": 2, "text": "not be the worst"}], "because": "."}, True, 0),
        ({"answer": "yes", "quotes": [], "because": "."}, None, 0),
        ({"answer": "yes", "quotes": [{"step": 1, "text": "Shall I cancel"}], "because": "."}, None, 0),
        ({"answer": "yes", "quotes": [{"step": 2, "text": "Yes, go on."}], "because": "."}, None, 0),
        ({"answer": "no", "quotes": [], "because": "."}, False, 2),
        ({"answer": "unknown", "quotes": [], "because": "."}, None, 0),
    ],
    ids=["yes", "no quote", "the agent's words", "words nobody said", "no", "unknown"],
)
def test_a_yes_needs_the_users_words(folder: Path, said: dict[str, Any], value: bool | None, broken: int) -> None:
    bylaw(folder, *ASKING)
    answer(folder, **said)
    done = bylaw(folder, *ASKING)
    assert done.returncode == 0
    found = summary(folder)
    assert found["open"]["calls"] == (2 if value is None else 0)
    word = {True: "yes", False: "no", None: "open"}[value]
    assert found["answered"]["agreed"] == dict.fromkeys(("yes", "no", "open", "stated", "not stated"), 0) | {word: 2}
    lines = [json.loads(line) for line in (folder / "out" / "calls.jsonl").read_text(encoding="utf-8").splitlines()]
    told = [line["answered"][0] for line in lines if "answered" in line]
    assert [(each["value"], each["by"]) for each in told] == [(value, "model")] * 2
    findings = (folder / "out" / "findings.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(findings) == broken
    assert all("a model judged it" in json.loads(line)["because"] for line in findings)


def test_a_budget_is_kept_to_and_what_it_leaves_is_told(folder: Path) -> None:
    done = bylaw(folder, *ASKING, "--budget", "1")
    assert done.returncode == 3
    assert len(requests(folder)) == 1
    assert "1 request was not sent: the budget is used up" in done.stdout
    answer(folder, answer="no", quotes=[], because=".")
    done = bylaw(folder, *ASKING, "--budget", "1")
    assert len(requests(folder)) == 2, "what is answered costs nothing"
    assert summary(folder)["answered"]["agreed"]["no"] == 1


def test_what_it_costs_is_told_before_anything_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    done = bylaw(folder, *AUDIT, "--llm", "small", "--budget", "1")
    first, *rest = done.stdout.splitlines()
    assert first.startswith("small will be sent 2 requests: about ")
    assert first.endswith("--budget allows no more than 1, so the rest stay undecided.")
    assert any("The model was not asked" in line for line in rest)


def test_a_batch_says_first_what_it_costs_and_asks_for_nothing_twice(folder: Path) -> None:
    first = bylaw(folder, *ASKING).stdout.splitlines()[0]
    assert re.match(r"2 requests to answer: about \d,\d{3} tokens, plus at most 1,200 tokens of answers\. ", first)
    assert first.endswith("Put the answers into asked/*.jsonl, then run the same command again.")
    name = next(iter(requests(folder)))
    line = json.dumps({"custom_id": name, "text": '{"answer": "no", "quotes": [], "because": "."}'})
    (folder / "asked" / "answers.jsonl").write_text(line, encoding="utf-8")
    first = bylaw(folder, *ASKING).stdout.splitlines()[0]
    assert first.startswith("1 request to answer: ")
    assert first.endswith(" 1 already answered.")
    *_, latest = sorted((folder / "asked" / "requests").iterdir())
    assert name not in latest.read_text(encoding="utf-8")


def test_nobody_is_asked_about_a_refused_call_or_one_that_was_carried_out_before(folder: Path) -> None:
    done, refused = talk("done", OPEN), talk("refused", OPEN)
    done["messages"] += [{"role": "user", "content": "Did it go through?"}, *done["messages"][3:]]
    refused["messages"][4]["content"] = "Error: no such order"
    tools = (folder / "desk" / "tools.yaml").read_text(encoding="utf-8")
    tools = tools.replace("put_as:", "refused: '^Error: ', put_as:")
    (folder / "desk" / "tools.yaml").write_text(tools, encoding="utf-8")
    (folder / "talk.jsonl").write_text(f"{json.dumps(done)}\n{json.dumps(refused)}", encoding="utf-8")
    bylaw(folder, *ASKING)
    (asked,) = requests(folder).values()
    assert "no such order" not in asked
    assert "Did it go through?" not in asked


def test_a_batch_is_one_file_however_often_it_is_asked_for(folder: Path) -> None:
    for _ in range(2):
        bylaw(folder, *ASKING)
        assert len(requests(folder)) == 2
        assert len(list((folder / "asked" / "requests").iterdir())) == 1
    answer(folder, answer="no", quotes=[], because=".")
    assert bylaw(folder, *ASKING).returncode == 0
    assert len(list((folder / "asked" / "requests").iterdir())) == 1
