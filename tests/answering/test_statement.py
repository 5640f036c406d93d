"""A fact that only the user knows: code reads plain statements, a model the rest, with the user's own words."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw import Shield
from tests.answering.test_consent import answer, requests
from tests.command import bylaw

SENTENCE = "Record the reason that the customer gives."
FILES = {
    "pack.yaml": "{format: 1, name: desk, document: policy.md}",
    "policy.md": SENTENCE,
    "tools.yaml": "tools: {cancel_order: {effect: write, parameters: {order_id: string, reason: string}}}",
    "entities.yaml": (
        "entities:\n  Request:\n    key: []\n    fields:\n      reason:\n"
        "        {type: enum, values: [late, broken, other], origin: user, question: Why do you cancel?,"
        " from: [{says: '\\bbroken\\b', value: broken}]}\n"
    ),
    "guards/reason.py": (
        f'def reason(call: cancel_order, facts):\n    """{SENTENCE}"""\n'
        "    if call.reason != facts.Request.reason:\n"
        '        return deny("another reason was given")\n    return permit()\n'
    ),
}
PLAIN, FREE = "R-7 came broken.", "R-7 should have been here on Monday."


@pytest.fixture(name="folder")
def write(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "desk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    talks = [talk("plain", PLAIN, "broken"), talk("right", FREE, "late"), talk("wrong", FREE, "broken")]
    (tmp_path / "talk.jsonl").write_text("\n".join(map(json.dumps, talks)), encoding="utf-8")
    return tmp_path


def talk(name: str, said: str, reason: str) -> dict[str, Any]:
    function = {"name": "cancel_order", "arguments": json.dumps({"order_id": "R-7", "reason": reason})}
    messages = [
        {"role": "user", "content": said},
        {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": "1", "content": "cancelled"},
    ]
    return {"id": name, "messages": messages}


def verdicts(folder: Path) -> dict[str, str]:
    rows = map(json.loads, (folder / "out" / "calls.jsonl").read_text(encoding="utf-8").splitlines())
    return {row["trajectory"]: row["determined"] for row in rows}


def state(folder: Path, **said: Any) -> None:
    answer(folder, facts=[{"fact": "Request.reason", **said}])


ASKING = ("audit", "talk.jsonl", "--pack", "desk", "--llm", "batch:asked")


def test_without_a_model_what_code_cannot_read_stays_undecided(folder: Path) -> None:
    assert bylaw(folder, "audit", "talk.jsonl", "--pack", "desk").returncode == 0
    assert verdicts(folder) == {"plain": "compliant", "right": "inconclusive", "wrong": "inconclusive"}


def test_a_model_reads_what_code_cannot(folder: Path) -> None:
    assert bylaw(folder, *ASKING).returncode == 3
    asked = requests(folder)
    assert len(asked) == 2
    assert all("Why do you cancel?" in text and f"[0] user: {FREE}" in text for text in asked.values())
    state(folder, value="late", quotes=[{"step": 0, "text": "should have been here on Monday"}], because="It is late.")
    done = bylaw(folder, *ASKING)
    assert verdicts(folder) == {"plain": "compliant", "right": "compliant", "wrong": "violation"}
    assert "the user stated Request.reason 2 times" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    "said",
    [
        {"value": "late", "quotes": [], "because": "It is late."},
        {"value": "late", "quotes": [{"step": 0, "text": "it never arrived"}], "because": "It is late."},
        {"value": "late", "quotes": [{"step": 1, "text": "late"}], "because": "The call says so."},
        {"value": "stolen", "quotes": [{"step": 0, "text": "on Monday"}], "because": "It was stolen."},
        {"value": None, "because": "The customer gave no reason."},
    ],
)
def test_an_answer_without_the_users_words_or_with_another_value_settles_nothing(
    folder: Path, said: dict[str, Any]
) -> None:
    bylaw(folder, *ASKING)
    state(folder, **said)
    bylaw(folder, *ASKING)
    assert verdicts(folder) == {"plain": "compliant", "right": "inconclusive", "wrong": "inconclusive"}


def test_one_question_covers_all_facts_that_the_guards_of_a_call_read(folder: Path) -> None:
    entities = FILES["entities.yaml"] + (
        "      photo: {type: 'boolean?', origin: user, question: Did you send a photo?,"
        " from: [{says: photo, value: true}]}\n"
        "      mood: {type: string, origin: user, question: How are you?, from: [{says: 'feel (.*)'}]}\n"
    )
    (folder / "desk" / "entities.yaml").write_text(entities, encoding="utf-8")
    guard = (
        f'def photo(call: cancel_order, facts):\n    """{SENTENCE}"""\n'
        '    return permit() if facts.Request.photo else deny("no photo")\n'
    )
    (folder / "desk" / "guards" / "photo.py").write_text(guard, encoding="utf-8")
    assert bylaw(folder, *ASKING).returncode == 3
    asked = requests(folder)
    assert len(asked) == 3, "one for each call; code reads the reason of the first"
    assert sum("Why do you cancel?" in text for text in asked.values()) == 2
    assert all("Did you send a photo?" in text and "How are you?" not in text for text in asked.values())
    quotes = [{"step": 0, "text": "should have been here on Monday"}]
    late = {"fact": "Request.reason", "value": "late", "quotes": quotes, "because": "It is late."}
    answer(folder, facts=[late, {"fact": "Request.photo", "value": "not stated", "because": "None is mentioned."}])
    bylaw(folder, *ASKING)
    assert set(verdicts(folder).values()) == {"violation"}


@pytest.mark.parametrize("form", ["[late, broken, other]", "string"])
@pytest.mark.parametrize(
    ("nullable", "verdict"), [("?", "violation"), (", default: null", "violation"), ("", "inconclusive")]
)
def test_silence_breaks_only_a_policy_that_asks_the_user_to_say_it(
    folder: Path, form: str, nullable: str, verdict: str
) -> None:
    kind = "enum" if form != "string" else "string"
    values = f"type: {kind}{nullable}" + (f", values: {form}" if kind == "enum" else "")
    entities = FILES["entities.yaml"].replace("type: enum, values: [late, broken, other]", values)
    (folder / "desk" / "entities.yaml").write_text(entities, encoding="utf-8")
    bylaw(folder, *ASKING)
    assert all(("`not stated` if" in text) == bool(nullable) for text in requests(folder).values())
    state(folder, value="not stated", because="The customer gave no reason.")
    done = bylaw(folder, *ASKING)
    assert verdicts(folder) == {"plain": "compliant", "right": verdict, "wrong": verdict}
    assert ("did not mention it 2 times" in " ".join(done.stdout.split())) == bool(nullable)


@pytest.mark.parametrize(("said", "asked"), [("My PIN is 3081.", 0), ("My PIN is 30 81.", 1), ("PIN: 3018", 1)])
def test_a_model_reads_a_code_that_is_not_as_in_the_record(folder: Path, said: str, asked: int) -> None:
    desk = {
        "policy.md": "The customer states the PIN on record.",
        "tools.yaml": "tools:\n  find: {effect: read, parameters: {}}\n"
        "  cancel_order: {effect: write, parameters: {order_id: string, reason: string}}\n",
        "entities.yaml": "entities:\n  Account: {key: id, fields: {pin: string}}\n"
        "  Request: {key: [], fields: {pin: {type: 'string?', origin: user, question: What is your PIN?,"
        " from: [{says: '\\bpin\\b\\D*([0-9 ]+[0-9])'}]}}}\nobservations: {find: {as: Account}}\n",
        "guards/reason.py": 'def pin(call: cancel_order, facts):\n    """The customer states the PIN on record."""\n'
        '    if facts.Request.pin != facts.Account("A").pin:\n        return deny("no")\n    return permit()\n',
    }
    for name, text in desk.items():
        (folder / "desk" / name).write_text(text, encoding="utf-8")
    made = talk("pin", said, "late")
    call = {"id": "0", "type": "function", "function": {"name": "find", "arguments": "{}"}}
    look = {"role": "tool", "tool_call_id": "0", "content": json.dumps({"id": "A", "pin": "3081"})}
    made["messages"][1:1] = [{"role": "assistant", "tool_calls": [call]}, look]
    (folder / "talk.jsonl").write_text(json.dumps(made), encoding="utf-8")
    assert bylaw(folder, *ASKING).returncode == (3 if asked else 0)
    assert verdicts(folder) == {"pin": "inconclusive" if asked else "compliant"}


def test_the_model_sees_everything_that_the_user_said(folder: Path) -> None:
    long = " ".join(f"And then thing {number} happened." for number in range(40)) + " It came too late."
    made = talk("long", long, "late")
    more = [{"role": who, "content": text} for who, text in (("assistant", "I see."), ("user", "So?")) * 2]
    made["messages"][1:1] = more
    (folder / "talk.jsonl").write_text(json.dumps(made), encoding="utf-8")
    bylaw(folder, *ASKING)
    (asked,) = requests(folder).values()
    assert "thing 20 happened" in asked


class Ready:
    """A model that would read a reason from anything."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, *_: Any) -> "Ready":
        return self

    def stated(self, *_: Any) -> None:
        self.asked += 1


def test_a_live_shield_asks_the_user_not_the_model(folder: Path) -> None:
    model: Any = Ready()
    with Shield(folder / "desk", answers=model) as shield, shield.session("one") as session:
        session.user(FREE)
        decision = session.decide("cancel_order", {"order_id": "R-7", "reason": "late"})
    assert decision.answer == "ask"
    assert model.asked == 0
