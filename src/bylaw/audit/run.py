"""Audits files of recorded conversations.

Start at `audit`. The engine's session judges each conversation, event by event. With n jobs, each worker judges every
n-th conversation, and the results are joined in order.
"""

import gc
import json
import pickle
import signal
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from bylaw.audit.attestation import Attestation, Settled, by_digest, settle
from bylaw.audit.counts import Counts, UnmappedFields
from bylaw.audit.output import LineFiles, dump, keep_earlier_audit, replacing_audit
from bylaw.audit.request import Request, Shelf, open_tasks
from bylaw.audit.row import (
    FLAGGED,
    ConversationRow,
    Examined,
    Head,
    RuleRow,
    SeenDigests,
    UndecidedRow,
    answer_record,
    call_row,
    conversation_row,
    encode,
    head_of,
    identity_of,
    judged_call,
    limit_row,
    record_of,
    rule_row,
    undecided_policies,
    writable,
)
from bylaw.audit.store import read_calls as read_calls
from bylaw.audit.summary import policies_record, summarise
from bylaw.engine.conduct import RuleFinding
from bylaw.engine.judgement import Fault, fault_of
from bylaw.engine.limited import LimitedCall, limited_calls, over_limits
from bylaw.engine.predicate_values import Answered
from bylaw.engine.session import Mode, Session
from bylaw.engine.settlement import CallVerdict
from bylaw.errors import BylawError, RecordError, UsageError
from bylaw.facts.world import World
from bylaw.pack import Criterion, Pack
from bylaw.pack.review import Sides, sides_of
from bylaw.policy.folder import read_folder
from bylaw.trace import Identities
from bylaw.trace.event import Call, TaskOutcome, Trajectory
from bylaw.trace.reader import Look, read_source
from bylaw.trace.source import LogFile, Source

if TYPE_CHECKING:
    from bylaw.audit.redaction import Cover, Redaction


