"""Which recorded conversations are fit to learn from, and why the others are not."""

from typing import Literal

from bylaw.align.episode import misfit
from bylaw.facts.provenance import Provenance, leaf_values
from bylaw.pack import Pack
from bylaw.text.identifier import is_identifier
from bylaw.trace.event import Call
from bylaw.trace.trajectory import Trajectory

Unfit = Literal["no turn", "unreadable call", "unknown tool", "unfit arguments", "made-up id", "failed"]
"""`made-up id`: an identifier that neither the user, the host nor any result had shown. `failed`: its source says that
it did not reach its goal. What an audit says of it is asked apart (`standing`)."""


def unfit(pack: Pack, trajectory: Trajectory) -> Unfit | None:
    """Why a conversation is no good example; None where it is one."""
    if (why := hallucinated(pack, trajectory)) is not None:
        return why
    return "failed" if trajectory.outcome is not None and not trajectory.outcome.good else None


def hallucinated(pack: Pack, trajectory: Trajectory) -> Unfit | None:
    """Whether some call of it was made up: its tool, its parameters, or an id that nothing had shown."""
    provenance = Provenance(trajectory.events, instructions=trajectory.instructions)
    acts = 0
    for step, event in enumerate(trajectory.events):
        if not isinstance(event, Call):
            acts += getattr(event, "by", "") == "agent"
            continue
        acts += 1
        if event.fault:
            return "unreadable call"
        tool = pack.schema.tools.get(event.tool)
        if tool is None:
            return "unknown tool"
        if misfit(event.arguments, tool.parameters, tool.required):
            return "unfit arguments"
        for _, value in leaf_values(event.arguments):
            if isinstance(value, str) and is_identifier(value) and named_nowhere(provenance, value, step):
                return "made-up id"
    return None if acts else "no turn"


def named_nowhere(provenance: Provenance, value: str, step: int) -> bool:
    """Whether nothing before a call shows a value that it uses."""
    return provenance.origin(value, before=step).kind == "nowhere"
