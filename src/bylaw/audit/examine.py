"""One trajectory under its pack: a fold of the engine's session over its events."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from bylaw.audit.line import FLAGGED, call_line, conversation_line, encode, rule_line, writable
from bylaw.audit.redaction import Redaction
from bylaw.audit.shelf import Shelf
from bylaw.audit.tally import Tally
from bylaw.engine.fault import Fault
from bylaw.engine.pack import Pack
from bylaw.engine.session import Mode, Session
from bylaw.engine.settlement import CallVerdict
from bylaw.trace.event import Call, Result
from bylaw.trace.trajectory import TaskOutcome, Trajectory

_KEPT = 1 << 12
"""Sets of field names that are remembered."""


class Examined(Struct):
    """What an audit keeps of one trajectory: lines without its name, which is given where order is known."""

    id: str
    calls: list[tuple[int, str, bool, bytes]]
    """Step, tool, whether flagged, and the rest of its line."""
    conversation: bytes | None
    findings: list[tuple[str, bytes]]
    """Rules that were broken, each with its line."""


class Examiner:
    """Judges trajectories one by one and counts what it finds."""

    def __init__(self, shelf: Shelf, *, mode: Mode = "hindsight", tasks: Any = None, key: bytes | None = None) -> None:
        self.shelf = shelf
        self._mode: Mode = mode
        self._tasks = tasks
        guards = [(name, guard) for pack in shelf.packs for name, guard in pack.guards.items()]
        self.tally = Tally(factless=frozenset(name for name, guard in guards if not guard.facts))
        self.unknown_tools: Counter[str] = Counter()
        self.unmapped: Counter[tuple[str, str]] = Counter()
        self.faults: list[dict[str, Any]] = []
        """What went wrong in our own code, with where."""
        self.worlds: dict[str, str] = {}
        self.changed: dict[tuple[str, ...], Counter[str]] = {}
        self._mapped: dict[tuple[str, str], frozenset[str]] = {}
        self._unmapped: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        self._expiring = {pack.digest for pack in shelf.packs if pack.schema.has_expiring()}
        self._redactions = {pack.digest: redaction for pack in shelf.packs if (redaction := Redaction(pack, key))}

    def examine(self, trajectory: Trajectory, file: Path) -> Examined:
        """Audit one trajectory."""
        pack = self.shelf.pack_for(trajectory)
        agent = writable(trajectory.agent)
        if changed := self.shelf.changed_policies(pack, trajectory):
            agent = f"{agent} (changed policy)"
            self.changed.setdefault(changed, Counter())[trajectory.agent] += 1
        redaction = self._redactions.get(pack.digest)
        session, verdicts = self._judge(pack, trajectory, file)
        for fault in session.faults if session is not None else ():
            self.note(fault, trajectory, is_private=redaction is not None)
        outcome = self._outcome(trajectory, session, pack, file)
        self.tally.add_pack(pack.name)
        self.tally.add(agent, outcome, verdicts)
        if verdicts and pack.digest in self._expiring and all(event.time is None for event in trajectory.events):
            self.tally.add_untimed()
        broken = session.findings(ended=True) if session is not None else []
        if broken:
            self.tally.add_rules(agent, broken)
        cover = None
        if redaction is not None and (verdicts or broken):
            cover = redaction.cover(trajectory.events, session.world if session is not None else None, verdicts)
        calls: list[tuple[int, str, bool, bytes]] = []
        for verdict in verdicts:
            record = call_line(pack, agent, verdict)
            if cover is not None:
                record = cover.call(record)
            flagged = verdict.strict in FLAGGED or verdict.determined in FLAGGED
            calls.append((verdict.made.step, verdict.made.call.tool, flagged, encode(record)))
        conversation = None
        if broken or any(flagged for _, _, flagged, _ in calls):
            told = conversation_line(trajectory, agent, outcome)
            conversation = encode(told if cover is None else cover.conversation(told))
        findings: list[tuple[str, bytes]] = []
        for finding in broken:
            line = rule_line(pack, agent, finding)
            findings.append((finding.rule.name, encode(line if cover is None else cover.rule(line))))
        name = trajectory.id
        if redaction is not None:
            name = redaction.name(name) if cover is None else cover.name(name)
        return Examined(name, calls, conversation, findings)

    def note(self, fault: Fault, trajectory: Trajectory, *, is_private: bool) -> None:
        """Keep a fault of our own for `faults.jsonl`; where something is private, nothing of the conversation."""
        where = {"file": trajectory.file, "position": trajectory.position, "step": fault.step, "error": fault.error}
        told = {} if is_private else {"trajectory": trajectory.id, "message": fault.message}
        self.faults.append(where | told | {"trace": fault.trace.splitlines()})

    def _judge(self, pack: Pack, trajectory: Trajectory, file: Path) -> tuple[Session | None, list[CallVerdict]]:
        tools, events = pack.schema.tools, trajectory.events
        writes: list[int] = []
        calls = [(step, event) for step, event in enumerate(events) if isinstance(event, Call)]
        for step, call in calls:
            tool = tools.get(call.tool)
            if tool is None:
                self.unknown_tools[call.tool] += 1
            if tool is None or tool.effect == "write" or call.tool in pack.by_tool:
                writes.append(step)
        self._note_unmapped(pack, trajectory)
        if not writes and not pack.book.rules:
            return None, []
        note, world = self.shelf.world_for(pack, file) if writes else ("", None)
        if note:
            self.worlds[file.name] = note
        if writes and (redaction := self._redactions.get(pack.digest)) is not None:
            world = redaction.watch(world)
        session = Session(pack, world=world, mode=self._mode, context=trajectory.context)
        observed = 0
        for step in writes:
            call = events[step]
            if isinstance(call, Call) and call.by == "agent":
                session.observe_all(events[observed:step])
                session.judge(call)
                observed = step
        session.observe_all(events[observed:])
        verdicts = session.settle()
        # A call of a tool nobody declared is a finding only if it may have done something.
        return session, [v for v in verdicts if v.made.tool is not None or v.made.accepted is not False]

    def _outcome(self, trajectory: Trajectory, session: Session | None, pack: Pack, file: Path) -> TaskOutcome | None:
        if self._tasks is None:
            return trajectory.outcome
        world = session.world if session is not None else None
        if world is None:
            _, base = self.shelf.world_for(pack, file)
            world = base.fork() if base is not None else None
        found = self._tasks.outcome(trajectory, world) if world is not None else None
        return found if found is not None else trajectory.outcome

    def _note_unmapped(self, pack: Pack, trajectory: Trajectory) -> None:
        """Note result fields that no observation maps; results with the same names are compared with it once."""
        for result in trajectory.events:
            call = trajectory.events[result.call] if isinstance(result, Result) and result.call is not None else None
            if not isinstance(result, Result) or not isinstance(call, Call) or call.tool not in pack.schema.tools:
                continue
            names = tuple(_names_in(result.content))
            unmapped = self._unmapped.get((pack.name, call.tool, names))
            if unmapped is None:
                mapped = self._mapped_by(pack, call.tool)
                unmapped = [name for name in names if name not in mapped]
                if len(self._unmapped) < _KEPT:
                    self._unmapped[pack.name, call.tool, names] = unmapped
            if unmapped and (redaction := self._redactions.get(pack.digest)) is not None:
                unmapped = redaction.tellable(call.tool, result.value(), unmapped)
            self.unmapped.update((call.tool, name) for name in unmapped)

    def _mapped_by(self, pack: Pack, tool: str) -> frozenset[str]:
        mapped = self._mapped.get((pack.name, tool))
        if mapped is None:
            kinds = [observation.entity for each in pack.schema.shows.get(tool, {}).values() for observation in each]
            mapped = frozenset(name for entity in kinds for name in (*entity.fields, *entity.key))
            self._mapped[pack.name, tool] = mapped
        return mapped


_rows = msgspec.json.Decoder(dict[str, Raw] | list[Raw])
_row = msgspec.json.Decoder(dict[str, Raw])


def _names_in(content: str | Raw) -> Iterable[str]:
    """The field names of a result's record, or of the first of its records; none of their values is decoded."""
    try:
        rows = _rows.decode(content)
        if isinstance(rows, list):
            return _row.decode(cast(list[Raw], rows)[0]) if rows else ()
        return rows
    except (msgspec.DecodeError, RecursionError):
        return ()