class Examiner:
    def __init__(self, request: Request) -> None:
        self.shelf = shelf = Shelf(request.pack, world=request.world, document=request.document)
        self._answers = request.answers
        self._attested = by_digest(request.attested)
        self._sides: dict[str, dict[str, Sides]] = {}
        """The text of each policy for reviewers, keyed by the pack's digest and the policy."""
        self._mode: Mode = request.mode
        self._tasks = open_tasks(shelf, request.tasks) if request.tasks is not None else None
        self._key = key = request.key
        self._names = request.names()
        self._expiring = {pack.digest for pack in shelf.packs if pack.schema.has_expiring()}
        self._redactions = _redactions(shelf.packs, key)
        self.begin()

    def begin(self) -> None:
        """Reset all counts before the next shard is examined."""
        packs = self.shelf.packs
        self.counts = Counts(packs)
        self._unmapped = {pack.digest: UnmappedFields(pack, self._redactions.get(pack.digest)) for pack in packs}

    def examine_all(
        self, request: Request, *, share: tuple[int, int] = (0, 1), only: int | None = None
    ) -> Iterator[Examined | RecordError]:
        """Examine the conversations of the files in order: all of them, every n-th starting at `k`, or `only` one.

        If a conversation cannot be judged, yield a RecordError for it.
        """
        self._names = request.names()
        files = request.files if only is None else request.files[only : only + 1]
        sources = (Source(file, request.agent, share, columns=request.columns) for file in files)
        return chain.from_iterable(map(self.examine_source, sources))

    def examine_source(self, source: Source, found: Look | None = None) -> Iterator[Examined | RecordError]:
        """Examine the conversations of a file or part of a file. Pass `found` if the format is already known."""
        file = source.path
        plain = file.name
        name = self._names.get(file, plain)
        try:
            for trajectory in read_source(source, found):
                if isinstance(trajectory, RecordError):
                    yield trajectory
                    continue
                if plain != name and trajectory.file == plain:
                    trajectory = replace(trajectory, file=name)
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
        """Judge the calls of one conversation, count the results, and create the rows."""
        pack = self.shelf.pack_for(trajectory)
        redaction = self._redactions.get(pack.digest)
        writes = self._judged_calls(pack, trajectory)
        verdicts, broken, answered = list[CallVerdict](), list[RuleFinding](), list[Answered]()
        session = None
        if writes or pack.book.rules:
            world, answer = self._world(pack, file) if writes else None, None
            if self._answers is not None:
                answer = self._answers(pack, lambda: judging.heard(trajectory.events))
            session = judging = Session(pack, world=world, mode=self._mode, context=trajectory.context, answer=answer)
            for _ in session.follow(trajectory.events, writes):
                pass
            # A call to an undeclared tool is a finding only if it may have been executed.
            verdicts = [v for v in session.settle() if v.made.tool is not None or v.made.accepted is not False]
            broken, answered = session.findings(ended=True), list(session.answered)
        outcome = self._outcome(trajectory, session, pack, file)
        cover = None
        if redaction is not None:
            cover = redaction.cover(trajectory.events, session.judged_world if session is not None else None, verdicts)
        for call in trajectory.events:
            if type(call) is Call and call.tool not in pack.schema.tools:
                self.counts.numbers["unknown_tool", call.tool if cover is None else cover.tool(call.tool)] += 1
        if cover is not None:
            verdicts = [_with_tool(each, cover.tool(each.made.call.tool)) for each in verdicts]
        seen = self._seen_digests(pack, trajectory, cover, verdicts)
        settled: list[Settled] = []
        if answers := self._answers_on(seen, cover):
            verdicts, wrong, settled = settle(verdicts, answers)
            broken = sorted([*broken, *wrong], key=lambda each: each.step)
        agent = self._agent(pack, trajectory, cover)
        for fault in session.faults if session is not None else ():
            self._note(fault, trajectory, is_private=redaction is not None)
        counts = self.counts
        counts.numbers["pack", pack.name] += 1
        head = head_of(pack, trajectory, agent, outcome, verdicts, broken)
        limited = [judged_call(call, head, verdicts) for call in limited_calls(pack, trajectory, self._key)]
        counts.add_conversation(head, verdicts)
        counts.add_open(pack, verdicts)
        counts.add_answered(answered)
        counts.add_settled(settled)
        counts.add_rules(agent, [(each.rule.name, pack.policies[each.rule.policy].severity) for each in broken])
        counts.limited += limited
        if not counts.add_times(trajectory.events) and verdicts and pack.digest in self._expiring:
            counts.numbers[("untimed",)] += 1
        known = session.ledger.calls if session is not None else None
        counts.evidence[pack.name].add(trajectory.events, known)
        for tool, name in self._unmapped[pack.digest].of(trajectory.events):
            counts.numbers["unmapped", tool, name] += 1
        return Judged(pack, trajectory, outcome, head, verdicts, broken, answered, settled, limited, seen).rows(cover)

    def _seen_digests(
        self, pack: Pack, trajectory: Trajectory, cover: "Cover | None", verdicts: Sequence[CallVerdict]
    ) -> dict[int, dict[str, str]]:
        """Return digests of the text that reviewers see, keyed by step and policy, for the undecided calls."""
        undecided: dict[int, tuple[str, ...]] = {}
        for each in verdicts:
            if names := undecided_policies(each):
                # One call to a generic tool may perform several actions.
                undecided[each.made.step] = tuple(dict.fromkeys((*undecided.get(each.made.step, ()), *names)))
        if not undecided:
            return {}
        whole, name = conversation_row(trajectory, trajectory.agent, None), trajectory.id
        if cover is not None:
            # A redacted conversation cannot be compared, so compute the digest from the original text and the key.
            whole, name = whole if self._key else cover.conversation(whole), cover.name(name)
        digests = SeenDigests(name, whole.events, self._key)
        if pack.digest not in self._sides:
            self._sides[pack.digest] = sides_of(read_folder(pack.root, cases=False))
        sides = self._sides[pack.digest]
        return {
            step: {policy: digests.of(step, policy, sides[policy]) for policy in names}
            for step, names in sorted(undecided.items())
        }

    def _answers_on(self, seen: dict[int, dict[str, str]], cover: "Cover | None") -> dict[int, dict[str, Attestation]]:
        """Return reviewers' answers about undecided calls, without private values, keyed by step and policy."""
        if not self._attested:
            return {}
        words = str if cover is None else cover.words
        found: dict[int, dict[str, Attestation]] = {}
        for step, policies in seen.items():
            for policy, digest in policies.items():
                if (given := self._attested.get(digest)) is not None:
                    given = replace(given, by=words(given.by), reason=words(given.reason))
                    found.setdefault(step, {})[policy] = given
        return found

    def _judged_calls(self, pack: Pack, trajectory: Trajectory) -> list[int]:
        tools, numbers = pack.schema.tools, self.counts.numbers
        writes: list[int] = []
        for step, call in enumerate(trajectory.events):
            if type(call) is not Call:
                continue
            tool = tools.get(call.tool)
            if tool is not None and (tool.effect != "none" or call.tool in pack.by_tool):
                # Do not count a tool without side effects, such as a calculator, as evidence that the pack fits the
                # logs.
                numbers[("known_calls",)] += 1
            if call.tool in pack.by_tool or pack.schema.may_write(call.tool):
                writes.append(step)
        return writes

    def _world(self, pack: Pack, file: LogFile) -> World | None:
        note, world = self.shelf.world_for(pack, file)
        if note:
            self.counts.numbers["world", self._names.get(file, file.name), note] += 1
        redaction = self._redactions.get(pack.digest)
        return world if redaction is None else redaction.watch(world)

    def _agent(self, pack: Pack, trajectory: Trajectory, cover: "Cover | None") -> str:
        agent = writable(trajectory.agent)
        if cover is not None:
            agent = cover.agent(agent)
        if changed := self.shelf.changed_policies(pack, trajectory):
            self.counts.numbers["changed", agent, *changed] += 1
        return f"{agent} (changed policy)" if changed else agent

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
        hint = "this is a bug in Bylaw; please report it and attach faults.jsonl"
        return RecordError(f"could not be judged ({type(error).__name__})", place=place, hint=hint)

    def _note(self, fault: Fault, trajectory: Trajectory, *, is_private: bool) -> None:
        """Record an error in Bylaw's code for `faults.jsonl`. If `is_private`, leave out the id and the message."""
        where = {"file": trajectory.file, "position": trajectory.position, "step": fault.step, "error": fault.error}
        told = {} if is_private else {"trajectory": trajectory.id, "message": fault.message}
        self.counts.faults.append(where | told | {"trace": fault.trace.splitlines()})


