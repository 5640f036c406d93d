"""A scenario is a complete task with its records and the caller's words. It is played in a scene.

A scene has the clinic's tools on those records, and a scripted caller who answers questions.
"""

import re
import sqlite3
from decimal import Decimal
from typing import Any, cast

from msgspec import Struct

from bylaw_lab.clinic.simulator.claims import amounts
from bylaw_lab.clinic.simulator.desk import WRITES, Desk
from bylaw_lab.clinic.simulator.needs import refused
from bylaw_lab.clinic.simulator.tables import Key, known, schema, stored, tables
from bylaw_lab.clinic.simulator.tasks import Task
from bylaw_lab.clinic.simulator.wants import Want
from bylaw_lab.clinic.simulator.world import PARTS as RECORD_PARTS
from bylaw_lab.clinic.tasks.parts import Part, grounds

Rows = dict[str, list[dict[str, Any]]]
"""Records by table, as tools show them."""

REFUSES = re.compile(
    r"\b(can't|cannot|can not|can’t|unable|not able|not possible|isn't possible|impossible|not allowed|may not|must not"
    r"|won't|will not be|decline|refuse|not eligible|not permitted|don't qualify)\b",
    re.IGNORECASE,
)
WHERE = re.compile(
    r"\b(in|out of) (the )?state\b|\bin-state\b|\bwhere will you\b|\blocated\b|\blocation\b", re.IGNORECASE
)
WHY = re.compile(r"\breason\b|\bwhy\b", re.IGNORECASE)
WHO = re.compile(r"\bpatient (number|id)\b|\byour (number|name)\b|\bwho am i\b", re.IGNORECASE)
THINGS = (
    "slot_id",
    "appointment_id",
    "invoice_id",
    "prescription_id",
    "person_id",
    "email",
    "new_tier",
    "kind",
    "part",
)
NOT_UNDERSTOOD = {"error": "the system does not understand these arguments"}
MONEY = ("copay", "late_fee", "amount")
WAITS = "I'm still here."
PATIENCE = 2
"""After this many messages without a question or refusal, the caller considers the matter settled."""


class Errand(Struct, frozen=True):
    """A change that a caller wants, in words and as a call."""

    words: str
    want: Want
    right: Want | None
    """The call to make, or None if it should be refused."""
    against: str
    """The policy that refuses the call or corrects the caller's amount. Empty if there is none."""
    location: str
    """The caller's answer about their location."""
    why: str
    """The caller's answer about the reason."""
    push: str
    """The caller's reply to a refusal before giving in. Empty if the caller gives in immediately."""


class Scenario(Struct, frozen=True):
    """A caller with one or two requests, and a small database to support those requests."""

    id: str
    twin: str
    """The twin scenario. It differs in one fact, so another call or a refusal is right."""
    part: Part
    patient_id: str
    greeting: str
    """How the caller introduces themselves."""
    errands: tuple[Errand, ...]
    agrees: str
    """How the caller says yes."""
    rows: Rows
    focus: tuple[str, ...]
    """The policy that decides each errand."""
    flip: tuple[str, Key, str]
    """The fact in which the twins differ."""
    novel: bool
    """Whether the errands combine groups of policies that training never combines."""
    pack: str = "clinic"

    @property
    def turns(self) -> int:
        """Return the maximum number of turns for the agent. The careful agent needs at most twelve per errand."""
        return 15 * len(self.errands)

    def scene(self) -> "Scene":
        """Return a new conversation about the scenario."""
        return Scene(self)

    def task(self) -> Task:
        """Return the goal as the simulator defines it."""
        wants = tuple(errand.want for errand in self.errands)
        return Task(self.id, self.patient_id, wants, tuple(errand.right for errand in self.errands))

    def open(self) -> Desk:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(schema())
        for table, rows in self.rows.items():
            columns = tables()[table].columns
            marks = ", ".join("?" * len(columns))
            connection.executemany(
                f"INSERT INTO {table} VALUES ({marks})",
                [[stored(kind.type, known(kind.type, row[name])) for name, kind in columns.items()] for row in rows],
            )
        return Desk(connection)


class Ending(Struct, frozen=True):
    """The end of a conversation, according to the ground truth of the simulator alone."""

    database: bool
    """Whether the records are right."""
    told: bool
    """Whether the caller heard the change and its amount before it was made, or the reason for a refusal."""


class Heard(Struct):
    """What the caller heard about one errand."""

    before: list[str]
    """The words of the agent before it changed anything."""
    after: list[str]


