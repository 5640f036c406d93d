"""The decision log of a running program: one shared writer, and a reader that does not wait for commits.

`LastWriter` records which process last wrote to each conversation, so that this process need not look for entries from
other processes. The record is only a hint, because other programs may write too. A session that finds such entries when
it writes continues from the log.
"""

import mmap
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from types import TracebackType
from typing import Literal, Self, get_args

import msgspec
from msgspec.structs import replace

from bylaw.errors import UsageError
from bylaw.record.approval import WORDS as ATTESTED
from bylaw.record.approval import Approval, Attestation, Change, Status, draft
from bylaw.record.entry import DEFAULT_TENANT, Conflict, Draft, Entry
from bylaw.record.journal import Answers, Journal, LogError
from bylaw.record.reading import Reading
from bylaw.record.stop import LONGEST, WORDS, Lift, Stop, Stopped, Stops, Target, new_id, standing, stop_draft
from bylaw.record.store import open_store
from bylaw.record.verify import checked

LOOKING = 5.0
"""How often the chain is checked, in seconds."""
RECENT = 5_000
"""The number of entries at the end of a chain that are checked. All of them must be present."""
PLACES = 1 << 17
_SIZE = 8
"""The number of bytes per slot. A slot holds part of the conversation's hash and the number of the process."""


class LastWriter:
    """Records, in shared memory, which process last wrote to each conversation.

    Create it before starting the processes, which are numbered from zero.
    """

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, PLACES * _SIZE)

    def note(self, tenant: str, conversation: str, process: int) -> None:
        start, name = _place(tenant, conversation)
        self._memory[start : start + _SIZE] = name + bytes((process + 1,))

    def is_process(self, tenant: str, conversation: str, process: int) -> bool:
        """Whether this process wrote last. False if the slot is now used for another conversation."""
        start, name = _place(tenant, conversation)
        return self._memory[start : start + _SIZE] == name + bytes((process + 1,))


def _place(tenant: str, conversation: str) -> tuple[int, bytes]:
    digest = blake2b(f"{tenant}\0{conversation}".encode("utf-8", "replace"), digest_size=_SIZE + 3).digest()
    return int.from_bytes(digest[:4]) % PLACES * _SIZE, digest[4:]