class Judged(Struct):
    """A judged conversation that has not been written yet."""

    pack: Pack
    trajectory: Trajectory
    outcome: TaskOutcome | None
    head: Head
    verdicts: list[CallVerdict]
    broken: list[RuleFinding]
    answered: list[Answered]
    settled: list[Settled]
    limited: list[LimitedCall]
    seen: dict[int, dict[str, str]]
    """Digests of the text that reviewers see for undecided calls, keyed by step and policy."""

    def rows(self, cover: "Cover | None") -> Examined:
        pack, trajectory, agent = self.pack, self.trajectory, self.head.agent
        scrubbed = cover.scrubbed if cover is not None else None
        calls: list[tuple[str, bool, bytes]] = []
        for verdict in self.verdicts:
            made = verdict.made
            answers = [answer_record(each) for each in self.answered if each.step == made.step]
            answers += [each.record() for each in self.settled if each.step == made.step]
            row = call_row(pack, agent, verdict, answers)
            if digests := self.seen.get(made.step):
                row.undecided = [UndecidedRow(name, digests[name]) for name in undecided_policies(verdict)] or UNSET
            flagged = verdict.strict in FLAGGED or verdict.determined in FLAGGED
            identity = identity_of(made.call, made.call.tool, scrubbed) if flagged else made.call.tool
            calls.append((identity, flagged, encode(row) if cover is None else cover.call(row)))
        rules: list[tuple[str, bytes]] = []
        for finding in self.broken:
            event = trajectory.events[finding.step] if 0 <= finding.step < len(trajectory.events) else None
            name = finding.rule.name
            identity = identity_of(event, name, scrubbed) if isinstance(event, Call) else name
            rules.append((identity, _written(rule_row(pack, agent, finding), cover)))
        conversation = None
        if rules or any(flagged for _, flagged, _ in calls):
            whole = conversation_row(trajectory, agent, self.outcome)
            conversation = encode(whole if cover is None else cover.conversation(whole))
        over = [(call, _written(limit_row(pack, agent, call), cover)) for call in self.limited]
        name = trajectory.id if cover is None else cover.name(trajectory.id)
        head = self.head
        if cover is not None:
            head = replace(head, file=cover.conversation(ConversationRow(file=head.file)).file)
        return Examined(name, calls, conversation, rules, over, head)


