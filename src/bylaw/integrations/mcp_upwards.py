"""What a client asks of the server, and tells it, beside its tools: which log messages it wants, that its roots have
changed, which resources it watches, how an argument may go on.
"""
# pyright: basic, reportMissingImports=false

from functools import partial
from typing import Any

import anyio
import mcp_types
from fastmcp.exceptions import McpError
from fastmcp.server.dependencies import bind_request_context
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND

from bylaw.integrations.mcp_links import Links

PASSED_ON: Any = (
    ("resources/subscribe", mcp_types.SubscribeRequestParams, mcp_types.SubscribeRequest, mcp_types.EmptyResult),
    ("resources/unsubscribe", mcp_types.UnsubscribeRequestParams, mcp_types.UnsubscribeRequest, mcp_types.EmptyResult),
    ("completion/complete", mcp_types.CompleteRequestParams, mcp_types.CompleteRequest, mcp_types.CompleteResult),
)
"""Methods that are the server's to answer: the parameters, the request and the answer of each."""


def pass_upwards(server: Any, links: Links, listeners: set[InMemorySubscriptionBus]) -> None:
    """Have the proxy pass on what fastmcp would answer itself, or not at all."""

    async def asked(request: Any, kind: Any, context: Any, params: Any) -> Any:
        with bind_request_context(context):
            async with links.client() as client:
                return await client.session.send_request(request(params=params), kind)

    async def level(context: Any, params: Any) -> Any:
        try:
            return await asked(mcp_types.SetLevelRequest, mcp_types.EmptyResult, context, params)
        except McpError as error:
            if error.error.code != METHOD_NOT_FOUND:
                raise
            # A server that writes no log messages has none to leave out.
            return mcp_types.EmptyResult()

    async def roots_changed(context: Any, _: Any) -> None:
        with bind_request_context(context):
            async with links.client() as client:
                await client.session.send_roots_list_changed()

    async def heard(context: Any, params: Any) -> Any:
        with bind_request_context(context):
            return await _listened(links, listeners, context, params)

    inner = server._mcp_server
    inner.add_request_handler("logging/setLevel", mcp_types.SetLevelRequestParams, level)
    for method, params, request, kind in PASSED_ON:
        inner.add_request_handler(method, params, partial(asked, request, kind))
    inner.add_request_handler("subscriptions/listen", mcp_types.SubscriptionsListenRequestParams, heard)
    inner.add_notification_handler("notifications/roots/list_changed", mcp_types.NotificationParams, roots_changed)


async def _listened(links: Links, listeners: set[InMemorySubscriptionBus], context: Any, params: Any) -> Any:
    """What the server and the proxy tell of changes, for as long as the client listens (2026-07-28)."""
    wanted, bus = params.notifications, InMemorySubscriptionBus()
    listeners.add(bus)
    try:
        return await _heard(links, bus, wanted, context, params)
    finally:
        listeners.discard(bus)


async def _heard(links: Links, bus: InMemorySubscriptionBus, wanted: Any, context: Any, params: Any) -> Any:
    async with links.client() as client:
        telling = listen(
            client.session,
            tools_list_changed=bool(wanted.tools_list_changed),
            prompts_list_changed=bool(wanted.prompts_list_changed),
            resources_list_changed=bool(wanted.resources_list_changed),
            resource_subscriptions=wanted.resource_subscriptions or (),
        )
        async with telling as changes, anyio.create_task_group() as tasks:
            handler, lost = ListenHandler(bus), False

            async def pass_on() -> None:
                nonlocal lost
                try:
                    async for change in changes:
                        await bus.publish(change)
                except SubscriptionLost:
                    lost = True
                handler.close()

            tasks.start_soon(pass_on)
            result = await handler(context, params)
            tasks.cancel_scope.cancel()
    if lost:
        raise McpError(code=CONNECTION_CLOSED, message="the server behind this proxy has stopped telling of changes")
    return result