class Log(Reading):
    """The log at a path or at `postgresql://...`, for all sessions in a process.

    Set `is_shared` if several processes continue the same conversations. Before each decision, sessions then read other
    processes' entries, unless `last` shows that this `process` wrote last. If `is_shared` is not set, a session finds
    such entries only when it writes, and then decides again.
    """

    def __init__(
        self,
        where: str,
        *,
        is_shared: bool = False,
        last: LastWriter | None = None,
        process: int = 0,
    ) -> None:
        self._is_shared = is_shared
        self._last = last
        self._process = process
        store = open_store(where)
        # An in-memory database supports only one connection.
        read = store if where == ":memory:" else open_store(where)
        super().__init__(read.connection, fault=LogError, lock=read.lock)
        wrote = partial(last.note, process=process) if last is not None else None
        self.journal = Journal(store, wrote=wrote)
        self._stops: dict[str, Stops] = {}
        """Each tenant's stops, as last read. If they have changed, decisions based on them are not written and must be
        repeated.
        """
        self._looked: dict[str, tuple[float, int]] = {}
        """For each tenant: when its chain was last found complete, and the number of entries without a conversation
        then.
        """

    def append(self, drafts: Sequence[Draft]) -> Answers:
        """Write drafts in order. On return, they are on disk."""
        return self.journal.append(drafts)

    def others_may_have_written(self, tenant: str, name: str) -> bool:
        """Whether a session must read other processes' entries before it makes a decision."""
        last = self._last
        return self._is_shared and (last is None or not last.is_process(tenant, name, self._process))

    def conversation(self, tenant: str, name: str, *, after: int = 0, settled: bool = True) -> list[Entry]:
        if not after:
            self._refuse_gaps(tenant)
        return super().conversation(tenant, name, after=after, settled=settled)

    def _refuse_gaps(self, tenant: str) -> None:
        """Raise an error if recent entries are missing or were emptied, because a call could be allowed for lack of
        history.

        This check is fast but incomplete. Only `verify` detects every kind of tampering.
        """
        now = time.monotonic()
        looked, removed = self._looked.get(tenant, (-LOOKING, 0))
        if now - looked < LOOKING:
            return
        found = self.extent(tenant, RECENT)
        is_whole = found.recent == min(RECENT, found.last) and found.without_conversation == removed
        if not is_whole and (gap := self.gap(tenant, RECENT)):
            raise LogError(f"`{self.name}` is incomplete: {gap}", hint="see `bylaw log verify`")
        self._looked[tenant] = now, found.without_conversation

    def approvals(self, tenant: str, *, status: Status | None = None, id: str = "") -> list[Approval]:
        with self._reading():
            return super().approvals(tenant, status=status, id=id)

    def supported(self, tenant: str, *, status: Status | None = None) -> tuple[list[Approval], dict[str, str]]:
        """Return the approvals that match the log's entries, and what is wrong with each of the others, both keyed by
        id.
        """
        with self.at_one_moment(), self._reading():
            right, wrong = checked(self, tenant, self.approvals(tenant, status=status))
        return [*right.values()], wrong

    def recently_answered(self, tenant: str, most: int) -> list[Approval]:
        """Return up to `most` answered approvals that match the log's entries, the one answered last first."""
        with self.at_one_moment(), self._reading():
            found = [each for each in self.approvals(tenant) if each.status != "waiting"]
            found.sort(key=lambda each: max(each.answered, each.ended, each.asked), reverse=True)
            right, _ = checked(self, tenant, found[: 2 * most])
        answered = [each for each in right.values() if each.answer is not None]
        return sorted(answered, key=lambda each: each.answered, reverse=True)[:most]

    def asked(self, tenant: str, id: str) -> Approval | None:
        """Return an approval if it exists and matches the log's entries, otherwise None."""
        with self.at_one_moment(), self._reading():
            right, wrong = checked(self, tenant, self.approvals(tenant, id=id))
        if wrong:
            raise LogError(f"approval `{id}` contradicts the log: {wrong[id]}; see `bylaw log verify`")
        return right.get(id)

    def stops(self, tenant: str) -> Stops:
        """Return the active stops as last read. If they have changed since, writes based on them are rejected."""
        found = self._stops.get(tenant)
        if found is None:
            # Another thread may forget them meanwhile.
            found = self._stops[tenant] = standing(*self.stop_history(tenant))
        return found

    def must_read_stops(self, tenant: str) -> bool:
        return tenant not in self._stops

    def forget_stops(self, tenant: str) -> None:
        """Discard the stops that were read, so that they are read again next time."""
        self._stops.pop(tenant, None)

    def every_stop(self, tenant: str) -> list[Stopped]:
        """Return every stop in the log, including ended ones."""
        return self.stop_history(tenant)[0]

    def stop(
        self,
        what: Target,
        name: str = "",
        *,
        by: str,
        reason: str,
        until: float,
        answer: Literal["ask", "deny"] = "deny",
        tenant: str = DEFAULT_TENANT,
    ) -> Stop:
        """Block all writes of an agent, tool, tenant or policy, or require a reviewer's approval for them.

        The stop applies to every process immediately. Calls that were already allowed are not undone.
        """
        if not by:
            raise UsageError("a stop needs the name of the person who adds it", hint="pass `by`")
        if not reason.strip():
            raise UsageError("a stop needs a reason, which agents and reviewers will read", hint="pass `reason`")
        if what not in get_args(Target) or answer not in ("ask", "deny"):
            raise UsageError(
                f"`{what}` with `{answer}` is not a valid stop",
                hint="use `agent`, `tool`, `policy` or `all`, with `ask` or `deny`",
            )
        if bool(name.strip()) != (what != "all"):
            hint = "name the agent, the tool or the policy; `all` has no name"
            raise UsageError(f"a stop of `{what}` {'needs a name' if not name else 'cannot have a name'}", hint=hint)
        if len(reason) > WORDS or len(name) > WORDS or len(by) > WORDS:
            raise UsageError(f"the reason or the name is longer than {WORDS} characters")
        name, now = name.strip(), time.time()
        if not now < until <= now + LONGEST:
            hint = "anything longer than a year belongs in the pack"
            raise UsageError("a stop must end in the future, within a year", hint=hint)
        made = Stop(new_id(), what, name, answer, by, " ".join(reason.split()), until)
        (entry,) = self.append([stop_draft(tenant, made)])
        if isinstance(entry, Conflict):
            raise UsageError(entry.message)
        self.forget_stops(tenant)
        return replace(made, since=entry.time)

    def lift(self, id: str, *, by: str, reason: str = "", tenant: str = DEFAULT_TENANT) -> Stopped:
        if not by:
            raise UsageError("lifting a stop needs the name of the person who lifts it", hint="pass `by`")
        found = {each.stop.id: each for each in self.every_stop(tenant)}.get(id)
        if found is None:
            raise UsageError(f"there is no stop `{id}`", hint="`bylaw stop list` lists them")
        if found.lift is not None:
            raise UsageError(f"nothing changed: `{id}` was already lifted by {found.lift.by}")
        (entry,) = self.append([stop_draft(tenant, Lift(id, by, " ".join(reason.split())))])
        if isinstance(entry, Conflict):
            raise UsageError(f"nothing changed: `{id}` was already lifted")
        self.forget_stops(tenant)
        return {each.stop.id: each for each in self.every_stop(tenant)}[id]

    def approve(self, id: str, *, by: str, tenant: str = DEFAULT_TENANT, note: str = "") -> Approval:
        """Approve one call for a single use. The approval expires after the pack's `lifetime`."""
        return self._answer(tenant, Change(id, "approved", by, note))

    def reject(self, id: str, *, by: str, tenant: str = DEFAULT_TENANT, note: str = "") -> Approval:
        return self._answer(tenant, Change(id, "rejected", by, note))

    def withdraw(self, id: str, *, by: str, tenant: str = DEFAULT_TENANT) -> Approval:
        """Withdraw an approval before its call has run. The call then needs a new approval."""
        for asked in self._approval(tenant, id):
            if asked.status != "approved":
                raise UsageError(f"approval `{id}` is {asked.status}, so it cannot be withdrawn")
            (entry,) = self.append([draft(tenant, asked.conversation, Change(id, "expired", by, "withdrawn"))])
            if isinstance(entry, Conflict):
                raise UsageError(entry.message)
            return self._approval(tenant, id)[0]
        raise UsageError(f"there is no approval `{id}`", hint="`bylaw log approvals` lists them")

    def attest(self, conversation: str, given: Attestation, *, tenant: str = DEFAULT_TENANT) -> None:
        """Record a person's statement in a conversation. It does not affect any decision."""
        if not given.by or not given.reason.strip():
            hint = "enter your name and a reason"
            raise UsageError("an attestation needs a name and a reason", hint=hint)
        if len(given.reason) > ATTESTED:
            raise UsageError(f"the reason is longer than {ATTESTED} characters")
        (entry,) = self.append([Draft(tenant, conversation, "attestation", msgspec.json.encode(given))])
        if isinstance(entry, Conflict):
            raise UsageError(entry.message)

    def _answer(self, tenant: str, change: Change) -> Approval:
        if not change.by:
            raise UsageError("an approval needs the name of the person who answers", hint="pass `by`")
        for asked in self._approval(tenant, change.approval):
            with self.at_one_moment(), self._reading():
                _, wrong = checked(self, tenant, self.approvals(tenant, id=asked.id))
            if why := wrong.get(asked.id):
                hint = "see `bylaw log verify`"
                raise UsageError(f"approval `{asked.id}` contradicts the log: {why}", hint=hint)
            if asked.answer is not None:
                raise UsageError(_said_before(asked))
            if change.status == "approved" and asked.request.lifetime:
                change = replace(change, expires=time.time() + asked.request.lifetime)
            said = draft(tenant, asked.conversation, change)
            (answer,) = self.append([said])
            now = self._approval(tenant, asked.id)[0]
            if now.answer is not None and now.answer != change:
                # Another reviewer answered first.
                raise UsageError(_said_before(now))
            if isinstance(answer, Conflict):
                raise UsageError(answer.message)
            return now
        raise UsageError(f"there is no approval `{change.approval}`", hint="`bylaw log approvals` lists them")

    def _approval(self, tenant: str, id: str) -> list[Approval]:
        # No name contains this character, which some databases do not accept.
        return self.approvals(tenant, id=id) if id and "\0" not in id else []

    def close(self) -> None:
        """Write everything pending, then close the database."""
        self.journal.close()
        self.journal.store.close()
        super().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def _said_before(approval: Approval) -> str:
    """Return a message that the approval was already answered: by whom, when, and what has changed since."""
    answer = approval.answer
    assert answer is not None
    at = datetime.fromtimestamp(approval.answered, UTC).isoformat(" ", "seconds") if approval.answered else "before"
    then = f", and has since been {approval.status}" if approval.status != answer.status else ""
    return f"nothing changed: approval `{approval.id}` was already {answer.status} by {answer.by}, {at}{then}"
