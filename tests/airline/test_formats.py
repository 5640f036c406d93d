"""Every shape in which tau-bench and tau2-bench keep a conversation reads as the same conversation."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bylaw.audit.request import Request
from bylaw.audit.run import audit, read_calls
from bylaw.cli.tables import print_summary
from bylaw.errors import RecordError, UsageError
from bylaw.trace import Call, Message, Result, Trajectory, read
from tests.airline.small import RESERVATIONS, write_tau1, write_tau2

SHOWN = json.dumps(RESERVATIONS["R1"])
KEY = {"reservation_id": "R1"}
INFO = {
    "git_commit": "0",
    "num_trials": 1,
    "user_info": {"implementation": "user_simulator", "llm": None},
    "agent_info": {"implementation": "llm_agent", "llm": "maker/model-1"},
    "environment_info": {"domain_name": "airline", "policy": "be kind", "tool_defs": None},
}
EVENTS = [("user", "Cancel R1."), ("get_reservation_details", KEY), SHOWN, ("cancel_reservation", KEY), SHOWN]


def call(id: str, tool: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "name": tool, "arguments": KEY, "requestor": "assistant", **more}


def asked(*calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), "usage": None, "raw_data": None, **more}


def answer(id: str, content: Any = SHOWN, **more: Any) -> dict[str, Any]:
    return {"id": id, "role": "tool", "content": content, "requestor": "assistant", "error": False, **more}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text, "tool_calls": None, "usage": {"prompt_tokens": 1}}


LOOK, CANCEL = call("1", "get_reservation_details"), call("2", "cancel_reservation")
TALK = [user("Cancel R1."), asked(LOOK), answer("1"), asked(CANCEL), answer("2")]


def simulation(messages: Any, **more: Any) -> dict[str, Any]:
    return {"id": "s1", "task_id": "0", "termination_reason": "user_stop", "reward_info": None, "messages": messages,
            "trial": 0, **more}  # fmt: skip


def results(*simulations: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"timestamp": "now", "info": INFO, "tasks": [], "simulations": list(simulations), **more}


def write(file: Path, document: Any) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, indent=2))
    return file


def told(trajectory: Any) -> list[Any]:
    """The events as the test states them."""
    assert isinstance(trajectory, Trajectory), trajectory
    out: list[Any] = []
    for event in trajectory.events:
        match event:
            case Message():
                out.append((event.by, event.text))
            case Call():
                out.append((event.tool, event.arguments))
            case Result():
                out.append(event.value() if event.call is None else _text(event))
    return out


def _text(result: Result) -> Any:
    value = result.value()
    return value if isinstance(value, str) else json.dumps(value)


TALKS: dict[str, list[dict[str, Any]]] = {
    "as published": TALK,
    "arguments as text": [*TALK[:3], asked({**CANCEL, "arguments": json.dumps(KEY)}), TALK[4]],
    "results as objects": [*TALK[:2], answer("1", json.loads(SHOWN)), TALK[3], answer("2", json.loads(SHOWN))],
    "several results in one message": [
        *TALK[:2], {"role": "tool", "tool_messages": [answer("1")]}, TALK[3],
        {"role": "tool", "tool_messages": [answer("2")]},
    ],
    "no ids": [TALK[0], asked({**LOOK, "id": ""}), answer(""), asked({**CANCEL, "id": ""}), answer("")],
    "one id for all": [TALK[0], asked(LOOK), answer("1"), asked({**CANCEL, "id": "1"}), answer("1")],
    "no requestor": [
        TALK[0], asked({"id": "1", "name": "get_reservation_details", "arguments": KEY}),
        {"role": "tool", "id": "1", "content": SHOWN},
        asked({"id": "2", "name": "cancel_reservation", "arguments": KEY}),
        {"role": "tool", "id": "2", "content": SHOWN},
    ],
    "empty texts and empty lists of calls": [
        {"role": "assistant", "content": "", "tool_calls": []}, TALK[0], asked(LOOK, content=""), *TALK[2:],
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", TALKS)
def test_the_second_generations_messages_are_read_in_all_their_forms(name: str, tmp_path: Path) -> None:
    (trajectory,) = read(write(tmp_path / "runs.json", results(simulation(TALKS[name]))))
    assert told(trajectory) == EVENTS
    assert [event.call for event in trajectory.events if isinstance(event, Result)] == [1, 3]  # type: ignore[union-attr]


def tick(number: int, **what: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"agent_chunk": None, "user_chunk": None, "agent_tool_calls": [], "user_tool_calls": [],
                             "agent_tool_results": [], "user_tool_results": []}  # fmt: skip
    return {"tick_id": number, "timestamp": f"2026-01-01T00:00:0{number}", **empty, **what}


TICKS = [
    tick(0, user_chunk=user("Cancel ")),
    tick(1, user_chunk=user("R1."), agent_chunk={"role": "assistant", "content": None}),
    tick(2, agent_tool_calls=[LOOK], agent_tool_results=[answer("1")]),
    tick(3, agent_tool_calls=[CANCEL]),
    tick(4, agent_tool_results=[answer("2")]),
]

FILES: dict[str, Any] = {
    "a file of results": results(simulation(TALK)),
    "results under a header of another maker": {"domain": "airline", "model": "m", "simulations": [simulation(TALK)]},
    "one simulation": simulation(TALK),
    "a list of simulations": [simulation(TALK)],
    "a voice run, by ticks": results(simulation(None, ticks=TICKS, mode="full_duplex")),
    "a header whose parts are null": results(simulation(TALK))
    | {"info": {"agent_info": None, "environment_info": None}},
    "a reward without a check of the database": results(
        simulation(TALK, reward_info={"reward": 1.0, "db_check": None, "action_checks": None})
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_the_second_generations_files_are_read_in_all_their_forms(name: str, tmp_path: Path) -> None:
    (trajectory,) = read(write(tmp_path / "runs.json", FILES[name]))
    assert told(trajectory) == EVENTS
    assert isinstance(trajectory, Trajectory)
    assert trajectory.format == "tau2"


def test_a_folder_of_simulations_takes_its_agent_and_policy_from_the_results_beside_it(tmp_path: Path) -> None:
    header = {key: value for key, value in results().items() if key != "simulations"}
    index = [{"id": "s1", "task_id": "0", "trial": 0}, {"id": "s2", "task_id": "0", "trial": 1}]
    assert list(read(write(tmp_path / "results.json", {**header, "simulation_index": index}))) == []
    for entry in index:
        file = write(tmp_path / "simulations" / f"{entry['id']}.json", simulation(TALK, **entry))
        (trajectory,) = read(file)
        assert told(trajectory) == EVENTS
        assert isinstance(trajectory, Trajectory)
        assert (trajectory.id, trajectory.agent, trajectory.instructions) == (entry["id"], "model-1", "be kind")
        assert trajectory.details["domain"] == "airline"


def test_a_file_of_results_without_any_is_told(tmp_path: Path) -> None:
    (fault,) = read(write(tmp_path / "runs.json", {"timestamp": "now", "info": INFO, "tasks": []}))
    assert "simulations" in str(fault)
    (fault,) = read(write(tmp_path / "runs.json", results()))
    assert isinstance(fault, RecordError)
    assert "`simulations` is empty" in str(fault)


def test_runs_that_broke_off_are_read_as_far_as_they_went(tmp_path: Path) -> None:
    cut = simulation(TALK[:4], id="cut", termination_reason="max_steps")
    none = simulation(None, id="none", termination_reason="infrastructure_error")
    first, second = read(write(tmp_path / "runs.json", results(cut, none)))
    assert told(first) == EVENTS[:4]
    assert told(second) == []


def test_what_the_user_calls_is_not_the_agents(tmp_path: Path) -> None:
    theirs = {"role": "user", "content": None, "tool_calls": [{**CANCEL, "requestor": "user"}]}
    (trajectory,) = read(write(tmp_path / "runs.json", results(simulation([theirs, answer("2", requestor="user")]))))
    assert isinstance(trajectory, Trajectory)
    assert [event.by for event in trajectory.events if isinstance(event, Call)] == ["user"]


def test_an_error_flag_is_kept_beside_any_text(tmp_path: Path) -> None:
    talk = [*TALK[:4], answer("2", "the service is closed", error=True)]
    (trajectory,) = read(write(tmp_path / "runs.json", results(simulation(talk))))
    assert isinstance(trajectory, Trajectory)
    assert [event.error for event in trajectory.events if isinstance(event, Result)] == [False, True]


def function(id: str, tool: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": tool, "arguments": json.dumps(KEY)}}


def block(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


def act(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    action = json.dumps({"name": tool, "arguments": arguments})
    return {"role": "assistant", "content": f"Thought:\nOne thing after the other.\nAction:\n{action}"}


FIRST: dict[str, list[dict[str, Any]]] = {
    "tool calls": [
        user("Cancel R1."), asked(function("1", "get_reservation_details"), function_call=None),
        {"role": "tool", "tool_call_id": "1", "name": "get_reservation_details", "content": SHOWN},
        asked(function("2", "cancel_reservation")),
        {"role": "tool", "tool_call_id": "2", "name": "cancel_reservation", "content": SHOWN},
    ],
    "content in blocks": [
        user("Cancel R1."),
        {"role": "assistant", "content": [block("tool_use", id="1", name="get_reservation_details", input=KEY)]},
        {"role": "user", "content": [block("tool_result", tool_use_id="1", content=SHOWN)]},
        {"role": "assistant", "content": [block("tool_use", id="2", name="cancel_reservation", input=KEY)]},
        {"role": "user", "content": [block("tool_result", tool_use_id="2", content=[block("text", text=SHOWN)])]},
    ],
    "actions written as text": [
        user("Cancel R1."), act("get_reservation_details", KEY), user(f"API output: {SHOWN}"),
        act("cancel_reservation", KEY), user(f"API output: {SHOWN}"),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FIRST)
@pytest.mark.parametrize("field", ["traj", "messages"])
def test_the_first_generations_messages_are_read_in_all_their_forms(name: str, field: str, tmp_path: Path) -> None:
    run = {"task_id": 0, "trial": 0, "reward": 0.0, "info": {}, field: FIRST[name]}
    (trajectory,) = read(write(tmp_path / "runs.json", [run]))
    assert told(trajectory) == EVENTS
    assert isinstance(trajectory, Trajectory)
    assert trajectory.format == "tau1"


def test_a_written_answer_reaches_the_user_without_the_thought_before_it(tmp_path: Path) -> None:
    talk = [
        user("hi"),
        act("respond", {"content": "Which trip?"}),
        user("API output: is what I would like to see"),
        act("get_reservation_details", KEY),
        user(f"API output: {SHOWN}"),
        {"role": "assistant", "content": "Thought:\nHm.\nAction:\nI cannot say."},
        user("bye"),
    ]
    (trajectory,) = read(write(tmp_path / "runs.json", [{"task_id": 0, "trial": 0, "reward": 0.0, "traj": talk}]))
    said = [("user", "hi"), ("agent", "Which trip?"), ("user", "API output: is what I would like to see")]
    assert told(trajectory) == [*said, EVENTS[1], SHOWN, ("agent", "I cannot say."), ("user", "bye")]


def test_a_word_about_an_action_is_no_action(tmp_path: Path) -> None:
    talk = [user("hi"), {"role": "assistant", "content": "Action: none yet."}, user("API output: what is that?")]
    (trajectory,) = read(write(tmp_path / "runs.json", [{"task_id": 0, "trial": 0, "reward": 0.0, "traj": talk}]))
    assert told(trajectory)[1] == ("agent", "Action: none yet.")


def test_a_run_that_failed_to_start_is_a_conversation_without_events(tmp_path: Path) -> None:
    failed = {"task_id": 0, "reward": 0.0, "info": {"error": "no", "traceback": "no"}, "traj": [], "trial": 0}
    again = {"task_id": 0, "trial": 1, "reward": 1.0, "info": {}, "traj": FIRST["tool calls"]}
    first, second = read(write(tmp_path / "runs.json", [failed, again]))
    assert (told(first), told(second)) == ([], EVENTS)


def test_a_run_without_any_list_of_messages_is_malformed_not_clean(tmp_path: Path) -> None:
    first = {"task_id": 0, "trial": 0, "reward": 1.0, "info": {}}
    good, fault = read(write(tmp_path / "first.json", [{**first, "traj": FIRST["tool calls"]}, first]))
    assert told(good) == EVENTS
    assert isinstance(fault, RecordError)
    assert fault.place.endswith("first.json#1")
    second = {"id": "s2", "task_id": "0", "reward_info": {"reward": 1.0}}
    good, fault = read(write(tmp_path / "second.json", results(simulation(TALK), second)))
    assert told(good) == EVENTS
    assert isinstance(fault, RecordError)
    assert "`messages`" in fault.message


def test_runs_of_the_other_generation_than_the_database_are_left_out_and_named(tmp_path: Path) -> None:
    quiet = {"task_id": 1, "reward": 1.0, "info": {}, "trial": 0, "traj": [user("hi")]}
    first = write(tmp_path / "first.json", [quiet, {**quiet, "traj": FIRST["tool calls"]}])
    second = write(tmp_path / "second.json", results(simulation(TALK)))
    report = audit(Request((first, second), "tau-airline", world=write_tau2(tmp_path / "world")), tmp_path / "out")
    assert [skipped.place for skipped in report.skipped] == [f"{first}#0", f"{first}#1"]
    assert all("contains only a tau2" in skipped.message for skipped in report.skipped)
    assert sum(row["trajectories"] for row in report.summary["agents"]) == 1
    assert report.summary["worlds"] == {"second.json": "db.json"}


def test_a_named_variant_judges_by_its_own_database(tmp_path: Path) -> None:
    write_tau1(tmp_path / "world")
    run = {"task_id": 0, "reward": 1.0, "info": {}, "trial": 0, "traj": FIRST["tool calls"]}
    file = write(tmp_path / "runs.json", [run])
    request = Request((file,), "tau-airline/tau2", world=write_tau2(tmp_path / "world"))
    assert audit(request, tmp_path / "out").summary["worlds"] == {"runs.json": "db.json"}


def test_tasks_without_a_database_are_a_usage_error(tmp_path: Path) -> None:
    runs, tasks = (
        write(tmp_path / "runs.json", results(simulation(TALK))),
        write(tmp_path / "tasks.json", [{"id": "0"}]),
    )
    with pytest.raises(UsageError, match="add --world"):
        audit(Request((runs,), "tau-airline", tasks=tasks), tmp_path / "out")


def test_outcomes_of_more_than_one_source_are_noted(tmp_path: Path) -> None:
    run = {"task_id": 0, "reward": 1.0, "info": {}, "trial": 0, "traj": FIRST["tool calls"]}
    files = write(tmp_path / "first.json", [run]), write(tmp_path / "second.json", results(simulation(TALK)))
    write_tau1(tmp_path / "world")
    world, tasks = write_tau2(tmp_path / "world"), write(tmp_path / "tasks.json", [{"id": "0"}])
    report = audit(Request(files, "tau-airline", world=world, tasks=tasks), tmp_path / "out")
    console = Console(file=StringIO(), width=80)
    print_summary(report.summary, console, report.out)
    assert "Outcomes come from: gold actions (1), reward (1)." in console.file.getvalue()  # type: ignore[attr-defined]


def test_runs_of_another_domain_are_left_out_and_named(tmp_path: Path) -> None:
    ours, theirs = results(simulation(TALK)), results(simulation(TALK, id="s2"))
    theirs["info"] = INFO | {"environment_info": {"domain_name": "retail", "policy": "", "tool_defs": None}}
    files = [write(tmp_path / "ours.json", ours), write(tmp_path / "theirs.json", theirs)]
    world = write_tau2(tmp_path / "world")
    report = audit(Request(tuple(files), "tau-airline", world=world), tmp_path / "out")
    assert [line["trajectory"] for line in read_calls(tmp_path / "out")] == ["s1"]
    (skipped,) = report.skipped
    assert skipped.place.endswith("theirs.json#0")
    assert "`retail`" in skipped.message
    forced = audit(Request(tuple(files), "tau-airline/tau2", world=world), tmp_path / "forced")
    assert forced.skipped == ()


def test_findings_cite_the_document_of_the_generation_they_were_made_in(tmp_path: Path) -> None:
    first = write(
        tmp_path / "first.json",
        [{"task_id": 0, "reward": 0.0, "info": {}, "trial": 0, "traj": FIRST["content in blocks"]}],
    )
    second = write(tmp_path / "second.json", results(simulation(TALK)))
    for files, generations in (((first,), {"tau-bench"}), ((second,), {"tau2-bench"}), ((first, second), None)):
        report = audit(Request(files, "tau-airline"), tmp_path / "out")
        cited = json.loads((report.out / "policies.json").read_bytes())["cancel-ground"]["citations"]
        assert {citation["document"].split()[0] for citation in cited} == (generations or {"tau-bench", "tau2-bench"})
