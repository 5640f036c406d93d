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
"""The state of a finding: `new`; `still` flagged in a later audit; `open` (undecided); `attested` by a reviewer;
`waived`; `false-alarm`; or `refused`, if the call was not executed.
"""
STATES: tuple[State, ...] = get_args(State)
ROWS = 300
"""The maximum number of reasons on a page."""
PAGE = 50
"""The maximum number of findings with one reason on a page."""
KINDS = {"flagged": "flagged > 0", "compliant": "calls > 0 AND flagged = 0", "unjudged": "calls = 0 AND flagged = 0"}
_GROUP = "reason, policy, severity, words, agent, tool, verdict, executed, gravity, charges, state"
_TEMPORARY = f"""
CREATE TEMP TABLE standing (finding INTEGER PRIMARY KEY, state TEXT NOT NULL);
CREATE TEMP VIEW listed AS SELECT f.number, f.id, k.name AS conversation, f.step, f.agent, f.tool, f.verdict,
  f.executed, f.because, f.file, f.place, f.reason, f.policy, f.severity, COALESCE(s.state, f.state) AS state,
  f.exchange, f.gravity, f.words, f.charges
  FROM findings f JOIN conversations k ON k.number = f.conversation
  LEFT JOIN temp.standing s ON s.finding = f.number;
CREATE TEMP TABLE tally AS SELECT {_GROUP}, 1 AS findings FROM temp.listed LIMIT 0;
CREATE TEMP TABLE found (finding INTEGER PRIMARY KEY);
CREATE TEMP TABLE found_tally AS SELECT * FROM temp.tally;
"""
"""In these tables, `standing` contains the findings whose state differs from the state in the file, and `found`
contains the results of the last search. `tally` and `found_tally` count findings, in groups that differ only in their
text. Every number on a page is a sum over `tally` or `found_tally`.
"""
_HOLDS = """(number IN (SELECT rowid FROM finding_text WHERE finding_text MATCH ?)
OR conversation IN (SELECT rowid FROM talk WHERE talk MATCH ?))"""
_CONVERSATION = "number, name, agent, place, length, good, calls, flagged"


class Wanted(Struct, frozen=True, omit_defaults=True):
    """A filter for findings, taken from a page's address. An empty field matches everything."""

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
        """Return the address of a page with this filter. `changes` replace fields of the filter."""
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
    """A finding in a list, and where its line is in the audit's files."""

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
    """The steps of the question and the answer, if the finding is an undecided consent. Otherwise empty."""

    @property
    def exchange_key(self) -> tuple[str, str, str] | int:
        """A key that is equal for all undecided consents that depend on the same answer from the customer."""
        has_answer = not self.exchange.endswith("-") and self.exchange
        return (self.conversation, self.policy, self.exchange) if has_answer else self.number


