"""Hosts of a shield. Each reports a conversation in its own way, with only the public API."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any

from bylaw import Pack, Shield
from bylaw.errors import BylawError, UsageError
from bylaw.record import Log
from bylaw.shield import Decision, LiveSession

Wire = dict[str, Any]


class Clock:
    """A clock that moves only when set."""

    def __init__(self) -> None:
        self.now = float(int(time.time()))

    def __call__(self) -> float:
        return self.now


class Host:
    """Reports each event to one session as it occurs."""

    has_times = True
    may_press = True
    may_reopen = False
    sees_only_told = False
    """Whether the shield knows only the history passed with each call."""
    chat = ""
    """The current chat, for hosts with several chats."""
    acting = ""
    """The inner agent that makes the next call, or an empty string for the main agent."""
    may_pause = True
    """Whether the host can interrupt a call and resume it later."""

    def __init__(self, rng: Random, pack: Pack, log: Log | None, tenant: str, principal: str, **given: Any) -> None:
        self.rng, self.pack, self.log, self.tenant, self.principal, self._given = (
            rng,
            pack,
            log,
            tenant,
            principal,
            given,
        )
        self.clock = Clock()
        self.id = f"c-{tenant}" if log is not None else ""
        self.may_reopen = log is not None
        self.shield = self._open_shield()
        self.session = self._open_session()
        self._unwritten: list[Callable[[], object]] = []
        """Reports since the last decision."""
        self.edits: list[str] = []
        """The edits to the history of the last decision."""

    @property
    def position(self) -> int:
        """The number of messages that the shield counts."""
        return self.session.position

    def _open_shield(self) -> Shield:
        return Shield(self.pack, log=self.log, tenant=self.tenant, clock=self.clock, **self._given)

    def _open_session(self) -> LiveSession:
        context = {"signed_in_as": self.principal} if self.principal else None
        return self.shield.session(self.id, context=context)

    def use(self, id: str) -> None:
        """Report to the conversation with this id from now on."""
        self.id = id
        self.session = self._open_session()

    def reopen(self) -> None:
        """Continue the conversation from the log in another worker, after this worker ended or crashed."""
        has_crashed = self.rng.random() < 0.5
        if not has_crashed:
            self.session.flush()
        self.shield = self._open_shield()
        self.session = self._open_session()
        if has_crashed:
            self._report_again()
        self._unwritten.clear()

    def _report_again(self) -> None:
        """Repeat the reports that a crashed worker had not written."""
        for report in self._unwritten:
            report()

    def vouch(self, principal: str) -> bool:
        """Continue with another principal. Return whether the shield accepts this."""
        try:
            self.session.vouch({"signed_in_as": principal})
        except BylawError:
            return False
        self.principal = principal
        return True

    def user(self, text: str) -> None:
        self.session.user(text)
        at = self.clock.now
        self._unwritten.append(lambda: self.session.user(text, time=at))

    def other(self, text: str) -> None:
        """Report text under the `user` role that the user did not write."""
        mark = self.rng.choice(({"name": "helper"}, {"tool_call_id": "x1"}, {"type": "tool", "tool_call_id": "x2"}))
        self.session.messages([{"role": "user", "content": text, **mark}])

    def agent(self, text: str) -> None:
        self.session.agent(text)
        at = self.clock.now
        self._unwritten.append(lambda: self.session.agent(text, time=at))

    def decide(self, tool: str, arguments: Mapping[str, Any], id: str) -> Decision:
        self._unwritten.clear()
        return self.session.decide(tool, arguments, id=id, agent=self.acting)

    def not_allowed(self, decision: Decision, tool: str, arguments: Mapping[str, Any], id: str) -> None:
        """Record that the agent read the feedback."""
        if self.rng.random() < 0.5:
            self.session.result(decision.feedback, id=id)

    def result(self, content: str, tool: str, arguments: Mapping[str, Any], id: str, **told: Any) -> None:
        self.session.result(content, id=id, **told)
        again = {**told, "time": self.clock.now}
        self._unwritten.append(lambda: self._result_again(content, id, again))

    def _result_again(self, content: str, id: str, told: Mapping[str, Any]) -> None:
        # A result from before the crash is refused, because no call waits for it.
        with suppress(UsageError):
            self.session.result(content, id=id, **told)

    def no_result(self, tool: str, arguments: Mapping[str, Any], id: str) -> None:
        """Record that the call was made and its result was lost."""

    def press(self, card: str, yes: bool, at: float | None = None, after: int | None = None) -> bool:
        """Report a button press. Return whether the shield accepted it."""
        try:
            self.session.confirm(card, yes, by="button", at=at, after=after)
        except BylawError:
            return False
        return True


class HistoryHost(Host):
    """Passes the history before each decision, edited as frameworks edit histories."""

    has_times = False
    may_pause = False

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.history: list[Wire] = []
        self._known = 0
        """The number of messages at the start that were passed before. Only these can be changed."""
        self._has_retold = False
        """Whether this session received a history that continues known messages without changes."""

    def _told(self) -> list[Wire]:
        known, news = self.history[: self._known], self.history[self._known :]
        self._known = len(self.history)
        # A changed history before this point could look like new messages.
        told = self._edited(known, (*MILD, *HARSH) if self._has_retold else MILD)
        if _cuts_between_equals(known, told, news):
            # Without message ids, words repeated directly after the cut are ambiguous.
            told, self.edits = known, []
        self._has_retold |= not self.edits and sum(map(_is_said, known)) > 1
        return [*told, *news]

    def _edited(self, history: list[Wire], edits: "Sequence[Edit]") -> list[Wire]:
        """Return a history as a framework would pass it."""
        told = list(history)
        self.edits = []
        while self.rng.random() < 0.35:
            edit = self.rng.choice(edits)
            told = edit(self.rng, told)
            self.edits.append(edit.__name__)
        return told

    def vouch(self, principal: str) -> bool:
        # Earlier messages belong to the earlier principal.
        self.session.messages(self._told())
        return super().vouch(principal)

    def user(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def other(self, text: str) -> None:
        mark = self.rng.choice(({"name": "helper"}, {"tool_call_id": "x1"}, {"type": "tool", "tool_call_id": "x2"}))
        self.history.append({"role": "user", "content": text, **mark})

    def agent(self, text: str) -> None:
        self.history.append({"role": "assistant", "content": text})

    def decide(self, tool: str, arguments: Mapping[str, Any], id: str) -> Decision:
        told = self._told()
        if self.rng.random() < 0.1:
            # The host sends the same request twice.
            self.session.messages(told)
        if self.rng.random() < 0.3:
            # The message with the call is passed too.
            told = [*told, _calling(tool, arguments, id)]
        self.session.messages(told)
        return self.session.decide(tool, arguments, id=id)

    def press(self, card: str, yes: bool, at: float | None = None, after: int | None = None) -> bool:
        self.session.messages(self._told())
        return super().press(card, yes, at, after)

    def not_allowed(self, decision: Decision, tool: str, arguments: Mapping[str, Any], id: str) -> None:
        if self.rng.random() < 0.7:
            self.history += [_calling(tool, arguments, id), _answering(id, decision.feedback)]

    def result(self, content: str, tool: str, arguments: Mapping[str, Any], id: str, **told: Any) -> None:
        self.history += [_calling(tool, arguments, id), _answering(id, content)]

    def no_result(self, tool: str, arguments: Mapping[str, Any], id: str) -> None:
        if self.rng.random() < 0.5:
            self.history.append(_calling(tool, arguments, id))

    def reopen(self) -> None:
        if self.rng.random() < 0.5:
            self.session.messages(self._told())
        self.session.flush()
        super().reopen()
        self._has_retold = False


class StatelessHost(HistoryHost):
    """Keeps the history and opens no session. It may drop the beginning and hide arguments."""

    may_press = False
    may_pause = False
    sees_only_told = True
    mild: "Sequence[Edit]" = ()

    def reopen(self) -> None:
        self.shield = self._open_shield()

    def vouch(self, principal: str) -> bool:
        return False

    def decide(self, tool: str, arguments: Mapping[str, Any], id: str) -> Decision:
        told = self._edited(self.history, self.mild or MILD)
        if self.rng.random() < 0.5:
            told = [*told, _calling(tool, arguments, id)]
        context = {"signed_in_as": self.principal} if self.principal else None
        return self.shield.decide(told, tool, arguments, id=id, context=context)

    def result(self, content: str, tool: str, arguments: Mapping[str, Any], id: str, **told: Any) -> None:
        self.history += [_calling(tool, arguments, id), _answering(id, content)]

    def no_result(self, tool: str, arguments: Mapping[str, Any], id: str) -> None:
        self.history.append(_calling(tool, arguments, id))


class CardsHost(StatelessHost):
    """Keeps the history, and reports button presses by a signed-in user to the conversation with the card.

    The history has everything since the first card.
    """

    may_press = True

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._before_cards: int | None = None
        """The number of messages before the first card."""

    @property
    def position(self) -> int:
        return 0

    def not_allowed(self, decision: Decision, tool: str, arguments: Mapping[str, Any], id: str) -> None:
        if decision.card is not None and self._before_cards is None:
            self._before_cards = len(self.history)
        super().not_allowed(decision, tool, arguments, id)

    def _edited(self, history: list[Wire], edits: "Sequence[Edit]") -> list[Wire]:
        kept = len(history) if self._before_cards is None else self._before_cards
        return [*super()._edited(history[:kept], edits), *history[kept:]]

    def press(self, card: str, yes: bool, at: float | None = None, after: int | None = None) -> bool:
        if not self.principal:
            return False
        context = {"signed_in_as": self.principal}
        try:
            self.shield.session(card.rpartition("/")[0], context=context).confirm(card, yes, by="button")
        except BylawError:
            return False
        return True


class ChatsHost(StatelessHost):
    """Keeps the histories of several chats with different principals. Each chat has its own words."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.mild = (hide_arguments, rename_ids, clear_results)
        self._chats: dict[str, tuple[str, list[Wire]]] = {}
        self.go_to("chat 1", self.principal)

    def go_to(self, chat: str, principal: str) -> None:
        """Begin or continue a chat."""
        self.chat = chat
        self.principal, self.history = self._chats.setdefault(chat, (principal, []))
        if not self.history:
            self.user("Hello.")

    def user(self, text: str) -> None:
        super().user(f"{text} ({self.chat})")


