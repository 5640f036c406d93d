"""Pydantic AI agents that run inside shielded tools: their tools are put behind decisions too.

The framework shows nothing of an agent that a tool runs. But every run of an agent makes a `ToolManager` for its tools,
so one that is made while a shielded tool is being carried out gets the shield before its tools.
"""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable
from typing import Any

from pydantic_ai.tool_manager import ToolManager

from bylaw.integrations.nesting import carried
from bylaw.shield import Shield
from bylaw.shield.shield import shield_of


def watch(shielding: Callable[[Any, Shield], Any]) -> None:
    """See to it that inner agents run their tools through `shielding`, which puts a shield before a toolset."""
    made: Any = ToolManager.__init__
    if hasattr(made, "bylaw"):
        return

    def init(self: Any, *given: Any, **more: Any) -> None:
        made(self, *given, **more)
        if (outer := carried()) is not None:
            self.toolset = shielding(self.toolset, shield_of(outer.follower.session))

    init.bylaw = made
    ToolManager.__init__ = init
