"""Tools that a request cannot use, left out of the list: what an agent does not see, no text can talk it into.

A call of a hidden tool is decided on as ever. Only the user's words bring a tool back, and the client is then told that
the list has changed.
"""
# pyright: basic, reportMissingImports=false

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import ToolListChangedNotification

from bylaw.integrations.mcp_fronts import Front
from bylaw.policy.tool import Tool
from bylaw.shield import LiveSession

MOST = 10_000
"""Conversations whose last list is remembered."""
Hidden = frozenset[str]


class Hiding:
    """What each conversation's client was last told, and what it would be told now."""

    def __init__(self, tools: Mapping[str, Tool], listeners: set[InMemorySubscriptionBus]) -> None:
        self._tools = tools
        self._told: OrderedDict[str, Hidden] = OrderedDict()
        self.listeners = listeners
        """In the protocol without sessions, those who listen for changes."""

    def hidden(self, session: LiveSession) -> Hidden:
        """The tools that what the user has said so far cannot need; none, where they have said nothing."""
        allowance = session.allowance
        if allowance is None:
            return frozenset()
        return frozenset(name for name, tool in self._tools.items() if not allowance.may_need(tool))

    def tell(self, session: LiveSession, hidden: Hidden) -> bool:
        """Note what the client of a conversation is told; whether it was told otherwise before."""
        before = self._told.pop(session.id, Hidden())
        self._told[session.id] = hidden
        if len(self._told) > MOST:
            self._told.popitem(last=False)
        return before != hidden

    async def announce(self, request: Any) -> None:
        """Have the client ask for the list again."""
        if self.listeners:
            for bus in list(self.listeners):
                await bus.publish(ToolsListChanged())
        else:
            await Front(request.session, request.request_id).tell(ToolListChangedNotification())