_FINDING = ", ".join(FindingRow.__struct_fields__)


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
    """The index of an audit. Only one thread at a time uses it."""

    def __init__(self, path: Path, store: Store) -> None:
        self.store = store
        self._path = path
        self._turn = threading.RLock()
        self._sought: list[str] = []
        self._database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        self._database.isolation_level = None
        self._database.execute("PRAGMA temp_store = MEMORY")
        self._database.executescript(_TEMPORARY)
        self.stand({})

    def close(self) -> None:
        self._database.close()

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._turn:
            return self._database.execute(query, values).fetchall()

    @property
    def logged(self) -> int:
        """The number of conversations in the logs at the time the index was built."""
        return int(self.rows("SELECT value FROM about WHERE name = 'logged'")[0][0])

    def stand(self, states: Mapping[str, State]) -> None:
        """Set the states of findings, keyed by id.

        Findings that are not listed keep the state from the audit, and so do refused calls.
        """
        with self._turn:
            self.rows("DELETE FROM temp.standing")
            query = "INSERT INTO temp.standing SELECT number, ? FROM findings WHERE id = ? AND state != 'refused'"
            self._database.executemany(query, ((state, clean(id)) for id, state in states.items()))
            self._count("tally", "1")
            self._sought = []

    def _count(self, table: str, where: str) -> None:
        self.rows(f"DELETE FROM temp.{table}")
        counted = f"SELECT {_GROUP}, count(*) FROM temp.listed WHERE {where} GROUP BY {_GROUP}"
        self.rows(f"INSERT INTO temp.{table} {counted}")

    def _tally(self, wanted: Wanted) -> str:
        """Return the table with the counts: of all findings or, if there is a search text, of the results."""
        pieces = sorted({piece for each in wanted.q.split() if (piece := _quoted(each))})
        if not pieces:
            return "tally"
        if pieces != self._sought:
            self.rows("DELETE FROM temp.found")
            where = " AND ".join([_HOLDS] * len(pieces))
            values = [piece for piece in pieces for _ in range(2)]
            self.rows(f"INSERT INTO temp.found SELECT number FROM findings WHERE {where}", values)
            self._count("found_tally", "number IN (SELECT finding FROM temp.found)")
            self._sought = pieces
        return "found_tally"

    def reasons(self, wanted: Wanted) -> list[ReasonRow]:
        """Return the reasons of the matching findings, most severe first."""
        columns = "reason, policy, verdict, severity, words, sum(findings), "
        columns += "sum(CASE WHEN executed IS 0 THEN findings ELSE 0 END)"
        rest = f"GROUP BY reason ORDER BY min(gravity), 6 DESC, reason LIMIT {ROWS}"
        return [ReasonRow(*row) for row in self._sums(columns, replace(wanted, reason=""), rest)]

    def first(self, wanted: Wanted) -> FindingRow | None:
        reasons = self.reasons(wanted) if not wanted.reason else ()
        top = replace(wanted, reason=reasons[0].key) if reasons else wanted
        return next(iter(self.findings(top, limit=1)), None)

    def following(self, wanted: Wanted, row: FindingRow) -> FindingRow | None:
        """Return the matching finding to show next: one with this finding's reason, with the next reason, or the first.

        Calls that depend on the same answer of the customer count as one finding.
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
        """Return the matching findings, most severe first. Start at the offset `after`, or after the finding with the
        number `beyond`.
        """
        where, values = _where(wanted)
        with self._turn:
            if self._tally(wanted) == "found_tally":
                where += " AND number IN (SELECT finding FROM temp.found)"
            query = f"SELECT {_FINDING} FROM temp.listed WHERE {where} AND number > ? ORDER BY gravity, number"
            found = self.rows(f"{query} LIMIT ? OFFSET ?", (*values, beyond or 0, limit, after))
        return [FindingRow(*row) for row in found]

    def states(self, wanted: Wanted) -> dict[str, int]:
        """Count the findings in each state that match the filter, apart from its state and reason."""
        every = replace(wanted, state="", reason="")
        return dict.fromkeys(STATES, 0) | dict(self._sums("state, sum(findings)", every, "GROUP BY 1"))

    def verdicts(self, wanted: Wanted) -> dict[str, int]:
        return dict(self._sums("verdict, sum(findings)", wanted, "GROUP BY 1"))

    def _sums(self, columns: str, wanted: Wanted, rest: str, *, joined: str = "") -> list[Any]:
        """Return the given sums over the matching findings."""
        where, values = _where(wanted)
        with self._turn:
            table = self._tally(wanted)
            return self.rows(f"SELECT {columns} FROM temp.{table} {joined} WHERE {where} {rest}", values)

    def finding(self, id: str) -> FindingRow | None:
        rows = self.rows(f"SELECT {_FINDING} FROM temp.listed WHERE id = ?", (clean(id),))
        return FindingRow(*rows[0]) if rows else None

    def line(self, finding: FindingRow) -> dict[str, Any]:
        """Return a finding's line from the audit's files, decoded."""
        return next(self.store.at(finding.file, iter((finding.place,))))

    def of_conversation(self, name: str) -> list[FindingRow]:
        query = f"SELECT {_FINDING} FROM temp.listed WHERE conversation = ? ORDER BY step, number LIMIT 2000"
        return [FindingRow(*row) for row in self.rows(query, (clean(name),))]

    def sharing(self, row: FindingRow) -> list[FindingRow]:
        """Return this finding and the other undecided consents that depend on the same answer from the customer."""
        found = self.of_conversation(row.conversation) if row.exchange else ()
        return [each for each in found if each.state == "open" and each.exchange_key == row.exchange_key]

    def conversation(self, name: str) -> ConversationRow | None:
        rows = self.rows(f"SELECT {_CONVERSATION} FROM conversations WHERE name = ?", (clean(name),))
        return ConversationRow(*rows[0]) if rows else None

    def whole(self, name: str) -> dict[str, Any] | None:
        """Return the conversation with this name and its events, or None if it is unknown or unavailable."""
        row = self.conversation(name)
        return self.events(row) if row is not None else None

    def events(self, row: ConversationRow) -> dict[str, Any] | None:
        """Return a conversation from the audit or, if the audit did not keep it, from its log. Return None if neither
        has it.
        """
        if row.place is not None:
            return next(self.store.at(CONVERSATIONS, iter((row.place,))))
        packed = self.rows("SELECT packed FROM conversations WHERE number = ?", (row.number,))[0][0]
        return read_record(zlib.decompress(packed), self._path) if packed is not None else None

    def conversations(
        self, *, agent: str = "", q: str = "", kind: str = "", after: int = 0, limit: int = 100
    ) -> list[ConversationRow]:
        """Return the conversations that match an agent, one of `KINDS` and the text `q`, in the audit's order."""
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
        """Return the number of findings in each state, for each policy."""
        found = self._policies("state", Wanted(state=""))
        return {policy: dict.fromkeys(STATES, 0) | counts for policy, counts in found.items()}

    def verdicts_by_policy(self) -> dict[str, dict[str, int]]:
        """Return the number of new findings for each policy, by the verdict of that policy."""
        return self._policies("charge.value", Wanted())

    def _policies(self, by: str, wanted: Wanted) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        columns = f"charge.key, {by}, sum(findings)"
        for policy, value, count in self._sums(columns, wanted, "GROUP BY 1, 2", joined=_CHARGES):
            found.setdefault(policy, {})[value] = count
        return found

    def reach(self, policy: str) -> tuple[int, int, list[str]]:
        """Return the number of a policy's findings, how many of them are waived, and the other policies that flagged
        the rest.
        """
        own = f"state NOT IN ('refused', 'open', 'attested') AND {_CHARGED}"
        name = (clean(policy), "", "")
        counts = dict(self.rows(f"SELECT state, sum(findings) FROM temp.tally WHERE {own} GROUP BY 1", name))
        query = f"SELECT DISTINCT charge.key FROM temp.tally {_CHARGES} WHERE {own} AND charge.key != ?"
        others = self.rows(f"{query} AND state NOT IN ('waived', 'false-alarm') ORDER BY 1", (*name, clean(policy)))
        waived = counts.get("waived", 0) + counts.get("false-alarm", 0)
        return sum(counts.values()), waived, [name for (name,) in others]

    def facet(self, name: Literal["policy", "agent", "tool", "verdict"], wanted: Wanted) -> list[tuple[str, int]]:
        """Return the values of a filter field among the findings in the selected state, most frequent first."""
        column, joined = ("charge.key", _CHARGES) if name == "policy" else (name, "")
        rest = "GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 500"
        found = self._sums(f"{column}, sum(findings)", Wanted(state=wanted.state), rest, joined=joined)
        chosen = str(getattr(wanted, name))
        return found if not chosen or chosen in dict(found) else [*found, (chosen, 0)]


