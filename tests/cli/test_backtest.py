"""`bylaw backtest`: what a change of a policy would have done is what an audit under each version says."""

import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from bylaw import Pack, Trajectory, verdicts
from bylaw.shield.backtest import backtest
from bylaw.trace.event import Approved, Call
from tests.command import bylaw
from tests.engine.clinic import conversations, pack
from tests.engine.test_conversation import FILES

STRICTER = FILES | {
    "guards/g.py": 'def returned_first(call, facts):\n    return deny("no refunds any more")\n',
    "pack.yaml": FILES["pack.yaml"] + "version: 2\n",
}


def write(folder: Path, name: str, files: dict[str, str]) -> None:
    for file, text in files.items():
        (folder / name / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / name / file).write_text(text)


def chat(id: str, *, looks: bool) -> dict[str, Any]:
    def call(tool: str) -> dict[str, Any]:
        function = {"name": tool, "arguments": '{"order_id": "7"}'}
        return {"role": "assistant", "tool_calls": [{"id": tool, "function": function}]}

    def result(tool: str, content: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": tool, "content": content}

    seen = [call("get_order"), result("get_order", '{"order_id": "7", "returned": true}')] if looks else []
    return {
        "id": id,
        "messages": [{"role": "user", "content": "Refund 7."}, *seen, call("refund"), result("refund", "ok")],
    }


def test_every_change_is_listed_by_policy_with_its_conversation(tmp_path: Path) -> None:
    write(tmp_path, "old", FILES)
    write(tmp_path, "new", STRICTER)
    (tmp_path / "logs").mkdir()
    lines = [json.dumps(chat("careful", looks=True)), json.dumps(chat("hasty", looks=False))]
    (tmp_path / "logs" / "chats.jsonl").write_text("\n".join(lines) + "\n")
    ran = bylaw(tmp_path, "backtest", "--old", "old", "--new", "new", "logs")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == (
        "shop 0 -> shop 2\n"
        "2 conversations, 2 calls\n"
        "2 decided differently, 1 now stopped, 0 now allowed\n"
        "\n"
        "returned-first\n"
        "  2 calls in 2 conversations\n"
        "       1  decision allow -> deny; verdict compliant -> violation\n"
        "          careful @3 refund\n"
        "       1  decision look_up -> deny; verdict uninformed -> violation\n"
        "          hasty @1 refund\n"
    )
    found = json.loads(bylaw(tmp_path, "backtest", "--old", "old", "--new", "new", "--json", "logs").stdout)
    said = {"decision": "deny", "verdict": "violation", "because": "no refunds any more", "stops": True}
    assert found["changed"][0]["new"] == said
    same = bylaw(tmp_path, "backtest", "--old", "old", "--new", "old", "logs").stdout
    assert "No policy judges any call differently." in same


def test_a_call_that_a_person_approved_ran_and_is_stopped_where_the_new_version_denies_it() -> None:
    asking = FILES | {
        "entities.yaml": FILES["entities.yaml"] + "context:\n  lead_agrees: boolean\n",
        "guards/g.py": "def returned_first(call, facts):\n"
        '    return permit() if facts.context.lead_agrees else deny("no lead agreed")\n',
    }
    yes = Approved("ann", ("returned-first",))
    for approved, stopped in ((yes, 1), (replace(yes, policies=("another",)), 0), (None, 0)):
        recorded = Trajectory("t", (Call("refund", {"order_id": "7"}, approved=approved),))
        found = backtest(Pack.from_files(asking), Pack.from_files(STRICTER), [recorded])
        assert (found.changed_calls, found.now_stopped) == (1, stopped)
        unchanged = backtest(Pack.from_files(asking), Pack.from_files(asking), [recorded])
        assert (unchanged.changed_calls, unchanged.now_stopped) == (0, 0)


def test_what_one_policy_says_beside_another_that_decides_is_told_apart(tmp_path: Path) -> None:
    second = "  - {id: never, tools: [refund], spans: [{quote: Refund an order only after it was returned.}]}\n"
    write(tmp_path, "old", STRICTER)
    more = {"guards/n.py": 'def never(call, facts):\n    return deny("never")\n'}
    write(tmp_path, "new", STRICTER | more | {"policies.yaml": FILES["policies.yaml"] + second})
    (tmp_path / "chats.jsonl").write_text(json.dumps(chat("careful", looks=True)) + "\n")
    said = bylaw(tmp_path, "backtest", "--old", "old", "--new", "new", "chats.jsonl").stdout
    assert "0 decided differently" in said
    assert "1 more call judged differently by a policy, with the same decision\n" in said


def test_a_call_that_another_policy_stops_is_told_as_such(tmp_path: Path) -> None:
    """`never` denies the call under both versions; of a call that only `hasty` stops, the decision does change."""
    both = "  - {id: never, tools: [refund], spans: [{quote: Refund an order only after it was returned.}]}\n"
    never = {
        "policies.yaml": FILES["policies.yaml"] + both,
        "guards/n.py": 'def never(call, facts):\n    return deny("never")\n',
    }
    write(tmp_path, "old", FILES)
    write(tmp_path, "new", STRICTER)
    write(tmp_path, "old-never", FILES | never)
    write(tmp_path, "new-never", STRICTER | never)
    for file in ("one.jsonl", "two.jsonl"):
        (tmp_path / file).write_text(json.dumps(chat("careful", looks=True)) + "\n")
    command = ("backtest", "--old", "old-never", "--new", "new-never", "one.jsonl", "two.jsonl")
    assert bylaw(tmp_path, *command).stdout == (
        "shop 0 -> shop 2\n"
        "2 conversations, 2 calls\n"
        "0 decided differently, 0 now stopped, 0 now allowed\n"
        "2 more calls judged differently by a policy, with the same decision\n"
        "\n"
        "returned-first\n"
        "  2 calls in 2 conversations\n"
        "       2  decision allow -> deny; verdict compliant -> violation; "
        "the whole call: deny as before, and is stopped\n"
        "          one.jsonl: careful @3 refund\n"
        "          two.jsonl: careful~2 @3 refund\n"
    )
    changed = json.loads(bylaw(tmp_path, *command, "--json").stdout)["changed"]
    stopped = {"decision": "deny", "runs": False}
    assert [(each["file"], each["old_call"], each["new_call"]) for each in changed] == [
        ("one.jsonl", stopped, stopped),
        ("two.jsonl", stopped, stopped),
    ]
    alone = json.loads(bylaw(tmp_path, "backtest", "--old", "old", "--new", "new", "one.jsonl", "--json").stdout)
    assert alone["changed"][0]["old_call"] == {"decision": "allow", "runs": True}
    assert alone["changed"][0]["new_call"] == stopped


def test_what_a_firmer_posture_would_stop_is_listed_though_no_decision_changes(tmp_path: Path) -> None:
    write(tmp_path, "old", FILES | {"pack.yaml": FILES["pack.yaml"] + "shield: {posture: shadow}\n"})
    write(tmp_path, "new", FILES)
    lines = [json.dumps(chat("careful", looks=True)), json.dumps(chat("hasty", looks=False))]
    (tmp_path / "chats.jsonl").write_text("\n".join(lines) + "\n")
    ran = bylaw(tmp_path, "backtest", "--old", "old", "--new", "new", "chats.jsonl")
    assert ran.stdout == (
        "shop 0 -> shop 0\n"
        "2 conversations, 2 calls\n"
        "0 decided differently, 1 now stopped, 0 now allowed\n"
        "\n"
        "returned-first\n"
        "  1 call in 1 conversation\n"
        "       1  look_up now stops the call\n"
        "          hasty @1 refund\n"
    )
    back = bylaw(tmp_path, "backtest", "--old", "new", "--new", "old", "chats.jsonl").stdout
    assert "look_up no longer stops the call" in back


def test_a_changed_verdict_is_what_the_audits_of_both_versions_say() -> None:
    files = {
        str(path.relative_to(pack().root)): path.read_text()
        for path in pack().root.rglob("*")
        if path.suffix in (".yaml", ".md", ".py") and "simulator" not in path.parts and "cases" not in path.parts
    }
    place = next(name for name, text in files.items() if "40.00" in text and name.startswith("guards/"))
    new = Pack.from_files(files | {place: files[place].replace("40.00", "45.00")})
    some: list[Trajectory] = list(conversations()[:60])
    found = backtest(pack(), new, some)
    assert found.changed
    for each in some:
        told = [
            {
                (call.made.step, policy.policy.id): policy.determined
                for call in verdicts(which, each).calls
                for policy in call.policies
            }
            for which in (pack(), new)
        ]
        differs = {key for key in told[0] if told[0][key] != told[1][key]}
        listed = {
            (change.step, change.policy)
            for change in found.changed
            if change.conversation == each.id and change.old.verdict != change.new.verdict
        }
        assert differs == listed


def test_fewer_than_no_calls_cannot_be_shown(tmp_path: Path) -> None:
    done = bylaw(tmp_path, "backtest", "--old", "clinic", "--new", "clinic", "--show", "-1", "logs.jsonl")
    assert done.returncode == 2
    assert "-1 is not in the range" in done.stderr


LIMITED = {
    "rules.yaml": "limits: [{id: few, tool: refund, most: 1, within: 1h, per: call.order_id}]\n",
    "policies.yaml": FILES["policies.yaml"] + "  - {id: few, spans: [{quote: One refund an hour.}]}\n",
    "policy.md": FILES["policy.md"] + "One refund an hour.\n",
}


def at(id: str, time: float | None, **more: Any) -> dict[str, Any]:
    """A conversation in which an order is looked up and refunded at a time."""
    told = chat(id, looks=True)
    for message in told["messages"]:
        message |= {} if time is None else {"timestamp": 1.7e9 + time}
    told["messages"][3]["tool_calls"][0] |= more
    return told


def test_a_limit_says_what_it_would_stop(tmp_path: Path) -> None:
    write(tmp_path, "old", FILES)
    write(tmp_path, "new", FILES | LIMITED)
    write(tmp_path, "shadow", FILES | LIMITED | {"pack.yaml": FILES["pack.yaml"] + "shield: {posture: shadow}\n"})
    talks = [at("b", 60), at("a", 0), at("late", 4000), at("undated", None)]
    (tmp_path / "logs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in talks))

    def found(old: str, new: str, log: str = "logs.jsonl") -> dict[str, Any]:
        ran = bylaw(tmp_path, "backtest", "--old", old, "--new", new, "--json", log)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    told = found("old", "new")
    assert [(each["policy"], each["conversation"], each["new"]["decision"]) for each in told["changed"]] == [
        ("few", "b", "deny")
    ]
    assert (told["now_stopped"], told["now_allowed"], told["uncounted"], told["calls"]) == (1, 0, 1, 4)
    assert found("new", "old")["now_allowed"] == 1
    assert found("shadow", "new")["now_stopped"] == 1
    assert found("new", "new")["changed"] == []
    assert (
        "1 call could not be checked against a limit, because no time is recorded"
        in bylaw(tmp_path, "backtest", "--old", "old", "--new", "new", "logs.jsonl").stdout
    )
    # What a shield refused takes no place, and would run without the limit.
    refused = [at("a", 0), at("b", 60, refused=True), at("c", 120)]
    (tmp_path / "refused.jsonl").write_text("".join(json.dumps(each) + "\n" for each in refused))
    told = found("new", "old", "refused.jsonl")
    assert sorted(each["conversation"] for each in told["changed"]) == ["b", "c"]
