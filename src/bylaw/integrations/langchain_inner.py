"""Tools that an inner LangChain agent runs behind the back of its shield: seen by a callback, and stopped.

Callbacks of a tool's run are handed on to every agent and graph that is run inside it.
"""
# pyright: basic, reportMissingImports=false

from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.callbacks.manager import BaseCallbackManager

from bylaw.errors import UsageError
from bylaw.integrations.nesting import carried
from bylaw.pack import Pack


def watch(config: Any, pack: Pack) -> None:
    """See to it that inside the run of a tool nothing runs that was not decided on."""
    given = config.get("callbacks")
    if any(isinstance(each, _Watch) for each in getattr(given, "handlers", given or ())):
        return
    manager = given.copy() if isinstance(given, BaseCallbackManager) else CallbackManager(list(given or ()))
    manager.add_handler(_Watch(pack), inherit=True)
    config["callbacks"] = manager


class _Watch(BaseCallbackHandler):
    raise_error = True
    run_inline = True

    def __init__(self, pack: Pack) -> None:
        self._pack = pack

    def on_tool_start(self, serialized: Any, input_str: str, *, metadata: Any = None, **_: Any) -> None:
        name = (serialized or {}).get("name", "")
        current = carried()
        if current is not None and not current.is_running and current.tool == name:
            current.is_running = True
            return
        declared = self._pack.schema.tools.get(name)
        is_write = declared is not None and declared.effect == "write"
        if current is not None and place(metadata) == current.place and not is_write:
            # A tool that makes use of another: it is part of what was decided on.
            return
        outer = f"inside `{current.tool}`" if current is not None else "inside another tool"
        hint = "give the agent in there the middleware too: `create_agent(..., middleware=[ShieldMiddleware(shield)])`"
        raise UsageError(f"tool `{name}` would run {outer} without a decision", hint=hint)


def place(metadata: Any) -> str:
    """Where in the graphs something runs."""
    return str((metadata or {}).get("langgraph_checkpoint_ns") or "")
