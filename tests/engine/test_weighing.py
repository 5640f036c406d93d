"""`Session.weigh`: what the rules together say of a call, against `judge` with every answer tried."""

import itertools
import math
import random
from collections.abc import Iterator, Sequence

import pytest

from bylaw.engine.session import Session
from bylaw.errors import PackError
from bylaw.pack import Pack
from bylaw.rule.circuit import Assessment
from bylaw.rule.monitor import Act
from bylaw.trace import Call, Event, Message
from tests.packs import made

from .clinic import conversations, pack

FILES = {
    "pack.yaml": "{format: 1, name: till, document: policy.md}",
    "policy.md": "Be careful.",
    "tools.yaml": """
tools:
  pay: {effect: write, parameters: {account: string, amount: number}}
  close: {effect: write, parameters: {account: string}}
  look: {effect: read, parameters: {account: string}}
""",
    "policies.yaml": "policies: [{id: care, kind: rule, spans: [Be careful.]}]",
}
PREDICATES = """
predicates:
  pays: {tool: pay}
  change: {effect: write}
  large: {tool: pay, when: 'act.arguments["amount"] > 100'}
  called: {message: false}
  spoke: {message: true}
  several: {turn: several_calls}
  agreed: {said: "yes"}
  odd: {code: 'act.tool == "pay" and act.arguments["amount"] > 7'}
  rude: {question: rude?}
  manager: {question: manager?}
  director: {question: director?}
"""
RULES = """
rules:
  - {id: once, policy: care, formula: "FOR EACH account: ALWAYS (pays IMPLIES NOT YESTERDAY ONCE pays)", weight: 1.5}
  - {id: consent, policy: care, formula: "ALWAYS (change IMPLIES agreed)", weight: 0.5}
  - {id: limit, policy: care, formula: "ALWAYS (large IMPLIES manager)", weight: 2.0}
  - {id: alone, policy: care, formula: "ALWAYS NOT several", weight: 0.25}
  - {id: odd, policy: care, formula: "ALWAYS NOT odd", weight: 0.75}
  - {id: calm, policy: care, formula: "ALWAYS (pays IMPLIES NOT ONCE rude)", weight: 1.0}
  - {id: never, policy: care, formula: "ALWAYS (change IMPLIES NOT ONCE (rude AND director))", weight: 3.0}
"""


def till(rules: str = RULES) -> Pack:
    return made({**FILES, "rules.yaml": PREDICATES + rules})


def talk(rng: random.Random) -> list[Event]:
    events: list[Event] = []
    for turn in range(1, 4):
        events.append(Message("user", rng.choice(["yes", "hm"]), turn))
        if rng.random() < 0.3:
            events.append(Message("agent", "so", turn))
        for _ in range(rng.choice([1, 1, 2])):
            tool = rng.choice(["pay", "pay", "close", "look"])
            more = {"amount": rng.choice([5, 50, 500])} if tool == "pay" else {}
            events.append(Call(tool, {"account": rng.choice("AB"), **more}, turn=turn))
    return events


def completed(pack: Pack, before: Sequence[Event], call: Call, asked: Sequence[str]) -> Iterator[tuple[float, ...]]:
    """For every way the questions may be answered, at each act by itself: the rules that the call then breaks."""
    acts = [step for step, event in enumerate([*before, call]) if isinstance(event, Call) or event.by == "agent"]
    places = [(name, step) for name in asked for step in acts]
    for values in itertools.product((False, True), repeat=len(places)):
        answers = dict(zip(places, values, strict=True))

        def answer(name: str, act: Act, answers: dict[tuple[str, int], bool] = answers) -> bool | None:
            return answers.get((name, act.step))

        session = Session(pack, answer=answer)
        session.observe_all(before)
        broken = {finding.rule.name for finding in session.judge(call).rules}
        yield tuple(-float(rule.name in broken) for rule in pack.book.rules)