class Scene:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.desk = scenario.open()
        self.place = 0
        self.heard = [Heard([], []) for _ in scenario.errands]
        self.changed = False
        """Whether the agent has changed anything for the current errand."""
        self.pushed = False
        self.waited = 0

    def opening(self) -> str:
        """Return the caller's first message."""
        return f"{self.scenario.greeting} {self.scenario.errands[0].words}"

    def call(self, tool: str, arguments: dict[str, Any]) -> Any:
        if not readable(arguments):
            return NOT_UNDERSTOOD
        given: dict[str, Any] = {
            name: cast(Any, value) if isinstance(value, list) else str(value) for name, value in arguments.items()
        }
        given |= {name: f"{Decimal(given[name]):.2f}" for name in MONEY if name in given}
        try:
            answer = self.desk.call(tool, given)
        except (LookupError, ValueError, ArithmeticError, sqlite3.Error):
            return NOT_UNDERSTOOD
        if tool in WRITES and not refused(answer):
            self.changed = True
        return answer

    def hear(self, text: str) -> str | None:
        """Return the caller's reply, or None if they have hung up."""
        errand = self.scenario.errands[self.place]
        heard = self.heard[self.place]
        (heard.after if self.changed else heard.before).append(text)
        if self.changed:
            return self.go_on()
        if REFUSES.search(text):
            if errand.push and not self.pushed:
                self.pushed = True
                return errand.push
            return self.go_on()
        if "?" in text:
            return self.answer(errand, text)
        self.waited += 1
        return WAITS if self.waited < PATIENCE else self.go_on()

    def answer(self, errand: Errand, text: str) -> str:
        """Return a plain answer to a question. Any other text is treated as a request to confirm."""
        if WHERE.search(text):
            return errand.location
        if errand.why and WHY.search(text):
            return errand.why
        if WHO.search(text):
            person = next(row for row in self.scenario.rows["Patient"] if row["patient_id"] == self.scenario.patient_id)
            return f"{person['name']}, patient {self.scenario.patient_id}."
        return self.scenario.agrees

    def go_on(self) -> str | None:
        """Return the next errand, or None."""
        self.place += 1
        self.changed = self.pushed = False
        self.waited = 0
        if self.place == len(self.scenario.errands):
            self.place -= 1
            return None
        return self.scenario.errands[self.place].words

    def ending(self) -> Ending:
        """Return the ending. All changes are undone."""
        database = self.scenario.task().reached(self.desk)
        told = all(has_told(errand, heard) for errand, heard in zip(self.scenario.errands, self.heard, strict=True))
        return Ending(database, told)

    def close(self) -> None:
        self.desk.connection.close()


def readable(arguments: dict[str, Any]) -> bool:
    """Whether the system can parse the amounts, days and lists."""
    scopes: Any = arguments.get("scopes", [])
    return (
        all(isinstance(value, str | int | float | list) and not isinstance(value, bool) for value in arguments.values())
        and all(re.fullmatch(r"\d{1,7}(\.\d{1,4})?", str(arguments[name])) for name in MONEY if name in arguments)
        and re.fullmatch(r"\d{4}-\d\d-\d\d", str(arguments.get("valid_until", "2025-01-01"))) is not None
        and all(part in RECORD_PARTS for part in scopes)
    )


def has_told(errand: Errand, heard: Heard) -> bool:
    """Whether the caller was told everything that an errand requires."""
    if errand.right is None:
        return any(
            REFUSES.search(text) and gives_ground(errand.against, text) for text in (*heard.before, *heard.after)
        )
    return any(tells(errand.right, text) for text in heard.before)


def gives_ground(policy: str, text: str) -> bool:
    """Whether a text gives the reason of the policy. Without a policy, any reason is accepted."""
    return not policy or any(re.search(pattern, text, re.IGNORECASE) for pattern in grounds()[policy]["says"])


def tells(want: Want, text: str) -> bool:
    """Whether the text names the change and, if money moves, the amount."""
    amount = amount_of(want)
    if amount is not None and Decimal(amount) not in amounts(text):
        return False
    return any(value.lower() in text.lower() for value in things_of(want))


def amount_of(want: Want) -> str | None:
    """Return the amount of money that a call moves."""
    return next((want.arguments[name] for name in MONEY if name in want.arguments), None)


def things_of(want: Want) -> list[str]:
    """Return values that identify the change of a call. A text need name only one of them."""
    return [want.arguments[name].replace("_", " ") for name in THINGS if name in want.arguments]
