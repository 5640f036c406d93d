"""`bylaw init` gives a pack that loads, whose cases pass, and in which every sentence is listed."""

import shutil
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.cli.init import init_pack
from bylaw.errors import UsageError
from bylaw.pack import Pack, load_pack
from bylaw.policy.document import Document
from bylaw.review.case import CaseResult, run_cases, untested
from bylaw.review.check import covered_sentences
from bylaw.scan.skeleton import skeleton
from bylaw.shield import Shield
from bylaw.trace import Call, Message, Result, Trajectory
from tests.audit.logs import Shop, look, record, ship, user
from tests.docs.walkthrough import run

from .library import Talk, visits

POLICY = """# Lending desk

A loan is renewed only if it is not overdue. Say the new date.

- Fines are paid with the reader's own card.
- Say the new date.

| tier | fine |
|---|---|
| gold | none: "yes" & 'no' # [x] |
"""


def openai(path: Path, trajectories: list[Trajectory]) -> Path:
    """Write trajectories the way a chat log holds them."""
    lines = []
    for trajectory in trajectories:
        messages: list[dict[str, object]] = []
        for step, event in enumerate(trajectory.events):
            match event:
                case Message():
                    messages.append({"role": "user", "content": event.text})
                case Call():
                    arguments = msgspec.json.encode(event.arguments).decode()
                    call = {"id": f"c{step}", "type": "function"} | {
                        "function": {"name": event.tool, "arguments": arguments}
                    }
                    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
                case Result():
                    messages.append({"role": "tool", "tool_call_id": f"c{event.call}", "content": str(event.content)})
        lines.append(msgspec.json.encode({"messages": messages, "tools": list(trajectory.tools)}).decode())
    path.write_text("\n".join(lines) + "\n")
    return path


def sound(root: Path) -> Pack:
    """What `bylaw check` asks of a pack."""
    pack = load_pack(root)
    results = list(run_cases(pack, {}))
    assert [result for result in results if not (isinstance(result, CaseResult) and result.passed)] == []
    assert untested([result for result in results if isinstance(result, CaseResult)], pack) == []
    assert not pack.stale
    return pack


def test_the_pack_is_sound_and_lists_every_sentence(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text(POLICY)
    made = init_pack([openai(tmp_path / "log.jsonl", visits(20))], tmp_path / "policy.md", tmp_path / "desk")
    pack = sound(tmp_path / "desk")
    assert pack.name == "desk"
    assert [entry.state for entry in covered_sentences(pack)] == ["listed"] * made.sentences
    assert all(policy.unenforced and policy.unenforced.accepted_by == "bylaw init" for policy in pack.policies.values())
    assert list(pack.guards) == [made.example]


def test_a_shield_is_not_held_to_drafts_that_nobody_took_up(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text(POLICY)
    made = init_pack([openai(tmp_path / "log.jsonl", visits(20))], tmp_path / "policy.md", tmp_path / "desk")
    assert made.example in sound(tmp_path / "desk").held_back
    decision = Shield(tmp_path / "desk").session().decide("renew_loan", {"loan_id": "L1"})
    assert {ground.posture for ground in decision.grounds if ground.policy} <= {"shadow"}
    assert [(ground.kind, ground.answer) for ground in decision.grounds if ground.posture == "enforce"] == [
        ("unguarded", "ask")
    ], "nobody has said yet whether it may be done: a person is asked"


def test_things_keys_and_observations_come_from_the_results(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text(POLICY)
    init_pack([openai(tmp_path / "log.jsonl", visits(20))], tmp_path / "policy.md", tmp_path / "desk")
    schema = sound(tmp_path / "desk").schema
    assert {name: entity.key for name, entity in schema.entities.items() if entity.key} == {
        "Loan": ("loan_id",),
        "Member": ("member_id",),
    }
    assert {name: field.type for name, field in schema.entities["Loan"].fields.items()} == {
        "loan_id": "string",
        "member_id": "string",
        "title": "string",
        "due": "date",
    }
    assert schema.shows["get_loan"].keys() == {"Loan"}
    assert {tool.name: tool.effect for tool in schema.tools.values()} == {
        "get_loan": "read",
        "get_member": "read",
        "get_opening_hours": "read",
        "pay_fine": "write",
        "renew_loan": "write",
    }
    assert schema.tools["pay_fine"].parameters == {
        "member_id": {"type": "string"},
        "card_id": {"type": "string"},
        "cents": {"type": "integer"},
    }


def test_recorded_definitions_come_before_what_calls_passed(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"loan_id": {"type": "string", "pattern": "^L"}}, "required": ["loan_id"]}
    tools = ({"name": "renew_loan", "description": "Renew a loan.\nOnce.", "parameters": schema},)
    talk = Talk("t", tools=tools).user("hi").call("renew_loan", "done", loan_id="L1")
    text = skeleton([talk.done()], Document("Renew it."), name="x").files["tools.yaml"]
    assert "description: Renew a loan. Once." in text
    assert "pattern: ^L" in text


def test_what_is_there_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text(POLICY)
    log = openai(tmp_path / "log.jsonl", visits(5))
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "tools.yaml").write_text("mine")
    with pytest.raises(UsageError, match=r"`tools.yaml` already exists"):
        init_pack([log], tmp_path / "policy.md", tmp_path / "desk")
    assert [path.name for path in (tmp_path / "desk").iterdir()] == ["tools.yaml"]
    assert (tmp_path / "desk" / "tools.yaml").read_text() == "mine"


def test_an_error_that_no_log_flags_is_proposed_as_a_declaration() -> None:
    refused = [
        Talk(f"r{at}").user("renew").call("renew_loan", "Error: overdue", loan_id=f"L000{at}").done() for at in (3, 4)
    ]
    files = skeleton([*visits(10), *refused], Document(POLICY), name="lending").files
    assert "add: surely_refused: '^Error: overdue'" in files["tools.yaml"]
    assert "surely_refused" not in skeleton(visits(10), Document(POLICY), name="lending").files["tools.yaml"]


def test_logs_without_tools_and_documents_without_sentences_are_refused() -> None:
    with pytest.raises(UsageError, match="the logs contain no tool calls"):
        skeleton([Talk("t").user("hi").done()], Document("Be kind."), name="x")
    with pytest.raises(UsageError, match="no sentence"):
        skeleton(visits(3), Document("# Only a heading\n"), name="x")


names = st.text(st.sampled_from("abc_ -:#[]{}\n\"'é\x07\u202e1"), max_size=12)
values = st.recursive(
    names | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.tuples(names.filter(bool), st.dictionaries(names, values, max_size=3), values), min_size=1, max_size=4),
    st.text(st.sampled_from("ab .:\n-#|'\"?!&*"), min_size=3),
)
def test_whatever_the_logs_hold_the_pack_loads(
    tmp_path_factory: pytest.TempPathFactory, calls: list[tuple[str, dict[str, object], object]], policy: str
) -> None:
    document = Document(f"Read the record before you set it. {policy}")
    talk = Talk("t").user("hi")
    for verb in ("get_", "set_", ""):
        for tool, arguments, result in calls:
            talk.calls((verb + tool, arguments, result))
    made = skeleton([talk.done()], document, name="x")
    root = tmp_path_factory.mktemp("pack")
    for path, text in made.files.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text, encoding="utf-8", newline="")
    sound(root)


