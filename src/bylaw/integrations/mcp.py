"""An MCP proxy: any client on one side, any server on the other, and the shield before every tool call. Extra `mcp`.

What is not a tool call passes through: the list of tools, resources, prompts, what the server asks of the client. What
resources and prompts say is noted as content.
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
"""Methods that are the server's to answer: the parameters, the request and the answer of each."""


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
    """A server that passes everything to `upstream` (a URL, a transport, a server) except the calls the shield stops.

    While the shield is being created, everything but a handshake waits for it. A call names its conversation by a
    header, in its `_meta`, or by the argument `key_argument`, the first that is present; `conversation` is the default.
    With the same `state_key`, of at least 32 bytes, several proxies can continue each other's calls that wait for an
    answer of the user. `tools` is a file with the tool descriptions that were accepted. With `hides`, the list of tools
    leaves out those that the user's request cannot need.
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
    """The server behind the proxy: a URL, or a command that starts a server once for all calls."""
    if isinstance(where, str):
        return by_url(where)
    command, *arguments = where
    return StdioTransport(command, arguments, env=dict(os.environ))


def run(server: Any, address: tuple[str, int] | None = None, *, hosts: Sequence[str] = ()) -> None:
    """Serve: at an address by streamable HTTP, else on standard input and output.

    A request for another host, or from a page of another origin, is refused: a browser may have been led here by a
    foreign site. `hosts` are other names by which the address is reached, such as that of a gateway before it.
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
    """Forward change notifications of the server and the proxy while the client listens (2026-07-28)."""
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
