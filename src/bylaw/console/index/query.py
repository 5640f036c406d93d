"""Reads an index: findings by reason, what a filter leaves, one finding, one conversation."""

import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import asdict, replace

from bylaw.audit.finding import Charge, Finding
from bylaw.audit.report.finding import RULES
from bylaw.audit.report.folder import AuditFolder

State = Literal["new", "still", "open", "attested", "waived", "false-alarm"]
"""Where a finding stands: as an earlier audit knew it, as open, or as somebody has answered for it."""
STATES: tuple[State, ...] = get_args(State)
ROWS = 300
"""The most reasons that one page lists."""
PAGE = 50
"""Findings of one reason that are listed at once."""


class Wanted(Struct, frozen=True, omit_defaults=True):
    """Which findings a page shows; an empty part asks for nothing. Its address says the same."""

    policy: str = ""
    agent: str = ""
    verdict: str = ""
    tool: str = ""
    severity: str = ""
    state: str = "new"
    q: str = ""
    reason: str = ""
    base: str = ""

    @classmethod
    def of(cls, query: Iterable[tuple[str, str]]) -> "Wanted":
        """As an address says it."""
        given = {name: value.replace("\0", "")[:300] for name, value in query if name in cls.__struct_fields__}
        wanted = cls(**given)
        return wanted if wanted.state in (*STATES, "all") else replace(wanted, state="new")

    def address(self, path: str = "/findings", **changes: str) -> str:
        """The address of a page that wants the same, but."""
        other = {name: value for name, value in changes.items() if name not in self.__struct_fields__}
        wanted = replace(self, **{name: value for name, value in changes.items() if name not in other})
        given = {name: value for name, value in asdict(wanted).items() if value and (name, value) != ("state", "new")}
        query = urlencode(given | {name: value for name, value in other.items() if value}, errors="replace")
        return f"{path}?{query}" if query else path

    @property
    def is_narrow(self) -> bool:
        """Whether anything but the state is asked for."""
        return any((self.policy, self.agent, self.verdict, self.tool, self.severity, self.q))


class ReasonRow(Struct, frozen=True):
    """One reason, and how many findings have it."""

    key: str
    policy: str
    verdict: str
    severity: str
    words: str
    findings: int
    conversations: int
    refused: int


class FindingRow(Struct, frozen=True):
    """One finding in a list, and where its line is."""

    number: int
    id: str
    conversation: str
    step: int
    agent: str
    tool: str
    verdict: str
    executed: int | None
    because: str
    file: str
    place: int
    reason: str
    policy: str
    severity: str
    state: State


class ConversationRow(Struct, frozen=True):
    """One conversation in a list, and where it is kept."""

    number: int
    name: str
    agent: str
    place: int | None
    length: int | None
    good: int | None
    calls: int
    flagged: int


_STATE = "COALESCE(s.state, CASE WHEN f.verdict = 'inconclusive' THEN 'open' ELSE 'new' END)"
_FROM = """FROM findings f JOIN reasons r ON r.number = f.reason JOIN conversations k ON k.number = f.conversation
LEFT JOIN temp.standings s ON s.finding = f.number"""
_FINDING = f"""f.number, f.id, k.name, f.step, f.agent, f.tool, f.verdict, f.executed, f.because, f.file, f.place,
r.key, r.policy, r.severity, {_STATE}"""
_CONVERSATION = "number, name, agent, place, length, good, calls, flagged"


