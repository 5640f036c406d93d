"""Decides which results of generic tools are evidence. Every value must come from a source that the pack names."""

import re
from collections.abc import Container, Iterable
from typing import Any

from bylaw.actions.action import Action, Actions

_USE_ACTION = (
    "observe an action of this tool that reads a single table (`reads: {as: sql, tables: [...]}`) or a single host"
)


def shows_facts(action: Action, found: Any = None) -> bool:
    """Whether results of an action may be evidence. `found` is the part that a parser found in one call.

    A query may be evidence if it shows only columns of a table that the pack names. A request may be evidence if the
    pack names its host. The output of a shell and the content of a file may be written by the agent itself. Pages have
    separate observations.
    """
    terms = action.reads
    if terms is None:
        return action.kind == "call"
    if action.kind == "sql":
        return action.effect == "read" and bool(terms.tables) and (found is None or bool(found.shown_table))
    return action.kind == "url" and terms.names_host


def why_no_evidence(actions: Actions, tool: str, bodies: Iterable[str], keys: Container[str]) -> tuple[str, str]:
    """Return why results of a tool or action cannot be evidence, and how to fix this. Both are empty if they can be.

    `bodies` contains the tool's observations as text, and `keys` contains the keys of their entities.
    """
    of_tool = actions.by_tool.get(tool, ())
    if actions.pages.changes_with(tool) or any(each.kind == "page" for each in of_tool):
        return f"`{tool}` returns a page, which may show what the agent typed", "use `pages`"
    if any(each.kind != "call" for each in of_tool):
        return f"`{tool}` can return any text that the agent asks for", _USE_ACTION
    action = next((each for found in actions.by_tool.values() for each in found if each.name == tool), None)
    if action is None or action.kind == "call":
        return "", ""
    if not shows_facts(action):
        hint = _HINTS.get(action.kind, "declare a separate tool for the look-up")
        return f"`{tool}` may return what the agent itself wrote", hint
    if action.kind != "sql":
        return "", ""
    if any(_FROM_AGENT.search(each) for each in bodies):
        return f"an observation of `{tool}` must not use `text`, `absent` or `$args`", "map the columns of its rows"
    if named := [take.name for take in action.takes if take.name in keys]:
        return (
            f"the key `{named[0]}` would come from the agent, because `{tool}` takes it as an argument",
            "give the parameter another name",
        )
    return "", ""


_FROM_AGENT = re.compile(r"\$args|text=[^N]|absent=[^N]")
_HINTS = {
    "sql": "name the tables it reads: `reads: {as: sql, tables: ['^orders$']}`, `effect: read`",
    "url": "name the complete host: `reads: {as: url, host: '^api[.]example$'}`",
    "page": "use `pages`",
}
