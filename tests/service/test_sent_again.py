"""A request that is sent again because no answer came is answered as it was, while nothing has changed; else its calls
are decided anew."""

from typing import Any

import pytest

from bylaw import Pack
from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.shield.history import read_history
from bylaw.trace.event import Call, Message, Result
from tests.service.asgi import post

BANK = Pack.from_files(
    {
        "pack.yaml": "format: 1\nname: bank\ndocument: policy.md\n",
        "policy.md": "Money is moved only after the customer has confirmed it.\n",
        "tools.yaml": """\
tools:
  get_account: {effect: read, parameters: {account_id: string}}
  transfer:
    effect: write
    put_as: transfer {amount} to {to}
    parameters: {to: string, amount: string}
    changes: []
""",
        "entities.yaml": "entities:\n  Account: {key: account_id, read: get_account, fields: {open: boolean}}\n",
        "policies.yaml": """\
policies:
  - {id: confirm, kind: rule, spans: [Money is moved only after the customer has confirmed it.]}
""",
        "rules.yaml": """\
predicates:
  change: {effect: write}
  agreed: {consented: told}
rules:
  - {id: confirm, formula: ALWAYS (change IMPLIES agreed)}
""",
    }
)
ASK = {"agent": "Shall I transfer 250.00 to AC-22?"}
AGREED = [{"user": "Send 250 to AC-22."}, ASK, {"user": "Yes."}]
TRANSFER: dict[str, Any] = {"tool": "transfer", "arguments": {"to": "AC-22", "amount": "250.00"}}
NAMED: dict[str, Any] = {"conversation": "c", "events": AGREED, "request": "r", "agent": "bot"}
STOP = {"seconds": 600, "reason": "why", "by": "ann"}


@pytest.fixture
def apps(log: Log) -> list[Service]:
    """Workers that share a log."""
    return [Service(Desk(BANK, log), {}) for _ in range(2)]


def sent(app: Any, **more: Any) -> list[dict[str, Any]]:
    answer = post(app, "/v1/decide", {**NAMED, **more})
    assert answer.status == 200, answer.json
    return answer.json["decisions"]


def happen(app: Any, *events: dict[str, Any]) -> None:
    assert post(app, "/v1/events", {"conversation": "c", "events": list(events)}).status == 200


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "by another worker"])
@pytest.mark.parametrize("id", ["c1", ""])
@pytest.mark.parametrize(
    "since",
    [
        {"user": "No, stop, do not send it!"},
        {"user": "Wait."},
        {"user": "Send 300 instead."},
        {"user": ""},
        {"messages": [{"role": "user", "content": "No!"}]},
    ],
)
def test_after_words_of_the_user_it_is_decided_anew(
    apps: list[Service], log: Log, since: dict[str, Any], id: str, elsewhere: bool
) -> None:
    app, again = apps[0], apps[int(elsewhere)]
    call = {**TRANSFER, "id": id}
    assert sent(app, **call)[0]["allowed"]
    happen(app, since)
    for _ in range(3):
        (decision,) = sent(again, **call)
        assert (decision["allowed"], decision["is_over"]) == (False, False)
    history = read_history(log.conversation("default", "c"))
    assert history is not None
    # What the request told happened once, and what was decided anew was decided once.
    said = [event.text for event in history.events if isinstance(event, Message) and event.text]
    assert said[:3] == [text for each in AGREED for text in each.values()]
    assert said.count("Yes.") == 1
    assert [event.refused for event in history.events if isinstance(event, Call)] == [False, True]
    assert [decision.allowed for decision in history.decisions] == [True, False]


def test_while_nothing_has_changed_it_is_answered_as_it_was(apps: list[Service], log: Log) -> None:
    (first,) = sent(apps[0], **TRANSFER, id="c1")
    before = len(log.conversation("default", "c"))
    for app in (*apps, Service(Desk(BANK, log), {})):
        assert sent(app, **TRANSFER, id="c1") == [first]
    assert len(log.conversation("default", "c")) == before
    assert first["allowed"]


