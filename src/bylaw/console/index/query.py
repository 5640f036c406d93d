"""Reads an index: findings, conversations and counts, with filters and search."""

import sqlite3
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import asdict, replace

from bylaw.audit.store import CONVERSATIONS, Store, read_record

State = Literal["new", "still", "open", "attested", "waived", "false-alarm", "refused"]
"""The state of a finding: `new`; `still` present in a later audit; `open` (undecided); `attested` by a reviewer;
`waived`; `false-alarm`; or `refused` by the tool.
"""
STATES: tuple[State, ...] = get_args(State)
ROWS = 300
"""The maximum number of reasons on a page."""
PAGE = 50
"""The maximum number of findings with the same reason on a page."""
KINDS = {"flagged": "flagged > 0", "compliant": "calls > 0 AND flagged = 0", "unjudged": "calls = 0 AND flagged = 0"}
_TEMPORARY = """
CREATE TEMP TABLE standing (finding INTEGER PRIMARY KEY, state TEXT NOT NULL);
CREATE TEMP TABLE tally (cell INTEGER NOT NULL, state TEXT NOT NULL, findings INTEGER NOT NULL);
CREATE TEMP TABLE found (finding INTEGER PRIMARY KEY);
CREATE TEMP TABLE found_tally (cell INTEGER NOT NULL, state TEXT NOT NULL, findings INTEGER NOT NULL);
"""
"""`standing` contains the findings whose state differs from the default of their cell. `found` contains the results of
the last search. `tally` counts findings by cell and state. Every number on a page is a sum of tallies.
"""
_STATE = "COALESCE(s.state, c.state)"
_TALLY = f"""SELECT f.cell, {_STATE}, count(*) FROM findings f JOIN cells c ON c.number = f.cell
LEFT JOIN temp.standing s ON s.finding = f.number"""
_FROM = """FROM findings f JOIN cells c ON c.number = f.cell JOIN reasons r ON r.number = c.reason
JOIN conversations k ON k.number = f.conversation LEFT JOIN temp.standing s ON s.finding = f.number"""
_FINDING = f"""f.number, f.id, k.name, f.step, c.agent, c.tool, c.verdict, c.executed, f.because, f.file, f.place,
r.key, r.policy, r.severity, {_STATE}, f.exchange"""
_HOLDS = """(number IN (SELECT rowid FROM words WHERE words MATCH ?)
OR conversation IN (SELECT rowid FROM talk WHERE talk MATCH ?))"""
_CHARGED = """(SELECT DISTINCT g.cell, g.policy, g.verdict FROM charges g JOIN cells k ON k.number = g.cell
WHERE g.verdict != 'inconclusive' OR k.verdict = 'inconclusive')"""
"""The policies of each finding. If a policy found a fault, inconclusive policies are left out."""
_CONVERSATION = "number, name, agent, place, length, good, calls, flagged"


class Wanted(Struct, frozen=True, omit_defaults=True):
    """A filter for findings from a page's address. Empty fields match everything."""

    policy: str = ""
    agent: str = ""
    verdict: str = ""
    tool: str = ""
    state: str = "new"
    q: str = ""
    reason: str = ""
    base: str = ""

    @classmethod
    def of(cls, query: Iterable[tuple[str, str]]) -> "Wanted":
        given = {name: value.replace("\0", "")[:300] for name, value in query if name in cls.__struct_fields__}
        wanted = cls(**given)
        return wanted if wanted.state in (*STATES, "all") else replace(wanted, state="new")

    def address(self, path: str = "/findings", **changes: str) -> str:
        """Return the address of a page with the same filters, and with `changes` applied."""
        parts = {name: value for name, value in (asdict(self) | changes).items() if value}
        if parts.get("state") == "new":
            del parts["state"]
        return f"{path}?{urlencode(parts, errors='replace')}" if parts else path

    @property
    def is_narrow(self) -> bool:
        """Whether the filter has any condition besides the state."""
        return any((self.policy, self.agent, self.verdict, self.tool, self.q))


class ReasonRow(Struct, frozen=True):
    key: str
    policy: str
    verdict: str
    severity: str
    words: str
    findings: int
    refused: int


class FindingRow(Struct, frozen=True):
    """A finding in a list, and the position of its line in the audit's files."""

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
    exchange: str
    """For an undecided consent: the steps of the question and the answer. Otherwise empty."""

    @property
    def exchange_key(self) -> tuple[str, str, str] | int:
        """A key shared by all undecided consents with the same customer answer."""
        has_answer = not self.exchange.endswith("-") and self.exchange
        return (self.conversation, self.policy, self.exchange) if has_answer else self.number


