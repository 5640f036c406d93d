"""Reads an index: findings by reason, what a filter leaves, one finding, one conversation."""

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from bylaw.audit.finding import Charge, Finding
from bylaw.audit.store import Store
from bylaw.console.index.quiet import unpacked
from bylaw.console.index.schema import STANDINGS
from bylaw.console.index.search import Searches, clean, sought
from bylaw.console.index.tally import STANDING, STATE, tally_query
from bylaw.console.index.wanted import STATES, State, Wanted

ROWS = 300
"""The most reasons that one page lists."""
PAGE = 50
"""Findings of one reason that are listed at once."""


class ReasonRow(Struct, frozen=True):
    """One reason, and how many findings have it."""

    key: str
    policy: str
    verdict: str
    severity: str
    words: str
    findings: int
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


_FROM = f"""FROM findings f JOIN cells c ON c.number = f.cell JOIN reasons r ON r.number = f.reason
JOIN conversations k ON k.number = f.conversation {STANDING}"""
_FINDING = f"""f.number, f.id, k.name, f.step, c.agent, c.tool, c.verdict, c.executed, f.because, f.file, f.place,
r.key, r.policy, r.severity, {STATE}"""
_IN_TALK = """(instr(lower(name), lower(?)) > 0 OR number IN (SELECT rowid FROM talk WHERE talk MATCH ?)
OR number IN (SELECT rowid FROM quiet_talk WHERE quiet_talk MATCH ?))"""
_CHARGED = """(SELECT DISTINCT g.cell, g.policy, g.severity, g.verdict FROM charges g JOIN cells k ON k.number = g.cell
WHERE g.verdict != 'inconclusive' OR k.verdict = 'inconclusive')"""
"""Which policies a finding speaks of: one that could not be judged has no part in what others found wrong."""
KINDS = {"flagged": "flagged > 0", "compliant": "calls > 0 AND flagged = 0", "unjudged": "calls = 0 AND flagged = 0"}
"""What conversations can be asked for by, beside all of them."""
_CONVERSATION = "number, name, agent, place, length, good, calls, flagged"


