"""Makes missing look-ups with the host's tools (`resolve: live`).

The results are true, but the agent has not seen them. The decision uses them, but its evidence does not.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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
"""Makes a look-up through the host and returns the result. An exception is a failed look-up."""
LINKS = 8
"""The maximum number of look-ups that build on each other."""


def resolve(
    postures: Postures,
    conversation: Conversation,
    judgement: Judgement,
    grounds: Sequence[Ground],
    run: RunTool,
) -> tuple[Sequence[Ground], tuple[LookedUp, ...]]:
    """Make the look-ups that the grounds require, one after another. Return the new grounds and the results."""
    made: dict[str, LookedUp] = {}
    for _ in range(LINKS):
        wanted = {f"{each.tool} {each.arguments}": each for ground in grounds for each in ground.look_ups}
        new = {name: each for name, each in wanted.items() if name not in made and _is_read(conversation.pack, each)}
        if gravest([ground.answer for ground in grounds]) != "look_up" or not new:
            break
        made |= {name: _made(each, run) for name, each in new.items()}
        again, session = _judged(conversation, judgement, list(made.values()))
        rules = [ground for ground in grounds if ground.kind == "rule"]
        grounds = sorted([*find_grounds(session, postures, again), *rules], key=lambda ground: ground.answer == "allow")
    return grounds, tuple(made.values())


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
        # If a host tool fails, its look-up shows nothing.
        return LookedUp(look_up.tool, look_up.arguments, f"{type(error).__name__}: {error}", failed=True)
    text = content if isinstance(content, str) else "" if content is None else bytes(content).decode()
    return LookedUp(look_up.tool, look_up.arguments, text)


def _judged(conversation: Conversation, judgement: Judgement, made: Sequence[LookedUp]) -> tuple[Judgement, Session]:
    """Judge the call as if the look-ups came just before its turn. Rules still use the events in their real order."""
    start, shift = judgement.made.start, 2 * len(made)
    call, events = judgement.call, conversation.since(0)
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
