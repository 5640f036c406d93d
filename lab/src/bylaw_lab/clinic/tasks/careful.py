"""A careful agent, which looks up exactly the facts that the handbook needs, asks, proposes, acts, and gives reasons.

It refuses as soon as a fact forbids the change.
"""

import random
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from bylaw.align.turn_evidence import Purpose
from bylaw_lab.clinic.simulator.agents import Read, plain_read
from bylaw_lab.clinic.simulator.desk import WRITES
from bylaw_lab.clinic.simulator.dialogue import do
from bylaw_lab.clinic.simulator.evidence import Absent, Unseen
from bylaw_lab.clinic.simulator.needs import alters, refused, shows
from bylaw_lab.clinic.simulator.tables import TODAY, Fact
from bylaw_lab.clinic.simulator.truth import POLICIES, policies_of
from bylaw_lab.clinic.simulator.verdict import run
from bylaw_lab.clinic.simulator.wants import Want
from bylaw_lab.clinic.tasks.parts import grounds
from bylaw_lab.clinic.tasks.scenario import Scenario, amount_of, things_of
from bylaw_lab.clinic.tasks.twins import AMOUNTS

Kind = Literal["look_up", "question", "proposal", "write", "report", "refusal"]
PURPOSES: dict[Kind, Purpose] = {
    "look_up": "look_up",
    "question": "ask",
    "proposal": "announce",
    "write": "write",
    "report": "other",
    "refusal": "refuse",
}
PROPOSALS = (
    "I can {do}. Shall I go ahead?",
    "I'm about to {do}. Shall I go ahead?",
    "Just to confirm: I'll {do}. Is that right?",
)


class LostError(Exception):
    """Another write has altered the facts, so no policy forbids a wrong change any more."""


class Slot(NamedTuple):
    """A value that a text must contain, or patterns. One of the patterns must match, ignoring case."""

    kind: Literal["amount", "date", "ground", "question", "thing"]
    value: str
    says: tuple[str, ...] = ()


class Act(Struct, frozen=True):
    """One turn of the careful agent: a call or a text."""

    kind: Kind
    errand: int
    call: Read | None = None
    text: str = ""
    slots: tuple[Slot, ...] = ()
    """What the text must contain."""
    write: Want | None = None
    """The change that this turn leads to. It may be made or refused in the end."""
    refused: bool = False
    """Whether the change will be refused."""

    @property
    def purpose(self) -> Purpose:
        return PURPOSES[self.kind]


