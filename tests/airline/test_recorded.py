"""The airline's pack over recorded runs: its guards against a plain reading, and what of the documents it covers."""

import sys
from functools import cache
from pathlib import Path

import pytest

from bylaw.engine.session import Session
from bylaw.pack import Pack, load_pack
from bylaw.packs.tau_airline import open_world
from bylaw.policy.document import Document
from bylaw.trace import Call, Trajectory, read
from tests.airline.reading import WRITES, Reading, read_through
from tests.engine.clinic import guards_of

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "tau-airline"
if not DATA.is_dir():
    pytest.skip("no recorded conversations here", allow_module_level=True)
pytestmark = pytest.mark.shared
VARIANTS = ("tau1", "tau2")


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_sentence_of_the_document_is_listed_under_some_policy(variant: str) -> None:
    file = DATA / variant / "policy.md"
    pack = load_pack(f"tau-airline/{variant}", document=file)
    assert pack.stale == ()
    citations = [each for policy in pack.policies.values() for each in policy.citations]
    cited = {(stand.line, each.text) for each in citations for stand in (each, *each.again)}
    sentences = {(sentence.line, sentence.text) for sentence in Document(file.read_text()).sentences}
    assert sentences - cited == set()


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_sentence_of_the_document_stands_in_the_pack(variant: str) -> None:
    folder = ROOT / "src" / "bylaw" / "packs" / "tau_airline"
    ours = " ".join(
        " ".join(file.read_text().split()) for file in folder.rglob("*") if file.suffix in (".yaml", ".py", ".md")
    )
    long = [s.text for s in Document((DATA / variant / "policy.md").read_text()).sentences if len(s.text.split()) > 6]
    assert [text for text in long if text in ours] == []


def test_gold_actions_are_permitted_but_for_those_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "lab" / "benchmarks"))
    import airline_gold

    judged = airline_gold.judge_gold(DATA)
    named = airline_gold.exceptions()
    denied = {(verdict.task, verdict.policy) for verdict in judged if verdict.world == "deny"}
    asked = {(verdict.task, verdict.policy) for verdict in judged if verdict.world == "user decides"}
    assert len(judged) > 200
    assert denied <= named.keys()
    assert {policy for _, policy in asked} <= {"cancel-ground"}
    assert all(verdict.world in ("permit", "deny", "user decides") for verdict in judged)


FILES = ("tau1/runs/gpt-4o.json.gz", "tau1/runs/llama-3.1-8b-ft.json.gz", "tau2/runs/gpt-4.1.json.gz",
         "tau2/runs/ft-gpt-4.1.json.gz", "tau2/runs/grok-4-fast-reasoning.stock.1.json.gz",
         "tau2/runs/grok-3.variant-policy.7.json.gz")  # fmt: skip


@cache
def guards(variant: str) -> Pack:
    return guards_of(load_pack(f"tau-airline/{variant}"))


@pytest.mark.parametrize("name", FILES)
def test_guards_say_what_a_plain_reading_says(name: str) -> None:
    pack = guards(name[:4])
    _, world = open_world(DATA).for_runs(DATA / name)
    count = 0
    for trajectory in read(DATA / name):
        assert isinstance(trajectory, Trajectory)
        session = Session(pack, world=world)
        for event in trajectory.events:
            if isinstance(event, Call) and event.tool in WRITES:
                session.judge(event)
            session.observe(event)
        engine = [
            Reading(v.made.step, v.made.call.tool, v.strict, any(policy.missing for policy in v.policies))
            for v in session.settle()
            if v.made.accepted and v.made.call.tool in WRITES
        ]
        assert engine == list(read_through(trajectory, world.fork())), trajectory.id
        count += len(engine)
    assert count > 5


@pytest.mark.parametrize("name", ["tau1/runs/gpt-4o.json.gz", "tau2/runs/gpt-4.1.json.gz"])
def test_recorded_results_come_out_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "lab" / "benchmarks"))
    import airline_replay

    users, world = open_world(DATA).for_runs(DATA / name)
    assert users == ("users-gpt-4o-run.json" if "gpt-4o" in name else "db.json")
    results = [
        (call.tool, airline_replay.equal(recorded, answer))
        for trajectory in read(DATA / name)
        if isinstance(trajectory, Trajectory)
        for call, recorded, answer in airline_replay.differences(trajectory, world.fork())
    ]
    assert len(results) > 100
    assert [tool for tool, same in results if not same] == []
    sys.modules.pop("airline_replay")