class Index:
    """An audit's index. Any thread may ask; they take turns."""

    def __init__(self, path: Path, folder: Store) -> None:
        self.folder = folder
        self._path = path
        self.turn = threading.RLock()
        self.database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self.database.isolation_level = None
        self.database.execute("PRAGMA temp_store = MEMORY")
        self.database.executescript(STANDINGS)
        self._searches = Searches(self.database)

    @property
    def stamp(self) -> str:
        """Of which state of the files it is; empty where it is not whole."""
        return self._about("stamp")

    def close(self) -> None:
        self.database.close()

    def _about(self, name: str) -> str:
        rows = self.rows("SELECT value FROM about WHERE name = ?", (name,))
        return rows[0][0] if rows else ""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self.turn:
            return self.database.execute(query, values).fetchall()

    def warm_up(self) -> None:
        """Read what the first search would otherwise wait for."""
        with self.turn:
            self._searches.load()

    def stand(self, waived: Iterable[tuple[int, State]], singled: Iterable[tuple[int, State]]) -> None:
        """Say anew which cells are waived, and how single findings stand; others see all of it or nothing."""
        with self.turn:
            for table, rows in (("waived", waived), ("singled", singled)):
                self.database.execute(f"DELETE FROM temp.{table}")
                self.database.executemany(f"INSERT INTO temp.{table} VALUES (?, ?)", rows)
            self.database.execute("DELETE FROM temp.tally")
            self.database.execute(f"INSERT INTO temp.tally {tally_query()}")
            self._searches.recount()

    def know(self, findings: Iterable[int]) -> None:
        """Say which findings an earlier audit had."""
        with self.turn:
            self.database.executemany("INSERT INTO temp.known VALUES (?)", ((number,) for number in findings))

    def reasons(self, wanted: Wanted) -> list[ReasonRow]:
        """The reasons of the wanted findings, the gravest first."""
        with self.turn:
            where, values = _where(wanted, without=("reason",))
            query = f"""SELECT r.key, r.policy, r.verdict, r.severity, r.words, sum(t.findings),
                sum(CASE WHEN c.executed IS 0 THEN t.findings ELSE 0 END)
                FROM {self._counted(wanted)} t JOIN cells c ON c.number = t.cell JOIN reasons r ON r.number = c.reason
                WHERE {where} GROUP BY r.number ORDER BY min(c.gravity), 6 DESC, r.number LIMIT {ROWS}"""
            return [ReasonRow(*row) for row in self.rows(query, values)]

    def findings(self, wanted: Wanted, *, after: int = 0, limit: int = PAGE) -> list[FindingRow]:
        """Wanted findings, the gravest first, from the place `after` on."""
        with self.turn:
            where, values = _where(wanted)
            # Cells that hold nothing wanted are left out before any finding is looked at.
            cells = f"""SELECT t.cell FROM {self._counted(wanted)} t JOIN cells c ON c.number = t.cell
                JOIN reasons r ON r.number = c.reason WHERE {where}"""
            parts, more = [f"f.cell IN ({cells})"], list[Any]()
            if wanted.reason:
                parts.append("f.reason = (SELECT number FROM reasons WHERE key = ?)")
                more.append(clean(wanted.reason))
            parts.append(f"{STATE} {'!=' if wanted.state == 'all' else '='} ?")
            more.append("refused" if wanted.state == "all" else wanted.state)
            if search := self._searches.number(wanted.q):
                parts.append(f"is_found({search}, f.number)")
            by = "findings_by_reason" if wanted.reason else "findings_by_gravity"
            chosen = f"""SELECT f.number FROM findings f INDEXED BY {by} CROSS JOIN cells c ON c.number = f.cell
                {STANDING} WHERE {" AND ".join(parts)} ORDER BY f.gravity, f.number LIMIT ? OFFSET ?"""
            query = f"SELECT {_FINDING} {_FROM} WHERE f.number IN ({chosen}) ORDER BY f.gravity, f.number"
            return [FindingRow(*row) for row in self.rows(query, (*values, *more, limit, after))]

    def states(self, wanted: Wanted) -> dict[str, int]:
        """How many wanted findings stand how, whatever state is asked for."""
        counts = dict(self._sums("t.state", wanted, without=("state", "reason")))
        return {state: counts.get(state, 0) for state in STATES}

    def verdicts(self, wanted: Wanted) -> dict[str, int]:
        """How many wanted findings have which verdict."""
        return dict(self._sums("c.verdict", wanted))

    def _sums(self, by: str, wanted: Wanted, without: Sequence[str] = ()) -> list[tuple[str, int]]:
        with self.turn:
            where, values = _where(wanted, without)
            query = f"""SELECT {by}, sum(t.findings) FROM {self._counted(wanted)} t JOIN cells c ON c.number = t.cell
                JOIN reasons r ON r.number = c.reason WHERE {where} GROUP BY 1"""
            return self.rows(query, values)

    def _counted(self, wanted: Wanted) -> str:
        """The table of counts to add up: all findings, or those that a search found."""
        return self._searches.tally(wanted.q) or "temp.tally"

    def finding(self, id: str) -> FindingRow | None:
        rows = self.rows(f"SELECT {_FINDING} {_FROM} WHERE f.id = ?", (clean(id),))
        return FindingRow(*rows[0]) if rows else None

    def line(self, finding: FindingRow) -> dict[str, Any]:
        """The line of the audit's files that tells of a finding."""
        return next(self.folder.at(finding.file, iter((finding.place,))))

    def of_conversation(self, name: str) -> list[FindingRow]:
        """All findings of one conversation, in its order."""
        query = f"SELECT {_FINDING} {_FROM} WHERE k.name = ? ORDER BY f.step, f.number LIMIT 2000"
        return [FindingRow(*row) for row in self.rows(query, (clean(name),))]

    def conversation(self, name: str) -> ConversationRow | None:
        rows = self.rows(f"SELECT {_CONVERSATION} FROM conversations WHERE name = ?", (clean(name),))
        return ConversationRow(*rows[0]) if rows else None

    def events(self, row: ConversationRow) -> dict[str, Any] | None:
        """A conversation as the audit kept it, else as its log had it; None where neither was at hand."""
        if row.place is not None:
            return next(self.folder.at("conversations.jsonl", iter((row.place,))))
        found = self.rows("SELECT packed FROM quiet WHERE conversation = ?", (row.number,))
        return unpacked(found[0][0], self._path) if found else None

    def conversations(
        self, *, agent: str = "", q: str = "", kind: str = "", after: int = 0, limit: int = 100
    ) -> list[ConversationRow]:
        """Conversations in the order of the audit, of one agent, of one of `KINDS`, or in which `q` stands."""
        where, values = [KINDS.get(kind, "1")], list[Any]()
        if agent:
            where.append("agent = ?")
            values.append(clean(agent))
        if q:
            where.append(_IN_TALK)
            values += [clean(q), *(sought(q) or '""',) * 2]
        query = (
            f"SELECT {_CONVERSATION} FROM conversations WHERE {' AND '.join(where)} ORDER BY number LIMIT ? OFFSET ?"
        )
        return [ConversationRow(*row) for row in self.rows(query, (*values, limit, after))]

    def calls(self, conversation: int) -> list[tuple[int, str, str]]:
        """Step, tool and verdict of each judged call of a conversation."""
        query = "SELECT step, tool, verdict FROM calls WHERE conversation = ? ORDER BY step LIMIT 10000"
        return self.rows(query, (conversation,))

    def totals(self) -> tuple[int, int, int]:
        """Conversations, judged calls, findings."""
        conversations, calls, findings = map(int, self._about("totals").split())
        return conversations, calls, findings

    def logged(self) -> int:
        """Conversations that were in the logs when they were indexed; 0 where the logs were not at hand."""
        return int(self._about("logged") or 0)

    def by_policy(self) -> dict[str, dict[str, int]]:
        """For each policy how many findings stand how; a finding counts for each policy that it speaks of."""
        query = f"""SELECT policy, state, sum(findings) FROM temp.tally t JOIN
            (SELECT DISTINCT policy, cell FROM {_CHARGED}) g ON g.cell = t.cell GROUP BY 1, 2"""
        found: dict[str, dict[str, int]] = {}
        for policy, state, count in self.rows(query):
            found.setdefault(policy, dict.fromkeys(STATES, 0))[state] = count
        return found

    def verdicts_by_policy(self) -> dict[str, dict[str, int]]:
        """For each policy the new findings by the verdict of this policy."""
        query = f"""SELECT g.policy, g.verdict, sum(t.findings) FROM temp.tally t JOIN
            (SELECT DISTINCT policy, verdict, cell FROM {_CHARGED}) g ON g.cell = t.cell
            WHERE t.state = 'new' GROUP BY 1, 2"""
        found: dict[str, dict[str, int]] = {}
        for policy, verdict, count in self.rows(query):
            found.setdefault(policy, {})[verdict] = count
        return found

    def reach(self, policy: str) -> tuple[int, int, list[str]]:
        """How many findings a policy has part in, how many of them are waived, and who else has part in the others."""
        of = """SELECT g.cell FROM charges g JOIN cells c ON c.number = g.cell
            WHERE policy = ? AND c.verdict != 'inconclusive' AND c.executed IS NOT 0"""
        query = f"SELECT state, sum(findings) FROM temp.tally WHERE cell IN ({of}) GROUP BY 1"
        counts = dict(self.rows(query, (policy,)))
        waived = counts.get("waived", 0) + counts.get("false-alarm", 0)
        query = f"""SELECT DISTINCT policy FROM charges WHERE verdict != 'inconclusive' AND policy != ? AND cell IN (
            SELECT cell FROM temp.tally WHERE state NOT IN ('waived', 'false-alarm') AND cell IN ({of})) ORDER BY 1"""
        return sum(counts.values()), waived, [name for (name,) in self.rows(query, (policy, policy))]

    def facet(self, name: Literal["policy", "agent", "tool", "verdict"], wanted: Wanted) -> list[tuple[str, int]]:
        """The values that a filter can have among findings that stand as wanted, the most frequent first."""
        of = f"JOIN (SELECT DISTINCT cell, policy FROM {_CHARGED}) g ON g.cell = c.number" if name == "policy" else ""
        where, values = _where(Wanted(state=wanted.state))
        query = f"""SELECT {name}, sum(t.findings) FROM temp.tally t JOIN cells c ON c.number = t.cell {of}
            WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 500"""
        found = self.rows(query, values)
        chosen = str(getattr(wanted, name))
        return found if not chosen or chosen in dict(found) else [*found, (chosen, 0)]

    def cells(self) -> dict[int, Finding]:
        """For each cell what its findings have in common, as waivers and earlier audits know a finding.

        What is open has no such standing and is left out.
        """
        charges: dict[int, list[Charge]] = {}
        query = "SELECT cell, policy, severity, verdict FROM charges WHERE verdict != 'inconclusive' ORDER BY rowid"
        for cell, policy, severity, verdict in self.rows(query):
            charges.setdefault(cell, []).append(Charge(policy, severity, _plain(verdict), ""))
        query = "SELECT number, kind, tool, agent, verdict, executed FROM cells WHERE verdict != 'inconclusive'"
        found: dict[int, Finding] = {}
        for number, kind, tool, agent, verdict, executed in self.rows(query):
            if number in charges:
                done = None if executed is None else bool(executed)
                head = ("", kind, tool, "", agent, 0, _plain(verdict), done)
                found[number] = Finding(*head, tuple(charges[number]))
        return found


