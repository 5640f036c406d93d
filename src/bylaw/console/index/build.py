"""Builds the index of an audit in one pass over the audit's files. The index groups findings by reason."""

import hashlib
import json
import os
import re
import sqlite3
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from msgspec import Struct

from bylaw.audit.report.finding import cut, flagged, spelled, undecided_consent, whole_text
from bylaw.audit.report.finding import name as fact_name
from bylaw.audit.request import conversations_in_logs
from bylaw.audit.row import encode, gravity, lacked, rank
from bylaw.audit.store import CALLS, CONVERSATIONS, RULES, JsonRecord, Store
from bylaw.console.index.query import Index, clean
from bylaw.engine.wording import is_hosts, policy_words_for_reader, rule_words_in_a_row
from bylaw.errors import UsageError
from bylaw.pack import Criterion

LACKING = {
    "claimed": "only claimed by the user",
    "stale": "out of date",
    "pending": "changed in the same turn",
    "never_seen": "never looked up",
}
_VALUES = re.compile(r"`[^`]*`|\"[^\"]*\"|'[^']*'|[$€£]?\d(?:[\d.,:/T-]*\d)?")


class Reason(Struct, frozen=True):
    """A policy, its verdict, and the reason for this verdict."""

    policy: str
    verdict: str
    severity: str
    words: str

    @property
    def key(self) -> str:
        """The id of the reason in the addresses of pages. Equal reasons have the same id in every audit."""
        text = "\0".join((self.policy, self.verdict, self.words))
        return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


def reason_of_call(call: JsonRecord, criterion: Criterion) -> Reason:
    """Return the reason given by the most severe policy that flagged the call."""
    verdict: str = call[criterion]
    guilty = [policy for policy in call["policies"] if policy[criterion] == verdict]
    if not guilty:
        return Reason("", verdict, "", _without_values(str(call.get("because") or "could not be judged")))
    policy = min(guilty, key=lambda each: rank(each["severity"]))
    return Reason(policy["id"], verdict, policy["severity"], _words(policy, verdict, criterion))


def _words(policy: JsonRecord, verdict: str, criterion: Criterion) -> str:
    facts = lacked(policy["missing"], criterion)
    if verdict != "violation" and facts:
        told = dict.fromkeys(f"{fact_name(fact)} {LACKING.get(fact['reason'], fact['reason'])}" for fact in facts)
        more = len(told) - 2
        return cut("; ".join(list(told)[:2]) + (f"; and {more} more" if more > 0 else ""), 200)
    if verdict == "inconclusive" and (asks := policy["asks"]):
        asked = [ask["question"] for ask in asks if not is_hosts(ask["fact"])]
        return _without_values(asked[0] if asked else f"{asks[0]['fact']} is unknown")
    return _without_values(policy_words_for_reader(policy) or policy["because"] or "forbidden")


def _without_values(words: str) -> str:
    """Remove the values from a reason, so that findings that differ only in their values have the same reason."""
    return cut(_VALUES.sub("…", words), 200)


VERSION = "11"
"""The version of the index. An index with another version is built again."""
NAME = "console.db"
TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE conversations (
  number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, place INTEGER, length INTEGER,
  good INTEGER, calls INTEGER NOT NULL DEFAULT 0, flagged INTEGER NOT NULL DEFAULT 0, packed BLOB
);
CREATE TABLE calls (conversation INTEGER NOT NULL, step INTEGER NOT NULL, tool TEXT NOT NULL, verdict TEXT NOT NULL);
CREATE TABLE findings (
  number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, conversation INTEGER NOT NULL, step INTEGER NOT NULL,
  agent TEXT NOT NULL, tool TEXT NOT NULL, verdict TEXT NOT NULL, executed INTEGER, gravity INTEGER NOT NULL,
  state TEXT NOT NULL, reason TEXT NOT NULL, policy TEXT NOT NULL, severity TEXT NOT NULL, words TEXT NOT NULL,
  charges TEXT NOT NULL, because TEXT NOT NULL, exchange TEXT NOT NULL, file TEXT NOT NULL, place INTEGER NOT NULL
);
CREATE VIRTUAL TABLE finding_text USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
CREATE VIRTUAL TABLE talk USING fts5(text, content='', tokenize="unicode61 remove_diacritics 2");
"""
"""In these tables, `words` is the text of a reason, `charges` maps each policy that flagged the call to its verdict,
and `packed` is a conversation that was read from the logs.
"""
INDICES = """
CREATE INDEX calls_by_conversation ON calls (conversation, step);
CREATE INDEX findings_by_gravity ON findings (gravity, number);
CREATE INDEX findings_by_conversation ON findings (conversation, step);
CREATE INDEX conversations_by_agent ON conversations (agent, number);
UPDATE conversations SET calls = (SELECT count(*) FROM calls WHERE conversation = number),
  flagged = (SELECT count(*) FROM findings f WHERE f.conversation = conversations.number AND executed IS NOT 0);
