"""The shield: one pack, many live conversations, a decision before each call runs."""

import itertools
import threading
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bylaw.engine.conversation import Conversation
from bylaw.engine.judgement import Judgement
from bylaw.engine.pack import Pack, load_pack
from bylaw.policy.posture import Posture, Postures
from bylaw.shield.deciding import Decider, firmest
from bylaw.shield.decision import Answer, Decision, Ground, gravest
from bylaw.shield.feedback import feedback
from bylaw.trace.trajectory import Trajectory


class Shield:
    """A pack, ready to decide on the calls of live agents. Sessions of one shield may run in different threads."""

    def __init__(self, pack: Pack | str | Path, *, postures: Postures | None = None) -> None:
        self.pack = pack if isinstance(pack, Pack) else load_pack(pack)
        self.postures = postures or self.pack.postures
        self._decider = Decider(self.pack, self.postures)

    def session(self, id: str = "", *, context: Mapping[str, Any] | None = None, lacks: str = "") -> "Guarded":
        """A new conversation; `context` is what the host vouches for, such as who is signed in.

        `lacks` says why what happened before is not known here: then no call that a policy binds is allowed.
        """
        return Guarded(self, id, context, lacks=lacks)

    def decide(
        self,
        messages: Iterable[Any],
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        context: Mapping[str, Any] | None = None,
    ) -> Decision:
        """A decision for a caller that keeps the history itself: all messages so far, in any shape logs may have.

        The last of them may be the one that asks for this call, alone or beside others.
        """
        return self.session(context=context).decide_after(messages, tool, arguments)

    def ground(self, judgement: Judgement, conversation: Conversation, lacks: str = "") -> list[Ground]:
        """What every policy says of a judged call."""
        return self._decider.grounds(judgement, conversation.ledger, lacks)

    def __repr__(self) -> str:
        return f"<shield of {self.pack.name} {self.pack.version}: {self.postures.posture}>"


class Guarded:
    """One live conversation under a shield."""

    def __init__(
        self, shield: Shield, id: str = "", context: Mapping[str, Any] | None = None, *, lacks: str = ""
    ) -> None:
        self.shield = shield
        self.id = id
        self.lacks = lacks
        self._conversation = Conversation(shield.pack, id=id, context=context)
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        """One thing at a time: frameworks run tools in threads of their own."""

    def user(self, text: str) -> None:
        """The user said something."""
        with self._lock:
            self._conversation.user(text)

    def agent(self, text: str) -> None:
        """The agent said something."""
        with self._lock:
            self._conversation.agent(text)

    def unheard(self) -> None:
        """Agent and user may have talked, and nobody told: rules about their words are open from here on."""
        with self._lock:
            self._conversation.unheard()

    def resume_turn(self) -> None:
        """What is decided next is still of the agent's last turn, whatever tools have answered since."""
        with self._lock:
            self._conversation.resume_turn()

    def messages(self, messages: Iterable[Any]) -> None:
        """Messages of the conversation so far, calls and results among them: what happened, not to be decided."""
        with self._lock:
            self._conversation.messages(messages)

    def decide(self, tool: str, arguments: Mapping[str, Any] | str, *, id: str = "") -> Decision:
        """Whether the agent may make a call now. A call that is not allowed counts as refused before it ran."""
        with self._lock:
            started = time.perf_counter()
            return self._decide(self._conversation.call(tool, arguments, id=id), started)

    def decide_after(self, messages: Iterable[Any], tool: str, arguments: Mapping[str, Any] | str) -> Decision:
        """The same, after these messages, or for a call that the last of them asks for."""
        with self._lock:
            started = time.perf_counter()
            return self._decide(self._conversation.asked(messages, tool, arguments), started)

    @contextmanager
    def turn(self, text: str = "") -> Generator[Self]:
        """One turn of the agent: what is decided inside was asked for at once, whatever is answered in between."""
        with self._conversation.turn(text):
            yield self

    def _decide(self, judgement: Judgement, started: float) -> Decision:
        call = judgement.made.call
        tool, arguments = call.tool, call.arguments
        grounds = self.shield.ground(judgement, self._conversation, self.lacks)
        answer, allowed, enforced = _outcome(grounds)
        declared = self.shield.pack.schema.tools.get(tool)
        changes = declared is None or declared.effect == "write"
        if not allowed:
            self._conversation.refuse()
        told = [ground for ground in grounds if ground.posture != "shadow"]
        text = feedback(self.shield.pack, tool, gravest([ground.answer for ground in told]), told, runs=allowed)
        name = f"{self.id}/{next(self._numbers)}" if self.id else str(next(self._numbers))
        unguarded = changes and not any(ground.kind != "call" for ground in grounds) and not judgement.fault
        spent = time.perf_counter() - started
        return Decision(name, tool, dict(arguments), answer, allowed, enforced, tuple(grounds), unguarded, text, spent)

    def result(self, content: Any, *, id: str = "", error: bool | None = None, captured: bool = True) -> None:
        """What the tool answered; or, after a refusal, what the agent was told in its place."""
        with self._lock:
            self._conversation.result(content, id=id, error=error, captured=captured)

    def trajectory(self, agent: str = "") -> Trajectory:
        """The conversation so far, refused calls marked as such, as an audit reads it."""
        return self._conversation.trajectory(agent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def __repr__(self) -> str:
        return f"<guarded {self._conversation!r}>"


def _outcome(grounds: Iterable[Ground]) -> tuple[Answer, bool, Posture]:
    """The true answer, whether the call runs, and the posture that rests on."""
    by_posture = firmest(grounds)
    answer = gravest(list(by_posture.values()))
    for posture in ("enforce", "advise", "shadow"):
        if by_posture.get(posture, "allow") != "allow":
            return answer, posture != "enforce", posture
    return answer, True, "enforce"