def _where(wanted: Wanted, without: Sequence[str] = ()) -> tuple[str, list[Any]]:
    """What a filter asks of a row of counts and its cell."""
    parts = ["1"]
    values: list[Any] = []
    own = {"c.agent": wanted.agent, "c.tool": wanted.tool, "c.verdict": "" if wanted.policy else wanted.verdict}
    for column, value in own.items():
        if value:
            parts.append(f"{column} = ?")
            values.append(clean(value))
    # With a policy, the verdict and the severity are those of the policy.
    charge = {"policy": wanted.policy, "severity": wanted.severity, "verdict": wanted.verdict if wanted.policy else ""}
    if given := {column: value for column, value in charge.items() if value}:
        parts.append(f"c.number IN (SELECT cell FROM {_CHARGED} WHERE {' AND '.join(f'{c} = ?' for c in given)})")
        values += map(clean, given.values())
    if wanted.reason and "reason" not in without:
        parts.append("r.key = ?")
        values.append(clean(wanted.reason))
    if "state" not in without:
        parts.append("t.state != 'refused'" if wanted.state == "all" else "t.state = ?")
        values += [wanted.state] if wanted.state != "all" else []
    return " AND ".join(parts), values


def _plain(verdict: str) -> str:
    return "violation" if verdict == "broken" else verdict