def _with_tool(verdict: CallVerdict, tool: str) -> CallVerdict:
    call = verdict.made.call
    if call.tool == tool:
        return verdict
    return replace(verdict, made=replace(verdict.made, call=replace(call, tool=tool)))


def _written(row: RuleRow, cover: "Cover | None") -> bytes:
    return encode(row if cover is None else cover.rule(record_of(row)))


def _redactions(packs: Sequence[Pack], key: bytes | None) -> "dict[str, Redaction]":
    """Return the redaction for each pack digest.

    With a key, it hides all values. Otherwise, it hides the pack's private values.
    """
    entities = [(pack, entity) for pack in packs for entity in pack.schema.entities.values()]
    marked = {pack.digest for pack, entity in entities if any(field.private for field in entity.fields.values())}
    hiding = [pack for pack in packs if key is not None or pack.digest in marked]
    if not hiding:
        return {}
    from bylaw.audit.redaction import Redaction

    return {pack.digest: Redaction(pack, key) for pack in hiding}


@contextmanager
def rarely_collecting() -> Generator[None]:
    """Run the garbage collector rarely.

    At the usual rate, it takes 10 % of an audit's time and finds few reference cycles.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(1_000_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


Progress = Callable[[int], None]


class Report(Struct, frozen=True):
    summary: dict[str, Any]
    out: Path
    skipped: tuple[RecordError, ...]
    names: Identities

    @property
    def criterion(self) -> Criterion:
        return self.summary["criterion"]

    @property
    def violations(self) -> int:
        """The number of executed calls that are violations."""
        return int(self.summary["verdicts"][self.criterion].get("violation", 0))

    @property
    def near_misses(self) -> int:
        """The number of executed calls that are near-misses."""
        return int(self.summary["verdicts"][self.criterion].get("near_miss", 0))


def audit(request: Request, out: Path, *, progress: Progress | None = None, examiner: Examiner | None = None) -> Report:
    """Audit every conversation in the files and write the output.

    Pass an `examiner` to reuse its loaded pack and open database.
    """
    examiner = examiner or Examiner(request)
    skipped: list[RecordError] = []
    with replacing_audit(out) as aside:
        parts = examiner.examine_all(request)
        if request.jobs > 1:
            parts = examine_in_parts(request, examiner, aside)
        with LineFiles(aside) as lines, rarely_collecting():
            for number, part in enumerate(parts):
                if isinstance(part, RecordError):
                    skipped.append(part)
                else:
                    lines.write(part)
                if progress is not None:
                    progress(number)
            lines.write_limits(over_limits(examiner.shelf.packs, examiner.counts.limited))
        if skipped and not lines.count:
            keep_earlier_audit(out, skipped)
        check_tools(examiner)
        if (pseudonyms := request.pseudonyms) is not None:
            skipped = [pseudonyms.fault(fault) for fault in skipped]
        summary = write_summary(aside, examiner, request, skipped, lines.repeated)
    return Report(summary, out, tuple(skipped), lines.names)


def write_summary(
    folder: Path, examiner: Examiner, request: Request, skipped: list[RecordError], repeated: int
) -> dict[str, Any]:
    """Write `policies.json`, `summary.json` and a file with any errors in Bylaw's own code. Return the summary."""
    summary = summarise(examiner.shelf, examiner.counts, request, skipped, repeated)
    if (pseudonyms := request.pseudonyms) is not None:
        summary = pseudonyms.summary(summary)
    dump(folder / "policies.json", policies_record(examiner.shelf.packs, examiner.counts))
    dump(folder / "summary.json", summary)
    if faults := examiner.counts.faults:
        text = "".join(json.dumps(fault) + "\n" for fault in faults)
        (folder / "faults.jsonl").write_text(text, encoding="utf-8", errors="backslashreplace")
    return summary


