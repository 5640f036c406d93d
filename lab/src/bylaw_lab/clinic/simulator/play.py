"""Plays a task with one kind of agent and one kind of user."""

import random
from typing import Any

from bylaw.trace import Call
from bylaw_lab.clinic.simulator import dialogue
from bylaw_lab.clinic.simulator.agents import Agent, Read, plain_read, reader
from bylaw_lab.clinic.simulator.conversation import Conversation
from bylaw_lab.clinic.simulator.dialogue import pick
from bylaw_lab.clinic.simulator.evidence import Absent, Unseen
from bylaw_lab.clinic.simulator.needs import refused
from bylaw_lab.clinic.simulator.tables import Fact
from bylaw_lab.clinic.simulator.tasks import Task
from bylaw_lab.clinic.simulator.truth import policies_of
from bylaw_lab.clinic.simulator.users import UserKind, claims
from bylaw_lab.clinic.simulator.verdict import run
from bylaw_lab.clinic.simulator.wants import Want

ROUNDS = 9
"""The maximum number of times that an agent reads records for one change."""


class Play:
    def __init__(self, talk: Conversation, agent: Agent, user: UserKind, task: Task) -> None:
        self.talk = talk
        self.agent = agent
        self.user: UserKind = user
        self.task = task
        self.rng: random.Random = talk.rng
        self.claimed: set[Fact] = set()
        self.skipped: dict[tuple[Any, ...], bool] = {}
        self.forgets = self.rng.random() < agent.forgets

    def run(self) -> None:
        first = self.task.wants[0]
        person = self.talk.clinic.desk.need("Patient", self.task.patient_id)
        by_number = self.rng.random() < 0.7
        opening = dialogue.opening(self.rng, first, person, by_number=by_number)
        text = self.with_claims(opening, first)
        if self.forgets:
            text = " ".join([text, *(self.further(want) for want in self.task.wants[1:])])
        self.talk.user(text)
        if not by_number:
            self.look([("find_patient", {"name": person["name"]})])
        if self.forgets:
            for want in self.task.wants:
                self.read_up(want)
        together = len(self.task.wants) > 1 and self.rng.random() < self.agent.rushes
        if together:
            if not self.forgets:
                self.talk.agent(self.rng.choice(["Sure. Anything else?", "Gladly. Is there more?"]))
                self.talk.user(" ".join(self.further(want) for want in self.task.wants[1:]))
            for want in self.task.wants:
                self.read_up(want)
            self.write([self.drop_reason(want) for want in self.task.wants])
        else:
            self.one_by_one()
        self.talk.user(pick(self.rng, dialogue.BYE))
        if self.rng.random() < 0.6:
            self.talk.agent(pick(self.rng, dialogue.CLOSING))

    def one_by_one(self) -> None:
        for position, (want, right) in enumerate(zip(self.task.wants, self.task.goal, strict=True)):
            if position and not self.forgets:
                self.talk.user(self.further(want))
            self.read_up(want)
            self.ask_caller(want)
            chosen = self.choose(want, right)
            if chosen is None:
                self.refuse(want)
                continue
            told = chosen if self.rng.random() < self.agent.confirms else None
            if told is not None:
                self.confirm(told)
            if self.agent.name != "careful":
                chosen = self.drop_reason(chosen)
            self.write([chosen], told)

    def confirm(self, want: Want) -> None:
        """State the change to the caller, who agrees."""
        what = dialogue.do(want, self.talk.clinic.desk.fact)
        self.talk.agent(pick(self.rng, dialogue.CONFIRM, do=what))
        self.talk.user(pick(self.rng, dialogue.YES))

    def further(self, want: Want) -> str:
        return self.with_claims(f"{self.rng.choice(dialogue.NEXT)} {dialogue.request(self.rng, want)}", want)

    def with_claims(self, text: str, want: Want) -> str:
        """Return a request, followed by the claims of the user about the record."""
        spoken = claims(self.talk.clinic, self.rng, self.user, want)
        self.claimed |= {fact for fact, _ in spoken}
        sentences = [sentence for _, sentence in spoken]
        if want.tool == "book_visit" and self.remote(want) and self.rng.random() < 0.5:
            sentences.append(self.whereabouts(want))
        return " ".join([text, *sentences])

    def remote(self, want: Want) -> bool:
        slot = self.talk.clinic.desk.row("Slot", (want.arguments["slot_id"],))
        return slot is not None and slot["kind"] == "telehealth"

    def whereabouts(self, want: Want) -> str:
        return self.rng.choice(dialogue.IN_STATE if want.in_state else dialogue.OUT_OF_STATE)

    def ask_caller(self, want: Want) -> None:
        """Ask for the facts that only the caller knows, if the agent remembers to ask."""
        if want.tool == "book_visit" and self.remote(want) and self.rng.random() < self.agent.asks:
            self.talk.agent("Will you be in the state for the telehealth visit?")
            self.talk.user(self.whereabouts(want))

    def drop_reason(self, want: Want) -> Want:
        """Remove the reason from a call if the agent ignores reasons."""
        if "reason" not in want.arguments or self.rng.random() < self.agent.asks:
            return want
        kept = {name: value for name, value in want.arguments.items() if name != "reason"}
        return Want(want.tool, kept, want.in_state)

    def read_up(self, want: Want) -> None:
        """Look up the facts that the policies need. Some kinds of agents leave some of them out."""
        for _ in range(ROUNDS):
            reads = self.next_reads(want)
            if not reads:
                return
            self.look(reads[: self.rng.choice([1, 1, 2, 3])])

    def next_reads(self, want: Want) -> list[Read]:
        """Return calls for unknown facts with known keys."""
        talk = self.talk
        strings = {value for value in (*want.arguments.values(), *talk.knows.values()) if isinstance(value, str)}
        strings |= {"telehealth", "psychiatric_care", "psychiatric_release", "data_sharing"}
        reads: list[Read] = []
        for found in talk.clinic.runs(want).values():
            for fact, value in found.path:
                if fact in talk.knows or (*fact[:2], "exists") in talk.knows or self.skips(fact):
                    continue
                if not strings.issuperset(fact[1]):
                    break
                read = reader(self.rng, talk.clinic.desk, want, fact) if value is not None else plain_read(fact)
                if self.tried(read):
                    read = plain_read(fact)
                if read not in reads and not self.tried(read, again=True):
                    reads.append(read)
        return reads

    def tried(self, read: Read, *, again: bool = False) -> bool:
        """Whether a read was made before and need not be repeated."""
        count = self.skipped.get(("tried", read[0], *map(str, read[1].values())), False)
        return count is True and (again is False or self.rng.random() < 0.3)

    def skips(self, fact: Fact) -> bool:
        """Whether the agent leaves an entity unread. This is decided once per entity."""
        if self.agent.trusts and fact in self.claimed:
            return True
        # An agent that has seen part of an entity is less likely to read the rest.
        partly = any(known[:2] == fact[:2] for known in self.talk.knows)
        thing = (*fact[:2], partly)
        if thing not in self.skipped:
            self.skipped[thing] = self.rng.random() < self.agent.skips
        return self.skipped[thing]

    def look(self, reads: list[Read]) -> None:
        for tool, arguments in reads:
            self.skipped["tried", tool, *map(str, arguments.values())] = True
        self.talk.act(reads, pick(self.rng, dialogue.CHECKING) if self.rng.random() < 0.4 else "")

    def choose(self, want: Want, right: Want | None) -> Want | None:
        """Return the call to make, or None to refuse."""
        if self.agent.name == "careful":
            return right
        if self.sees_denied(want) and self.rng.random() < self.agent.obeys:
            return right if right is not None and self.rng.random() < 0.7 else None
        return want

    def sees_denied(self, want: Want) -> bool:
        """Whether the agent's memory forbids the call."""
        knows = self.talk.knows

        def read(fact: Fact) -> Any:
            if fact in knows:
                return knows[fact]
            if (*fact[:2], "exists") in knows:
                raise Absent
            raise Unseen(fact)

        for policy in policies_of(want.tool):
            try:
                if not run(policy, want.arguments, want.told(), read).permitted:
                    return True
            except Unseen:
                continue
        return False

    def refuse(self, want: Want) -> None:
        self.talk.agent(pick(self.rng, dialogue.REFUSE, do=dialogue.do(want)))
        if self.user == "adversarial":
            self.talk.user(pick(self.rng, dialogue.PUSH))
            if self.rng.random() < 0.5:
                summary = {"summary": f"The caller insists that we {dialogue.do(want)}."}
                self.talk.act([("transfer_to_human", summary)], pick(self.rng, dialogue.TRANSFER))
            elif self.agent.obeys < 1 and self.rng.random() < 0.6:
                self.write([want])
            else:
                self.talk.agent(pick(self.rng, dialogue.REFUSE, do=dialogue.do(want)))

    def write(self, wants: list[Want], told: Want | None = None) -> None:
        """Make the changes in one turn, retry after a system failure, and report the result."""
        start = len(self.talk.events)
        calls, text = self.turn_of(wants)
        answers = self.talk.act(calls, text, forgets=self.forgets)
        if any(refused(answer) for answer in answers) and self.rng.random() < 0.6:
            again: list[Read] = [(want.tool, want.arguments) for want in wants]
            failed = [call for call, answer in zip(again, answers, strict=False) if refused(answer)]
            answers = self.talk.act(failed or again[:1], forgets=self.forgets)
        if told is not None:
            for step, call in self.talk.writes(start):
                if is_part_of(call, told):
                    self.talk.agreed.add(step)
                    if self.talk.executed[step] is not False:
                        # A yes covers a change only once.
                        break
        bad = any(refused(answer) for answer in answers)
        self.talk.agent(pick(self.rng, dialogue.FAILED if bad else dialogue.DONE))

    def turn_of(self, wants: list[Want]) -> tuple[list[Read], str]:
        """Return the calls of one turn as this kind of agent sends them, with typos, and the text of the agent."""
        calls: list[Read] = [(want.tool, want.arguments) for want in wants]
        if self.agent.name in ("hasty", "over-eager") and self.rng.random() < 0.05:
            calls[0] = mistyped(self.rng, calls[0])
        if len(calls) == 1 and self.rng.random() < self.agent.rushes / 2:
            extra: Read = ("get_patient", {"patient_id": self.task.patient_id})
            calls.insert(self.rng.randrange(2), extra)
        return calls, pick(self.rng, dialogue.CHECKING) if self.rng.random() < 0.3 else ""


def is_part_of(call: Call, told: Want) -> bool:
    """Whether a call does only what was stated. It may omit the reason."""
    return call.tool == told.tool and call.arguments.items() <= told.arguments.items()


def mistyped(rng: random.Random, call: Read) -> Read:
    """Replace one id in a call with an id that does not exist."""
    tool, arguments = call
    name = rng.choice([name for name in arguments if name.endswith("_id") and name != "person_id"])
    value = arguments[name]
    return tool, {**arguments, name: f"{value[0]}9{value[2:]}" if len(value) > 4 else f"{value[0]}99{value[-1]}"}
