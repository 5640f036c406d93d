"""Makes the index of an audit: one pass over its files, written aside and then put in its place."""

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from bylaw.audit.audited import conversations_in_logs
from bylaw.audit.report.finding import flagged
from bylaw.audit.report.text import cut, spelled, whole_text
from bylaw.audit.store import CALLS, CONVERSATIONS, RULES, JsonRecord, Store
from bylaw.console.index.query import Index
from bylaw.console.index.quiet import packed
from bylaw.console.index.reason import Reason, reason_of_call, reason_of_open, reason_of_rule
from bylaw.console.index.schema import INDICES, NAME, TABLES, VERSION
from bylaw.console.index.search import clean
from bylaw.engine.wording import rule_words_in_a_row
from bylaw.errors import UsageError
from bylaw.pack import Criterion

SAID = 4_000
"""The most characters of one message or result that can be searched for."""
TALK = 60_000
"""The same of one conversation."""
_SHARED = ("trajectory", "agent", "policy", "rule")
"""What a line says that its cell or its conversation is found by."""
_SOURCES = ("summary.json", CALLS, RULES, CONVERSATIONS, "policies.json", "tables/schema.json")


def open_index(out: Path) -> Index:
    """The index of the audit in `out`, made where there is none of these files yet."""
    folder = Store(out)
    stamp = stamp_of(out)
    for place in (out, _aside(out)):
        if (found := _opened(place / NAME, folder, stamp)) is not None:
            return found
    for place in (out, _aside(out)):
        try:
            place.mkdir(parents=True, exist_ok=True)
            _make(folder, place / NAME, stamp)
        except (OSError, sqlite3.OperationalError):
            # A folder that only others may write to: the index goes among this machine's temporary files.
            continue
        if (found := _opened(place / NAME, folder, stamp)) is not None:
            return found
    raise UsageError("no index can be written, here or among temporary files", place=str(out))


def _aside(out: Path) -> Path:
    name = hashlib.sha256(str(out.resolve()).encode("utf-8", "replace")).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"bylaw-console-{os.getuid() if hasattr(os, 'getuid') else 0}" / name


def stamp_of(out: Path) -> str:
    """Tells one state of an audit's files from another."""
    found: list[str] = []
    for name in _SOURCES:
        try:
            each = (out / name).stat()
        except OSError:
            continue
        found.append(f" {name}:{each.st_size}:{each.st_mtime_ns}")
    return VERSION + "".join(found)


def _opened(path: Path, folder: Store, stamp: str) -> Index | None:
    if not path.is_file():
        return None
    try:
        index = Index(path, folder)
    except sqlite3.Error:
        return None
    if index.stamp == stamp:
        return index
    index.close()
    return None


def _make(folder: Store, path: Path, stamp: str) -> None:
    handle, rough = tempfile.mkstemp(prefix=f".{NAME}-", dir=path.parent)
    os.close(handle)
    try:
        with closing(sqlite3.connect(rough, isolation_level=None)) as database:
            # What is half made is never taken for an index, so nothing needs to survive a crash.
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("PRAGMA synchronous = OFF")
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.executescript(TABLES)
            database.execute("BEGIN")
            _Builder(database, folder).fill()
            database.execute("INSERT INTO about VALUES ('stamp', ?)", (stamp,))
            database.execute("COMMIT")
            database.executescript(INDICES)
            database.execute("ANALYZE")
        os.replace(rough, path)
    finally:
        Path(rough).unlink(missing_ok=True)


