"""How firmly a pack is held to while an agent runs: per pack, per tool, per policy."""

from typing import Annotated, Literal, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert, field

Posture = Literal["enforce", "advise", "shadow"]
"""`enforce` stops the call; `advise` lets it run and tells the agent; `shadow` only notes what it would have said."""

Unguarded = Literal["allow", "ask", "deny"]

Resolve = Literal["agent", "live", "show"]

OnError = Literal["deny", "ask"]
"""What becomes of a call that could not be judged: never `allow`, for a write."""


class _Checked(Struct, frozen=True):
    """A record that is checked against its own types when code makes it, as one from a file is."""

    def __post_init__(self) -> None:
        """A word that is none of ours must never let a call through."""
        for name, kind in get_type_hints(type(self), include_extras=True).items():
            value = getattr(self, name)
            try:
                convert(value, kind)
            except ValidationError as error:
                raise ValueError(f"{name} cannot be `{value}`: {str(error).partition(' - at')[0]}") from None


Seconds = Annotated[float, Meta(gt=0)]


class ApprovalTerms(_Checked, frozen=True, forbid_unknown_fields=True):
    """How long a question waits for a person, and what then; and how long a yes holds."""

    timeout: Seconds = 3600.0
    lifetime: Seconds = 86_400.0
    """Seconds after which a yes that was not used has lapsed: the same call is asked about anew."""
    default: Literal["reject", "ask"] = "reject"
    """Where nobody answered in time: the same call is refused, or asked anew. Never approved."""
    stands_in: tuple[str, ...] = ()
    """Policies whose question for the user a person may answer, where the host does not tell what the user says."""


class Postures(_Checked, frozen=True, forbid_unknown_fields=True):
    """`shield:` in pack.yaml. A policy's posture beats its tool's, which beats the pack's."""

    posture: Posture = "enforce"
    tools: dict[str, Posture] = field(default_factory=dict[str, Posture])
    policies: dict[str, Posture] = field(default_factory=dict[str, Posture])
    on_error: OnError = "deny"
    on_read_error: Literal["deny", "ask", "allow"] = "deny"
    """The same for a call that only reads; `allow` lets it run, and the decision says why."""
    approval: ApprovalTerms = ApprovalTerms()
    delegation: Literal["ask", "follow"] = "ask"
    """A deed that a text asks for which the user handed over to: asked about, or held to that text."""
    handover: bool = False
    """Whether another principal may go on with a conversation: what was looked up stays, nothing that was said, agreed
    to or approved does. Otherwise they begin one of their own."""
    unguarded: Unguarded | None = None
    """What becomes of a write that no policy binds; unset, it is asked about under `enforce`, and else allowed."""
    unguarded_tools: dict[str, Unguarded] = field(default_factory=dict[str, "Unguarded"])
    """The same for single tools."""
    resolve: Resolve = "agent"
    """Who makes a look-up that is missing: the agent, who is told; or the shield, through the host's tools, which then
    decides by it (`live`) or shows it to the agent, who makes the call again (`show`)."""

    def of_unguarded(self, tool: str) -> Unguarded:
        """What becomes of a write of `tool` that no policy binds."""
        unset: Unguarded = "ask" if self.of(tool) == "enforce" else "allow"
        return self.unguarded_tools.get(tool) or self.unguarded or unset

    def of(self, tool: str, policy: str = "") -> Posture:
        """The posture towards a call of `tool` under `policy`."""
        return self.policies.get(policy) or self.tools.get(tool) or self.posture