def margin(pack: Pack, leans: Sequence[float]) -> float:
    return math.tanh(sum(lean * rule.weight for lean, rule in zip(leans, pack.book.rules, strict=True)) / 2)


def test_the_interval_spans_what_judge_says_under_every_answer() -> None:
    rng = random.Random(3)
    pack = till()
    tight = 0
    for _ in range(30):
        events = talk(rng)
        step = next(step for step, event in enumerate(events) if isinstance(event, Call))
        step += isinstance(events[step + 1], Call)
        call = events[step]
        assert isinstance(call, Call)
        session = Session(pack)
        session.observe_all(events[:step])
        found = session.weigh(call)
        assert found is not None
        margins = [
            margin(pack, leans) for leans in completed(pack, events[:step], call, ("rude", "director", "manager"))
        ]
        assert found.interval[0] <= min(margins) + 1e-12
        assert max(margins) <= found.interval[1] + 1e-12
        tight += found.interval == pytest.approx((min(margins), max(margins)))
    assert tight > 5


def test_with_every_answer_given_the_margin_is_that_of_the_rules_that_break() -> None:
    rng = random.Random(4)
    pack = till()
    met = 0
    for _ in range(40):
        events = talk(rng)
        answers = {name: rng.random() < 0.5 for name in ("rude", "manager", "director")}
        session = Session(pack, answer=lambda name, act, answers=answers: answers.get(name))
        for step, event in enumerate(events):
            if isinstance(event, Call):
                judged = {finding.rule.name for finding in session.judge(event).rules}
                found = session.weigh(event)
                assert found is not None
                wanted = margin(pack, [-float(rule.name in judged) for rule in pack.book.rules])
                # Others than the account that the call names may be at stake only where a rule is broken anyway.
                assert found.margin == pytest.approx(wanted, abs=1e-12), (step, events)
                met += bool(judged)
            session.observe(event)
    assert met > 20


def test_a_circuit_of_prohibitions_denies_what_breaks_one_asks_where_one_is_open_and_allows_the_rest() -> None:
    met: dict[str, int] = {}
    for trajectory in conversations()[:40]:
        session = Session(pack())
        for event in trajectory.events:
            if isinstance(event, Call) and event.by == "agent":
                judged = session.judge(event)
                found = session.weigh(event)
                assert found is not None
                wanted = "deny" if judged.rules else "ask" if judged.open_rules else "allow"
                assert found.decision == wanted
                met[wanted] = met.get(wanted, 0) + 1
            session.observe(event)
    assert met["deny"] > 2
    assert met["allow"] > 50


def weighed(pack: Pack, call: Call, said: str = "yes", **answers: bool | float) -> Assessment:
    session = Session(pack)
    session.observe(Message("user", said, 1))
    found = session.weigh(call, answers=answers)
    assert found is not None
    return found


PAY = Call("pay", {"account": "A", "amount": 5}, turn=1)


def test_a_hard_rule_is_a_veto_and_is_never_outvoted() -> None:
    pack = till("""
rules:
  - {id: hard, policy: care, formula: "ALWAYS (pays IMPLIES agreed)", hard: true}
  - {id: must, policy: care, formula: "ALWAYS (agreed OR pays)", weight: 50}
""")
    found = weighed(pack, PAY, "no")
    assert (found.decision, found.veto, found.interval) == ("deny", ("hard",), (-1.0, -1.0))
    assert weighed(pack, PAY).decision == "allow"


def test_a_soft_rule_for_an_action_can_outweigh_one_against_it() -> None:
    rules = """
rules:
  - {{id: against, policy: care, formula: "ALWAYS (pays IMPLIES agreed)", weight: {against}}}
  - {{id: for, policy: care, formula: "ALWAYS (agreed OR pays)", weight: 1}}
"""
    assert weighed(till(rules.format(against=0.9)), PAY, "no").decision == "allow"
    assert weighed(till(rules.format(against=1.1)), PAY, "no").decision == "deny"


