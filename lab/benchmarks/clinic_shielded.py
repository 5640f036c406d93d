"""The clinic's scripted agents with a live shield, which decides every call before it runs.

Agents only follow the feedback. They make the look-ups that it names, ask the given question, correct an amount if the
denial names the right one, wait for a person, and give up if the call is denied. Only the simulator and this script
know the truth. Guards are not used here.
"""

import random
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.record import Log
from bylaw.shield import Decision, LiveSession, Question
from bylaw.trace import Message
from bylaw_lab.clinic.simulator import dialogue
from bylaw_lab.clinic.simulator.agents import Agent, Read
from bylaw_lab.clinic.simulator.conversation import Conversation, Mess
from bylaw_lab.clinic.simulator.desk import WRITES
from bylaw_lab.clinic.simulator.dialogue import pick
from bylaw_lab.clinic.simulator.needs import refused
from bylaw_lab.clinic.simulator.play import Play
from bylaw_lab.clinic.simulator.tasks import Task
from bylaw_lab.clinic.simulator.users import UserKind
from bylaw_lab.clinic.simulator.wants import Clinic, Want

ROUNDS = 12
FAILURES = 3
"""The number of times that an agent repeats a call which the clinic's system rejects."""
AMOUNT = re.compile(r"the (?:fee|copay) is \$(?P<right>[\d.]+), not \$(?P<wrong>[\d.]+)")


class Asked(Struct, frozen=True):
    """A call in a turn: the decision of the shield and, if the call ran, the result of the tool."""

    call: Read
    decision: Decision | None
    answer: Any = None

    @property
    def ran(self) -> bool:
        return self.decision is None or self.decision.allowed


class Talk(Conversation):
    """A conversation that is reported to a shield in real time. A refused call never reaches the desk."""

    def __init__(self, clinic: Clinic, rng: random.Random, mess: Mess, session: LiveSession | None) -> None:
        super().__init__(clinic, rng, mess)
        self.session = session
        self.decisions: list[Decision] = []
        self.last: list[Asked] = []
        """The calls of the latest turn."""
        self.turns: list[list[Read]] = []
        """The writes that ran, by turn."""
        self.approved: set[str] = set()
        """The calls that the caller heard about and agreed to."""
        self.unconfirmed: list[Read] = []
        """Changes that ran without the caller's yes."""

    def user(self, text: str) -> None:
        super().user(text)
        if self.session is not None:
            self.session.user(text)

    def agent(self, text: str) -> None:
        super().agent(text)
        if self.session is not None:
            self.session.agent(text)

    def act(self, calls: list[Read], text: str = "", *, forgets: bool = False) -> list[Any]:
        """Run one turn of the agent. Return the results of the calls that ran, and None for the others."""
        decisions: Sequence[Decision | None] = [None] * len(calls)
        if self.session is not None:
            decisions = self.session.decide_turn(text, [(*call, self._name(n)) for n, call in enumerate(calls)])
            self.decisions += decisions
        ran = [call for call, decision in zip(calls, decisions, strict=True) if decision is None or decision.allowed]
        if ran:
            answers = iter(super().act(ran, text, forgets=forgets))
        else:
            answers = iter(())
            self.turn += 1
            if text:
                self.events.append(Message("agent", text, turn=self.turn))
        writes = [call for call in ran if call[0] in WRITES]
        self.turns.append(writes)
        self.unconfirmed += [call for call in writes if dialogue.do(Want(*call)) not in self.approved]
        self.last = []
        for number, (call, decision) in enumerate(zip(calls, decisions, strict=True)):
            answer = next(answers) if decision is None or decision.allowed else None
            self.last.append(Asked(call, decision, answer))
            if self.session is not None and decision is not None:
                told = answer if decision.allowed else decision.feedback
                text_of_it = told if isinstance(told, str) else msgspec.json.encode(told).decode()
                self.session.result(text_of_it, id=self._name(number, done=True))
        return [each.answer for each in self.last]

    def _name(self, number: int, *, done: bool = False) -> str:
        return f"turn {len(self.turns) - done}, call {number}"


class Approver:
    """A reviewer who approves a call if the handbook permits it, given the true facts."""

    def __init__(self, log: Log, clinic: Clinic) -> None:
        self.log = log
        self.clinic = clinic
        self.asked = 0

    def answer(self, approval: str, want: Want) -> None:
        self.asked += 1
        reply = self.log.reject if self.clinic.denied_by(want) else self.log.approve
        reply(approval, by="the desk")