class Index:
    """An audit's index. Any thread may ask; they take turns."""

    def __init__(self, path: Path, folder: AuditFolder) -> None:
        self.folder = folder
        self._turn = threading.RLock()
        self._database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self._database.execute("PRAGMA temp_store = MEMORY")
        self._database.execute("CREATE TEMP TABLE standings (finding INTEGER PRIMARY KEY, state TEXT NOT NULL)")
        self._facets: dict[str, list[tuple[str, int]]] = {}

    @property
    def stamp(self) -> str:
        """Of which state of the files it is; empty where it is not whole."""
        rows = self._rows("SELECT value FROM about WHERE name = 'stamp'")
        return rows[0][0] if rows else ""

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._turn:
            return self._database.execute(query, values).fetchall()

    def reasons(self, wanted: Wanted) -> list[ReasonRow]:
        """The reasons of the wanted findings, the gravest first."""
        where, values = _where(wanted, without=("reason",))
        query = f"""SELECT r.key, r.policy, r.verdict, r.severity, r.words, count(*), count(DISTINCT f.conversation),
            sum(f.executed IS 0) {_FROM} WHERE {where} GROUP BY r.number
            ORDER BY min(f.gravity), count(*) DESC, r.number LIMIT {ROWS}"""
        return [ReasonRow(*row) for row in self._rows(query, values)]

    def findings(self, wanted: Wanted, *, after: int = 0, limit: int = PAGE) -> list[FindingRow]:
        """Wanted findings, the gravest first, from the place `after` on."""
        where, values = _where(wanted)
        query = f"SELECT {_FINDING} {_FROM} WHERE {where} ORDER BY f.gravity, f.number LIMIT ? OFFSET ?"
        return [FindingRow(*row) for row in self._rows(query, (*values, limit, after))]

    def states(self, wanted: Wanted) -> dict[str, int]:
        """How many wanted findings stand how, whatever state is asked for."""
        where, values = _where(wanted, without=("state", "reason"))
        counts = dict(self._rows(f"SELECT {_STATE}, count(*) {_FROM} WHERE {where} GROUP BY 1", values))
        return {state: counts.get(state, 0) for state in STATES}

    def verdicts(self, wanted: Wanted) -> dict[str, int]:
        """How many wanted findings have which verdict."""
        where, values = _where(wanted)
        return dict(self._rows(f"SELECT f.verdict, count(*) {_FROM} WHERE {where} GROUP BY 1", values))

    def finding(self, id: str) -> FindingRow | None:
        """One finding by its id."""
        rows = self._rows(f"SELECT {_FINDING} {_FROM} WHERE f.id = ?", (_clean(id),))
        return FindingRow(*rows[0]) if rows else None

    def line(self, finding: FindingRow) -> dict[str, Any]:
        """The line of the audit's files that tells of a finding."""
        return next(self.folder.at(finding.file, iter((finding.place,))))

    def of_conversation(self, name: str) -> list[FindingRow]:
        """All findings of one conversation, in its order."""
        query = f"SELECT {_FINDING} {_FROM} WHERE k.name = ? ORDER BY f.step, f.number LIMIT 2000"
        return [FindingRow(*row) for row in self._rows(query, (_clean(name),))]

    def conversation(self, name: str) -> ConversationRow | None:
        """One conversation by its name."""
        rows = self._rows(f"SELECT {_CONVERSATION} FROM conversations WHERE name = ?", (_clean(name),))
        return ConversationRow(*rows[0]) if rows else None

    def conversations(self, *, agent: str = "", q: str = "", after: int = 0, limit: int = 100) -> list[ConversationRow]:
        """Conversations in the order of the audit, of one agent or whose name begins so."""
        where, values = ["1"], list[Any]()
        if agent:
            where.append("agent = ?")
            values.append(_clean(agent))
        if q:
            where.append("(instr(lower(name), lower(?)) > 0 OR number IN (SELECT rowid FROM talk WHERE talk MATCH ?))")
            values += [_clean(q), _sought(q) or '""']
        query = (
            f"SELECT {_CONVERSATION} FROM conversations WHERE {' AND '.join(where)} ORDER BY number LIMIT ? OFFSET ?"
        )
        return [ConversationRow(*row) for row in self._rows(query, (*values, limit, after))]

    def calls(self, conversation: int) -> list[tuple[int, str, str]]:
        """Step, tool and verdict of each judged call of a conversation."""
        query = "SELECT step, tool, verdict FROM calls WHERE conversation = ? ORDER BY step LIMIT 10000"
        return self._rows(query, (conversation,))

    def totals(self) -> tuple[int, int, int]:
        """Conversations, judged calls, findings."""
        counted = (f"SELECT count(*) FROM {table}" for table in ("conversations", "calls", "findings"))
        conversations, calls, findings = (self._rows(each)[0][0] for each in counted)
        return conversations, calls, findings

    def by_policy(self) -> dict[str, dict[str, int]]:
        """For each policy how many findings stand how; a finding counts for each policy that it speaks of."""
        query = f"""SELECT c.policy, {_STATE}, count(DISTINCT f.number) FROM charges c JOIN findings f ON f.number =
            c.finding LEFT JOIN temp.standings s ON s.finding = f.number GROUP BY 1, 2"""
        found: dict[str, dict[str, int]] = {}
        for policy, state, count in self._rows(query):
            found.setdefault(policy, dict.fromkeys(STATES, 0))[state] = count
        return found

    def facet(self, name: Literal["policy", "agent", "tool", "verdict"]) -> list[tuple[str, int]]:
        """The values that a filter can have, the most frequent first."""
        if name not in self._facets:
            of = "charges" if name == "policy" else "findings"
            query = f"SELECT {name}, count(*) FROM {of} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 500"
            self._facets[name] = self._rows(query)
        return self._facets[name]

    def as_findings(self) -> Iterator[tuple[int, Finding]]:
        """Every finding that has an id of its own, by number, as waivers and earlier audits know it."""
        query = """SELECT f.number, f.id, f.file, f.tool, k.name, f.agent, f.step, f.verdict, f.executed, c.policy,
            c.severity, c.verdict FROM findings f JOIN conversations k ON k.number = f.conversation
            JOIN charges c ON c.finding = f.number WHERE f.verdict != 'inconclusive'
            AND c.verdict != 'inconclusive' ORDER BY f.number"""
        for _, rows in groupby(self._rows(query), key=itemgetter(0)):
            every = list(rows)
            number, id, file, tool, conversation, agent, step, verdict, executed = every[0][:9]
            kind = "rule" if file == RULES else "call"
            charges = tuple(Charge(policy, severity, _plain(said), "") for *_, policy, severity, said in every)
            head = (id, kind, tool, conversation, agent, step, _plain(verdict))
            yield number, Finding(*head, None if executed is None else bool(executed), charges)

    @contextmanager
    def restanding(self) -> Generator["Restanding"]:
        """Say anew where findings stand; others see all of it or nothing."""
        with self._turn:
            yield Restanding(self._database)
            self._database.commit()


