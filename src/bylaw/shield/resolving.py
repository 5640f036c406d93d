"""Makes missing look-ups with the host's tools (`resolve: live`).

The results are true, but the agent has not seen them. Decisions therefore use them, but the evidence recorded with a
decision does not.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from bylaw.engine.conversation import Conversation
from bylaw.engine.door import as_content
from bylaw.engine.judgement import Judgement
from bylaw.engine.session import Session
from bylaw.errors import BylawError
from bylaw.pack import Pack
from bylaw.policy.tool import Postures
from bylaw.shield.decision import Ground, LookUp, gravest
from bylaw.shield.grounds import find_grounds
from bylaw.trace.event import Call, Event, LookedUp, Result

RunTool = Callable[[str, Mapping[str, Any]], Any]
"""Makes a look-up through the host and returns the result. An exception means that the look-up failed."""
LINKS = 8
"""The maximum number of rounds of look-ups, where each round uses the results of the previous one."""


class Resolved(Struct, frozen=True):
    """The grounds of a decision, and the shield's look-ups on which they are based."""

    grounds: Sequence[Ground]
    judgement: Judgement
    again: Judgement | None = None
    """The judgement after the look-ups. None without look-ups."""
    look_ups: tuple[LookedUp, ...] = ()

    def known(self) -> list[tuple[str, Any]]:
        """Return the facts behind the decision, with their values after the look-ups."""
        found = self.judgement.known()
        return found if self.again is None else [*(dict(found) | dict(self.again.known())).items()]


def resolve(
    postures: Postures,
    conversation: Conversation,
    judgement: Judgement,
    grounds: Sequence[Ground],
    run: RunTool,
) -> Resolved:
    """Make the look-ups that the grounds require, in rounds, until no new look-up is required."""
    made: dict[str, LookedUp] = {}
    found = Resolved(grounds, judgement)
    for _ in range(LINKS):
        wanted = {f"{each.tool} {each.arguments}": each for ground in found.grounds for each in ground.look_ups}
        new = {name: each for name, each in wanted.items() if name not in made and _is_read(conversation.pack, each)}
        if gravest([ground.answer for ground in found.grounds]) != "look_up" or not new:
            break
        made |= {name: _made(each, run) for name, each in new.items()}
        found = resolved_by(tuple(made.values()), postures, conversation, judgement, grounds, conversation.since(0))
    return found


def resolved_by(
    made: tuple[LookedUp, ...],
    postures: Postures,
    conversation: Conversation,
    judgement: Judgement,
    grounds: Sequence[Ground],
    events: Sequence[Event],
) -> Resolved:
    """Return the grounds as if the look-ups had come just before the turn of the call.

    `events` are the events before the call. If the call needs no look-ups, its grounds are unchanged.
    """
    if not made or gravest([ground.answer for ground in grounds]) != "look_up":
        return Resolved(grounds, judgement)
    again, session = _judged(conversation, judgement, made, events)
    rules = [ground for ground in grounds if ground.kind == "rule"]
    found = sorted([*find_grounds(session, postures, again), *rules], key=lambda ground: ground.answer == "allow")
    return Resolved(found, judgement, again, made)


def shows_the_same(made: Sequence[LookedUp], run: RunTool) -> bool:
    """Make earlier look-ups again. Return whether they show the same results as before."""
    again = [_made(LookUp(each.tool, each.arguments, ()), run) for each in made]
    shown = [(each.tool, each.arguments, each.content, each.failed) for each in made]
    return shown == [(each.tool, each.arguments, each.content, each.failed) for each in again]


def _is_read(pack: Pack, look_up: LookUp) -> bool:
    tool, actions = pack.schema.called.get(look_up.tool), pack.schema.actions
    if actions is not None and actions.pages.changes_with(look_up.tool):
        # The shield must not move the agent's own browser to another page.
        return False
    return tool is not None and tool.effect == "read" and None not in look_up.arguments.values()


def _made(look_up: LookUp, run: RunTool) -> LookedUp:
    try:
        content = as_content(run(look_up.tool, look_up.arguments))
    except BylawError as error:
        return LookedUp(look_up.tool, look_up.arguments, str(error), failed=True)
    except Exception as error:
        # A host tool that fails shows nothing.
        return LookedUp(look_up.tool, look_up.arguments, f"{type(error).__name__}: {error}", failed=True)
    text = content if isinstance(content, str) else "" if content is None else bytes(content).decode()
    return LookedUp(look_up.tool, look_up.arguments, text)


def _judged(
    conversation: Conversation, judgement: Judgement, made: Sequence[LookedUp], events: Sequence[Event]
) -> tuple[Judgement, Session]:
    """Judge the call as if the look-ups had come just before its turn. Rules still see the real order of events."""
    start, shift = judgement.made.start, 2 * len(made)
    call = judgement.call
    told: list[Event] = []
    for place, each in enumerate(made):
        told.append(Call(each.tool, each.arguments, turn=-1 - place, agent=call.agent, time=call.time))
        told.append(Result(start + 2 * place, each.content, each.failed or None, tool=each.tool, agent=call.agent))
    later = [
        replace(event, call=event.call + shift)
        if isinstance(event, Result) and event.call is not None and event.call >= start
        else event
        for event in events[start : judgement.made.step]
    ]
    again, session = conversation.judged_after([*events[:start], *told, *later], call)
    return replace(again, rules=(), open_rules=()), session