def check_tools(examiner: Examiner) -> None:
    """Raise an error if the pack declares none of the tools in the logs.

    Otherwise, the audit would look clean without checking anything.
    """
    unknown = examiner.counts.under("unknown_tool")
    if examiner.counts.numbers[("known_calls",)] or not unknown:
        return
    name = examiner.shelf.name
    known = sorted({tool for pack in examiner.shelf.packs for tool in pack.schema.tools})
    hint = f"it declares {_some(known)}; use the pack that belongs to the logs, or add their tools to tools.yaml"
    raise UsageError(f"pack `{name}` declares none of the tools in the logs ({_some(unknown)})", hint=hint)


def _some(names: Iterable[str]) -> str:
    first = sorted(names)
    more = f" and {len(first) - 4} more" if len(first) > 4 else ""
    return ", ".join(f"`{name}`" for name in first[:4]) + more if first else "none"


class WorkerError(BylawError):
    code = "BY103"


def examine_in_parts(request: Request, total: Examiner, aside: Path) -> Iterator[Examined | RecordError]:
    """Examine the files with `request.jobs` workers, and yield the results in order.

    `total` receives the counts. Workers write finished conversations to the folder `aside`, so each worker holds only
    one conversation in memory.
    """
    with tempfile.TemporaryDirectory(prefix="parts-", dir=aside) as folder, ExitStack() as opened:
        targets = [Path(folder) / f"part-{number}" for number in range(request.jobs)]
        for counts in _counts_of_parts(request, targets):
            total.counts.add(counts)
        streams = [opened.enter_context(target.open("rb")) for target in targets]
        for _ in request.files:
            yield from _joined(streams)


def _counts_of_parts(request: Request, targets: Sequence[Path]) -> list[dict[str, Any]]:
    """Run the workers and return the counts of each. The workers write their results to files."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    others = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(len(targets), mp_context=multiprocessing.get_context("spawn"))
    try:
        try:
            with ignoring_interrupts():
                work = [pool.submit(_examine_part, request, share, target) for share, target in enumerate(targets)]
        except (OSError, ValueError) as error:
            # If a worker ends while another worker starts, the shared pool breaks: the file descriptors of its pipes
            # may already be closed and reused.
            raise BrokenProcessPool from error
        return [part.result() for part in work]
    except BaseException as error:
        # The pool does not track workers that are still starting.
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        if isinstance(error, BrokenProcessPool):
            hint = "the machine may be out of memory: use a smaller --jobs"
            raise WorkerError("a worker stopped before it had finished", hint=hint) from None
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def ignoring_interrupts() -> Generator[None]:
    """Make workers that start inside this block ignore Ctrl-C. This process then ends them without tracebacks."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _examine_part(request: Request, share: int, target: Path) -> dict[str, Any]:
    examiner = Examiner(request)
    with target.open("wb") as out:
        for file in range(len(request.files)):
            for part in examiner.examine_all(request, share=(share, request.jobs), only=file):
                pickle.dump(part, out)
            pickle.dump(None, out)
    return examiner.counts.record()


def _joined(streams: Sequence[IO[bytes]]) -> Iterator[Examined | RecordError]:
    """Yield the conversations of one file, taking one from each worker's results in turn."""
    remaining = list(streams)
    while remaining:
        for stream in list(remaining):
            part: Any = pickle.load(stream)
            if part is None:
                remaining.remove(stream)
            else:
                yield part