class Restanding:
    """Where findings stand, being said anew."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def forget(self) -> None:
        """Every finding is new, or open."""
        self._database.execute("DELETE FROM temp.standings")

    def numbers(self) -> dict[str, int]:
        """By id, the number of every finding."""
        return dict(self._database.execute("SELECT id, number FROM findings").fetchall())

    def stands(self, states: Iterable[tuple[int, State]]) -> None:
        """Findings by number, and where each stands."""
        self._database.executemany("INSERT OR REPLACE INTO temp.standings VALUES (?, ?)", states)


def _where(wanted: Wanted, without: Sequence[str] = ()) -> tuple[str, list[Any]]:
    parts = ["1"]
    values: list[Any] = []
    for column, value in (("f.agent", wanted.agent), ("f.verdict", wanted.verdict), ("f.tool", wanted.tool)):
        if value:
            parts.append(f"{column} = ?")
            values.append(_clean(value))
    for column, value in (("policy", wanted.policy), ("severity", wanted.severity)):
        if value:
            parts.append(f"f.number IN (SELECT finding FROM charges WHERE {column} = ?)")
            values.append(_clean(value))
    if wanted.reason and "reason" not in without:
        parts.append("r.key = ?")
        values.append(_clean(wanted.reason))
    if wanted.state != "all" and "state" not in without:
        parts.append(f"{_STATE} = ?")
        values.append(wanted.state)
    for piece in wanted.q.split():
        if sought := _sought(piece):
            parts.append(
                "(f.number IN (SELECT rowid FROM words WHERE words MATCH ?)"
                " OR f.conversation IN (SELECT rowid FROM talk WHERE talk MATCH ?))"
            )
            values += [sought, sought]
    return " AND ".join(parts), values


def _sought(text: str) -> str:
    """A text as the full-text search takes it: these letters in this order, the last word perhaps unfinished."""
    clean = _clean(text).replace('"', " ").strip()
    return f'"{clean}"*' if any(each.isalnum() for each in clean) else ""


def _plain(verdict: str) -> str:
    return "violation" if verdict == "broken" else verdict


def _clean(text: str) -> str:
    """A lone surrogate is no text to a database."""
    return text.encode("utf-8", "replace").decode()
