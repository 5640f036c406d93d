"""Applies stops: finds the stops that cover a call and returns their grounds."""

from collections.abc import Collection, Iterable, Sequence

import msgspec
from msgspec import Struct

from bylaw.engine.judgement import Judgement
from bylaw.errors import UsageError, meant
from bylaw.facts.value import loose
from bylaw.pack import Pack
from bylaw.record import Log
from bylaw.record.stop import Stop, Stops, Target
from bylaw.shield.decision import Ground, Question

LOOKED_AT = 5000
"""The maximum number of log entries in which to search for a name."""


class _NamedPolicy(Struct):
    policy: str = ""


class _Named(Struct):
    """The names in a log entry to which a stop may refer."""

    tool: str = ""
    agent: str = ""
    grounds: tuple[_NamedPolicy, ...] = ()


def _read_name(body: bytes | None) -> _Named:
    return msgspec.json.decode(body or b"{}", type=_Named)


def stop_grounds(stops: Stops, pack: Pack, judgement: Judgement, agents: Collection[str], now: float) -> list[Ground]:
    """Return the grounds of the stops that cover a judged call. `agents` contains the names of the calling agents."""
    call, parts = judgement.call, judgement.parts or (judgement,)
    tools = (call.tool, *(part.made.call.tool for part in parts))
    return [_ground(stop) for stop in stops_of(stops, pack, tools, {*agents, call.agent}, now)]


def stops_of(stops: Stops, pack: Pack, tools: Sequence[str], agents: Collection[str], now: float) -> Sequence[Stop]:
    """Return the stops that cover a call, by its tool or its actions. No stop covers a certain read."""
    declared = [pack.schema.tools.get(tool) for tool in tools]
    if all(each is not None and each.effect != "write" for each in declared):
        return ()
    standing = (stop for stop in stops.standing if stop.stands(now))
    return [stop for stop in standing if any(_is_under(stop, pack, tool, agents) for tool in tools)]


def _is_under(stop: Stop, pack: Pack, tool: str, agents: Collection[str]) -> bool:
    match stop.what:
        case "all":
            return True
        case "tool":
            return _is_called(stop, (tool,))
        case "agent":
            return _is_called(stop, agents)
        case "policy":
            named = [policy for name, policy in pack.policies.items() if _is_called(stop, (name,))]
            # A policy that names no tools applies to everything that the agent does.
            return any(not policy.tools or tool in policy.tools for policy in named)


def _is_called(stop: Stop, names: Collection[str]) -> bool:
    """Whether a stop matches one of these names, ignoring case and spaces. It is safer to stop too many calls than too
    few.
    """
    return stop.name in names or (bool(wanted := loose(stop.name)) and wanted in map(loose, names))


def check_target(pack: Pack, what: Target, name: str) -> None:
    """Raise an error if the pack has no such tool or policy, because the stop would have no effect."""
    known = {"tool": pack.schema.tools, "policy": pack.policies}.get(what)
    if known is not None and name not in known:
        raise UsageError(f"the pack has no {what} `{name}`", hint=meant(name, known))


def unheard_of(log: Log, tenant: str, what: Target, name: str) -> str:
    """Return a warning if no recent log entry matches the stop, because its name may be mistyped. Otherwise return an
    empty string.
    """
    if what == "all":
        return ""
    known = {each for each in _names_in(log, tenant, what) if each}
    if loose(name) in map(loose, known):
        return ""
    some = {"agent": "conversation of agent", "tool": "decision on tool", "policy": "decision under policy"}[what]
    hint = meant(name, known) if known else "the log contains no other names"
    return f"the stop is active but may have no effect: the log has no {some} `{name}` ({hint})"


def _names_in(log: Log, tenant: str, what: Target) -> Iterable[str]:
    if what == "agent":
        yield from (_read_name(entry.body).agent for entry in log.latest(tenant, "opening", limit=LOOKED_AT))
    for entry in log.latest(tenant, "decision", limit=LOOKED_AT):
        decision = _read_name(entry.body)
        yield from (
            (ground.policy for ground in decision.grounds)
            if what == "policy"
            else (decision.tool if what == "tool" else decision.agent,)
        )


def told(stop: Stop) -> str:
    return f"{stop.stopped} is stopped until {stop.end}: {stop.reason}"


def _ground(stop: Stop) -> Ground:
    because = f"{stop.by} stopped {stop.stopped} until {stop.end} ({stop.id}): {stop.reason}"
    asked = f"{stop.stopped} is stopped ({stop.reason}). Should this call be made anyway?"
    questions = (Question(stop.id, asked, "person"),) if stop.answer == "ask" else ()
    policy = stop.name if stop.what == "policy" else ""
    return Ground(policy, "stop", stop.answer, "enforce", because, questions=questions, for_agent=told(stop))
