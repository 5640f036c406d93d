"""Records one conversation: events, chat messages for a log, and a witness for every write."""

import random
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from bylaw.trace import Call, Event, Message, Result
from bylaw_lab.clinic.simulator.desk import WRITES
from bylaw_lab.clinic.simulator.evidence import History
from bylaw_lab.clinic.simulator.needs import alters, refused, shows
from bylaw_lab.clinic.simulator.tables import Fact
from bylaw_lab.clinic.simulator.verdict import CallTruth, Worlds, judge, witness
from bylaw_lab.clinic.simulator.wants import Clinic

SYSTEM = "You are the front desk assistant of Harbour Street Clinic. Follow the handbook. It is 2025-03-12 09:00."
TIMED_OUT = "Error: the system timed out, please try again"
BUSY = {"error": "the system is busy"}
TOLD_BY_ARGUMENTS = {
    "record_consent",
    "update_contact",
    "update_proxy",
    "change_membership",
    "waive_invoice",
    "cancel_appointment",
    "release_records",
}
"""Writes whose effect follows from their arguments. The log may lack their results."""


class Mess(Struct, frozen=True):
    """Recording errors, as shares of calls. Call ids are reused in the whole conversation or not at all."""

    lost: float = 0.0
    glitch: float = 0.0
    garbled: float = 0.0
    shuffled: float = 0.0
    reused_ids: bool = False


class Sent(Struct):
    """A call and its outcome."""

    tool: str
    arguments: dict[str, Any]
    step: int = 0
    id: str = ""
    garbled: bool = False
    answer: Any = None
    lost: bool = False


class Conversation:
    """Runs calls on the desk and records everything."""

    def __init__(self, clinic: Clinic, rng: random.Random, mess: Mess) -> None:
        self.clinic = clinic
        self.rng = rng
        self.mess = mess
        self.events: list[Event] = []
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        self.said: list[str] = []
        self.knows: dict[Fact, Any] = {}
        """The agent's memory. The agent may forget that a write has changed a value."""
        self.witnessed: dict[int, Worlds] = {}
        self.executed: dict[int, bool | None] = {}
        self.agreed: set[int] = set()
        """Steps of writes that the caller heard about and agreed to."""
        self.turn = 0
        self.calls = 0

    def user(self, text: str) -> None:
        self.turn += 1
        self.said.append(text)
        self.events.append(Message("user", text, turn=self.turn))
        self.messages.append({"role": "user", "content": text})

    def agent(self, text: str) -> None:
        self.turn += 1
        self.events.append(Message("agent", text, turn=self.turn))
        self.messages.append({"role": "assistant", "content": text})

    def writes(self, start: int = 0) -> Iterator[tuple[int, Call]]:
        """Yield the writes from this event on, with their steps."""
        for step, event in enumerate(self.events[start:], start):
            if isinstance(event, Call) and event.tool in WRITES:
                yield step, event

    def act(self, calls: list[tuple[str, dict[str, Any]]], text: str = "", *, forgets: bool = False) -> list[Any]:
        """Make one agent turn with calls. Return the results, with None for each lost result."""
        self.turn += 1
        if text:
            self.events.append(Message("agent", text, turn=self.turn))
        sent = [Sent(tool, dict(arguments)) for tool, arguments in calls]
        for position, call in enumerate(sent):
            self.send(call, position)
        chat = [{"id": call.id, "type": "function", "function": self.function(call)} for call in sent]
        self.messages.append({"role": "assistant", "content": text or None, "tool_calls": chat})
        for call in sent:
            self.carry_out(call, forgets)
        order = list(sent)
        if len(order) > 1 and not self.mess.reused_ids and self.rng.random() < self.mess.shuffled:
            self.rng.shuffle(order)
        for call in order:
            self.deliver(call)
        return [None if call.lost else call.answer for call in sent]

    def send(self, call: Sent, position: int) -> None:
        call.step = len(self.events)
        self.calls += 1
        call.id = f"call_{position}" if self.mess.reused_ids else f"call_{self.calls}"
        call.garbled = self.rng.random() < self.mess.garbled
        if call.garbled:
            faulty = Call(call.tool, {}, id=call.id, turn=self.turn, fault="the arguments are not JSON")
            self.events.append(faulty)
        else:
            self.events.append(Call(call.tool, call.arguments, id=call.id, turn=self.turn))

    def function(self, call: Sent) -> dict[str, str]:
        text = msgspec.json.encode(call.arguments).decode()
        return {"name": call.tool, "arguments": text[:-4] if call.garbled else text}

    def carry_out(self, call: Sent, forgets: bool) -> None:
        writes = call.tool in WRITES
        if writes and not call.garbled:
            self.witnessed[call.step] = witness(call.tool, call.arguments, self.said, self.clinic.read)
        if call.garbled:
            call.answer = {"error": "the arguments could not be read"}
        elif self.rng.random() < self.mess.glitch:
            call.answer = self.rng.choice([TIMED_OUT, BUSY])
        else:
            call.answer = self.clinic.desk.call(call.tool, call.arguments)
            may_lose = not self.mess.reused_ids and (not writes or call.tool in TOLD_BY_ARGUMENTS)
            call.lost = may_lose and not refused(call.answer) and self.rng.random() < self.mess.lost
        if writes:
            accepted = not refused(call.answer)
            self.executed[call.step] = None if call.lost else accepted
            if accepted and not forgets:
                for fact in alters(call.tool, call.arguments):
                    self.knows.pop(fact, None)

    def deliver(self, call: Sent) -> None:
        if call.lost:
            return
        content = call.answer if isinstance(call.answer, str) else msgspec.json.encode(call.answer).decode()
        self.events.append(Result(call.step, content, tool=call.tool))
        self.messages.append({"role": "tool", "tool_call_id": call.id, "name": call.tool, "content": content})
        if not call.garbled:
            for fact, value in shows(call.tool, call.arguments, call.answer):
                self.knows[fact] = value

    def truth(self) -> tuple[CallTruth, ...]:
        history = History(self.events)
        return tuple(judge(history, step, self.witnessed.get(step, {}), done) for step, done in self.executed.items())
