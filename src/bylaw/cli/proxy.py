"""The command `bylaw proxy` decides on every tool call between an MCP client and an MCP server."""

import ipaddress
import shutil
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import click

from bylaw.cli.answers import ModelOptions, open_answers
from bylaw.cli.command import EarlierPacks, File, GivenFile, Name, PackOption, command
from bylaw.cli.console import local_time, stranded
from bylaw.errors import MissingExtra, UsageError
from bylaw.pack import load_pack
from bylaw.policy.tool import Posture, Postures
from bylaw.shield import Shield
from bylaw.text.visible import visible

SECRET = 32
AT_ONCE = 3.0
"""How many seconds a client waits for the pack before it can connect. After that, only its requests wait."""
UNNAMED = (
    "calls that do not name their conversation are refused if a policy applies to them: if this proxy serves one chat, "
    "add --conversation NAME"
)


@command("proxy")
def proxy_command(
    command: Annotated[tuple[str, ...], click.UNPROCESSED] = (),
    *,
    pack: PackOption,
    earlier: EarlierPacks = (),
    log: Annotated[str | None, "--log FILE", "Decision log: a file, or postgresql://..."] = None,
    url: Annotated[str | None, "--url URL", "URL of the server to guard (streamable HTTP)."] = None,
    listen: Annotated[
        str | None, "--listen HOST:PORT", "Serve streamable HTTP instead of standard input and output."
    ] = None,
    allow_host: Annotated[tuple[Name, ...], "For --listen: another host name to accept. May be repeated."] = (),
    key_argument: Annotated[Name | None, "The tool argument that names the conversation."] = None,
    conversation: Annotated[Name | None, "The conversation for calls that do not name one."] = None,
    posture: Annotated[Posture | None, "Use this posture instead of the pack's."] = None,
    context: Annotated[
        tuple[str, ...], "--context NAME=VALUE", "A fact that you guarantee, such as caller=P121. May be repeated."
    ] = (),
    state_key: Annotated[
        GivenFile,
        "A secret of 32 bytes or more that several proxies share, so that each can resume a waiting call.",
    ] = None,
    tools: Annotated[
        File,
        click.Path(dir_okay=False, path_type=Path),
        "File with the accepted tool descriptions; review changes with `bylaw tools`.",
    ] = None,
    hide: Annotated[bool, "List only tools that read data and tools the user's request may need."] = False,
    asking: ModelOptions,
) -> None:
    """Allow or block every tool call between an MCP client and server.

    Pass the COMMAND that starts the server after `--`, or the address of a running server with `--url`.
    """
    if bool(command) == bool(url):
        raise UsageError("pass exactly one server", hint="pass either `--url URL` or `-- COMMAND...`")
    if command and shutil.which(command[0]) is None:
        raise UsageError(f"no program `{command[0]}`", hint="pass the command of your server after `--`")
    if url and not (url.startswith(("http://", "https://")) and urlsplit(url).netloc):
        raise UsageError(f"`--url {url}` is not an HTTP address", hint="such as `http://127.0.0.1:8000/mcp`")
    address = _address(listen) if listen else None
    given = dict(_pair(each) for each in context)
    try:
        from bylaw.integrations.mcp import proxy, run, upstream
    except ImportError as error:
        raise MissingExtra("the proxy requires fastmcp", "mcp") from error
    named = {"key_argument": key_argument or "", "conversation": conversation or "", "state_key": _secret(state_key)}
    with open_answers(asking) as models:

        def load() -> Shield:
            shield = Shield(
                load_pack(pack),
                postures=Postures(posture) if posture else None,
                log=log,
                answers=models.answers,
                requests=models.requests,
                earlier=[load_pack(each) for each in earlier],
            )
            if hide and models.requests is None:
                raise UsageError("`--hide` needs `--llm`", hint="pass the model that reads requests")
            if hide and not shield.pack.reads_requests:
                hint = "use `requested()` in a guard, as the pack `agentdojo` does"
                raise UsageError("`--hide` requires a pack that checks calls against the user's request", hint=hint)
            notes = [_taken_up(shield, conversation or "")]
            notes += [stranded(count)] if (count := shield.stranded()) else []
            notes += ["without --log, calls that need approval are refused"] if shield.log is None else []
            notes += [] if address or conversation or key_argument else [UNNAMED]
            for note in filter(None, notes):
                print(visible(f"bylaw: {note}"), file=sys.stderr, flush=True)
            return shield

        loading = _begun(load)
        # If the pack fails to load within this time, report the error before any client connects.
        wait([loading], None if address else AT_ONCE)
        shield = loading.result() if loading.done() else loading
        server: Any = proxy(shield, upstream(url or command), context=given, tools=tools, hides=hide, **named)
        # Ctrl-C is the normal way to stop a proxy.
        with suppress(KeyboardInterrupt):
            run(server, address, hosts=allow_host)
        if loading.done():
            loading.result().close()


def _begun(load: Callable[[], Shield]) -> "Future[Shield]":
    loading: Future[Shield] = Future()

    def fill() -> None:
        try:
            loading.set_result(load())
        except BaseException as error:
            loading.set_exception(error)

    threading.Thread(target=fill, daemon=True).start()
    return loading


def _taken_up(shield: Shield, name: str) -> str:
    """Return a note if the conversation that `--conversation` names is already in the log."""
    entries = shield.log.conversation(shield.tenant, name) if shield.log is not None and name else []
    if not entries:
        return ""
    events = sum(entry.kind == "event" for entry in entries)
    return (
        f"resuming conversation `{name}` of {local_time(entries[-1].time)}: {events} events."
        " Earlier look-ups still count. To begin a new conversation, choose another --conversation"
    )


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"`--context {text}` is not NAME=VALUE", hint="such as caller=P121")
    return name, value


def _secret(file: Path | None) -> str:
    if file is None:
        return ""
    secret = file.read_text(encoding="utf-8").strip()
    if len(secret.encode()) < SECRET:
        raise UsageError(f"`--state-key {file}` has fewer than {SECRET} bytes", hint="such as `openssl rand -hex 32`")
    return secret


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    if not port.isdigit():
        raise UsageError(f"`--listen {text}` is not HOST:PORT", hint="such as `127.0.0.1:8321`")
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        hint = "listen on 127.0.0.1, behind your own gateway"
        raise UsageError(f"the proxy does not authenticate clients, so it cannot listen on `{host}`", hint=hint)
    return host, int(port)
