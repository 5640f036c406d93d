"""Verified thoughts say what the guards found at the turn, in varied words, and nothing else."""

import json
import random
import re
from typing import Any

import pytest

from bylaw.align.thought import SOFT, think
from bylaw.align.turn_evidence import TargetWrite, next_write
from bylaw.rule.monitor import TurnSpan, turns
from bylaw.trace import Call, Event, Message, Result
from bylaw_lab.clinic.simulator.generate import clinic, simulated
from bylaw_lab.clinic.simulator.needs import shows
from bylaw_lab.clinic.simulator.tasks import make
from tests.engine.clinic import pack

PACK = pack()


class Talk:
    """A short conversation with the clinic's own desk."""

    def __init__(self) -> None:
        self.place = clinic()
        self.place.desk.reset()
        self.events: list[Event] = []
        self.turn = 0

    def user(self, text: str) -> None:
        self.turn += 1
        self.events.append(Message("user", text, turn=self.turn))

    def agent(self, text: str) -> TurnSpan:
        self.turn += 1
        self.events.append(Message("agent", text, turn=self.turn))
        return TurnSpan(len(self.events) - 1, len(self.events))

    def call(self, tool: str, **arguments: Any) -> TurnSpan:
        self.turn += 1
        step = len(self.events)
        self.events.append(Call(tool, arguments, turn=self.turn))
        answer = self.place.desk.call(tool, arguments)
        self.events.append(Result(step, answer if isinstance(answer, str) else json.dumps(answer), tool=tool))
        return TurnSpan(step, step + 1)


def _patient(**wanted: Any) -> str:
    for patient in clinic().patients:
        row = clinic().desk.need("Patient", patient)
        if all(row[name] == value for name, value in wanted.items()):
            return patient
    raise AssertionError(wanted)


def test_a_look_up_serves_the_policies_that_it_moves_on() -> None:
    talk = Talk()
    talk.user("Please change my email.")
    patient = _patient(identity_checked=1)
    span = talk.call("get_patient", patient_id=patient)
    write = TargetWrite(Call("update_contact", {"patient_id": patient, "email": "a@example.com"}))
    thought = think(PACK, talk.events, span, write, seed=1)
    assert thought.evidence.purpose == "look_up"
    assert thought.required == {"identity-checked"}
    assert "need a checked identity" in thought.text or "identity has been checked" in thought.text
    assert "identity checked" in thought.text


def test_a_refusal_states_the_policy_that_denies_and_why() -> None:
    talk = Talk()
    talk.user("Please change my email.")
    patient = _patient(identity_checked=0)
    talk.call("get_patient", patient_id=patient)
    span = talk.agent("I cannot do that.")
    write = TargetWrite(Call("update_contact", {"patient_id": patient, "email": "a@example.com"}), is_made=False)
    thought = think(PACK, talk.events, span, write, seed=3)
    assert thought.evidence.purpose == "refuse"
    assert thought.required == {"identity-checked"}
    assert "identity has not been checked" in thought.text
    assert "identity checked: no" in thought.text


def test_an_announcement_serves_the_rule_and_what_settles_its_values() -> None:
    talk = Talk()
    talk.user("I want to be a Silver member.")
    patient = _patient(balance_due="0.00")
    talk.call("get_patient", patient_id=patient)
    membership = clinic().desk.need("Patient", patient)["membership_id"]
    span = talk.agent(f"I'll change membership {membership} of patient {patient} to silver. Shall I?")
    arguments = {"patient_id": patient, "membership_id": membership, "new_tier": "silver"}
    thought = think(PACK, talk.events, span, TargetWrite(Call("change_membership", arguments)), seed=1)
    assert thought.evidence.purpose == "announce"
    assert thought.required == {"confirm-before-change", "upgrade-balance"}
    talk.user("yes")
    span = talk.call("change_membership", **arguments)
    made = think(PACK, talk.events, span, next_write(PACK, talk.events, span.start), seed=1)
    assert made.evidence.purpose == "write"
    assert made.required == {"confirm-before-change", "one-change-at-a-time", "upgrade-balance"}
    assert "new tier silver" in made.text
    span = talk.agent("Done.")
    done = think(PACK, talk.events, span, None, seed=1)
    assert done.required == frozenset()


def test_no_verified_thought_ends_in_a_write_that_nobody_agreed_to_or_that_was_not_checked() -> None:
    patient = _patient(balance_due="0.00")
    membership = clinic().desk.need("Patient", patient)["membership_id"]
    arguments = {"patient_id": patient, "membership_id": membership, "new_tier": "silver"}
    unasked, unchecked = Talk(), Talk()
    for talk in (unasked, unchecked):
        talk.user("I want to be a Silver member.")
    unasked.call("get_patient", patient_id=patient)
    unchecked.agent(f"I'll change membership {membership} of patient {patient} to silver. Shall I?")
    unchecked.user("yes")
    for talk in (unasked, unchecked):
        span = talk.call("change_membership", **arguments)
        made = think(PACK, talk.events, span, next_write(PACK, talk.events, span.start), seed=1)
        assert made.evidence.purpose == "write"
        assert made.text == ""