@pytest.mark.parametrize(
    ("read", "shown", "written"),
    [
        ("patient_id", "patient_id", "patient"),
        ("patient", "patient_id", "patientId"),
        ("patient_id", "patientId", "patientID"),
        ("id", "id", "patient_id"),
        ("patientId", "patientId", "patient_id"),
        ("patient_id", "patient_id", "chart"),
    ],
)
def test_the_worked_guard_finds_its_thing_however_the_argument_is_spelled(
    tmp_path: Path, read: str, shown: str, written: str
) -> None:
    talks: list[Trajectory] = []
    for number in range(4):
        talk = Talk(f"t{number}").user("hi")
        talk.call("get_patient", {shown: f"P10{number}", "status": "active"}, **{read: f"P10{number}"})
        talk.call("list_patients", {"patients": [{shown: f"P10{number}", "status": "active"}, {shown: "P1"}]}, ward="a")
        talks.append(talk.call("discharge_patient", "done", **{written: f"P10{number}"}, note="ok").done())
    made = skeleton(talks, Document("A patient is discharged only if active."), name="x")
    assert made.example == "example-discharge-patient"
    assert f"facts.Patient(call.{written}).exists" in made.files["guards/example_discharge_patient.py"]
    assert made.things == ("Patient",)
    for path, text in made.files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    sound(tmp_path)