class _Builder:
    """One pass over the files of an audit."""

    def __init__(self, database: sqlite3.Connection, folder: Store) -> None:
        self._database = database
        self._folder = folder
        self._criterion: Criterion = folder.criterion
        stated: dict[str, JsonRecord] = folder.policies
        self._severities: dict[str, str] = {name: policy.get("severity", "") for name, policy in stated.items()}
        self._meanings: dict[str, JsonRecord] = {name: each.get("predicates", {}) for name, each in stated.items()}
        self._conversations: dict[str, int] = {}
        self._reasons: dict[str, int] = {}
        self._cells: dict[tuple[Any, ...], int] = {}
        self._sizes: list[int] = []
        self._calls: dict[int, int] = {}
        self._flagged: dict[int, int] = {}
        self._count = 0
        self._kept: set[int] = set()
        self._logged = 0

    def fill(self) -> None:
        """Read every file once, conversations last: by then it is known which of them anything is said of."""
        for place, call in self._folder.places(CALLS):
            self._take_call(place, call)
        for place, broken in self._folder.places(RULES):
            self._take_rule(place, broken)
        for place, told in self._folder.places(CONVERSATIONS):
            self._take_conversation(place, told)
        for told in conversations_in_logs(self._folder.path):
            self._take_logged(told)
        for name, number in self._conversations.items():
            if number in self._flagged and number not in self._kept:
                self._seek("talk", number, name)
        for number, calls in self._calls.items():
            values = (calls, self._flagged.get(number, 0), number)
            self._run("UPDATE conversations SET calls = ?, flagged = ? WHERE number = ?", values)
        for cell, size in enumerate(self._sizes, 1):
            self._run("UPDATE cells SET findings = ? WHERE number = ?", (size, cell))
        counted = (len(self._conversations), sum(self._calls.values()), self._count)
        self._run("INSERT INTO about VALUES ('logged', ?)", (str(self._logged),))
        self._run("INSERT INTO about VALUES ('totals', ?)", (" ".join(map(str, counted)),))

    def _take_call(self, place: int, call: JsonRecord) -> None:
        conversation = self._conversation(call["trajectory"], call["agent"])
        self._calls[conversation] = self._calls.get(conversation, 0) + 1
        verdict: str = call[self._criterion]
        row = (conversation, call["step"] or 0, cut(call["tool"], 200), verdict, place)
        self._run("INSERT INTO calls VALUES (?,?,?,?,?)", row)
        if flagged(verdict) and verdict != "inconclusive":
            reason = reason_of_call(call, self._criterion)
            self._take_flagged(place, call, call.get("finding") or _place_of(call), verdict, reason, conversation, ())
        if verdict == "inconclusive" or call.get("open_rules"):
            self._take_undecided(place, call, verdict, conversation)

    def _take_undecided(self, place: int, call: JsonRecord, verdict: str, conversation: int) -> None:
        """One finding for each undecided call, whatever of it is undecided: a guard, or any number of rules."""
        rules: list[JsonRecord] = call.get("open_rules") or []
        name = _place_of(call)
        if verdict == "inconclusive":
            name, reason = call.get("finding") or name, reason_of_call(call, self._criterion)
        else:
            first = rules[0]
            reason = reason_of_open(first["policy"], self._severities.get(first["policy"], ""), first["rule"])
        self._take_flagged(place, call, name, "inconclusive", reason, conversation, rules)

    def _take_flagged(
        self,
        place: int,
        call: JsonRecord,
        name: str,
        verdict: str,
        reason: Reason,
        conversation: int,
        rules: Sequence[JsonRecord],
    ) -> None:
        is_own = verdict == call[self._criterion]
        judged = [policy for policy in call["policies"] if is_own and flagged(policy[self._criterion])]
        charges = [(policy["id"], policy[self._criterion], policy["severity"]) for policy in judged]
        charges += [(rule["policy"], verdict, self._severities.get(rule["policy"], "")) for rule in rules]
        cell = self._cell(reason, "call", call, verdict, list(dict.fromkeys(charges)))
        because = _because(call, reason) if judged or not rules else self._told(rules[0])
        number = self._add(name, reason, cell, conversation, CALLS, place, call, because)
        told = [_words_of_call(name, call, judged), *(_words_of_rule(name, rule) for rule in rules)]
        self._seek("words", number, "\n".join(told))

    def _take_rule(self, place: int, broken: JsonRecord) -> None:
        conversation = self._conversation(broken["trajectory"], broken["agent"])
        severity = self._severities.get(broken["policy"], "")
        reason = reason_of_rule(broken["policy"], severity, broken["rule"])
        name = broken.get("finding") or f"{broken['trajectory']}:{broken['step']}:{broken['rule']}"
        line = broken | {"tool": broken["rule"], "executed": None}
        cell = self._cell(reason, "rule", line, "broken", [(broken["policy"], "broken", severity)])
        number = self._add(name, reason, cell, conversation, RULES, place, line, self._told(broken))
        self._seek("words", number, _words_of_rule(name, broken))

    def _told(self, rule: JsonRecord) -> str:
        return rule_words_in_a_row(rule, self._meanings.get(rule["policy"], {}))

    def _add(
        self,
        name: str,
        reason: Reason,
        cell: int,
        conversation: int,
        file: str,
        place: int,
        line: JsonRecord,
        because: str,
    ) -> int:
        self._flagged[conversation] = self._flagged.get(conversation, 0) + (line["executed"] is not False)
        self._count += 1
        self._sizes[cell - 1] += 1
        gravity = _gravity(reason, line["executed"])
        row = (
            self._count, name, cell, self._reason(reason), gravity, conversation, file, place, line["step"] or 0,
            cut(because, 300),
        )  # fmt: skip
        query = f"INSERT INTO findings VALUES ({','.join('?' * len(row))})"
        try:
            self._run(query, row)
        except sqlite3.IntegrityError:
            # Two lines under one id: both are shown.
            self._run(query, (row[0], f"{name}~{self._count}", *row[2:]))
        return self._count

    def _cell(
        self, reason: Reason, kind: str, line: JsonRecord, verdict: str, charges: list[tuple[str, str, str]]
    ) -> int:
        executed = line["executed"]
        head = (self._reason(reason), kind, line["agent"], cut(line["tool"], 200), verdict, executed)
        key = (*head, *sorted(charges))
        number = self._cells.get(key)
        if number is None:
            number = self._cells[key] = len(self._cells) + 1
            self._sizes.append(0)
            self._run("INSERT INTO cells VALUES (?,?,?,?,?,?,?,?,0)", (number, *head, _gravity(reason, executed)))
            for charge in charges:
                self._run("INSERT INTO charges VALUES (?,?,?,?)", (number, *charge))
            told = (
                line["agent"],
                line["tool"],
                reason.words,
                reason.policy,
                *(part for each in charges for part in each),
            )
            self._seek("cell_words", number, "\n".join(map(str, told)))
        return number

    def _reason(self, reason: Reason) -> int:
        number = self._reasons.get(key := reason.key)
        if number is None:
            number = self._reasons[key] = len(self._reasons) + 1
            row = (number, key, reason.policy, reason.verdict, reason.severity, reason.gravity, reason.words)
            self._run("INSERT INTO reasons VALUES (?,?,?,?,?,?,?)", row)
        return number

    def _conversation(self, name: str, agent: str) -> int:
        number = self._conversations.get(name)
        if number is None:
            number = self._conversations[name] = len(self._conversations) + 1
            self._run("INSERT INTO conversations (number, name, agent) VALUES (?,?,?)", (number, name, agent))
        return number

    def _take_conversation(self, place: int, told: JsonRecord) -> None:
        number = self._conversation(told["trajectory"], told["agent"])
        outcome: JsonRecord | None = told.get("outcome")
        good = None if outcome is None else bool(outcome.get("good"))
        values = (place, len(told["events"]), good, number)
        self._run("UPDATE conversations SET place = ?, length = ?, good = ? WHERE number = ?", values)
        self._kept.add(number)
        if number in self._flagged:
            self._seek("talk", number, "\n".join((str(told["trajectory"]), *_said(told))))

    def _take_logged(self, told: JsonRecord) -> None:
        """A conversation out of the logs, where the audit kept none of it."""
        self._logged += 1
        number = self._conversation(told["trajectory"], told["agent"])
        if number in self._kept:
            return
        outcome: JsonRecord | None = told["outcome"]
        values = (len(told["events"]), None if outcome is None else bool(outcome["good"]), number)
        self._run("UPDATE conversations SET length = ?, good = ? WHERE number = ?", values)
        self._run("INSERT INTO quiet VALUES (?, ?)", (number, packed(told)))
        self._seek("quiet_talk", number, "\n".join(_said(told)))

    def _seek(self, table: str, number: int, text: str) -> None:
        self._run(f"INSERT INTO {table} (rowid, text) VALUES (?, ?)", (number, text))

    def _run(self, query: str, values: tuple[Any, ...]) -> None:
        try:
            self._database.execute(query, values)
        except UnicodeEncodeError:
            # A lone surrogate is no text to a database.
            self._database.execute(query, [clean(value) if isinstance(value, str) else value for value in values])


