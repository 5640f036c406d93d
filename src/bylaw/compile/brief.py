"""One policy, and all that questions about its guard show."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from bylaw.compile.bench import Bench
from bylaw.compile.check import Check
from bylaw.compile.context import told_for_code, told_things, told_tools
from bylaw.compile.naming import digest_of
from bylaw.compile.related import told_related
from bylaw.compile.sort import told as told_policy
from bylaw.compile.span import Draft
from bylaw.policy.statement import Policy


class PolicyBrief(Struct, frozen=True):
    """One policy, and all that questions about it show."""

    draft: Draft
    policy: Policy
    general: str
    tools: str
    things: str
    now: str
    beside: tuple[Draft, ...] = ()
    """Policies that bear on this one."""

    def told(self, group: Sequence[str] = ()) -> str:
        """The policy in words, with those that bear on it; not those that a question asks about, too."""
        others = [each for each in self.beside if each.id not in group]
        return _bound(self.draft, self.policy.tools) + told_related(others)

    @property
    def digest(self) -> str:
        """What is the same as long as nothing that bears on the policy alone has changed."""
        things = [line for line in self.things.splitlines() if not line.startswith("Request[")]
        return digest_of(_bound(replace(self.draft, remark=""), self.policy.tools), self.tools, *things, self.now)

    @property
    def shown(self) -> dict[str, str]:
        """What a referee sees beside the situations."""
        return {"policy": self.told(), "general": self.general, "things": self.things, "now": self.now}

    def told_for_code(self, bench: Bench) -> str:
        """The bound tools, for whoever writes code."""
        sentences = f"{self.general}\n{self.told()}"
        return self.tools + told_for_code(bench.things, bench.cards, self.policy.tools, sentences)

    def is_settled(self, bench: Bench, earlier: Mapping[str, Check]) -> bool:
        """Whether an earlier check was made of just this, and still loads."""
        check = earlier.get(self.draft.id)
        if check is None or check.shown != self.digest:
            return False
        return not check.code or bench.guard(self.policy, check.code)[0] is not None


def brief_of(bench: Bench, draft: Draft, tools: Sequence[str], general: str, beside: tuple[Draft, ...]) -> PolicyBrief:
    """What is shown of a policy that binds some tools."""
    policy = Policy(draft.id, "guard", draft.definition, tuple(tools))
    things = told_things(bench.things, bench.cards, tools, bench.request)
    return PolicyBrief(draft, policy, general, told_tools(bench.cards, tools), things, bench.now, beside)


def _bound(draft: Draft, tools: Sequence[str]) -> str:
    return f"{told_policy(draft)}\n  Binds: {', '.join(tools)}"