KNOWING = """
rules:
  - {id: limit, policy: care, formula: "ALWAYS (pays IMPLIES manager)"}
  - {id: ranks, formula: "director IMPLIES manager", physical: true, hard: true}
"""


def test_knowledge_settles_what_nobody_answered_and_is_never_broken() -> None:
    pack = till(KNOWING)
    assert [rule.name for rule in pack.book.rules] == ["limit"]
    assert weighed(pack, PAY).decision == "ask"
    assert weighed(pack, PAY, director=True).decision == "allow"
    assert weighed(pack, PAY, director=True, manager=False).conflict == ("ranks",)
    session = Session(pack, answer=lambda name, act: name == "director")
    session.observe(PAY)
    assert [finding.rule.name for finding in session.findings(ended=True)] == ["limit"]


def test_a_probability_moves_the_margin_and_leaves_the_interval() -> None:
    pack = till(KNOWING)
    low, high = weighed(pack, PAY, manager=0.1), weighed(pack, PAY, manager=0.9)
    assert low.margin is not None
    assert high.margin is not None
    assert low.margin < high.margin
    assert low.interval == high.interval == weighed(pack, PAY).interval
    assert low.ask_next == "manager"


def test_weighing_moves_nothing() -> None:
    for trajectory in conversations()[:20]:
        quiet, asked = Session(pack()), Session(pack())
        for event in trajectory.events:
            if isinstance(event, Call):
                asked.weigh(event)
            for session in (quiet, asked):
                session.observe(event)
        assert quiet.findings(ended=True) == asked.findings(ended=True)


def test_a_call_that_was_not_judged_is_weighed_as_one_that_was() -> None:
    for trajectory in conversations()[:40]:
        plain, judged = Session(pack()), Session(pack())
        for event in trajectory.events:
            if isinstance(event, Call):
                judged.judge(event)
                assert plain.weigh(event) == judged.weigh(event)
            for session in (plain, judged):
                session.observe(event)


def test_no_answer_stands_against_what_the_conversation_shows() -> None:
    pack = till('rules: [{id: consent, policy: care, formula: "ALWAYS (change IMPLIES agreed)"}]')
    assert weighed(pack, PAY, "yes", agreed=False) == weighed(pack, PAY, "yes")
    assert weighed(pack, PAY, "no", agreed=True).decision == "deny"


@pytest.mark.parametrize(("captured", "decision"), [(True, "deny"), (False, "ask")])
def test_words_that_were_not_recorded_may_have_been_said(captured: bool, decision: str) -> None:
    session = Session(till('rules: [{id: consent, policy: care, formula: "ALWAYS (change IMPLIES agreed)"}]'))
    session.observe(Message("user", "", 1, captured=captured))
    judgement, found = session.judge(PAY), session.weigh(PAY)
    assert [bool(judgement.rules), bool(judgement.open_rules)] == [captured, not captured]
    assert found is not None
    assert found.decision == decision


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ('{id: x, formula: "ALWAYS ONCE rude", physical: true}', "depends on other acts"),
        ('{id: x, formula: "FOR EACH account: rude", physical: true}', "depends on other acts"),
        ('{id: x, formula: "rude", physical: true, policy: none}', "does not exist"),
        ('{id: x, policy: care, formula: "rude", weight: 1.0e999}', "too large"),
        ('{id: x, policy: care, formula: "rude"}\n  - {id: x, policy: care, formula: "rude"}', "two rules"),
    ],
)
def test_rules_that_cannot_be_weighed_are_told_when_the_pack_is_loaded(rule: str, message: str) -> None:
    with pytest.raises(PackError) as caught:
        till(f"rules:\n  - {{id: care, formula: rude}}\n  - {rule}\n")
    assert any(message in fault.message for fault in caught.value.faults), caught.value.faults