class Careful:
    """Plays one scenario. The agent knows the whole handbook, as implemented by the simulator, but only the records
    that it has read.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.rng = random.Random(f"careful/{scenario.id[:-2]}")
        self.place = 0
        self.knows: dict[Fact, Any] = {}
        self.told: dict[str, Any] = {}
        self.stage: Literal["reading", "proposed", "written", "refused"] = "reading"
        self.found = scenario.patient_id in scenario.greeting
        self.last: Act | None = None

    def act(self) -> Act:
        self.last = self.next()
        return self.last

    def next(self) -> Act:
        errand = self.scenario.errands[self.place]
        want = errand.want
        if self.stage == "written":
            if errand.right is None:
                raise LostError(self.scenario.id)
            return self.made("report", text=f"Done: {past(errand.right)}.", slots=slots_of(errand.right))
        if not self.found:
            person = next(row for row in self.scenario.rows["Patient"] if row["patient_id"] == self.scenario.patient_id)
            return self.made("look_up", call=("find_patient", {"name": person["name"]}))
        pending: Act | None = None
        for policy in policies_of(want.tool):
            try:
                permitted = run(policy, want.arguments, self.told | reason_of(want), self.read).permitted
            except Unseen as unseen:
                pending = pending or self.made("look_up", call=plain_read(unseen.fact))
                continue
            except KeyError:
                slot = Slot("question", "in_state", (r"\bstate\b",))
                question = "Will you be in the state during the visit?"
                pending = pending or self.made("question", text=question, slots=(slot,))
                continue
            if not permitted and policy.id not in AMOUNTS:
                return self.refusal(want, policy.id)
        if pending is not None:
            return pending
        if errand.right is None:
            raise LostError(self.scenario.id)
        if self.stage == "proposed":
            return self.made("write", call=(errand.right.tool, errand.right.arguments))
        text = self.rng.choice(PROPOSALS).format(do=do(errand.right, self.knows.get))
        return self.made("proposal", text=text, slots=(*slots_of(errand.right), Slot("question", "confirm", (r"\?",))))

    def made(self, kind: Kind, **parts: Any) -> Act:
        errand = self.scenario.errands[self.place]
        write = errand.right or errand.want
        return Act(kind, self.place, write=write, refused=errand.right is None, **parts)

    def refusal(self, want: Want, policy: str) -> Act:
        ground = grounds()[policy]
        because = ground["because"].format(**self.details(want, policy))
        what = do(want).split(" with a ")[0]
        text = f"I'm sorry, I can't {what}: {because}. {ground['instead']}"
        if self.stage == "refused":
            text = f"I understand, but I still can't {what}: {because}."
        slot = Slot("ground", policy, tuple(ground["says"]))
        return self.made("refusal", text=text, slots=(slot,))

    def answered(self, answer: Any) -> None:
        """Receive the result of the last call."""
        assert self.last is not None
        assert self.last.call is not None
        tool, arguments = self.last.call
        if self.last.kind == "write":
            if not refused(answer):
                for fact in alters(tool, arguments):
                    self.knows.pop(fact, None)
            self.stage = "written"
        self.found = True
        for fact, value in shows(tool, arguments, answer):
            self.knows[fact] = value

    def replied(self, text: str) -> None:
        """Receive the caller's reply to the last text."""
        assert self.last is not None
        match self.last.kind:
            case "question":
                self.told["in_state"] = self.scenario.errands[self.place].want.in_state
            case "proposal":
                self.stage = "proposed"
            case "refusal" if text == self.scenario.errands[self.place].push:
                self.stage = "refused"
            case _:
                self.place += 1
                self.stage = "reading"

    def learn(self, tool: str, arguments: dict[str, Any], answer: Any) -> None:
        """Learn from a call by another agent."""
        if tool in WRITES and not refused(answer):
            for fact in alters(tool, arguments):
                self.knows.pop(fact, None)
        for fact, value in shows(tool, arguments, answer):
            self.knows[fact] = value
            self.found = True

    def read(self, fact: Fact) -> Any:
        """Return what the agent knows about a fact."""
        if fact in self.knows:
            return self.knows[fact]
        if (*fact[:2], "exists") in self.knows:
            raise Absent
        raise Unseen(fact)

    def details(self, want: Want, policy: str) -> dict[str, str]:
        """Return the facts mentioned in the reason for a refusal."""
        path = run(POLICIES[policy], want.arguments, self.told | reason_of(want), self.read).path
        seen = {fact[2]: value for fact, value in path}
        details = {"status": str(seen.get("status", "")).replace("_", " ")}
        match policy:
            case "booking-notice":
                details["hours"] = "1 hour" if seen["kind"] == "telehealth" else "4 hours"
            case "referral-current":
                details["problem"] = f"is {seen['status']}" if seen["status"] != "active" else "has expired"
            case "prescription-current":
                details["problem"] = "has been stopped" if seen["status"] != "active" else "has expired"
            case "refill-interval":
                details["days"] = "28" if seen["controlled"] else "21"
            case "records-recipient":
                ended = seen.get("valid_until") is not None and seen["valid_until"] < TODAY
                details["problem"] = "has ended" if ended else "does not cover that part"
            case "waive-limit":
                over = seen["amount"] > 250
                details["limit"] = "$250.00" if over else "$40.00, and no hardship is recorded"
            case "refund-cap":
                details["cap"] = {"gold": "200.00", "silver": "100.00"}.get(seen["tier"], "50.00")
            case _:
                pass
        return details


def reason_of(want: Want) -> dict[str, Any]:
    """Return the caller's reason in the request."""
    return {"reason": want.arguments["reason"]} if "reason" in want.arguments else {}


def slots_of(want: Want) -> tuple[Slot, ...]:
    """Return what must be said about a change: its subject and the amount."""
    things = tuple(rf"\b{thing.replace('.', '[.]')}\b" for thing in things_of(want))
    amount = amount_of(want)
    money = () if amount is None else (Slot("amount", amount),)
    return (*money, Slot("thing", things_of(want)[0], things))


def past(want: Want) -> str:
    """Describe a change that was made."""
    verb, rest = do(want).split(" ", 1)
    done = {"book": "booked", "move": "moved", "cancel": "cancelled", "record": "recorded", "refund": "refunded"}
    done |= {"waive": "waived", "refill": "refilled", "release": "released", "change": "changed"}
    return f"I have {done[verb]} {rest}"
