"""How strictly a pack is enforced on live agents: per pack, per tool, per policy."""

from typing import Annotated, Literal, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert, field

Posture = Literal["enforce", "advise", "shadow"]
"""`enforce` stops the call. `advise` lets it run and tells the agent. `shadow` only logs the decision."""

Unguarded = Literal["allow", "ask", "deny"]

Resolve = Literal["agent", "live", "show"]

OnError = Literal["deny", "ask"]
"""The answer to a call that could not be judged. A write is never allowed."""


class _Checked(Struct, frozen=True):
    """A record that validates its fields when code creates it, like records from files."""

    def __post_init__(self) -> None:
        """Raise for unknown values, because they must never let a call run."""
        for name, kind in get_type_hints(type(self), include_extras=True).items():
            value = getattr(self, name)
            try:
                convert(value, kind)
            except ValidationError as error:
                raise ValueError(f"{name} cannot be `{value}`: {str(error).partition(' - at')[0]}") from None


Seconds = Annotated[float, Meta(gt=0)]


class ApprovalTerms(_Checked, frozen=True, forbid_unknown_fields=True):
    """How long an approval waits for a reviewer, what happens then, and how long the approval is valid."""

    timeout: Seconds = 3600.0
    lifetime: Seconds = 86_400.0
    """After this many seconds, an unused approval expires."""
    default: Literal["reject", "ask"] = "reject"
    """What happens if no reviewer answers in time: reject the same call, or ask again."""
    stands_in: tuple[str, ...] = ()
    """Policies for which a reviewer may answer instead of the user, if the host does not report user messages."""


class Postures(_Checked, frozen=True, forbid_unknown_fields=True):
    """The section `shield:` of pack.yaml. A policy's posture overrides its tool's, which overrides the pack's."""

    posture: Posture = "enforce"
    tools: dict[str, Posture] = field(default_factory=dict[str, Posture])
    policies: dict[str, Posture] = field(default_factory=dict[str, Posture])
    on_error: OnError = "deny"
    on_read_error: Literal["deny", "ask", "allow"] = "deny"
    """The answer to a read that could not be judged. With `allow`, the read runs and the decision says why."""
    approval: ApprovalTerms = ApprovalTerms()
    delegation: Literal["ask", "follow"] = "ask"
    """How to treat a user's delegation to a text: ask the user, or check calls against that text."""
    handover: bool = False
    """Whether another principal may continue a conversation. Look-ups stay; messages, consent and approvals do not
    count. By default, another principal gets a new conversation.
    """
    unguarded: Unguarded | None = None
    """The answer to a write that no policy binds. By default ask under `enforce`, otherwise allow."""
    unguarded_tools: dict[str, Unguarded] = field(default_factory=dict[str, "Unguarded"])
    """The answer for individual tools."""
    resolve: Resolve = "agent"
    """Who makes a missing look-up: the agent, or the shield through the host's tools. Under `live` the shield uses the
    result; under `show` the agent sees the result and repeats the call.
    """

    def of_unguarded(self, tool: str, called: str = "") -> Unguarded:
        """Return the answer to a write that no policy binds. If another tool is `called`, `tool` is an action."""
        unset: Unguarded = "ask" if self.of(tool, called=called) == "enforce" else "allow"
        return self.unguarded_tools.get(tool) or self.unguarded_tools.get(called) or self.unguarded or unset

    def of(self, tool: str, policy: str = "", called: str = "") -> Posture:
        """Return the posture of a call under `policy`. If another tool is `called`, `tool` is an action."""
        return self.policies.get(policy) or self.tools.get(tool) or self.tools.get(called) or self.posture
