"""`bylaw init` without logs, and with a database: its tables become the entities."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.cli.init import init_pack
from bylaw.engine.session import Session
from bylaw.errors import UsageError, WorldError
from bylaw.policy.document import Document
from bylaw.scan.entities import read_tables
from bylaw.scan.skeleton import skeleton
from bylaw.trace import Call, Message, Result
from tests.docs.walkthrough import run

from .library import Talk
from .test_init import openai, sound

DATABASE: dict[str, Any] = {
    "customers": [{"customer_id": f"C{n}", "full_name": f"Pat {n}", "status": "Active"} for n in range(3)],
    "lines": {f"L{n}": {"line_id": f"L{n}", "status": ["Active", "Suspended"][n % 2]} for n in range(30)},
    "bills": [{"bill_id": f"B{n}", "customer_id": f"C{n}", "status": "Paid", "total": 4.5} for n in range(3)],
    "settings": {"currency": "USD"},
    "audit_trail": [{"entry_id": f"E{n}", "text": "x"} for n in range(3)],
}


def tool(name: str, description: str, *arguments: str) -> dict[str, Any]:
    properties = {each: {"type": "string"} for each in arguments}
    schema = {"type": "object", "properties": properties, "required": [*arguments]}
    return {"name": name, "description": description, "parameters": schema}


TOOLS = [
    tool("get_details_by_id", "The details of a customer, line or bill.", "id"),
    tool("resume_line", "Resumes a line.", "customer_id", "line_id"),
    tool("pay_bill", "Pays a bill.", "bill_id"),
]


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    (tmp_path / "policy.md").write_text("A suspended line is resumed only if no bill is overdue.\n")
    (tmp_path / "db.json").write_text(json.dumps(DATABASE))
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    return tmp_path


def drafted(folder: Path, *logs: Path, world: str = "db.json", tools: str = "tools.json") -> str:
    """The drafted entities.yaml of a sound pack."""
    init_pack(logs, folder / "policy.md", folder / "new", tools=folder / tools, world=folder / world)
    sound(folder / "new")
    return (folder / "new/entities.yaml").read_text()


def test_the_tables_that_tools_are_about_become_entities_without_a_log(inputs: Path) -> None:
    drafted(inputs)
    schema = sound(inputs / "new").schema
    assert {name: entity.key for name, entity in schema.entities.items()} == {
        "Customer": ("customer_id",),
        "Line": ("line_id",),
        "Bill": ("bill_id",),
    }
    assert schema.entities["Line"].fields["status"].values == ("Active", "Suspended")
    assert schema.entities["Bill"].fields["total"].type == "number"
    assert {entity.read.tool for entity in schema.entities.values() if entity.read} == {"get_details_by_id"}
    assert (schema.tools["pay_bill"].effect, schema.tools["pay_bill"].changes) == ("write", ("Bill.*",))


def test_one_look_up_of_several_kinds_shows_each_record_as_its_own_kind(inputs: Path) -> None:
    talk = Talk("t").user("hi")
    for record in (*DATABASE["customers"], *DATABASE["bills"]):
        talk.call("get_details_by_id", record, id=next(iter(record.values())))
    log = openai(inputs / "log.jsonl", [talk.call("resume_line", {"ok": True}, customer_id="C1", line_id="L1").done()])
    entities = drafted(inputs, log)
    assert "DraftEntity" not in entities
    assert "{as: Customer, when: {path: $.full_name, exists: true}}" in entities
    pack = sound(inputs / "new")
    session = Session(pack)
    bill = Result(1, json.dumps(DATABASE["bills"][2]))
    session.observe_all([Message("user", "hi", 1), Call("get_details_by_id", {"id": "B2"}, turn=2), bill])
    judgement = session.judge(Call("resume_line", {"customer_id": "C2", "line_id": "L1"}, turn=3))
    entities = pack.schema.entities
    seen = judgement.seen
    assert seen.shown_at(entities["Bill"], ("B2",), entities["Bill"].fields["status"]) is not None
    assert seen.shown_at(entities["Customer"], ("C2",), entities["Customer"].fields["status"]) is None, (
        "a bill's status"
    )


def test_tables_of_sqlite_keep_their_keys(inputs: Path) -> None:
    with closing(sqlite3.connect(inputs / "db.sqlite")) as base:
        base.execute("CREATE TABLE customers (customer_id TEXT PRIMARY KEY, name TEXT)")
        base.execute("CREATE TABLE line_bills (line_id TEXT, month TEXT, paid INTEGER, PRIMARY KEY (line_id, month))")
        base.execute("INSERT INTO line_bills VALUES ('L1', '2026-01', 1)")
        base.commit()
    catalogue = [*TOOLS, tool("get_line_bill", "One bill.", "line_id", "month")]
    (inputs / "tools.json").write_text(json.dumps(catalogue))
    entities = drafted(inputs, world="db.sqlite")
    assert "  LineBill:\n    key: [line_id, month]\n    read: get_line_bill\n" in entities


def test_python_functions_are_tools(inputs: Path) -> None:
    code = (
        'def get_bill(bill_id: str) -> dict:\n    """Reads a bill."""\n\ndef pay_bill(bill_id: str):\n    """Pays."""\n'
    )
    (inputs / "tools.py").write_text(code)
    assert "  Bill:\n    key: bill_id\n    read: get_bill\n" in drafted(inputs, tools="tools.py")
    assert [each["name"] for each in json.loads((inputs / "new/tools.json").read_text())] == ["get_bill", "pay_bill"]


def test_a_document_and_tools_are_enough(inputs: Path) -> None:
    (inputs / "more.md").write_text("Be kind.\n")
    done = run("bylaw init --document policy.md --document more.md --tools tools.json --out new", inputs)
    assert done.returncode == 0, done.stdout
    assert "read 3 tools, 2 of them writes" in done.stdout
    pack = sound(inputs / "new")
    assert pack.document is not None
    assert [file.name for file in pack.document.files] == ["documents/policy.md", "documents/more.md"]


names = st.text(st.sampled_from("abs_ 1é-"), max_size=4) | st.sampled_from(["id", "order_id", "none", "orders", "key"])
values = st.integers(0, 3) | st.booleans() | st.none() | names | st.lists(st.integers(), max_size=2)
records = st.dictionaries(names, values, max_size=4)
bodies = st.lists(records, max_size=4) | st.dictionaries(names, records, max_size=4) | values


@given(st.dictionaries(names, bodies | st.dictionaries(names, bodies, max_size=2), max_size=4), st.lists(records))
def test_whatever_the_database_holds_the_pack_loads(
    tmp_path_factory: pytest.TempPathFactory, database: dict[str, Any], results: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("database")
    (folder / "db.json").write_text(json.dumps(database))
    talk = Talk("t").user("hi")
    for number, result in enumerate(results):
        talk.call("get_details_by_id", result, id=str(number))
    made = skeleton(
        [talk.done()],
        Document("Pay it."),
        name="x",
        catalogue={each["name"]: each for each in TOOLS},
        tables=read_tables(folder / "db.json"),
    )
    for path, text in {**made.files, "tools.json": json.dumps(TOOLS)}.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    sound(folder)


def test_what_is_lacking_or_unreadable_is_named(inputs: Path) -> None:
    assert "neither logs nor tools" in run("bylaw init --document policy.md", inputs).stdout
    (inputs / "db.json").write_text("{")
    with pytest.raises(WorldError, match="neither SQLite nor JSON"):
        drafted(inputs)
    with pytest.raises(UsageError, match="no such file"):
        drafted(inputs, world="none.json")
