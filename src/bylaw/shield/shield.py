"""The shield decides each call before it runs, in many live conversations under one pack."""

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bylaw.engine import door
from bylaw.engine.conversation import OpenAnswers, OpenRequests
from bylaw.engine.door import warn_of_model
from bylaw.errors import BylawError, UsageError
from bylaw.pack import Pack, load_pack
from bylaw.pack.review import held_to, told_unaccepted
from bylaw.policy.folder import READY
from bylaw.policy.tool import Postures
from bylaw.record import Log
from bylaw.record.database import OWN
from bylaw.record.entry import DEFAULT_TENANT
from bylaw.shield.decision import Decision
from bylaw.shield.history import Opening, read_opening
from bylaw.shield.host import RunScheduled
from bylaw.shield.instructions import instructions
from bylaw.shield.resolving import RunTool
from bylaw.shield.session import LiveSession
from bylaw.text.visible import own_log

_logger = own_log()


class PinnedPack(BylawError):
    """Raised if a conversation began with a pack version that is not loaded."""

    code = "BY702"


class Shield:
    """A pack that is ready to decide the calls of live agents. Its sessions may run in different threads.

    With a `log` (a path or `postgresql://...`), every decision is on disk before it is returned. A conversation can
    then be continued by its id, here or in another process. A conversation keeps the pack version with which it began.
    `earlier` lists older versions that conversations may still use.
    """

    def __init__(
        self,
        pack: Pack | str | Path,
        *,
        postures: Postures | Mapping[str, Any] | None = None,
        log: Log | str | Path | None = None,
        tenant: str = DEFAULT_TENANT,
        earlier: Iterable[Pack | str | Path] = (),
        clock: Callable[[], float] = time.time,
        tools: RunTool | None = None,
        answers: OpenAnswers | None = None,
        requests: OpenRequests | None = None,
    ) -> None:
        self.pack = pack if isinstance(pack, Pack) else load_pack(pack)
        firmness = self.pack.postures if postures is None else door.postures(postures, self.pack)
        self.postures = held_to(firmness, self.pack.held_back)
        self.unaccepted = self.pack.held_back
        """Policies that are not enforced. For each, the reason: its review status, or `unenforced`."""
        if self.unaccepted:
            _logger.warning("%s: %s; see `bylaw review`", self.pack.name, told_unaccepted(self.unaccepted))
        if self.pack.now is not None and not self.pack.root.is_relative_to(READY):
            told = "`now:` in pack.yaml fixes the clock at %s for every decision; remove it for live agents"
            _logger.warning("%s: " + told, self.pack.name, self.pack.now.isoformat())
        self.tenant = tenant
        self.tools = tools
        """Makes look-ups through the host. Used with `resolve: live` and `resolve: show`."""
        if self.postures.resolve != "agent" and tools is None:
            hint = "pass `tools`, a function that takes a tool's name and arguments"
            raise UsageError(f"`resolve: {self.postures.resolve}` needs access to the host's tools", hint=hint)
        self.answers = answers
        if answers is not None:
            warn_of_model(self.pack)
        """Answers predicates that code cannot decide, for example a `bylaw.answering.Answerer`."""
        self.requests = requests
        """Determines what a request allows, for example a `bylaw.answering.RequestReader`."""
        self.scheduled: RunScheduled | None = None
        """Runs quick work of coroutines. A host with many tenants may set it to schedule tenants fairly."""
        self.doubts: Mapping[str, str] = {}
        """The host's objections, by tool. A reviewer decides on every call to such a tool, whatever the policies say.
        """
        self.clock = clock
        self.unwritten: dict[int, LiveSession] = {}
        """Sessions with events that are not in the log yet."""
        self.is_closed = False
        self._owns_log = not isinstance(log, Log)
        self.log = Log(str(log)) if isinstance(log, str | Path) else log
        older = [each if isinstance(each, Pack) else load_pack(each) for each in earlier]
        self._packs = {each.pin: (each, held_to(each.postures, each.held_back)) for each in older}
        self._packs[self.pack.pin] = (self.pack, self.postures)
        # Logs of earlier Bylaw versions identify a pack by the digest of all its files.
        self._packs |= {each.digest: self._packs[each.pin] for each in (*older, self.pack)}

    def session(
        self, id: str = "", *, context: Mapping[str, Any] | None = None, agent: str = "", lacks: str = ""
    ) -> LiveSession:
        """Open the conversation with this id from the log, or a new one.

        `context` contains values that the host guarantees, such as the signed-in user. `agent` names the agent for
        statistics. `lacks` is the reason why earlier events are unknown, if they are. Calls under a policy are then not
        allowed.
        """
        if not isinstance(id, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            hint = f'use a string such as `"{id}"`, the same one each time'
            raise UsageError(f"the id of a conversation must be a string, not `{type(id).__name__}`", hint=hint)
        if id.startswith(OWN):
            raise UsageError(f"the id of a conversation cannot start with `{OWN}`, which the log uses for itself")
        if "\0" in id:
            raise UsageError("the id of a conversation contains the character U+0000, which some logs cannot store")
        given, name = door.context(context), door.text(agent, "the name of an agent").strip()
        return LiveSession(self, id, given, name, lacks=lacks)

    def decide(
        self,
        messages: Iterable[Any],
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        id: str = "",
        context: Mapping[str, Any] | None = None,
    ) -> Decision:
        """Decide one call for a caller that keeps the history and sends all messages so far, in any log format.

        The last message may already contain the call. If it contains the same call twice, `id` selects one of them. The
        default is the second.
        """
        return LiveSession(self, context=door.context(context)).decide_after(messages, tool, arguments, id=id)

    def instructions(self, *, heard: bool = True) -> str:
        """Return Markdown for the agent's system prompt. Empty if no write needs confirmation or a look-up.

        The text says which writes need confirmation, how to ask the user, and what to look up first. With `heard=False`
        (user messages are not reported), it tells the agent to make each call without asking.
        """
        return instructions(self.pack, heard=heard)

    def pinned(self, opening: Opening | None = None) -> tuple[Pack, Postures]:
        """Return the pack and postures with which a conversation began. Without a conversation, return the current
        ones.
        """
        digest = self.pack.pin if opening is None else opening.digest
        found = self._packs.get(digest)
        if found is None:
            assert opening is not None
            raise PinnedPack(
                f"the conversation began under `{opening.pack}` {opening.version} ({digest[:12]}),"
                " which is not loaded here",
                hint="pass that version of the pack as `earlier`",
            )
        return found

    def stranded(self, *, within: float = 24 * 3600.0) -> int:
        """Return how many recent conversations began with a pack version that is not loaded. `within` is in seconds."""
        if self.log is None:
            return 0
        openings = self.log.openings(self.tenant, since=self.clock() - within)
        return sum(read_opening(body).digest not in self._packs for body in openings)

    def close(self) -> None:
        """Write pending events. Close the log if this shield opened it."""
        wrong: BylawError | None = None
        for session in list(self.unwritten.values()):
            try:
                session.flush()
            except BylawError as error:
                wrong = wrong or error
        self.unwritten.clear()
        self.is_closed = True
        if self.log is not None and self._owns_log:
            self.log.close()
        if wrong is not None:
            raise wrong

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Return this shield itself, so that a copied agent keeps its shield and log."""
        return self

    def __reduce__(self) -> Any:
        hint = "create `Shield(pack, log=...)` in each process; each finds conversations by id in the log"
        raise UsageError("a shield cannot be pickled, because its log and sessions belong to this process", hint=hint)

    def __repr__(self) -> str:
        count = (
            f"; {len(self.unaccepted)} of {len(self.pack.policies)} policies not enforced" if self.unaccepted else ""
        )
        return f"<shield of {self.pack.name} {self.pack.version}: {self.postures.posture}{count}>"


def shield_of(session: LiveSession) -> Shield:
    assert isinstance(session.shield, Shield)
    return session.shield
