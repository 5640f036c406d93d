"""Soft rules decide by their circuit, hard ones veto; live as in a replay; and a model is asked no more than needed."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bylaw import Shield
from bylaw.engine.predicate_values import AnswerPredicate
from bylaw.engine.session import Session
from bylaw.pack import Pack
from bylaw.rule.monitor import Act
from bylaw.shield.backtest import replay
from bylaw.shield.decision import outcome
from bylaw.shield.grounds import find_grounds, weigh
from bylaw.trace import Call, Event, Message, Result, Trajectory

FILES = {
    "pack.yaml": "{format: 1, name: till, document: policy.md}",
    "policy.md": "Be careful. Never pay twice. Large sums need a manager.",
    "tools.yaml": """
tools:
  pay: {effect: write, parameters: {account: string, amount: number}}
  close: {effect: write, parameters: {account: string}}
  look: {effect: read, parameters: {account: string}}
""",
    "policies.yaml": """
policies:
  - {id: care, kind: rule, spans: [Be careful.]}
  - {id: twice, kind: rule, spans: [Never pay twice.]}
  - {id: large, kind: rule, spans: [Large sums need a manager.]}
  - {id: limit, tools: [pay], spans: [Be careful.]}
""",
    "guards/limit.py": "def limit(call, facts):\n    if call.amount > 900:\n"
    '        return deny("too much")\n    return permit()\n',
}
PREDICATES = """
predicates:
  pays: {tool: pay}
  change: {effect: write}
  large: {tool: pay, when: 'act.arguments["amount"] > 100'}
  urged: {said: "urgent"}
  agreed: {said: "yes"}
  rude: {question: "Was the user rude?"}
  manager: {question: "Is a manager there?"}
"""
SOFT = """
rules:
  - {id: once, policy: twice, formula: "FOR EACH account: ALWAYS (pays IMPLIES NOT YESTERDAY ONCE pays)", hard: true}
  - {id: ask, policy: care, formula: "ALWAYS (change IMPLIES agreed)", weight: 1.0}
  - {id: help, policy: care, formula: "ALWAYS (urged IMPLIES pays)", weight: 2.0}
  - {id: sums, policy: large, formula: "ALWAYS (large IMPLIES manager)", weight: 3.0}
  - {id: calm, policy: care, formula: "ALWAYS (pays IMPLIES NOT rude)", weight: 0.25}