def test_what_is_said_after_a_change_announces_nothing_though_another_change_follows() -> None:
    talk = Talk()
    patient = _patient(balance_due="0.00")
    membership = clinic().desk.need("Patient", patient)["membership_id"]
    arguments = {"patient_id": patient, "membership_id": membership, "new_tier": "silver"}
    talk.user("I want to be a Silver member.")
    talk.call("get_patient", patient_id=patient)
    span = talk.agent("All set.")
    thought = think(PACK, talk.events, span, TargetWrite(Call("change_membership", arguments)), seed=1)
    assert (thought.evidence.purpose, thought.required) == ("other", frozenset())


def test_a_question_serves_the_policies_that_hang_on_the_answer() -> None:
    talk = Talk()
    talk.user("Please cancel A0001.")
    row = next(row for patient in clinic().patients for row in clinic().desk.rows("Appointment", "patient_id", patient))
    arguments = {
        "patient_id": row["patient_id"],
        "appointment_id": row["appointment_id"],
        "late_fee": "0.00",
        "reason": "illness",
    }
    span = talk.agent("May I ask why you want to cancel?")
    thought = think(PACK, talk.events, span, TargetWrite(Call("cancel_appointment", arguments)), seed=2)
    assert thought.evidence.purpose == "ask"
    assert thought.required == {"late-cancel-fee"}
    assert "Why does the caller want to cancel?" in thought.text


def _conversations(count: int) -> list[Any]:
    return [made.trajectory for made in simulated(11, count)]


def test_thoughts_name_no_ids_keep_short_and_vary_with_the_seed() -> None:
    ids = [name for name in PACK.policies if "-" in name]
    differ = total = 0
    for trajectory in _conversations(15):
        events = trajectory.events
        for span in turns(events):
            target = next_write(PACK, events, span.start)
            one, two = (think(PACK, events, span, target, seed=seed) for seed in (1, 2))
            assert one == think(PACK, events, span, target, seed=1)
            assert one.required == two.required
            assert not [name for name in ids if name in one.text]
            calls = sum(isinstance(event, Call) for event in events[span.start : span.end])
            plain = re.sub(r" \([^()]*\)", "", one.text)
            assert calls > 1 or len(plain.split()) <= SOFT + 20, one.text
            if one.required and one.text:
                total += 1
                differ += one.text != two.text
    assert total > 30
    assert differ > 0.9 * total


def test_what_the_simulator_itself_says_a_look_up_shows_is_among_what_it_serves() -> None:
    """The simulator's own runs know nothing of guards: every policy whose true path a look-up goes on is served."""
    place = clinic()
    looked = 0
    for number in range(30):
        place.desk.reset()
        task = make(place, random.Random(number), f"t{number}")
        for want in task.wants:
            talk = Talk()
            talk.user("hello")
            known: dict[Any, Any] = {}
            for tool in ("get_patient", "get_slot", "get_appointment", "get_invoice", "get_prescription"):
                key = tool.removeprefix("get_") + "_id"
                if key not in want.arguments:
                    continue
                arguments = {key: want.arguments[key]}
                answer = place.desk.call(tool, arguments)
                found = dict(shows(tool, arguments, answer))
                moved = {
                    policy
                    for policy, run in place.runs(want).items()
                    if any(fact in found and fact not in known for fact, _ in run.path[: _reach(run.path, known) + 1])
                }
                span = talk.call(tool, **arguments)
                target = TargetWrite(Call(want.tool, want.arguments), is_made=False)
                served = think(PACK, talk.events, span, target, seed=number).required
                assert moved <= served, (want, tool)
                known.update(found)
                looked += 1
    assert looked > 50


def _reach(path: Any, known: dict[Any, Any]) -> int:
    """How far along its path a run gets with what is known."""
    for position, (fact, _) in enumerate(path):
        if fact not in known:
            return position
    return len(path)


@pytest.mark.parametrize("seed", range(8))
def test_a_look_up_whose_result_was_lost_serves_what_it_is_declared_to_show(seed: int) -> None:
    talk = Talk()
    talk.user("Please change my email.")
    patient = _patient(identity_checked=1)
    talk.events.append(Call("get_patient", {"patient_id": patient}, turn=9))
    write = TargetWrite(Call("update_contact", {"patient_id": patient, "email": "a@example.com"}))
    assert think(PACK, talk.events, TurnSpan(1, 2), write, seed=seed).required == {"identity-checked"}