class ShieldedPlay(Play):
    """One conversation about one task, by an agent that follows the shield's feedback."""

    def __init__(
        self, talk: Talk, agent: Agent, user: UserKind, task: Task, approver: Approver, *, enforced: bool, told: bool
    ) -> None:
        super().__init__(talk, agent, user, task)
        self.live = talk
        self.approver = approver
        self.enforced = enforced
        """Whether the shield stops refused calls. The agent then leaves refusals to the shield."""
        self.told = told
        """Whether the agent reads the shield's feedback."""
        self.stuck = 0
        """The number of goals that the agent gave up although no call was denied."""
        self._pushed = False

    def confirm(self, want: Want) -> None:
        super().confirm(want)
        self.live.approved.add(dialogue.do(want))

    def choose(self, want: Want, right: Want | None) -> Want | None:
        if self.enforced and self.agent.name != "careful":
            return want
        return super().choose(want, right)

    def refuse(self, want: Want) -> None:
        if self._pushed:
            self.talk.agent(pick(self.rng, dialogue.REFUSE, do=dialogue.do(want)))
            return
        self._pushed = True
        super().refuse(want)
        self._pushed = False

    def write(self, wants: list[Want], told: Want | None = None) -> None:
        if self.enforced:
            self._write_enforced(wants)
            return
        super().write(wants, told)
        if self.told:
            self._heed_advice()

    def _heed_advice(self) -> None:
        """After a call that ran, look up the facts that were missing, so that later calls have them."""
        noted = [each for asked in self.live.last if asked.decision for each in asked.decision.look_ups]
        if noted:
            self.talk.act([(each.tool, each.arguments) for each in noted])

    def _write_enforced(self, wants: list[Want]) -> None:
        calls, text = self.turn_of(wants)
        self.talk.act(calls, text, forgets=self.forgets)
        asked = {(each.call[0], str(each.call[1])): each for each in self.live.last}
        for want in wants:
            self._see_through(want, asked.get((want.tool, str(want.arguments))))

    def _see_through(self, want: Want, asked: Asked | None) -> None:
        """Try a call until it runs or is denied. `asked` is the result of the first attempt, if it was at this call."""
        wanted: Want | None = want
        failures = 0
        for _ in range(ROUNDS):
            if asked is not None and asked.ran:
                failures += refused(asked.answer)
                if failures in (0, FAILURES):
                    self.talk.agent(pick(self.rng, dialogue.FAILED if failures else dialogue.DONE))
                    return
            if asked is not None and not asked.ran and asked.decision is not None:
                wanted = self._heed(wanted, asked.decision)
                if wanted is None:
                    self.refuse(want)
                    return
            self.talk.act([(wanted.tool, wanted.arguments)], forgets=self.forgets)
            asked = self.live.last[0]
        self.stuck += 1
        self.talk.agent(pick(self.rng, dialogue.FAILED))

    def _heed(self, want: Want, decision: Decision) -> Want | None:
        """Follow the shield's feedback. Return the call for the next attempt, or None to give up."""
        against = [ground for ground in decision.grounds if ground.answer == "deny"]
        look_ups = [(each.tool, each.arguments) for each in (*decision.look_ups, *decision.retries)]
        for ground in against:
            amount = AMOUNT.search(ground.because)
            if ground.kind == "guard" and amount is not None:
                name = "copay" if "copay" in want.arguments else "late_fee"
                want = Want(want.tool, {**want.arguments, name: amount["right"]}, want.in_state)
            elif ground.kind != "rule" and not ground.look_ups and not ground.questions:
                return None
        if look_ups:
            self.talk.act(look_ups)
            return want
        for question in decision.questions:
            if question.whom == "user":
                want = self._ask(want, question)
        if any(ground.policy == "confirm-before-change" for ground in against):
            self.confirm(want)
        if decision.approval:
            self.approver.answer(decision.approval, want)
        return want

    def _ask(self, want: Want, question: Question) -> Want:
        if question.fact == "agreed":
            self.confirm(want)
            return want
        self.talk.agent(question.text)
        if "reason" in question.fact:
            reason = self._reason(want)
            self.talk.user(self.rng.choice(dialogue.WHY[reason]))
            return Want(want.tool, {**want.arguments, "reason": reason}, want.in_state)
        self.talk.user(self.whereabouts(want))
        return want

    def _reason(self, want: Want) -> str:
        """Return the caller's reason for cancelling."""
        for each in self.task.wants:
            if each.tool == want.tool and each.arguments["appointment_id"] == want.arguments["appointment_id"]:
                return each.arguments["reason"]
        raise AssertionError(f"nobody wants {want}")
