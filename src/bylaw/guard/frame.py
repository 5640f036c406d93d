"""What every run of a guard has: the call, what the source answers, and the words for permit and deny."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from bylaw.facts.entity import Fact
from bylaw.facts.unknown import Unknown
from bylaw.guard.answers import Answers
from bylaw.guard.builtin import BuiltIns
from bylaw.guard.operation import admit, fail

PERMIT = ("permit", "")
ODD_KEYS = frozenset((bool, float, Decimal))
"""Parts of keys that are kept as text."""

new_fact: Callable[..., Fact] = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
"""Makes a Fact without the detour through its Python-level constructor: this is the hottest line of an audit."""


class Frame(BuiltIns):
    """The part of `_`, to which the compiled code of a guard talks, that does not depend on what is known."""

    __slots__ = ("answers", "arguments", "seen", "time", "tool")

    def __init__(
        self,
        arguments: Mapping[str, Any],
        answers: Answers,
        tool: str,
        now: datetime | None,
        seen: Callable[[Fact], bool] | None,
    ) -> None:
        self.arguments = arguments
        self.answers = answers
        """What the source said, over all paths, and over all guards that share it."""
        self.tool = tool
        self.time = now
        self.seen = seen
        """Where the source is the world: whether the agent had seen a fact."""

    def argument(self, name: str) -> Any:
        arguments = self.arguments
        if name not in arguments:
            fail(f"the call has no argument `{name}`; use get(call, ...)")
        return admit(arguments[name])

    def optional(self, name: str, default: Any) -> Any:
        arguments = self.arguments
        return admit(arguments[name]) if name in arguments else default

    def tool_name(self) -> str:
        return self.tool

    def permit(self) -> tuple[str, str]:
        return PERMIT

    def deny(self, text: str) -> tuple[str, str]:
        return "deny", text

    def deny_with(self, _fallback: str, *parts: str) -> tuple[str, str]:
        return "deny", "".join(parts)

    def shown(self, value: Any) -> str:
        """A value as a denial tells it."""
        if isinstance(value, Unknown):
            return "..."
        if isinstance(value, (list, tuple)):
            return ", ".join(str(item)[:200] for item in value[:20])  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return str(value)[:200]
