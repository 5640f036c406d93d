"""Rules inside the session: what they say of a call is final, and is what the audit says."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.audit.request import Request, Shelf
from bylaw.audit.run import audit, read_calls
from bylaw.engine.judgement import Judgement
from bylaw.engine.session import Session
from bylaw.facts.call_record import CallRecord
from bylaw.facts.ledger import Ledger
from bylaw.pack import Pack
from bylaw.pack.predicate import TURNS, Predicate
from bylaw.pack.rules import Rules
from bylaw.policy.folder import READY
from bylaw.rule.monitor import Act
from bylaw.rule.rule import read_rule
from bylaw.trace import Call, Event, Message, Result, Trajectory, read
from tests.examples import examples

from .clinic import conversations, pack
from .recorded import DATA, recorded, runs
from .rule_twin import Found, followed

CANCEL = Call("cancel_appointment", {"patient_id": "P1", "appointment_id": "A1", "late_fee": "0.00"})
PUT = "I'll cancel appointment A1 of patient P1 with a fee of $0.00. Shall I?"


def spoken(pack: Pack, events: Sequence[Event]) -> list[Found]:
    """What a session says of every act, taken event by event, and of the end."""
    session = Session(pack)
    for event in events:
        session.observe(event)
    found = [*session._said, *session._conduct.fork().finish()]  # type: ignore[union-attr]
    order = {rule.name: place for place, rule in enumerate(pack.book.rules)}
    told: list[Found] = []
    for each in found:
        here = [*((f.rule.name, True) for f in each.broken), *((f.rule.name, None) for f in each.open)]
        told += [(each.step, name, broke) for name, broke in sorted(here, key=lambda pair: order[pair[0]])]
    return told


def test_simulated_conversations_break_the_rules_that_the_twin_says() -> None:
    told = 0
    for talk in conversations():
        found = spoken(pack(), talk.events)
        assert found == followed(pack(), talk.events), talk.id
        told += len(found)
    assert told > 20


@pytest.mark.parametrize("name", [pytest.param("tau-airline", marks=recorded)])
def test_recorded_runs_break_the_rules_that_the_twin_says(name: str) -> None:
    shelf = Shelf(name)
    for _, run in runs():
        held = shelf.pack_for(run)
        assert spoken(held, run.events) == followed(held, run.events), run.id


FORMULAS = (
    "ALWAYS (change IMPLIES (NOT spoke SINCE agreed))",
    "ALWAYS (change IMPLIES EVENTUALLY spoke)",
    "EVENTUALLY handed_over",
    "ALWAYS NOT (change AND several_changes)",
    "ALWAYS (agreed IMPLIES NEXT change)",
    "ALWAYS (begs IMPLIES NOT wrote_beside_it)",
    "(NOT change) UNTIL agreed",
    "ALWAYS (handed_over IMPLIES ONCE (change AND failed))",
    "ALWAYS (change IMPLIES YESTERDAY spoke)",
    "ALWAYS (spoke IMPLIES YESTERDAY agreed)",
    "NOT begs",
)


def _said_yes(act: Act) -> bool | None:
    if any("yes" in message.text for message in act.sayings if message.captured):
        return True
    return False if all(message.captured for message in act.sayings) else None


def ruled(formulas: Sequence[str], *more: Predicate) -> Pack:
    """The clinic under other rules, some of which search what is written and what tools returned."""
    predicates = {
        **pack().book.predicates,
        "spoke": Predicate("spoke", "", "turn", TURNS["without_call"]),
        "agreed": Predicate("agreed", "", "said", _said_yes),
        "begs": Predicate("begs", "", "pattern", lambda act: "please" in act.text if act.captured else None),
        "failed": Predicate("failed", "", "returned", lambda act: "error" in "".join(act.returns())),
        **{each.name: each for each in more},
    }
    policy = next(iter(pack().policies))
    rules = tuple(read_rule(f"r{n}", text, policy=policy) for n, text in enumerate(formulas))
    return msgspec.structs.replace(pack(), book=Rules(predicates, rules))


@cache
def happening(turn: int) -> st.SearchStrategy[list[Event]]:
    says = st.sampled_from(["yes", "no, wait", "please", ""])
    tools = st.sampled_from(["cancel_appointment", "get_patient", "transfer_to_human", "unheard_of"])
    heard = st.booleans()
    user = st.builds(lambda text, heard: [Message("user", text, turn, captured=heard)], says, heard)
    agent = st.builds(lambda text, heard: [Message("agent", text, turn, captured=heard)], says, heard)
    call = st.builds(lambda tool, refused: Call(tool, {}, turn=turn, refused=refused), tools, st.booleans())
    acts = st.lists(agent | st.builds(lambda made: [made], call), min_size=1, max_size=3)
    turns = st.builds(lambda parts: [event for part in parts for event in part], acts)
    result = st.builds(lambda text: [Result(None, text)], st.sampled_from(["error: no", "{}"]))
    return st.one_of(user, turns, result)


talks = st.one_of([st.tuples(*[happening(turn) for turn in range(size)]) for size in range(10)])


@pytest.mark.parametrize("formula", FORMULAS)
@examples(30)
@given(others=st.sets(st.sampled_from(FORMULAS), max_size=2), talk=talks)
def test_any_rules_are_followed_as_the_twin_follows_them(
    formula: str, others: set[str], talk: tuple[list[Event], ...]
) -> None:
    held = ruled([formula, *sorted(others - {formula})])
    events = [event for part in talk for event in part]
    assert spoken(held, events) == followed(held, events)


@examples(75)
@given(formulas=st.sets(st.sampled_from(FORMULAS), min_size=1, max_size=3), talk=talks, cut=st.integers(0, 30))
def test_no_later_event_changes_what_the_rules_said(formulas: set[str], talk: tuple[Any, ...], cut: int) -> None:
    held = ruled(sorted(formulas))
    events = [event for part in talk for event in part]
    calls = [step for step, event in enumerate(events) if isinstance(event, Call) and not event.refused]
    in_the_end = Session(held)
    judged: dict[int, Judgement] = {}
    for step, event in enumerate(events):
        if step in calls:
            judged[step] = in_the_end.judge(event)  # type: ignore[arg-type]
        in_the_end.observe(event)
    for step in calls[: cut + 1]:
        prefix = Session(held)
        prefix.observe_all(events[:step])
        now = prefix.judge(events[step])  # type: ignore[arg-type]
        assert (now.rules, now.open_rules) == (judged[step].rules, judged[step].open_rules)
        # A call that was only judged, and another event in its place, leave no trace.
        prefix.observe(Message("user", "wait", 98))
        apart = Session(held)
        apart.observe_all([*events[:step], Message("user", "wait", 98)])
        assert prefix.findings(ended=True) == apart.findings(ended=True)


@cache
def audited(name: str) -> tuple[dict[tuple[str, int], dict[str, Any]], dict[str, tuple[Pack, Trajectory]]]:
    """Every line of a whole audit, and the conversations it was made from."""
    folder = Path(mkdtemp())
    if name == "clinic":
        files = [READY / "clinic" / "demo" / "logs.jsonl.bz2"]
    else:
        files = [sorted(DATA.glob(f"tau{n}/runs/*"))[0] for n in (1, 2)]
    audit(Request(tuple(files), name, None, "hindsight"), folder / "out")
    lines = {(line["trajectory"], line["step"]): line for line in read_calls(folder / "out")}
    shelf = Shelf(name)
    talks = [talk for file in files for talk in read(file) if isinstance(talk, Trajectory)]
    named = {talk.id: (shelf.pack_for(talk), talk) for talk in talks if any(talk.id == id for id, _ in lines)}
    return {key: line for key, line in lines.items() if key[0] in named}, named


@pytest.mark.parametrize("name", ["clinic", pytest.param("tau-airline", marks=recorded)])
@examples(60)
@given(which=st.integers(0, 100_000))
def test_what_the_session_says_of_a_call_is_what_the_audit_says_in_the_end(name: str, which: int) -> None:
    lines, talks = audited(name)
    (trajectory, step), line = list(lines.items())[which % len(lines)]
    held, talk = talks[trajectory]
    session = Session(held)
    for event in talk.events[:step]:
        session.observe(event)
    judgement = session.judge(talk.events[step])  # type: ignore[arg-type]
    for ours, theirs in ((judgement.rules, line["rules"]), (judgement.open_rules, line["open_rules"])):
        assert [(f.step, f.rule.name, f.because) for f in ours] == [
            (record["step"], record["rule"], record["because"]) for record in theirs
        ]
    said = {evidence.policy.id: evidence.outcome for evidence in judgement.evidence}
    if judgement.fault:
        said = {policy.id: "failed" for policy, _ in held.by_tool.get(judgement.made.call.tool, ())}
    assert said == {policy["id"]: policy["evidence"] for policy in line["policies"]}


def names(judgement: Judgement) -> list[str]:
    return [finding.rule.name for finding in judgement.rules]


def test_the_second_call_makes_it_several_and_a_turn_is_one_finding() -> None:
    session = Session(pack())
    session.observe_all([Message("agent", PUT, 1), Message("user", "Yes.", 2)])
    told: list[list[str]] = []
    for _ in range(3):
        call = msgspec.structs.replace(CANCEL, turn=3)
        judgement = session.judge(call)
        told.append(names(judgement))
        assert judgement.open_rules == ()
        session.observe(call)
    # The first of them has spent the yes.
    both = ["confirm-before-change", "one-change-at-a-time"]
    assert told == [[], both, both]
    assert [(f.step, f.rule.name) for f in session.findings(ended=True)] == [(3, name) for name in both]


def test_a_cancellation_without_consent_is_denied_by_the_session() -> None:
    session = Session(pack())
    session.observe(Message("user", "Cancel it.", 1))
    judgement = session.judge(msgspec.structs.replace(CANCEL, turn=2))
    assert names(judgement) == ["confirm-before-change"]
    assert judgement.outcome == "deny"


def test_a_refused_call_is_neither_done_nor_counted_and_the_message_before_it_did_not_wait() -> None:
    session = Session(pack())
    first, second = (msgspec.structs.replace(CANCEL, turn=3) for _ in range(2))
    told = Message("agent", PUT, 1)
    session.observe_all([told, Message("user", "Yes.", 2), Message("agent", "So.", 3)])
    session.judge(first)
    session.refuse(first)
    again = session.judge(second)
    assert (names(again), again.open_rules) == ([], ())
    assert session.ledger.calls[3].counts() is session.ledger.calls[3].counts_at(4) is False
    assert session.settle()[0].made.accepted is False
    session.observe(second)
    session.observe(Result(3, '{"cancelled": "A1"}'))
    assert session.ledger.calls[3].accepted is False


def test_words_that_were_not_recorded_leave_a_rule_open() -> None:
    session = Session(pack())
    session.observe_all([Message("agent", "Shall I?", 1), Message("user", "", 2, captured=False)])
    judgement = session.judge(msgspec.structs.replace(CANCEL, turn=3))
    assert [f.rule.name for f in judgement.open_rules] == ["confirm-before-change"]
    assert judgement.rules == ()
    assert judgement.outcome != "permit"
    assert (
        judgement.open_rules[0].because
        == "`change` holds; it is unknown whether `agreed` holds: the message was not recorded"
    )


class Witnessed:
    """A witness that counts what it is shown and asked."""

    asked = 0

    def __init__(self, ledger: Ledger) -> None:
        self.heard: list[int] = []

    def observe(self, step: int, event: Event) -> None:
        self.heard.append(step)

    def prepare(self) -> None:
        return None

    def ask(self, act: Act, record: CallRecord) -> bool | None:
        Witnessed.asked += 1
        assert self.heard == list(range(act.step))
        assert record.call.tool == act.tool
        return None if len(self.heard) < 3 else True

    def tell(self, act: Act, record: CallRecord) -> None:
        return None


@pytest.mark.parametrize("each", ["", "FOR EACH appointment_id: "])
def test_a_witness_sees_what_came_before_and_is_asked_only_where_it_matters(each: str) -> None:
    Witnessed.asked = 0
    witnessed = Predicate("heard", "", "consented", witness=Witnessed)
    session = Session(ruled([f"{each}ALWAYS (change IMPLIES heard)"], witnessed))
    session.observe_all([Message("user", "please", 1), Call("get_patient", {"patient_id": "P1"}, turn=2)])
    assert Witnessed.asked == 0
    judgement = session.judge(msgspec.structs.replace(CANCEL, turn=3))
    assert [f.rule.name for f in judgement.open_rules] == ["r0"]
    session.observe(Result(1, "{}"))
    later = msgspec.structs.replace(CANCEL, turn=4)
    assert session.judge(later).outcome != "deny"
    assert session.judge(later).open_rules == ()
