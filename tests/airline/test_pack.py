"""The airline's pack: its cases, its coverage of both documents, and its guards against a plain reading."""

from functools import cache
from pathlib import Path

import pytest

from bylaw.engine.session import Session
from bylaw.pack import Pack, load_pack
from bylaw.packs.tau_airline import open_world
from bylaw.policy.document import Document
from bylaw.review.case import CaseResult, run_cases, untested
from bylaw.trace import Call, Trajectory, read
from tests.airline.reading import WRITES, Reading, read_through
from tests.engine.clinic import guards_of

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data" / "tau-airline"
shared = [pytest.mark.shared, pytest.mark.skipif(not DATA.is_dir(), reason="no recorded conversations here")]
VARIANTS = ("tau1", "tau2")


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_case_comes_out_as_wanted(variant: str) -> None:
    pack = load_pack(f"tau-airline/{variant}")
    results = list(run_cases(pack, {}))
    outcomes = [result for result in results if isinstance(result, CaseResult)]
    assert len(outcomes) == len(results)
    assert [outcome for outcome in outcomes if not outcome.passed] == []
    assert untested(outcomes, pack) == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_text_of_the_document_stays_outside(variant: str) -> None:
    pack = load_pack(f"tau-airline/{variant}")
    assert pack.document is None
    assert all(citation.text is None and citation.line for p in pack.policies.values() for citation in p.citations)


@pytest.mark.parametrize("variant", [pytest.param(variant, marks=shared) for variant in VARIANTS])
def test_every_sentence_of_the_document_is_listed_under_some_policy(variant: str) -> None:
    file = DATA / variant / "policy.md"
    pack = load_pack(f"tau-airline/{variant}", document=file)
    assert pack.stale == ()
    citations = [each for policy in pack.policies.values() for each in policy.citations]
    cited = {(stand.line, each.text) for each in citations for stand in (each, *each.again)}
    sentences = {(sentence.line, sentence.text) for sentence in Document(file.read_text()).sentences}
    assert sentences - cited == set()


@pytest.mark.parametrize("variant", [pytest.param(variant, marks=shared) for variant in VARIANTS])
def test_no_sentence_of_the_document_stands_in_the_pack(variant: str) -> None:
    folder = ROOT / "src" / "bylaw" / "packs" / "tau_airline"
    ours = " ".join(
        " ".join(file.read_text().split()) for file in folder.rglob("*") if file.suffix in (".yaml", ".py", ".md")
    )
    long = [s.text for s in Document((DATA / variant / "policy.md").read_text()).sentences if len(s.text.split()) > 6]
    assert [text for text in long if text in ours] == []


@pytest.mark.shared
@pytest.mark.skipif(not DATA.is_dir(), reason="no recorded conversations here")
def test_gold_actions_are_permitted_but_for_those_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
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


@pytest.mark.parametrize("name", [pytest.param(name, marks=shared) for name in FILES])
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