def _calling(tool: str, arguments: Mapping[str, Any], id: str) -> Wire:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def _answering(id: str, content: str) -> Wire:
    return {"role": "tool", "tool_call_id": id, "content": content}


Edit = Callable[[Random, list[Wire]], list[Wire]]


def _is_said(message: Wire) -> bool:
    return message["role"] in ("user", "assistant") and bool(message["content"])


def _cuts_between_equals(known: list[Wire], told: list[Wire], news: list[Wire]) -> bool:
    """Whether the words before the cut are repeated directly after it, or the cut leaves no words."""
    said = [each for each in known if _is_said(each)]
    kept = [each for each in said if any(each is other for other in told)]
    new = [each for each in news if _is_said(each)]
    if not kept:
        return any(each in said for each in new)
    cut = next(at for at, each in enumerate(said) if each is kept[0])
    return cut > 0 and said[cut - 1] == kept[0]


def trim(rng: Random, told: list[Wire]) -> list[Wire]:
    return told[rng.randrange(len(told)) :] if told else told


def summarise(rng: Random, told: list[Wire]) -> list[Wire]:
    kept = trim(rng, told)
    return [{"role": rng.choice(("user", "system", "assistant")), "content": "Summary: the user wants help."}, *kept]


def hide_arguments(rng: Random, told: list[Wire]) -> list[Wire]:
    """Redact, truncate or damage a call's arguments."""
    at = [place for place, each in enumerate(told) if each.get("tool_calls")]
    if not at:
        return told
    place = rng.choice(at)
    (call,) = told[place]["tool_calls"]
    arguments: str = call["function"]["arguments"]
    hidden = rng.choice(
        (
            arguments[: rng.randrange(len(arguments) + 1)],
            "[REDACTED]",
            "",
            arguments.replace("AC-22", "[REDACTED]"),
            arguments.replace("250.00", "***"),
            arguments.replace("C-22", "C-2..."),
        )
    )
    function = {**call["function"], "arguments": hidden}
    return [*told[:place], {**told[place], "tool_calls": [{**call, "function": function}]}, *told[place + 1 :]]