"""
SAID = 4_000
"""The maximum number of characters of a message or result that can be searched."""
TALK = 60_000
"""The maximum number of characters of a conversation that can be searched."""
_SOURCES = ("summary.json", CALLS, RULES, CONVERSATIONS, "policies.json", "tables/schema.json")


def open_index(out: Path) -> Index:
    """Return the index of the audit in `out`. Build the index first if it is missing or out of date."""
    store, stamp = Store(out), stamp_of(out)
    places = (out, _temporary_folder(out))
    for place in places:
        if (found := _opened(place / NAME, store, stamp)) is not None:
            return found
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            _make(store, place / NAME, stamp)
        except (OSError, sqlite3.OperationalError):
            # The audit folder may be read-only.
            continue
        if (found := _opened(place / NAME, store, stamp)) is not None:
            return found
    raise UsageError("cannot write an index, here or in the temporary folder", place=str(out))


def _temporary_folder(out: Path) -> Path:
    name = hashlib.sha256(str(out.resolve()).encode("utf-8", "replace")).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"bylaw-console-{os.getuid() if hasattr(os, 'getuid') else 0}" / name


def stamp_of(out: Path) -> str:
    """Return the sizes and times of an audit's files, and the version of the index.

    If they change, the index is out of date.
    """
    found = ((name, out / name) for name in _SOURCES)
    stats = ((name, path.stat()) for name, path in found if path.is_file())
    return " ".join((VERSION, *(f"{name}:{each.st_size}:{each.st_mtime_ns}" for name, each in stats)))


def _opened(path: Path, store: Store, stamp: str) -> Index | None:
    if not path.is_file():
        return None
    try:
        with closing(sqlite3.connect(path)) as database:
            is_current = database.execute("SELECT value FROM about WHERE name = 'stamp'").fetchone() == (stamp,)
        return Index(path, store) if is_current else None
    except sqlite3.Error:
        return None


def _make(store: Store, path: Path, stamp: str) -> None:
    handle, rough = tempfile.mkstemp(prefix=f".{NAME}-", dir=path.parent)
    os.close(handle)
    try:
        with closing(sqlite3.connect(rough, isolation_level=None)) as database:
            # The index need not survive a crash, because an incomplete index is never used.
            for pragma in ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE"):
                database.execute(f"PRAGMA {pragma}")
            database.executescript(TABLES)
            database.execute("BEGIN")
            logged = _Builder(database, store).fill()
            about = [("stamp", stamp), ("logged", str(logged))]
            database.executemany("INSERT INTO about VALUES (?, ?)", about)
            database.execute("COMMIT")
            database.executescript(INDICES)
            database.execute("ANALYZE")
        os.replace(rough, path)
    finally:
        Path(rough).unlink(missing_ok=True)


class _Builder:
    def __init__(self, database: sqlite3.Connection, store: Store) -> None:
        self._database = database
        self._store = store
        self._conversations: dict[str, int] = {}
        self._ids: set[str] = set()

    def fill(self) -> int:
        """Add all findings and conversations to the index. Return the number of conversations in the logs."""
        for place, call in self._store.places(CALLS):
            self._add_call(place, call)
        for place, broken in self._store.places(RULES):
            self._add_rule(place, broken)
        kept: set[int] = set()
        for place, line in self._store.places(CONVERSATIONS):
            kept.add(self._add_conversation(line, place=place))
        logged = 0
        for line in conversations_in_logs(self._store.path):
            logged += 1
            if self._conversation(line) not in kept:
                self._add_conversation(line, packed=_packed(line))
        return logged

    def _add_call(self, place: int, call: JsonRecord) -> None:
        criterion = self._store.criterion
        verdict: str = call[criterion]
        row = (self._conversation(call), call["step"] or 0, cut(call["tool"], 200), verdict)
        self._run("INSERT INTO calls VALUES (?,?,?,?)", row)
        own = f"{call['trajectory']}:{call['step']}"
        opened: list[JsonRecord] = call.get("open_rules") or []
        if flagged(verdict):
            judged = [policy for policy in call["policies"] if flagged(policy[criterion])]
            rules = opened if verdict == "inconclusive" else []
            self._add((CALLS, place), call, call.get("finding") or own, reason_of_call(call, criterion), judged, rules)
        if opened and verdict != "inconclusive":
            # An undecided call counts as one finding, even if several rules are undecided.
            policy, rule, consent = opened[0]["policy"], opened[0]["rule"], undecided_consent(opened[0])
            what = "the rule was followed" if rule == policy else f"rule {rule} was followed"
            words = f"undecided whether {what if consent is None else 'the customer agreed'}"
            reason = Reason(policy, "inconclusive", self._severity(policy), words)
            # Calls that depend on the same question and answer get the same value of `exchange`.
            exchange = f"{consent.get('told_at', '')}-{consent.get('answered_at', '')}" if consent is not None else ""
            self._add((CALLS, place), call, own, reason, [], opened, exchange)

    def _add_rule(self, place: int, broken: JsonRecord) -> None:
        policy, rule = broken["policy"], broken["rule"]
        name = broken.get("finding") or f"{broken['trajectory']}:{broken['step']}:{rule}"
        words = "rule broken" if rule == policy else f"rule {rule} broken"
        reason = Reason(policy, "broken", self._severity(policy), words)
        self._add((RULES, place), broken | {"tool": rule, "executed": None}, name, reason, [], [broken])

    def _add(
        self,
        source: tuple[str, int],
        line: JsonRecord,
        name: str,
        reason: Reason,
        judged: Sequence[JsonRecord],
        rules: Sequence[JsonRecord],
        exchange: str = "",
    ) -> None:
        """Add a finding.

        `judged` are the policies whose guards flagged the call. `rules` are the broken or undecided rules.
        """
        charges: dict[str, str] = {rule["policy"]: reason.verdict for rule in rules}
        charges |= {policy["id"]: policy[self._store.criterion] for policy in judged}
        if reason.verdict != "inconclusive":
            charges = {policy: verdict for policy, verdict in charges.items() if verdict != "inconclusive"}
        if name in self._ids:
            # If two lines have the same finding id, show both lines.
            name = f"{name}~{len(self._ids)}"
        self._ids.add(name)
        executed, verdict = line["executed"], reason.verdict
        row = (
            len(self._ids),
            name,
            self._conversation(line),
            line["step"] or 0,
            line["agent"],
            cut(line["tool"], 200),
            verdict,
            executed,
            gravity(verdict, reason.severity, executed=executed),
            "refused" if executed is False else "open" if verdict == "inconclusive" else "new",
            reason.key,
            reason.policy,
            reason.severity,
            reason.words,
            json.dumps(charges, sort_keys=True),
            cut(self._because(line, reason, judged, rules), 300),
            exchange,
            *source,
        )
        self._run(f"INSERT INTO findings VALUES ({','.join('?' * len(row))})", row)
        shared = (name, line["trajectory"], line["agent"], line["tool"], reason.words, reason.policy)
        own = (_words_of_call(line, judged), *(value for rule in rules for value in rule.values()))
        text = "\n".join(map(str, (*shared, *own, *charges, *charges.values())))
        self._run("INSERT INTO finding_text (rowid, text) VALUES (?, ?)", (row[0], text))

    def _because(
        self, line: JsonRecord, reason: Reason, judged: Sequence[JsonRecord], rules: Sequence[JsonRecord]
    ) -> str:
        if rules and not judged:
            meanings = self._store.policies.get(rules[0]["policy"], {}).get("predicates", {})
            return rule_words_in_a_row(rules[0], meanings)
        own = (policy["because"] for policy in judged if policy["id"] == reason.policy)
        return next(own, "") or line.get("because") or reason.words

    def _severity(self, policy: str) -> str:
        return self._store.policies.get(policy, {}).get("severity", "")

    def _conversation(self, line: JsonRecord) -> int:
        """Return the number of the conversation that a line belongs to. Add the conversation if it is new."""
        name = line["trajectory"]
        number = self._conversations.get(name)
        if number is None:
            number = self._conversations[name] = len(self._conversations) + 1
            self._run("INSERT INTO conversations (number, name, agent) VALUES (?,?,?)", (number, name, line["agent"]))
        return number

    def _add_conversation(self, line: JsonRecord, *, place: int | None = None, packed: bytes | None = None) -> int:
        number = self._conversation(line)
        outcome: JsonRecord | None = line.get("outcome")
        values = (place, packed, len(line["events"]), None if outcome is None else bool(outcome.get("good")), number)
        self._run("UPDATE conversations SET place = ?, packed = ?, length = ?, good = ? WHERE number = ?", values)
        self._run("INSERT INTO talk (rowid, text) VALUES (?, ?)", (number, "\n".join(_said(line))))
        return number

    def _run(self, query: str, values: tuple[Any, ...]) -> None:
        try:
            self._database.execute(query, values)
        except UnicodeEncodeError:
            # SQLite cannot store lone surrogates.
            self._database.execute(query, [clean(value) if isinstance(value, str) else value for value in values])


def _words_of_call(call: JsonRecord, judged: Sequence[JsonRecord]) -> str:
    shown: list[Any] = [call.get("because")]
    for policy in judged:
        shown += [policy["because"], *(ask.get("question") for ask in policy["asks"])]
        for fact in (*policy["missing"], *policy["seen"]):
            shown += [fact["entity"], fact["field"], *(fact["key"] or ()), fact.get("claim"), fact.get("value")]
            if lookup := fact.get("lookup"):
                shown += [lookup["tool"], *lookup["args"].values()]
    return "\n".join(spelled(each, SAID) for each in shown if each not in (None, ""))


def _said(line: JsonRecord) -> Iterator[str]:
    room = TALK
    for event in line["events"]:
        is_call = event["type"] == "call"
        whole = f"{event['tool']} {whole_text(event['arguments'])}" if is_call else str(event.get("text") or "")
        text = whole[:SAID]
        room -= len(text)
        if room < 0:
            return
        yield text


def _packed(line: JsonRecord) -> bytes:
    try:
        data = encode(line)
    except UnicodeEncodeError:
        # JSON can contain a lone surrogate, but UTF-8 cannot.
        data = json.dumps(line, default=str).encode("ascii")
    return zlib.compress(data, 1)
