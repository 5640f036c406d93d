"""How strictly a pack is enforced on live agents: per pack, per tool, per policy."""

from typing import Annotated, Literal, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert, field

Posture = Literal["enforce", "advise", "shadow"]
"""`enforce` stops the call; `advise` lets it run and tells the agent; `shadow` only logs the decision."""

Unguarded = Literal["allow", "ask", "deny"]

Resolve = Literal["agent", "live", "show"]

OnError = Literal["deny", "ask"]
"""The answer to a call that could not be judged; never `allow` for a write."""


class _Checked(Struct, frozen=True):
    """A record that validates its fields when created by code, as records from files do."""

    def __post_init__(self) -> None:
        """Raise for unknown words, which must never let a call through."""
        for name, kind in get_type_hints(type(self), include_extras=True).items():
            value = getattr(self, name)
            try:
                convert(value, kind)
            except ValidationError as error:
                raise ValueError(f"{name} cannot be `{value}`: {str(error).partition(' - at')[0]}") from None


Seconds = Annotated[float, Meta(gt=0)]


class ApprovalTerms(_Checked, frozen=True, forbid_unknown_fields=True):
    """How long an approval waits for a person, what happens then, and how long a yes is valid."""

    timeout: Seconds = 3600.0
    lifetime: Seconds = 86_400.0
    """Seconds after which an unused yes expires and the call must be approved again."""
    default: Literal["reject", "ask"] = "reject"
    """If nobody answers in time: refuse the same call, or ask again. Never approve."""
    stands_in: tuple[str, ...] = ()
    """Policies whose question for the user a person may answer if the host does not report user messages."""


class Postures(_Checked, frozen=True, forbid_unknown_fields=True):
    """`shield:` in pack.yaml. A policy's posture overrides its tool's, which overrides the pack's."""

    posture: Posture = "enforce"
    tools: dict[str, Posture] = field(default_factory=dict[str, Posture])
    policies: dict[str, Posture] = field(default_factory=dict[str, Posture])
    on_error: OnError = "deny"
    on_read_error: Literal["deny", "ask", "allow"] = "deny"
    """The same for a look-up; `allow` lets it run, and the decision says why."""
    approval: ApprovalTerms = ApprovalTerms()
    delegation: Literal["ask", "follow"] = "ask"
    """Actions requested by a text to which the user delegates: ask the user, or check calls against that text."""
    handover: bool = False
    """Whether another principal may continue a conversation: look-ups stay, but statements, consents and approvals do
    not. Otherwise they begin a conversation of their own.
    """
    unguarded: Unguarded | None = None
    """The answer to a write that no policy binds; by default ask under `enforce`, otherwise allow."""
    unguarded_tools: dict[str, Unguarded] = field(default_factory=dict[str, "Unguarded"])
    """The same for individual tools."""
    resolve: Resolve = "agent"
    """Who makes a missing look-up: the agent, or the shield through the host's tools, which then uses the result
    (`live`) or shows it to the agent, which repeats the call (`show`).
    """

    def of_unguarded(self, tool: str, called: str = "") -> Unguarded:
        """The answer to a write of `tool`, an action if another tool is `called`, that no policy binds."""
        unset: Unguarded = "ask" if self.of(tool, called=called) == "enforce" else "allow"
        return self.unguarded_tools.get(tool) or self.unguarded_tools.get(called) or self.unguarded or unset

    def of(self, tool: str, policy: str = "", called: str = "") -> Posture:
        """The posture for a call of `tool`, an action if another tool is `called`, under `policy`."""
        return self.policies.get(policy) or self.tools.get(tool) or self.tools.get(called) or self.posture
