"""Conversations under their pack, one after the other: each a fold of the engine's session over its events."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.audit.coverage import LogCoverage
from bylaw.audit.head import Head, head_of
from bylaw.audit.line import FLAGGED, call_line, conversation_line, deed_of, encode, limit_line, rule_line, writable
from bylaw.audit.open_rule import open_reason
from bylaw.audit.request import Request, told_apart
from bylaw.audit.shelf import Shelf, open_tasks
from bylaw.audit.tally import Tally
from bylaw.audit.unmapped import UnmappedFields
from bylaw.engine.conversation import OpenAnswers
from bylaw.engine.fault import Fault, fault_of
from bylaw.engine.limited import LimitedCall, limited_calls
from bylaw.engine.predicate_values import Answered
from bylaw.engine.rule_finding import RuleFinding
from bylaw.engine.session import Mode, Session
from bylaw.engine.settlement import CallVerdict
from bylaw.errors import BylawError, RecordError
from bylaw.facts.evidence import EvidenceCount
from bylaw.facts.world import World
from bylaw.pack import Pack
from bylaw.trace.event import Call
from bylaw.trace.format import Look
from bylaw.trace.log_file import LogFile
from bylaw.trace.reader import read_source
from bylaw.trace.source import Source
from bylaw.trace.trajectory import TaskOutcome, Trajectory

if TYPE_CHECKING:
    from bylaw.audit.cover import Cover, Redaction


class Examined(Struct):
    """What an audit keeps of one conversation: lines without its name, which is given where order is known."""

    id: str
    calls: list[tuple[int, str, bool, bytes]]
    """Step, what was called (with what, where it is flagged), whether flagged, and the rest of its line."""
    conversation: bytes | None
    findings: list[tuple[str, bytes]]
    """Rules that were broken (by what call), each with its line."""
    limited: list[tuple[LimitedCall, bytes]] = []
    """Calls that count under limits, each with the line of a finding should it be one too many."""
    head: Head | None = None
    """What is told of every conversation, where tables are written."""


class Examiner:
    """Judges conversations one by one and counts what it finds."""

    def __init__(
        self,
        shelf: Shelf,
        *,
        mode: Mode = "hindsight",
        tasks: Any = None,
        key: bytes | None = None,
        answers: OpenAnswers | None = None,
        heads: bool = False,
    ) -> None:
        self.shelf = shelf
        self._heads = heads
        self._answers = answers
        self._mode: Mode = mode
        self._tasks = tasks
        self._key = key
        guards = [(name, guard) for pack in shelf.packs for name, guard in pack.guards.items()]
        self._factless = frozenset(name for name, guard in guards if not guard.facts)
        self._names: dict[LogFile, str] = {}
        """What each file is called."""
        self._expiring = {pack.digest for pack in shelf.packs if pack.schema.has_expiring()}
        self._redactions = _redactions(shelf.packs, key)
        self.begin()

    def begin(self) -> None:
        """Count from nothing, as for another part of the logs."""
        packs = self.shelf.packs
        self.tally = Tally(factless=self._factless)
        self.coverage = LogCoverage(evidence={pack.name: EvidenceCount(pack.schema) for pack in packs})
        self._unmapped = {pack.digest: UnmappedFields(pack, self._redactions.get(pack.digest)) for pack in packs}

    def examine_all(
        self, request: Request, *, share: tuple[int, int] = (0, 1), only: int | None = None
    ) -> Iterator[Examined | RecordError]:
        """Examine the conversations of the files, or of one, in order: all, or a share (`k` of `n`, by position).

        One that cannot be judged, by a fault of ours or its own, does not cost those after it.
        """
        self._names = told_apart(request.files)
        files = request.files if only is None else request.files[only : only + 1]
        sources = (Source(file, request.agent, share, columns=request.columns) for file in files)
        return chain.from_iterable(map(self.examine_source, sources))

    def name_files(self, names: dict[LogFile, str]) -> None:
        """Say what each file is called."""
        self._names = names

    def examine_source(self, source: Source, found: Look | None = None) -> Iterator[Examined | RecordError]:
        """Examine the conversations of a file, or of a part of it whose format was found before."""
        file = source.path
        name = file.name
        told = self._names.get(file, name)
        try:
            for trajectory in read_source(source, found):
                if isinstance(trajectory, RecordError):
                    yield trajectory
                    continue
                if name != told and trajectory.file == name:
                    trajectory = replace(trajectory, file=told)
                try:
                    part = self.examine(trajectory, file)
                except BylawError as error:
                    place = error.place or f"{file}#{trajectory.position}"
                    part = RecordError(error.message, place=place, hint=error.hint)
                except Exception as error:
                    part = self._fault_of_ours(error, trajectory, f"{file}#{trajectory.position}")
                yield part
        except BylawError as error:
            if source.share[0] == 0:
                yield RecordError(error.message, place=error.place or str(file), hint=error.hint)

    def examine(self, trajectory: Trajectory, file: LogFile) -> Examined:
        """Audit one conversation: judge its calls, count, and write its lines."""
        pack = self.shelf.pack_for(trajectory)
        redaction = self._redactions.get(pack.digest)
        writes = self._judged_calls(pack, trajectory)
        session, verdicts = None, list[CallVerdict]()
        if writes or pack.book.rules:
            world = self._world(pack, file) if writes else None
            answer = (
                self._answers(pack, lambda: judging.heard(trajectory.events)) if self._answers is not None else None
            )
            session = judging = Session(pack, world=world, mode=self._mode, context=trajectory.context, answer=answer)
            verdicts = _judge(session, trajectory, writes)
        broken = session.findings(ended=True) if session is not None else []
        outcome = self._outcome(trajectory, session, pack, file)
        cover = None
        if redaction is not None:
            cover = redaction.cover(trajectory.events, session.judged_world if session is not None else None, verdicts)
        agent = self._agent(pack, trajectory, cover)
        for fault in session.faults if session is not None else ():
            self._note(fault, trajectory, is_private=redaction is not None)
        self._count(pack, trajectory, agent, outcome, verdicts, session)
        limited = list(limited_calls(pack, trajectory, self._key))
        self.coverage.limited.extend(limited)
        made = [verdict for verdict in verdicts if verdict.made.accepted is not False]
        self.tally.add_open([_open_rules(pack, verdict) for verdict in made if verdict.open_rules])
        answered = list(session.answered) if session is not None else []
        self.tally.add_answered((each.predicate, each.value) for each in answered if each.queries)
        self.tally.add_rules(agent, [(each.rule.name, pack.policies[each.rule.policy].severity) for each in broken])
        written = _written(pack, trajectory, agent, outcome, verdicts, broken, answered, cover)
        if limited:
            written.limited = [(each, _limit_line(pack, agent, each, cover)) for each in limited]
        if self._heads:
            written.head = head_of(pack, trajectory, agent, outcome, verdicts, broken, cover)
        return written

    def _judged_calls(self, pack: Pack, trajectory: Trajectory) -> list[int]:
        """The steps of the calls that change something, may do so, or that a guard binds."""
        tools = pack.schema.tools
        writes: list[int] = []
        for step, call in enumerate(trajectory.events):
            if type(call) is not Call:
                continue
            tool = tools.get(call.tool)
            if tool is None:
                self.coverage.unknown_tools[call.tool] += 1
            elif tool.effect != "none" or call.tool in pack.by_tool:
                # A calculator is in every shop, and makes no pack the right one.
                self.coverage.known_calls += 1
            if tool is None or tool.effect == "write" or call.tool in pack.by_tool:
                writes.append(step)
        return writes

    def _world(self, pack: Pack, file: LogFile) -> World | None:
        note, world = self.shelf.world_for(pack, file)
        if note:
            self.coverage.worlds[self._names.get(file, file.name)] = note
        redaction = self._redactions.get(pack.digest)
        return world if redaction is None else redaction.watch(world)

    def _agent(self, pack: Pack, trajectory: Trajectory, cover: "Cover | None") -> str:
        """The name that the conversation is counted under: a name may itself hold something private."""
        agent = writable(trajectory.agent)
        changed = self.shelf.changed_policies(pack, trajectory)
        if cover is not None:
            agent = cover.scrubbed(agent)
        if changed:
            self.coverage.add_changed(changed, agent)
        return f"{agent} (changed policy)" if changed else agent

    def _count(
        self,
        pack: Pack,
        trajectory: Trajectory,
        agent: str,
        outcome: TaskOutcome | None,
        verdicts: list[CallVerdict],
        session: Session | None,
    ) -> None:
        self.tally.add_pack(pack.name)
        self.tally.add(agent, outcome, verdicts)
        if verdicts and pack.digest in self._expiring and all(event.time is None for event in trajectory.events):
            self.tally.add_untimed()
        self.coverage.add_times(trajectory.events)
        known = session.ledger.calls if session is not None else None
        self.coverage.evidence[pack.name].add(trajectory.events, known)
        self.coverage.unmapped.update(self._unmapped[pack.digest].of(trajectory.events))

    def _outcome(
        self, trajectory: Trajectory, session: Session | None, pack: Pack, file: LogFile
    ) -> TaskOutcome | None:
        if self._tasks is None:
            return trajectory.outcome
        world = session.world if session is not None else None
        if world is None:
            _, base = self.shelf.world_for(pack, file)
            world = base.fork() if base is not None else None
        found = self._tasks.outcome(trajectory, world) if world is not None else None
        return found if found is not None else trajectory.outcome

    def _fault_of_ours(self, error: Exception, trajectory: Trajectory, place: str) -> RecordError:
        self._note(fault_of(error, -1), trajectory, is_private=True)
        hint = "a fault of Bylaw's own: please report it with faults.jsonl"
        return RecordError(f"could not be judged ({type(error).__name__})", place=place, hint=hint)

    def _note(self, fault: Fault, trajectory: Trajectory, *, is_private: bool) -> None:
        """Keep a fault of our own for `faults.jsonl`; where something is private, nothing of the conversation."""
        where = {"file": trajectory.file, "position": trajectory.position, "step": fault.step, "error": fault.error}
        told = {} if is_private else {"trajectory": trajectory.id, "message": fault.message}
        self.coverage.faults.append(where | told | {"trace": fault.trace.splitlines()})


def _redactions(packs: Sequence[Pack], key: bytes | None) -> "dict[str, Redaction]":
    """By the digest of a pack, what covers its private values or, with a key, all values; most packs need nothing."""
    entities = [(pack, entity) for pack in packs for entity in pack.schema.entities.values()]
    marked = {pack.digest for pack, entity in entities if any(field.private for field in entity.fields.values())}
    hiding = [pack for pack in packs if key is not None or pack.digest in marked]
    if not hiding:
        return {}
    from bylaw.audit.cover import Redaction

    return {pack.digest: Redaction(pack, key) for pack in hiding}


def open_examiner(request: Request, *, heads: bool = False) -> Examiner:
    """Load the pack and open the world of a request; `heads` where every conversation is told of, as in tables."""
    shelf = Shelf(request.pack, world=request.world, document=request.document)
    tasks = open_tasks(shelf, request.tasks) if request.tasks is not None else None
    return Examiner(shelf, mode=request.mode, tasks=tasks, key=request.key, answers=request.answers, heads=heads)


def _judge(session: Session, trajectory: Trajectory, writes: Sequence[int]) -> list[CallVerdict]:
    """Take in all events, each of these calls judged where it stands: the verdicts on them."""
    for _ in session.follow(trajectory.events, writes):
        pass
    # A call of a tool nobody declared is a finding only if it may have done something.
    return [each for each in session.settle() if each.made.tool is not None or each.made.accepted is not False]


def _open_rules(pack: Pack, verdict: CallVerdict) -> list[tuple[str, str]]:
    """The open rules of a call, each once, with why it is open."""
    return list({each.rule.name: open_reason(pack, each) for each in verdict.open_rules}.items())


def _limit_line(pack: Pack, agent: str, call: LimitedCall, cover: "Cover | None") -> bytes:
    limit = next(each for each in pack.book.limits if each.name == call.limit)
    line = limit_line(pack, agent, limit, call.step)
    return encode(line if cover is None else cover.rule(line))


def _written(
    pack: Pack,
    trajectory: Trajectory,
    agent: str,
    outcome: TaskOutcome | None,
    verdicts: list[CallVerdict],
    broken: list[RuleFinding],
    answered: list[Answered],
    cover: "Cover | None",
) -> Examined:
    """The lines about one conversation, with what must not be told covered."""
    calls: list[tuple[int, str, bool, bytes]] = []
    scrubbed = cover.scrubbed if cover is not None else None
    for verdict in verdicts:
        record = call_line(pack, agent, verdict, [each for each in answered if each.step == verdict.made.step])
        flagged = verdict.strict in FLAGGED or verdict.determined in FLAGGED
        call = verdict.made.call
        deed = deed_of(call, call.tool, scrubbed) if flagged else call.tool
        calls.append((verdict.made.step, deed, flagged, encode(record) if cover is None else cover.call(record)))
    findings: list[tuple[str, bytes]] = []
    for finding in broken:
        line = rule_line(pack, agent, finding)
        broke = trajectory.events[finding.step] if 0 <= finding.step < len(trajectory.events) else None
        name = finding.rule.name
        deed = deed_of(broke, name, scrubbed) if isinstance(broke, Call) else name
        findings.append((deed, encode(line if cover is None else cover.rule(line))))
    conversation = None
    if findings or any(flagged for _, _, flagged, _ in calls):
        told = conversation_line(trajectory, agent, outcome)
        conversation = encode(told if cover is None else cover.conversation(told))
    name = trajectory.id if cover is None else cover.name(trajectory.id)
    return Examined(name, calls, conversation, findings)
