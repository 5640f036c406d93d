"""An MCP proxy that decides every tool call between a client and a server. Extra `mcp`.

Everything else passes through: the tool list, resources, prompts, and the server's requests to the client. The proxy
records the text of resources and prompts as content.
"""
# pyright: basic, reportMissingImports=false

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import mcp_types
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import McpError
from fastmcp.server.dependencies import bind_request_context
from fastmcp.server.providers.proxy import FastMCPProxy, ProxyMetadataMiddleware
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.server.request_state import RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp_types import CONNECTION_CLOSED, METHOD_NOT_FOUND

from bylaw.integrations.mcp_catalogue import Catalogue
from bylaw.integrations.mcp_handshake import Gate, Introduction, saying_where
from bylaw.integrations.mcp_passing import Fronts, Links, by_url
from bylaw.integrations.mcp_shield import Hiding, ShieldMiddleware
from bylaw.shield import Shield

PASSED_ON: Any = (
    ("resources/subscribe", mcp_types.SubscribeRequestParams, mcp_types.SubscribeRequest, mcp_types.EmptyResult),
    ("resources/unsubscribe", mcp_types.UnsubscribeRequestParams, mcp_types.UnsubscribeRequest, mcp_types.EmptyResult),
    ("completion/complete", mcp_types.CompleteRequestParams, mcp_types.CompleteRequest, mcp_types.CompleteResult),
)
"""The server methods that are passed on, with their parameter, request and answer types."""


def proxy(
    shield: "Shield | Future[Shield]",
    upstream: Any,
    *,
    context: Mapping[str, Any] | None = None,
    key_argument: str = "",
    conversation: str = "",
    state_key: str = "",
    tools: Path | None = None,
    hides: bool = False,
) -> Any:
    """Return a server that passes everything to `upstream` (a URL, a transport or a server) except stopped calls.

    While the shield is starting, only handshakes are answered. A call can name its conversation in a header, in its
    `_meta`, or in the argument `key_argument`. These places are checked in this order, and `conversation` is the
    default. Proxies with the same `state_key` (at least 32 bytes) can continue each other's waiting calls. `tools` is a
    file of accepted tool descriptions. With `hides`, tools that the user's request cannot need are left out of the
    list.
    """
    fronts = Fronts()
    links = Links(upstream, fronts)
    security = RequestStateSecurity(keys=[state_key], audience="bylaw") if state_key else None
    server = FastMCPProxy(
        client_factory=links.client, name="bylaw", identity="upstream", request_state_security=security
    )
    before = server.middleware[-1]
    assert isinstance(before, ProxyMetadataMiddleware)
    catalogue = Catalogue(tools)
    server.middleware[-1] = Introduction(before.provider, identity="upstream", catalogue=catalogue, shield=shield)
    listeners: set[InMemorySubscriptionBus] = set()
    pass_upwards(server, links, listeners)

    def made(shield: Shield) -> ShieldMiddleware:
        return ShieldMiddleware(
            shield,
            context=context,
            fronts=fronts,
            links=links,
            catalogue=catalogue,
            hiding=Hiding(shield.pack.schema.tools, listeners) if hides else None,
            key_argument=key_argument,
            conversation=conversation,
        )

    server._mcp_server.middleware.append(saying_where)
    server.add_middleware(Gate(shield, made, fronts))
    return server


def upstream(where: str | tuple[str, ...]) -> Any:
    """Return the server behind the proxy, from its URL or from a command. A command starts one server for all calls."""
    if isinstance(where, str):
        return by_url(where)
    command, *arguments = where
    return StdioTransport(command, arguments, env=dict(os.environ))


def run(server: Any, address: tuple[str, int] | None = None, *, hosts: Sequence[str] = ()) -> None:
    """Serve over streamable HTTP at an address, or on standard input and output.

    Requests for another host or from another origin's web page are refused, because a foreign site may have sent them.
    `hosts` are additional host names for the address, such as a gateway's.
    """
    if address is None:
        server.run("stdio", show_banner=False)
        return
    host, port = address
    allowed = {
        "host_origin_protection": True,
        "allowed_hosts": [*hosts],
        "allowed_origins": [f"{scheme}://{each}" for each in hosts for scheme in ("http", "https")],
    }
    server.run("http", show_banner=False, host=host, port=port, uvicorn_config={"log_level": "warning"}, **allowed)


def pass_upwards(server: Any, links: Links, listeners: set[InMemorySubscriptionBus]) -> None:
    """Make the proxy pass on messages that fastmcp would otherwise answer or drop."""

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
            # A server that writes no log messages needs no log level.
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
    """While the client listens, forward change notifications from the server and the proxy (2026-07-28)."""
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
        raise McpError(code=CONNECTION_CLOSED, message="the server behind this proxy no longer reports changes")
    return result