_CHARGES = "JOIN json_each(charges) charge"
"""Joins the policies that flagged a call (`charge.key`), with their verdicts (`charge.value`)."""
_CHARGED = "EXISTS (SELECT 1 FROM json_each(charges) WHERE key = ? AND (? = '' OR value = ?))"
"""Whether a policy flagged the call. If a verdict is given, it must be the policy's verdict."""


def clean(text: str) -> str:
    """Replace lone surrogates, which SQLite cannot store."""
    return text.encode("utf-8", "replace").decode()


def _quoted(text: str) -> str:
    """Return a full-text query, or an empty string if the text has no words.

    A word of three or more letters matches as a prefix.
    """
    letters = clean(text).replace('"', " ").strip()
    if not any(each.isalnum() for each in letters):
        return ""
    return f'"{letters}"' + ("*" if len(letters) > 2 else "")


def _where(wanted: Wanted) -> tuple[str, list[Any]]:
    """Return a filter as an SQL condition on `listed` or `tally`. If the filter has no state, every state matches."""
    own = {"agent": wanted.agent, "tool": wanted.tool, "reason": wanted.reason}
    own["verdict"] = "" if wanted.policy else wanted.verdict
    parts = ["1", *(f"{name} = ?" for name, value in own.items() if value)]
    values: list[Any] = [clean(value) for value in own.values() if value]
    if wanted.policy:
        # If the filter names a policy, compare with that policy's own verdict.
        parts.append(_CHARGED)
        values += [clean(wanted.policy), clean(wanted.verdict), clean(wanted.verdict)]
    if wanted.state:
        parts.append("state != ?" if wanted.state == "all" else "state = ?")
        values.append("refused" if wanted.state == "all" else wanted.state)
    return " AND ".join(parts), values