"""


def till(rules: str = SOFT) -> Pack:
    return Pack.from_files({**FILES, "rules.yaml": PREDICATES + rules})


def answering(values: dict[str, bool | None], asked: list[str]) -> Callable[..., AnswerPredicate]:
    def answer(name: str, act: Act) -> bool | None:
        asked.append(f"{name} {act.step}")
        return values.get(name)

    def opened(pack: Pack, events: Callable[[], Sequence[Event]]) -> AnswerPredicate:
        return answer

    return opened


def known(**values: bool) -> Callable[..., AnswerPredicate]:
    return answering(dict(values), [])


def test_a_soft_rule_that_is_broken_is_outweighed() -> None:
    with Shield(till(), answers=known(rude=False, manager=True)).session() as session:
        session.user("urgent!")
        decision = session.decide("pay", {"account": "A", "amount": 5})
    assert decision.answer == "allow"
    assert decision.probability is not None
    assert decision.probability > 0.7
    with Shield(till(), answers=known(rude=False, manager=True)).session() as session:
        session.user("hello")
        decision = session.decide("pay", {"account": "A", "amount": 5})
    assert decision.answer == "deny"
    assert decision.policies == ("care",)
    assert decision.probability is not None
    assert decision.probability < 0.3


def test_a_hard_rule_is_never_outweighed() -> None:
    with Shield(till(), answers=known(rude=False, manager=True)).session() as session:
        session.user("urgent, yes!")
        assert session.decide("pay", {"account": "A", "amount": 5}).allowed
        session.result("paid")
        session.user("urgent, yes!")
        decision = session.decide("pay", {"account": "A", "amount": 5})
    assert decision.answer == "deny"
    assert "twice" in decision.policies
    assert decision.interval == (-1.0, -1.0)


def test_an_interval_on_both_sides_of_the_threshold_never_allows() -> None:
    with Shield(till()).session() as session:
        session.user("yes, urgent")
        decision = session.decide("pay", {"account": "A", "amount": 500})
    assert decision.interval is not None
    assert decision.interval[0] < 0.0 <= decision.interval[1]
    assert (decision.answer, decision.allowed, decision.model_queries) == ("ask", False, 0)
    assert "Is a manager there?" in [question.text for question in decision.questions]


def test_an_open_rule_that_weighs_too_little_does_not_stand_in_the_way() -> None:
    with Shield(till()).session() as session:
        session.user("yes, urgent")
        decision = session.decide("pay", {"account": "A", "amount": 5})
    assert decision.answer == "allow"
    assert decision.interval is not None
    assert 0.0 <= decision.interval[0] < decision.interval[1]


def test_above_a_threshold_of_its_own_no_write_is_allowed_for_breaking_nothing() -> None:
    pack = till("eps: 0.2" + SOFT)
    with Shield(pack, answers=known(rude=False, manager=True)).session() as session:
        session.user("yes")
        assert session.decide("look", {"account": "A"}).allowed
        session.result("fine")
        session.user("yes")
        decision = session.decide("close", {"account": "A"})
        assert (decision.answer, decision.interval) == ("deny", (0.0, 0.0))
        assert "it needs at least +0.20" in decision.feedback
        session.user("yes, urgent")
        assert session.decide("pay", {"account": "A", "amount": 5}).allowed


def test_nothing_is_weighed_where_no_rule_speaks() -> None:
    pack = till()
    with Shield(pack, answers=known(rude=False)).session() as session:
        session.user("yes")
        for _ in range(3):
            assert session.decide("look", {"account": "A"}).allowed
            session.result("fine")
        session.user("yes")
        decision = session.decide("close", {"account": "A"})
    assert decision.allowed
    assert (decision.probability, decision.interval) == (None, None)
    assert "circuit" not in vars(pack.ready_rules), "a circuit was made ready for nothing"
    bare = Pack.from_files({**FILES, "policies.yaml": "policies: [{id: limit, tools: [pay], spans: [Be careful.]}]"})
    with Shield(bare).session() as session:
        session.decide("pay", {"account": "A", "amount": 5})
    assert "circuit" not in vars(bare.ready_rules)


def talk(rng: random.Random) -> list[Event]:
    events: list[Event] = []
    for turn in range(1, 9, 2):
        events.append(Message("user", rng.choice(["yes", "hm", "yes, urgent", "urgent"]), turn))
        for _ in range(rng.choice([1, 1, 2])):
            tool = rng.choice(["pay", "pay", "close", "look"])
            more = {"amount": rng.choice([5, 50, 500, 950])} if tool == "pay" else {}
            events.append(Call(tool, {"account": rng.choice("AB"), **more}, turn=turn + 1))
        calls = [step for step, event in enumerate(events) if isinstance(event, Call) and event.turn == turn + 1]
        events += [Result(step, "done") for step in calls]
    return events


def live(shield: Shield, events: Sequence[Event]) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """What a live shield says of each call that a replay has a word on; every call is made, as it was."""
    said: list[tuple[str, tuple[tuple[str, str], ...]]] = []
    for step, event in enumerate(events):
        if isinstance(event, Call) and event.tool != "look":
            session = shield.session()
            for before in _turns(events[:step]):
                session.messages(before)
            decision = session.decide_after([], event.tool, event.arguments)
            said.append((decision.answer, tuple((each.policy, each.answer) for each in decision.grounds)))
    return said


def _turns(events: Sequence[Event]) -> list[list[dict[str, object]]]:
    messages: list[dict[str, object]] = []
    for step, event in enumerate(events):
        if isinstance(event, Message):
            messages.append({"role": event.by, "content": event.text})
        elif isinstance(event, Call):
            function = {"name": event.tool, "arguments": event.arguments}
            asked = {"id": str(step), "type": "function", "function": function}
            last = messages[-1] if messages else {}
            if last.get("turn") == event.turn:
                last["tool_calls"] = [*last["tool_calls"], asked]  # type: ignore[misc]
            else:
                messages.append({"role": "assistant", "tool_calls": [asked], "turn": event.turn})
        else:
            messages.append({"role": "tool", "tool_call_id": str(event.call), "content": "done"})
    return [messages]


def test_what_is_decided_live_is_what_a_replay_says() -> None:
    rng, pack = random.Random(5), till()
    kinds: set[str] = set()
    for _ in range(40):
        # A call is decided on what came before its turn's calls too: one call a turn keeps both views the same.
        events = [event for event in talk(rng) if not isinstance(event, Result)]
        seen: set[int] = set()
        plain: list[Event] = []
        for event in events:
            if isinstance(event, Call):
                if event.turn in seen:
                    continue
                seen.add(event.turn)
                plain += [event, Result(len(plain), "done")]
            else:
                plain.append(event)
        replayed = replay(pack, pack.postures, Trajectory("t", plain))
        said = list(replayed.values())
        wanted = [(each.whole.decision, tuple((g.policy, g.answer) for g in each.grounds)) for each in said]
        assert live(Shield(pack), plain) == wanted
        kinds.update(answer for answer, _ in wanted)
    assert kinds == {"allow", "deny", "ask"}


def test_asking_sparingly_decides_as_asking_for_everything_does() -> None:
    rng, pack = random.Random(6), till()
    counts = {"sparing": 0, "eager": 0}
    differ = 0
    for _ in range(150):
        events = talk(rng)
        values = {name: rng.choice([True, False, None]) for name in ("rude", "manager")}
        step = rng.choice([step for step, event in enumerate(events) if isinstance(event, Call)])
        call = events[step]
        assert isinstance(call, Call)
        answers: dict[str, str] = {}
        for kind in counts:
            asked: list[str] = []
            answer = answering(values, asked)(pack, list)
            session = Session(pack, answer=answer, is_live=kind == "sparing")
            session.observe_all(events[:step])
            asked.clear()
            judgement = session.judge(call)
            counts[kind] += len(asked)
            grounds = find_grounds(session, pack.postures, judgement, weighed=weigh(session, judgement))
            answers[kind] = outcome(grounds)[0]
        differ += answers["sparing"] != answers["eager"]
    assert differ == 0
    assert 0 < counts["sparing"] < 0.7 * counts["eager"]


def test_nobody_is_asked_of_a_call_that_a_guard_denies() -> None:
    asked: list[str] = []
    with Shield(till(), answers=answering({}, asked)).session() as session:
        session.user("yes")
        assert session.decide("pay", {"account": "A", "amount": 950}).answer == "deny"
        assert not asked
        session.decide("pay", {"account": "A", "amount": 500})
        assert asked[0] == "manager 2", "the most telling is asked first"


def test_what_a_model_said_is_in_the_log_and_not_asked_again(tmp_path: Path) -> None:
    asked: list[str] = []
    answers = answering({"manager": True, "rude": False}, asked)
    with Shield(till(), log=tmp_path / "log.db", answers=answers) as shield, shield.session("c1") as session:
        session.user("yes, urgent")
        first = session.decide("pay", {"account": "A", "amount": 500})
        session.result("paid")
    assert first.allowed
    assert [(each.predicate, each.step, each.value) for each in first.answered] == [("manager", 1, True)]
    before = list(asked)
    with Shield(till(), log=tmp_path / "log.db", answers=answers) as shield, shield.session("c1") as session:
        session.user("yes, urgent")
        again = session.decide("pay", {"account": "B", "amount": 500})
    assert again.allowed
    assert asked == [*before, "manager 4"]
    assert [each.step for each in again.answered] == [4]


@pytest.mark.parametrize("answers", [None, known()])
def test_without_an_answer_the_interval_decides(answers: Callable[..., AnswerPredicate] | None) -> None:
    with Shield(till(), answers=answers).session() as session:
        session.user("yes")
        assert session.decide("pay", {"account": "A", "amount": 500}).answer == "ask"
        assert session.decide("close", {"account": "A"}).answer == "allow"