class ConversationRow(Struct, frozen=True):
    number: int
    name: str
    agent: str
    place: int | None
    length: int | None
    good: int | None
    calls: int
    flagged: int


class Index:
    """The index of an audit. Only one thread at a time can use it."""

    def __init__(self, path: Path, store: Store) -> None:
        self.store = store
        self._path = path
        self._turn = threading.RLock()
        self._sought: list[str] = []
        self._database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self._database.isolation_level = None
        self._database.execute("PRAGMA temp_store = MEMORY")
        self._database.executescript(_TEMPORARY)
        self._count("tally", "")

    def close(self) -> None:
        self._database.close()

    def about(self, name: str) -> str:
        rows = self.rows("SELECT value FROM about WHERE name = ?", (name,))
        return rows[0][0] if rows else ""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._turn:
            return self._database.execute(query, values).fetchall()

    def stand(self, states: Mapping[str, State]) -> None:
        """Set the states of findings, which are keyed by id. Other findings have their cell's default state."""
        with self._turn:
            self.rows("DELETE FROM temp.standing")
            query = """INSERT INTO temp.standing SELECT f.number, ? FROM findings f JOIN cells c ON c.number = f.cell
                WHERE f.id = ? AND c.state != 'refused'"""
            self._database.executemany(query, ((state, clean(id)) for id, state in states.items()))
            self._count("tally", "")
            self._sought = []

    def _count(self, table: str, where: str) -> None:
        self.rows(f"DELETE FROM temp.{table}")
        self.rows(f"INSERT INTO temp.{table} {_TALLY} {where} GROUP BY 1, 2")

    def _counted(self, wanted: Wanted) -> str:
        """Return the table of counts for all findings or for the search results."""
        pieces = sorted({piece for each in wanted.q.split() if (piece := _quoted(each))})
        if not pieces:
            return "tally"
        if pieces != self._sought:
            where = " AND ".join([_HOLDS] * len(pieces))
            self.rows("DELETE FROM temp.found")
            values = [piece for piece in pieces for _ in range(2)]
            self.rows(f"INSERT INTO temp.found SELECT number FROM findings WHERE {where}", values)
            self._count("found_tally", "WHERE f.number IN (SELECT finding FROM temp.found)")
            self._sought = pieces
        return "found_tally"

    def reasons(self, wanted: Wanted) -> list[ReasonRow]:
        """Return the reasons of the matching findings, gravest first."""
        columns = "r.key, r.policy, r.verdict, r.severity, r.words, sum(t.findings), "
        columns += "sum(CASE WHEN c.executed IS 0 THEN t.findings ELSE 0 END)"
        rest = f"GROUP BY r.number ORDER BY min(c.gravity), 6 DESC, r.number LIMIT {ROWS}"
        return [ReasonRow(*row) for row in self._sums(columns, wanted, rest, without=("reason",))]

    def first(self, wanted: Wanted) -> FindingRow | None:
        reasons = self.reasons(wanted) if not wanted.reason else ()
        top = replace(wanted, reason=reasons[0].key) if reasons else wanted
        return next(iter(self.findings(top, limit=1)), None)

    def following(self, wanted: Wanted, row: FindingRow) -> FindingRow | None:
        """Return the next matching finding: first with the same reason, then with the next reason, and then from the
        top.

        Calls that depend on the same customer answer are treated as one finding.
        """
        keys = [each.key for each in self.reasons(wanted)]
        place = keys.index(row.reason) + 1 if row.reason in keys else 0
        ahead = [(row.reason, row.number), *((key, None) for key in (*keys[place:], *keys[:place]))]
        for key, beyond in ahead:
            for each in self.findings(replace(wanted, reason=key), beyond=beyond):
                if each.id != row.id and each.exchange_key != row.exchange_key:
                    return each
        return None

    def findings(
        self, wanted: Wanted, *, after: int = 0, limit: int = PAGE, beyond: int | None = None
    ) -> list[FindingRow]:
        """Return the matching findings, gravest first. Start at the offset `after`, or after the finding with the
        number `beyond`.
        """
        with self._turn:
            table = self._counted(wanted)
            where, values = _where(wanted)
            parts = [f"f.cell IN (SELECT t.cell {_counts_of(table)} WHERE {where})"]
            parts.append(f"{_STATE} {'!=' if wanted.state == 'all' else '='} ?")
            values.append("refused" if wanted.state == "all" else wanted.state)
            if beyond is not None:
                parts.append("f.number > ?")
                values.append(beyond)
            if table == "found_tally":
                parts.append("f.number IN (SELECT finding FROM temp.found)")
            chosen = f"""SELECT f.number FROM findings f INDEXED BY findings_by_gravity CROSS JOIN cells c
                ON c.number = f.cell LEFT JOIN temp.standing s ON s.finding = f.number WHERE {" AND ".join(parts)}
                ORDER BY f.gravity, f.number LIMIT ? OFFSET ?"""
            query = f"SELECT {_FINDING} {_FROM} WHERE f.number IN ({chosen}) ORDER BY f.gravity, f.number"
            return [FindingRow(*row) for row in self.rows(query, (*values, limit, after))]

    def states(self, wanted: Wanted) -> dict[str, int]:
        """Count the matching findings in each state, ignoring the state in the filter."""
        found = self._sums("t.state, sum(t.findings)", wanted, "GROUP BY 1", without=("state", "reason"))
        return dict.fromkeys(STATES, 0) | dict(found)

    def verdicts(self, wanted: Wanted) -> dict[str, int]:
        return dict(self._sums("c.verdict, sum(t.findings)", wanted, "GROUP BY 1"))

    def _sums(self, columns: str, wanted: Wanted, rest: str, without: Sequence[str] = ()) -> list[Any]:
        with self._turn:
            table = self._counted(wanted)
            where, values = _where(wanted, without)
            return self.rows(f"SELECT {columns} {_counts_of(table)} WHERE {where} {rest}", values)

    def finding(self, id: str) -> FindingRow | None:
        rows = self.rows(f"SELECT {_FINDING} {_FROM} WHERE f.id = ?", (clean(id),))
        return FindingRow(*rows[0]) if rows else None

    def line(self, finding: FindingRow) -> dict[str, Any]:
        """Return the line of a finding in the audit's files."""
        return next(self.store.at(finding.file, iter((finding.place,))))

    def of_conversation(self, name: str) -> list[FindingRow]:
        query = f"SELECT {_FINDING} {_FROM} WHERE k.name = ? ORDER BY f.step, f.number LIMIT 2000"
        return [FindingRow(*row) for row in self.rows(query, (clean(name),))]

    def sharing(self, row: FindingRow) -> list[FindingRow]:
        """Return the undecided consents that depend on the same customer answer, including this one."""
        found = (
            (each for each in self.of_conversation(row.conversation) if each.state == "open") if row.exchange else ()
        )
        return [each for each in found if each.exchange_key == row.exchange_key]

    def conversation(self, name: str) -> ConversationRow | None:
        rows = self.rows(f"SELECT {_CONVERSATION} FROM conversations WHERE name = ?", (clean(name),))
        return ConversationRow(*rows[0]) if rows else None

    def whole(self, name: str) -> dict[str, Any] | None:
        """Return the conversation with this name, including its events. Return None if it is unknown or unavailable."""
        row = self.conversation(name)
        return self.events(row) if row is not None else None

    def events(self, row: ConversationRow) -> dict[str, Any] | None:
        """Return a conversation from the audit or, if it is missing there, from its log. Return None if
        neither has it.
        """
        if row.place is not None:
            return next(self.store.at(CONVERSATIONS, iter((row.place,))))
        packed = self.rows("SELECT packed FROM conversations WHERE number = ?", (row.number,))[0][0]
        return read_record(zlib.decompress(packed), self._path) if packed is not None else None

    def conversations(
        self, *, agent: str = "", q: str = "", kind: str = "", after: int = 0, limit: int = 100
    ) -> list[ConversationRow]:
        """Return conversations in the audit's order. Filter by agent, by one of `KINDS`, and by the text `q`."""
        where, values = [KINDS.get(kind, "1")], list[Any]()
        if agent:
            where.append("agent = ?")
            values.append(clean(agent))
        if q:
            where.append("(instr(lower(name), lower(?)) > 0 OR number IN (SELECT rowid FROM talk WHERE talk MATCH ?))")
            values += [clean(q), _quoted(q) or '""']
        limits = "ORDER BY number LIMIT ? OFFSET ?"
        query = f"SELECT {_CONVERSATION} FROM conversations WHERE {' AND '.join(where)} {limits}"
        return [ConversationRow(*row) for row in self.rows(query, (*values, limit, after))]

    def calls(self, conversation: int) -> list[tuple[int, str, str]]:
        """Return the step, tool and verdict of each judged call in a conversation."""
        query = "SELECT step, tool, verdict FROM calls WHERE conversation = ? ORDER BY step LIMIT 10000"
        return self.rows(query, (conversation,))

    def totals(self) -> tuple[int, int, int]:
        """Return the number of conversations, judged calls and findings."""
        query = "SELECT (SELECT count(*) FROM conversations), sum(calls), (SELECT count(*) FROM findings)"
        return self.rows(f"{query} FROM conversations")[0]

    def by_policy(self) -> dict[str, dict[str, int]]:
        return {
            policy: dict.fromkeys(STATES, 0) | counts
            for policy, counts in self._policies("policy", "state", "1").items()
        }

    def verdicts_by_policy(self) -> dict[str, dict[str, int]]:
        """Count the new findings of each policy by the policy's own verdict."""
        return self._policies("policy, verdict", "verdict", "t.state = 'new'")

    def _policies(self, columns: str, by: str, where: str) -> dict[str, dict[str, int]]:
        """Count findings by policy and another column. A finding is counted once per policy."""
        query = f"""SELECT policy, {by}, sum(findings) FROM temp.tally t
            JOIN (SELECT DISTINCT cell, {columns} FROM {_CHARGED}) g ON g.cell = t.cell WHERE {where} GROUP BY 1, 2"""
        found: dict[str, dict[str, int]] = {}
        for policy, value, count in self.rows(query):
            found.setdefault(policy, {})[value] = count
        return found

    def reach(self, policy: str) -> tuple[int, int, list[str]]:
        """Return the number of a policy's findings, how many of them are waived, and which other policies the rest also
        have.
        """
        of = """SELECT g.cell FROM charges g JOIN cells c ON c.number = g.cell
            WHERE policy = ? AND c.verdict != 'inconclusive' AND c.executed IS NOT 0"""
        query = f"SELECT state, sum(findings) FROM temp.tally WHERE cell IN ({of}) GROUP BY 1"
        counts = dict(self.rows(query, (policy,)))
        waived = counts.get("waived", 0) + counts.get("false-alarm", 0)
        query = f"""SELECT DISTINCT policy FROM charges WHERE verdict != 'inconclusive' AND policy != ? AND cell IN (
            SELECT cell FROM temp.tally WHERE state NOT IN ('waived', 'false-alarm') AND cell IN ({of})) ORDER BY 1"""
        return sum(counts.values()), waived, [name for (name,) in self.rows(query, (policy, policy))]

    def facet(self, name: Literal["policy", "agent", "tool", "verdict"], wanted: Wanted) -> list[tuple[str, int]]:
        """Return the filter values that occur among the findings in the selected state, most frequent first."""
        of = f"JOIN (SELECT DISTINCT cell, policy FROM {_CHARGED}) g ON g.cell = c.number" if name == "policy" else ""
        where, values = _where(Wanted(state=wanted.state))
        query = f"""SELECT {name}, sum(t.findings) FROM temp.tally t JOIN cells c ON c.number = t.cell {of}
            WHERE {where} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 500"""
        found = self.rows(query, values)
        chosen = str(getattr(wanted, name))
        return found if not chosen or chosen in dict(found) else [*found, (chosen, 0)]


def clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _quoted(text: str) -> str:
    """Return a full-text query, or an empty one if there are no words. A long last word matches as a prefix."""
    letters = clean(text).replace('"', " ").strip()
    if not any(each.isalnum() for each in letters):
        return ""
    return f'"{letters}"' + ("*" if len(letters) > 2 else "")


def _counts_of(table: str) -> str:
    return f"FROM temp.{table} t JOIN cells c ON c.number = t.cell JOIN reasons r ON r.number = c.reason"


def _where(wanted: Wanted, without: Sequence[str] = ()) -> tuple[str, list[Any]]:
    """Return a filter as an SQL condition on the table of counts, joined to cells and reasons."""
    own = {"agent": wanted.agent, "tool": wanted.tool, "verdict": "" if wanted.policy else wanted.verdict}
    parts = ["1", *(f"c.{name} = ?" for name, value in own.items() if value)]
    values: list[Any] = [clean(value) for value in own.values() if value]
    if wanted.policy:
        # If the filter has a policy, use that policy's own verdict.
        charged = f"SELECT cell FROM {_CHARGED} WHERE policy = ? AND ? IN ('', verdict)"
        parts.append(f"c.number IN ({charged})")
        values += [clean(wanted.policy), clean(wanted.verdict)]
    if wanted.reason and "reason" not in without:
        parts.append("r.key = ?")
        values.append(clean(wanted.reason))
    if "state" not in without:
        parts.append("t.state != ?" if wanted.state == "all" else "t.state = ?")
        values.append("refused" if wanted.state == "all" else wanted.state)
    return " AND ".join(parts), values
