"""What a person has stopped: which stops a call falls under, and the grounds they make."""

from collections.abc import Collection, Iterable

from bylaw.engine.judgement import Judgement
from bylaw.errors import UsageError, meant
from bylaw.pack import Pack
from bylaw.record.stop import Stop, Stops, Target
from bylaw.shield.decision import Ground, Question


def stop_grounds(stops: Stops, pack: Pack, judgement: Judgement, agents: Collection[str], now: float) -> list[Ground]:
    """What stands against a judged call because a person said so; `agents` are the names of those whose call it is."""
    tool = judgement.made.tool
    if not stops.standing or (tool is not None and tool.effect != "write"):
        return []
    call = judgement.made.call
    return [_ground(stop) for stop in stops_of(stops, pack, call.tool, {*agents, call.agent}, now)]


def stops_of(stops: Stops, pack: Pack, tool: str, agents: Collection[str], now: float) -> Iterable[Stop]:
    """The stops that a write of a tool falls under."""
    return (stop for stop in stops.standing if stop.stands(now) and _is_under(stop, pack, tool, agents))


def _is_under(stop: Stop, pack: Pack, tool: str, agents: Collection[str]) -> bool:
    match stop.what:
        case "all":
            return True
        case "tool":
            return stop.name == tool
        case "agent":
            return stop.name in agents
        case "policy":
            policy = pack.policies.get(stop.name)
            # A rule that names no tools binds whatever the agent does.
            return policy is not None and (not policy.tools or tool in policy.tools)


def check_target(pack: Pack, what: Target, name: str) -> None:
    """Refuse to stop a tool or a policy that the pack does not know: nothing would be stopped."""
    known = {"tool": pack.schema.tools, "policy": pack.policies}.get(what)
    if known is not None and name not in known:
        raise UsageError(f"the pack knows no {what} `{name}`", hint=meant(name, known))


def told(stop: Stop) -> str:
    """What the agent is told of it."""
    return f"{stop.stopped} is stopped until {stop.end}: {stop.reason}"


def _ground(stop: Stop) -> Ground:
    because = f"{stop.stopped} is stopped by {stop.by} until {stop.end} ({stop.id}): {stop.reason}"
    asked = f"{stop.stopped} is stopped ({stop.reason}): should this call be made nevertheless?"
    questions = (Question(stop.id, asked, "person"),) if stop.answer == "ask" else ()
    policy = stop.name if stop.what == "policy" else ""
    return Ground(policy, "stop", stop.answer, "enforce", because, questions=questions, for_agent=told(stop))