def test_the_common_rules_are_offered_and_bind_only_once_switched_on(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("Ask before you renew a loan.")
    init_pack([openai(tmp_path / "log.jsonl", visits(5))], tmp_path / "policy.md", tmp_path / "desk")
    assert not sound(tmp_path / "desk").book.rules
    offered = (tmp_path / "desk" / "rules.yaml").read_text().partition("#\n")[2]
    on = "".join(line[2:] for line in offered.splitlines(keepends=True))
    (tmp_path / "desk" / "rules.yaml").write_text(on)
    for folder in ("guards", "cases"):
        shutil.rmtree(tmp_path / "desk" / folder)
    policies = [
        {"id": name, "kind": "rule", "spans": ["Ask before you renew a loan."]}
        for name in ("confirm-before-change", "one-call-at-a-time")
    ]
    (tmp_path / "desk" / "policies.yaml").write_text(msgspec.json.encode({"policies": policies}).decode())
    assert [rule.name for rule in load_pack(tmp_path / "desk").book.rules] == [each["id"] for each in policies]


def test_a_catalogue_gives_names_and_parameters(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text(POLICY)
    definitions = [
        {"type": "function", "function": {"name": name, "parameters": {"properties": given, "required": [*given]}}}
        for name, given in {
            "get_loan": {"loan_id": {"type": "string"}},
            "get_member": {"member_id": {"type": "string"}},
            "get_opening_hours": {},
            "renew_loan": {"loan_id": {"type": "string"}, "weeks": {"type": "integer"}},
            "close_account": {"member_id": {"type": "string"}},
        }.items()
    ]
    (tmp_path / "tools.json").write_text(msgspec.json.encode(definitions).decode())
    log = openai(tmp_path / "log.jsonl", visits(20))
    made = init_pack([log], tmp_path / "policy.md", tmp_path / "desk", tools=tmp_path / "tools.json")
    assert made.undeclared == ("pay_fine",)
    tools = (tmp_path / "desk/tools.yaml").read_text()
    assert "from: tools.json" in tools
    assert "  get_loan, get_member, get_opening_hours: {effect: read}\n" in tools
    assert "  close_account:" in tools, "never called, so guessed by its name"
    guessed = sound(tmp_path / "desk").schema.tools["close_account"]
    assert (guessed.effect, guessed.changes) == ("write", ("Member.*",))
    assert guessed.put_as == ("close account with member id {member_id}",)
    assert tools.count("parameters:") == 1, "only `pay_fine` is not in the catalogue"
    assert tools.count("# Not in tools.json") == 1
    assert {*sound(tmp_path / "desk").schema.tools} >= {"pay_fine", "close_account"}


def test_a_document_that_names_its_day_sets_the_clock() -> None:
    document = Document("Today is March 14, 2026. Renew it.", name="policy.md")
    assert "\nnow: 2026-03-14T00:00:00 " in skeleton(visits(3), document, name="x").files["pack.yaml"]
    stamped = [
        Trajectory(each.id, [msgspec.structs.replace(event, time=1.0) for event in each.events]) for each in visits(3)
    ]
    assert "\nnow:" not in skeleton(stamped, document, name="x").files["pack.yaml"]


def test_sentences_are_listed_in_order_with_their_places() -> None:
    document = Document("Be kind. A loan is renewed only once. Smile.\n\n## Tone\n\nBe brief.\n", name="policy.md")
    policies = skeleton(visits(5), document, name="x").files["policies.yaml"]
    listed = "      # policy.md:1\n      - Be kind.\n      - A loan is renewed only once.\n      - Smile.\n"
    assert policies.endswith(f"{listed}      # policy.md:5, Tone\n      - Be brief.\n")


def test_a_sentence_that_stands_twice_is_listed_once_and_listed_everywhere(tmp_path: Path) -> None:
    text = "# Desk\n\nBe kind. A loan is renewed only once.\n\n## Fees\n\nBe kind. A loan is renewed only once.\n"
    (tmp_path / "policy.md").write_text(text)
    init_pack([openai(tmp_path / "log.jsonl", visits(20))], tmp_path / "policy.md", tmp_path / "desk")
    pack = sound(tmp_path / "desk")
    assert (tmp_path / "desk" / "policies.yaml").read_text().count("- Be kind.") == 1
    assert [entry.state for entry in covered_sentences(pack)] == ["listed"] * 4


def test_results_that_are_an_id_alone_are_no_fault(tmp_path: Path) -> None:
    log = openai(
        tmp_path / "log.jsonl",
        [
            Talk(f"t{n}")
            .user("hi")
            .call("find_member", f"M{n}00", email=f"{n}@x.org")
            .call("set_mode", "ok", mode="a")
            .done()
            for n in range(5)
        ],
    )
    (tmp_path / "policy.md").write_text("Be kind.")
    done = run(f"bylaw init {log.name} --document policy.md --out new", tmp_path)
    assert done.returncode == 0, done.stdout
    assert "can be read" not in done.stdout
    assert "find_member: {as: Member, fields: {value: $}}" in (tmp_path / "new/entities.yaml").read_text()


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ('{"orders": {"PAID": {"owner": "Ann", "paid": true, "gift": false}}}', ""),
        (
            '{"data": {"buys": {"PAID": {"owner": "Ann", "paid": true, "gift": false}}}}',
            "{each: $.data.buys.*, key: $key}",
        ),
        ('{"buys": [{"order_id": "PAID", "owner": "Ann", "paid": true, "gift": false}]}', ""),
        (
            '{"data": {"buys": [{"order_id": "PAID", "owner": "Ann", "paid": true, "gift": false}]}}',
            "{each: '$.data.buys[*]'}",
        ),
    ],
)
def test_a_database_given_at_init_is_found_by_name_or_mapped(body: str, line: str, tmp_path: Path) -> None:
    Shop(tmp_path).logs(record(user("Ship it."), look("PAID", paid=True, owner="Ann", gift=False), ship("PAID")))
    (tmp_path / "policy.md").write_text(POLICY)
    (tmp_path / "db.json").write_text(body)
    done = run("bylaw init logs.jsonl --document policy.md --out draft --world db.json", tmp_path)
    assert done.returncode == 0, done.stdout
    assert "world: db.json has 1 Order" in done.stdout
    entities = (tmp_path / "draft" / "entities.yaml").read_text()
    assert f"  Order: {line}" in entities if line else "world:" not in entities
    load_pack(tmp_path / "draft")