def _gravity(reason: Reason, executed: bool | None) -> int:
    """A call that the tool refused did no harm: it comes after those that were carried out."""
    return reason.gravity + (500 if executed is False else 0)


def _place_of(call: JsonRecord) -> str:
    return f"{call['trajectory']}:{call['step']}"


def _because(call: JsonRecord, reason: Reason) -> str:
    words = (policy["because"] for policy in call["policies"] if policy["id"] == reason.policy)
    return next(words, "") or call.get("because") or reason.words


def _words_of_rule(name: str, line: JsonRecord) -> str:
    """The same of a rule that is broken or open."""
    return "\n".join(str(value) for value in (name, *(line[each] for each in line if each not in _SHARED)))


def _words_of_call(name: str, call: JsonRecord, judged: list[JsonRecord]) -> str:
    """Whatever the list and the drawing show of a call, and not of every call of its cell or its conversation."""
    told: list[Any] = [name, call.get("because")]
    for policy in judged:
        told.append(policy["because"])
        told += [ask.get("question") for ask in policy["asks"]]
        for fact in (*policy["missing"], *policy["seen"]):
            told += [fact["entity"], fact["field"], *(fact["key"] or ()), fact.get("claim"), fact.get("value")]
            if lookup := fact.get("lookup"):
                told += [lookup["tool"], *lookup["args"].values()]
    return "\n".join(spelled(each, SAID) for each in told if each not in (None, ""))


def _said(told: JsonRecord) -> Iterator[str]:
    room = TALK
    for event in told["events"]:
        if event["type"] == "call":
            text = f"{event['tool']} {whole_text(event['arguments'])}"[:SAID]
        else:
            text = str(event.get("text") or "")[:SAID]
        room -= len(text)
        if room < 0:
            return
        yield text
