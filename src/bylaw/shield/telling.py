"""What happens in a live conversation, said by its host as it happens, and how it stands."""

import threading
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

from bylaw.consent import is_message
from bylaw.engine import door
from bylaw.engine.context import goes_on
from bylaw.engine.conversation import Conversation
from bylaw.engine.request import Allowance
from bylaw.errors import UsageError
from bylaw.pack import Pack
from bylaw.shield.call_decisions import CallDecisions, Happening, Host
from bylaw.shield.state import SessionState
from bylaw.trace.event import Event
from bylaw.trace.trajectory import Trajectory


class Telling:
    """One live conversation, as it is told of and stands."""

    def __init__(
        self,
        shield: Host,
        id: str = "",
        context: Mapping[str, Any] | None = None,
        by: str = "",
        *,
        lacks: str = "",
    ) -> None:
        self.shield = shield
        self._state: CallDecisions = (
            CallDecisions(shield, id, context, by, lacks)
            if shield.log is None
            else SessionState(shield, shield.log, id, context, by, lacks)
        )
        self._by = by
        """The agent that goes on with it here, whoever began it."""
        self._lock = threading.RLock()
        """One thing at a time: frameworks run tools in threads of their own."""
        self._handed_over = 0

    def user(self, text: str, *, time: float | None = None, whole: bool = True) -> None:
        """The user said something; not `whole` where there was more to it than text, such as a voice note or a file.

        What is no text, or an empty text, is nobody's yes, and what was agreed to before it is open.
        """
        said, at = door.text(text, "what the user said"), door.moment(time, self.shield.clock)
        whole = door.yes_or_no(whole, "`whole`")
        self._happen(lambda conversation: conversation.user(said, time=at, whole=whole), is_said=True)

    def agent(self, text: str, *, time: float | None = None) -> None:
        """The agent said something."""
        said, at = door.text(text, "what the agent said"), door.moment(time, self.shield.clock)
        self._happen(lambda conversation: conversation.agent(said, time=at), is_said=True)

    def vouch(self, context: Mapping[str, Any]) -> bool:
        """What the host vouches for from the next call on, beside what it vouched for before; whether that hands the
        conversation over.

        Another principal (`signed_in_as`) is refused, as they begin a conversation of their own, unless the pack lets
        them go on (`handover`). Who says nothing is refused where the conversation has been handed over.
        """
        given = door.context(context) or {}
        with self._lock:
            before = self._state.open().handed_over
            self._happen(lambda conversation: conversation.vouch(given))
            is_another = self._state.open().handed_over != before
            ours = self._state.speaks_for
            self._state.speaks_for = {**ours, **given} if goes_on(ours, given) else given
            return is_another

    def unheard(self) -> None:
        """Agent and user may have talked, and nobody told: rules about their words are open from here on."""
        self._happen(Conversation.unheard)

    def catch_up(self) -> None:
        """Take in what others have written to the conversation meanwhile."""
        with self._lock:
            if not self._state.unwritten:
                self._state.catch_up()

    def resume_turn(self) -> None:
        """What is decided next is still of the agent's last turn, whatever tools have answered since."""
        self._happen(Conversation.resume_turn)

    def messages(self, messages: Iterable[Any]) -> None:
        """Messages of the conversation so far, or what is new of them, with calls and results: what happened, not to be
        decided. Of the last one's calls, those that are asked about next have not been made."""
        given, at = door.messages(messages), self.shield.clock()
        self._happen(lambda conversation: conversation.messages(given, asks=True, time=at), is_said=True)

    def result(
        self,
        content: Any,
        *,
        id: str = "",
        error: bool | None = None,
        captured: bool = True,
        time: float | None = None,
        tool: str = "",
        refused: bool | None = None,
    ) -> None:
        """What the tool answered; or, after a refusal, what the agent was told in its place.

        Without `id` it is the answer to the call that waits. Where several do, it needs one, or the `tool` whose only
        call it answers. `refused=True` says that it failed before the tool ran: a name or arguments that were turned
        down. Of any other error of a write nobody knows whether it came after the deed.
        """
        id, tool = door.text(id, "the id of a call"), door.text(tool, "a tool's name")
        error = None if error is None else door.yes_or_no(error, "`error`")
        captured = door.yes_or_no(captured, "`captured`")
        refused = True if refused is not None and door.yes_or_no(refused, "`refused`") else None
        shown, at = (
            door.writable(content) if isinstance(content, str) else content,
            door.moment(time, self.shield.clock),
        )

        def answer(conversation: Conversation) -> None:
            if not id:
                door.one_waits(conversation.waiting(), tool)
            conversation.result(shown, id=id, error=error, captured=captured, time=at, tool=tool, refused=refused)

        self._happen(answer)

    @contextmanager
    def turn(self, text: str = "") -> Generator[Self]:
        """One turn of the agent: what is decided inside was asked for at once, whatever is answered in between."""
        said, at = door.text(text, "what the agent said"), self.shield.clock()
        with self._lock:
            self._refuse_nesting()
            begin: Happening = lambda conversation: conversation.begin_turn(said, time=at)  # noqa: E731
            self._happen(begin)
            self._state.is_held, self._state.held_by = True, begin
        try:
            yield self
        finally:
            self._state.is_held, self._state.held_by = False, None
            self._happen(Conversation.finish_turn)

    def _refuse_nesting(self) -> None:
        """What is decided after the inner turn would no longer be of the outer one, and see what it was shown."""
        if self._state.is_held:
            hint = "end the first, or decide its calls with `decide(...)`"
            raise UsageError("a turn of the agent is still open: it must end before another begins", hint=hint)

    def _happen(self, happening: Happening, *, is_said: bool = False) -> None:
        with self._lock:
            self._state.happen(self._spoken(happening) if is_said else happening)
            if self._state.has_news:
                # What happened is written when the shield closes, even where nobody holds on to the session.
                self.shield.unwritten[id(self._state)] = self

    def _spoken(self, happening: Happening) -> Happening:
        """The same, said by or to whoever is vouched for here."""

        def spoken(conversation: Conversation) -> None:
            self._state.speak(conversation)
            happening(conversation)

        return spoken

    @property
    def id(self) -> str:
        """The name of the conversation."""
        return self._state.id

    @property
    def is_named(self) -> bool:
        """Whether the host gave the conversation its name."""
        return self._state.is_named

    @property
    def lacks(self) -> str:
        """Why what happened before is not known here; empty where it is."""
        return self._state.lacks

    @lacks.setter
    def lacks(self, why: str) -> None:
        self._state.lacks = why

    @property
    def puts_cards(self) -> bool:
        """Whether the host puts cards and questions to the user itself, though it does not tell what else is said."""
        return self._state.puts_cards

    @puts_cards.setter
    def puts_cards(self, puts: bool) -> None:
        self._state.puts_cards = puts

    @property
    def files_unheard(self) -> bool:
        """Whether a person answers what only the user could, since the host neither tells what they say nor asks
        them."""
        return self._state.files_unheard

    @files_unheard.setter
    def files_unheard(self, files: bool) -> None:
        self._state.files_unheard = files

    @property
    def hears_user(self) -> bool:
        """Whether the host tells what is said: then the user can be asked again, whatever was missed before."""
        return self._state.hears_user

    @hears_user.setter
    def hears_user(self, hears: bool) -> None:
        self._state.hears_user = hears

    @property
    def pack(self) -> Pack:
        """The pack that the conversation is under."""
        return self._state.pack

    @property
    def has_begun(self) -> bool:
        """Whether anything of it was found in the log, or written there."""
        return self._state.length > 0

    @property
    def context(self) -> Mapping[str, Any]:
        """What the host vouches for by now."""
        return dict(self._state.vouched)

    @property
    def may_be_handed_over(self) -> bool:
        """Whether the pack lets another principal go on with it."""
        return self._state.postures.handover

    @property
    def length(self) -> int:
        """How many events there were so far."""
        with self._lock:
            return self._state.open().length

    @property
    def running(self) -> list[str]:
        """The ids of calls that were allowed and have no result, unless they were interrupted."""
        with self._lock:
            return [call.id for call in self._state.open().running().values()]

    @property
    def position(self) -> int:
        """How many messages of user and agent there were so far; `confirm` takes it as `after`."""
        return sum(map(is_message, self.since(0)))

    def since(self, step: int) -> Sequence[Event]:
        """What has happened from a step on."""
        with self._lock:
            return self._state.open().since(step)

    def __reduce__(self) -> Any:
        hint = "open it again with `shield.session(id)`: with a log it is taken up where it was left"
        raise UsageError("a session cannot be pickled or copied: it is one live conversation", hint=hint)

    def trajectory(self, agent: str = "") -> Trajectory:
        """The conversation so far as an audit reads it: refused calls are marked as such, and those that rest on a
        person's yes or on look-ups of the shield's own say so."""
        with self._lock:
            return self._state.trajectory(agent)

    @property
    def allowance(self) -> Allowance | None:
        """What the user's words so far allow; None where the pack holds no call to them, or nobody said anything."""
        with self._lock:
            requests = self._state.open().session.requests
            return None if requests is None else requests.latest()