def rename_ids(rng: Random, told: list[Wire]) -> list[Wire]:
    prefix = f"r{rng.randrange(100)}-"
    renamed: list[Wire] = []
    for each in told:
        if each.get("tool_calls"):
            (call,) = each["tool_calls"]
            renamed.append({**each, "tool_calls": [{**call, "id": prefix + call["id"]}]})
        elif each["role"] == "tool":
            renamed.append({**each, "tool_call_id": prefix + each["tool_call_id"]})
        else:
            renamed.append(each)
    return renamed


def clear_results(rng: Random, told: list[Wire]) -> list[Wire]:
    return [{**each, "content": "[cleared]"} if each["role"] == "tool" else each for each in told]


def drop_calls(rng: Random, told: list[Wire]) -> list[Wire]:
    return [each for each in told if each["role"] != "tool" and not each.get("tool_calls")]


def drop_one(rng: Random, told: list[Wire]) -> list[Wire]:
    """Lose a message."""
    if not told:
        return told
    place = rng.randrange(len(told))
    return [*told[:place], *told[place + 1 :]]


def swap(rng: Random, told: list[Wire]) -> list[Wire]:
    """Exchange two messages."""
    if len(told) < 2:
        return told
    place = rng.randrange(len(told) - 1)
    if told[place]["role"] == told[place + 1]["role"] == "user":
        # The beginning may be missing, and the user may have repeated the same words.
        return told
    return [*told[:place], told[place + 1], told[place], *told[place + 2 :]]


MILD: tuple[Edit, ...] = (trim, summarise, hide_arguments, rename_ids, clear_results)
"""Edits that keep the order of events, and everything after a certain point."""
HARSH: tuple[Edit, ...] = (drop_calls, drop_one, swap)
"""Edits that only a session can detect, because it knows the true order."""
