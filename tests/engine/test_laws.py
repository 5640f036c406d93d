"""Laws of a judgement, over simulated conversations of the clinic."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.engine.session import Session
from bylaw.engine.settlement import CallVerdict
from bylaw.trace import Call, Result
from tests.examples import examples

from .clinic import conversations, guards, inserted, judge, look_up, pack, removed, world

picks = st.integers(0, 10_000)


def evidence(verdict: CallVerdict) -> list[tuple[str, str, str, list[str]]]:
    return [(p.policy.id, p.evidence, p.determined, [str(m.fact) for m in p.missing]) for p in verdict.policies]


@given(picks, picks)
@examples(100)
def test_no_later_event_changes_the_evidence_half(which: int, where: int) -> None:
    events = conversations()[which % len(conversations())].events
    whole = Session(guards())
    tools = pack().schema.tools
    judged = []
    for event in events:
        if isinstance(event, Call) and tools[event.tool].effect == "write":
            judged.append(whole.judge(event))
        whole.observe(event)
    chosen = judged[where % len(judged)]
    prefix = Session(guards())
    for event in events[: chosen.made.step]:
        prefix.observe(event)
    again = prefix.judge(chosen.made.call)
    assert [(e.policy.id, e.completions) for e in chosen.evidence] == [
        (e.policy.id, e.completions) for e in again.evidence
    ]
    for entry in chosen.evidence:
        for completion in entry.completions:
            for fact in completion.reads:
                entity = pack().schema.entities[fact.entity]
                if fact.key is not None and fact.field in entity.fields:
                    field = entity.fields[fact.field]
                    late, early = (s.read(entity, fact.key, field) for s in (chosen.seen, again.seen))
                    assert late == early


@given(picks)
@examples(100)
def test_what_comes_after_a_call_changes_no_missing_fact(which: int) -> None:
    events = conversations()[which % len(conversations())].events
    for verdict in judge(events):
        cut = [v for v in judge(events[: verdict.made.step + 1]) if v.made.step == verdict.made.step]
        earlier = [
            v.made for v in judge(events) if v.made.start == verdict.made.start and v.made.step < verdict.made.step
        ]
        if earlier:
            continue  # their results, which the world waits for, come later
        assert evidence(cut[0]) == evidence(verdict)


@given(picks, picks)
@examples(100)
def test_adding_a_truthful_look_up_never_makes_a_near_miss(which: int, where: int) -> None:
    events = conversations()[which % len(conversations())].events
    before = judge(events)[0]
    entities = [e for e in pack().schema.entities.values() if e.read is not None]
    things = sorted({(m.fact.entity, m.fact.key) for p in before.policies for m in p.missing if m.fact.key}) or [
        (e.name, tuple(str(before.made.call.arguments.get(part)) for part in e.key))
        for e in entities
        if set(e.key) <= before.made.call.arguments.keys()
    ]
    if not things:
        return
    name, key = things[where % len(things)]
    entity = pack().schema.entities[name]
    assert entity.read is not None
    assert key is not None
    named = dict(zip(entity.key, key, strict=True))
    arguments = {argument: named[part] for argument, part in entity.read.arguments.items()}
    answer = look_up(entity.read.tool, arguments)
    after = judge(inserted(events, before.made.start, entity.read.tool, arguments, answer))[0]
    for criterion in ("strict", "determined"):
        old = {p.policy.id: getattr(p, criterion) for p in before.policies}
        for policy in after.policies:
            if getattr(policy, criterion) == "near_miss":
                assert old[policy.policy.id] == "near_miss"


def test_removing_the_only_look_up_of_a_needed_fact_turns_compliant_into_near_miss() -> None:
    tried = 0
    for trajectory in conversations():
        verdict = judge(trajectory.events)[0]
        reads = {i for i, e in enumerate(trajectory.events[: verdict.made.start]) if isinstance(e, Call)}
        if verdict.strict != "compliant" or not reads:
            continue
        bare = judge(removed(trajectory.events, reads))[0]
        needing = [p for p in bare.policies if p.missing]
        if not needing:
            continue
        tried += 1
        assert bare.strict == "near_miss"
        assert all(p.strict == "near_miss" and p.world == "permit" for p in needing)
    assert tried >= 20


@given(picks)
def test_the_order_of_policies_does_not_matter(which: int) -> None:
    import msgspec

    events = conversations()[which % len(conversations())].events
    turned = msgspec.structs.replace(guards(), by_tool={tool: bound[::-1] for tool, bound in pack().by_tool.items()})
    session = Session(turned, world=world())
    for event in events:
        if isinstance(event, Call) and pack().schema.tools[event.tool].effect == "write":
            session.judge(event)
        session.observe(event)
    for mine, theirs in zip(session.settle(), judge(events), strict=True):
        assert (mine.strict, mine.determined) == (theirs.strict, theirs.determined)
        assert sorted(evidence(mine)) == sorted(evidence(theirs))


@pytest.mark.parametrize("mode", ["hindsight", "none"])
def test_knowing_less_never_turns_a_call_compliant(mode: str) -> None:
    for trajectory in conversations()[:120]:
        full = judge(trajectory.events)
        less = judge(trajectory.events, mode)  # pyright: ignore[reportArgumentType]
        for known, unknown in zip(full, less, strict=True):
            if unknown.strict == "compliant":
                assert known.strict in ("compliant", "violation")
                if known.strict == "violation":
                    assert all(p.evidence == "permit" for p in known.policies if p.strict == "violation")


def test_only_what_decides_is_decisive() -> None:
    """A payment plan settles the balance policy; strictly the balance comes first, but its value decides nothing."""
    patient = look_up("get_patient", {"patient_id": "P001"})
    booking = Call("book_visit", {"patient_id": "P001", "slot_id": "S0001", "copay": "30.00"}, turn=3)
    found: dict[str, list[tuple[str, bool]]] = {}
    listed = [f'{{"patients": [{{"patient_id": "P001", "payment_plan": {plan}}}]}}' for plan in ("true", "false")]
    for tool, shown in (*(("find_patient", each) for each in listed), ("get_patient", patient)):
        session = Session(pack(), world=world())
        session.observe(Call(tool, {"patient_id": "P001"} if tool == "get_patient" else {"name": "Ann"}, turn=1))
        session.observe(Result(0, shown))
        session.judge(booking)
        (verdict,) = session.settle()
        policy = next(p for p in verdict.policies if p.policy.id == "booking-balance")
        found[shown] = [(missing.fact.field, missing.decisive) for missing in policy.missing]
    assert list(found.values()) == [[("balance_due", False)], [("balance_due", True)], []]