@pytest.mark.parametrize(
    "stop", [{"what": "all"}, {"what": "tool", "name": "transfer"}, {"what": "agent", "name": "bot"}]
)
def test_a_stop_since_then_is_the_answer_until_it_is_lifted(apps: list[Service], stop: dict[str, str]) -> None:
    assert sent(apps[0], **TRANSFER)[0]["allowed"]
    assert post(apps[0], "/v1/stops", {**STOP, **stop}).status == 200
    for app in apps:
        (decision,) = sent(app, **TRANSFER)
        assert (decision["answer"], decision["allowed"]) == ("deny", False)
        assert "is stopped" in decision["feedback"]


@pytest.mark.parametrize("id", ["c1", ""])
def test_a_new_yes_lets_it_run_once(apps: list[Service], log: Log, id: str) -> None:
    one, two = apps
    call = {**TRANSFER, "id": id}
    assert sent(one, **call)[0]["allowed"]
    happen(one, {"user": "No."})
    assert not sent(one, **call)[0]["allowed"]
    happen(one, ASK, {"user": "Yes."})
    # The refusal stands, as any answer does; under a name of its own the call is decided on.
    assert not sent(two, **call)[0]["allowed"]
    anew: dict[str, Any] = {**call, "events": [], "request": "r2"}
    assert sent(two, **anew)[0]["allowed"]
    assert sent(one, **anew)[0]["allowed"]
    happen(two, {"result": {"sent": True}, **({"call": id} if id else {})})
    (over,) = sent(one, **anew)
    assert (over["allowed"], over["is_over"]) == (False, True)
    history = read_history(log.conversation("default", "c"))
    assert history is not None
    result = history.events[-1]
    assert isinstance(result, Result)
    assert result.call == len(history.events) - 2


def test_an_allowed_call_that_was_decided_anew_is_answered_as_it_was_then(apps: list[Service], log: Log) -> None:
    look = {"tool": "get_account", "arguments": {"account_id": "AC-22"}, "id": "a"}
    assert sent(apps[0], **look)[0]["allowed"]
    happen(apps[0], {"user": "Hello?"})
    (anew,) = sent(apps[0], **look)
    before = len(log.conversation("default", "c"))
    assert anew["allowed"]
    assert [sent(app, **look) for app in apps] == [[anew], [anew]]
    assert len(log.conversation("default", "c")) == before
    happen(apps[1], {"result": {"account_id": "AC-22", "open": True}, "call": "a"})
    assert [sent(app, **look)[0]["is_over"] for app in apps] == [True, True]


def test_of_several_calls_only_those_without_a_result_are_decided_anew(apps: list[Service]) -> None:
    look = {"tool": "get_account", "arguments": {"account_id": "AC-22"}, "id": "a"}
    calls = [look, {**TRANSFER, "id": "b"}]
    assert [each["allowed"] for each in sent(apps[0], calls=calls)] == [True, True]
    happen(apps[0], {"result": {"account_id": "AC-22", "open": True}, "call": "a"}, {"user": "No!"})
    for app in (*apps, apps[0]):
        found = sent(app, calls=calls)
        assert [(each["tool"], each["allowed"], each["is_over"]) for each in found] == [
            ("get_account", True, True),
            ("transfer", False, False),
        ]


def test_a_call_like_one_that_was_answered_is_another_call(apps: list[Service]) -> None:
    assert sent(apps[0], **TRANSFER, id="c1")[0]["allowed"]
    happen(apps[0], {"result": {"sent": True}, "call": "c1"}, ASK, {"user": "Yes."})
    second: dict[str, Any] = {**TRANSFER, "id": "c2", "request": "r2", "events": []}
    (first,) = sent(apps[0], **second)
    assert first["allowed"]
    assert sent(apps[1], **second) == [first]
