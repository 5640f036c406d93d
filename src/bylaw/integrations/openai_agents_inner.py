"""Agents inside the tools of other agents in the OpenAI Agents SDK: their runs are put under the same hooks.

`agent.as_tool(...)` keeps the agent and its hooks inside a function, which is rebuilt around the protected agent. Where
the SDK keeps them elsewhere one day, protecting the outer agent fails and says so. An agent that a function tool runs
by itself is protected when its run begins.
"""
# pyright: basic, reportMissingImports=false

import dataclasses
from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from agents import FunctionTool, RunHooks
from agents.run import AgentRunner

from bylaw.errors import UsageError
from bylaw.integrations.follower import Follower
from bylaw.integrations.nesting import carried, watch


def is_agent_tool(tool: FunctionTool) -> bool:
    return bool(getattr(tool, "_is_agent_tool", False))


def with_agent(tool: FunctionTool, agent: Any, hooks: Callable[[Any], Any]) -> FunctionTool:
    """The tool, running this agent in place of its own, under hooks made from its own."""
    invoke = getattr(tool.on_invoke_tool, "_invoke_tool_impl", None)
    names = getattr(getattr(invoke, "__code__", None), "co_freevars", ())
    if not isinstance(invoke, FunctionType) or not {"self", "hooks"} <= set(names):
        raise UsageError(
            f"tool `{tool.name}` runs agent `{agent.name}`, and this version of the SDK does not show how",
            hint=f"make a function tool of it that awaits `Runner.run(guard.protect({agent.name}), ..., hooks=guard)`",
        )
    cells: dict[str, Any] = dict(zip(names, invoke.__closure__ or (), strict=True))
    cells |= {"self": CellType(agent), "hooks": CellType(hooks(cells["hooks"].cell_contents))}
    code = invoke.__code__
    closure = tuple(cells[name] for name in names)
    run = FunctionType(code, invoke.__globals__, invoke.__name__, invoke.__defaults__, closure)
    run.__kwdefaults__ = invoke.__kwdefaults__

    invoker: Any = tool.on_invoke_tool
    return dataclasses.replace(
        tool, on_invoke_tool=type(invoker)(run, invoker._on_handled_error), _agent_instance=agent
    )


def both(ours: RunHooks, theirs: RunHooks | None) -> RunHooks:
    """Hooks that are run one after the other, ours first."""
    return ours if theirs is None else _Both(ours, theirs)


class _Both(RunHooks):
    def __init__(self, *hooks: RunHooks) -> None:
        self._hooks = hooks


def _in_turn(name: str) -> Callable[..., Any]:
    async def hook(self: _Both, *given: Any) -> None:
        for each in self._hooks:
            await getattr(each, name)(*given)

    return hook


for _name in ("llm_start", "llm_end", "agent_start", "agent_end", "handoff", "tool_start", "tool_end"):
    setattr(_Both, f"on_{_name}", _in_turn(f"on_{_name}"))


def watch_runs(guard_of: Callable[[Follower], Any]) -> None:
    """See to it that a run that begins while a call is being carried out is under hooks that decide."""

    def watched(run: Any) -> Any:
        def begun(self: Any, starting_agent: Any, input: Any, **options: Any) -> Any:
            outer = carried()
            if outer is not None:
                guard = guard_of(outer.follower)
                hooks = options.get("hooks")
                if not any(isinstance(each, type(guard)) for each in getattr(hooks, "_hooks", (hooks,))):
                    starting_agent = guard.protect(starting_agent)
                    options["hooks"] = both(guard, hooks)
            return run(self, starting_agent, input, **options)

        return begun

    for name in ("run", "run_streamed"):
        watch(AgentRunner, name, watched)
