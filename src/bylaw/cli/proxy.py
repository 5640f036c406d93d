"""`bylaw proxy`: stand between any MCP client and any MCP server, and decide on every tool call."""

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
from bylaw.cli.console import local_time
from bylaw.errors import UsageError
from bylaw.pack import load_pack
from bylaw.policy.posture import Posture, Postures
from bylaw.shield import Shield
from bylaw.text.visible import visible

SECRET = 32
AT_ONCE = 3.0
"""Seconds that a client waits at most for the pack; from then on only what it asks does."""
UNNAMED = (
    "calls that do not name their conversation are refused where a policy binds them: give --conversation NAME where "
    "this proxy serves one chat"
)


@command("proxy")
def proxy_command(
    command: Annotated[tuple[str, ...], click.UNPROCESSED] = (),
    *,
    pack: PackOption,
    earlier: EarlierPacks = (),
    log: Annotated[str | None, "--log FILE", "Keep every decision there: a file, or `postgresql://...`."] = None,
    url: Annotated[
        str | None, "--url URL", "The server to stand before, where it is reached by streamable HTTP."
    ] = None,
    listen: Annotated[
        str | None, "--listen HOST:PORT", "Serve streamable HTTP there, not standard input and output."
    ] = None,
    allow_host: Annotated[tuple[Name, ...], "For --listen: another name that requests may be sent to."] = (),
    key_argument: Annotated[Name | None, "Argument of the tools that names the conversation."] = None,
    conversation: Annotated[Name | None, "The conversation for calls that do not name one."] = None,
    posture: Annotated[Posture | None, "Use this posture instead of the pack's own."] = None,
    context: Annotated[
        tuple[str, ...], "--context NAME=VALUE", "A fact that you vouch for, such as `caller=P121`."
    ] = (),
    state_key: Annotated[
        GivenFile,
        "A secret of 32 bytes or more that several proxies share: each can go on with a call that waits for the user.",
    ] = None,
    tools: Annotated[
        File,
        click.Path(dir_okay=False, path_type=Path),
        "Keep the accepted descriptions of the server's tools there; a changed one is asked about (`bylaw tools`).",
    ] = None,
    hide: Annotated[bool, "List only tools that the user's request may need, and those that only read."] = False,
    asking: ModelOptions,
) -> None:
    """Stand between an MCP client and an MCP server, and decide on every tool call.

    COMMAND starts the server, after `--`; or `--url` names one that runs already.
    """
    if bool(command) == bool(url):
        raise UsageError("say which server to stand before", hint="either `--url URL` or `-- COMMAND...`")
    if command and shutil.which(command[0]) is None:
        raise UsageError(f"there is no program `{command[0]}` to start", hint="after `--`, the command of your server")
    if url and not (url.startswith(("http://", "https://")) and urlsplit(url).netloc):
        raise UsageError(f"`--url {url}` is not the address of a server", hint="such as `http://127.0.0.1:8000/mcp`")
    address = _address(listen) if listen else None
    given = dict(_pair(each) for each in context)
    try:
        from bylaw.integrations.mcp import proxy, run, upstream
    except ImportError as error:
        raise UsageError("the proxy needs fastmcp", hint="in your clone of Bylaw: pip install '.[mcp]'") from error
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
                raise UsageError("`--hide` needs `--llm`", hint="a model reads which tools a request needs")
            if hide and not shield.pack.reads_requests:
                hint = "a guard asks `requested()` for it, as in the pack `agentdojo`"
                raise UsageError("`--hide` needs a pack that holds calls to the user's request", hint=hint)
            unnamed = "" if address or conversation or key_argument else UNNAMED
            notes = (_taken_up(shield, conversation or ""), _stranded(shield), _unanswerable(shield), unnamed)
            for note in filter(None, notes):
                print(visible(f"bylaw: {note}"), file=sys.stderr, flush=True)
            return shield

        loading = _begun(load)
        # Whoever waits at the other end of a pipe waits for an answer; what goes wrong at once is said at once.
        wait([loading], None if address else AT_ONCE)
        shield = loading.result() if loading.done() else loading
        server: Any = proxy(shield, upstream(url or command), context=given, tools=tools, hides=hide, **named)
        # Who stops a proxy breaks nothing off.
        with suppress(KeyboardInterrupt):
            run(server, address, hosts=allow_host)
        if loading.done():
            loading.result().close()


def _begun(load: Callable[[], Shield]) -> "Future[Shield]":
    """What `load` will give, from a thread that nobody waits for at the end."""
    loading: Future[Shield] = Future()

    def fill() -> None:
        try:
            loading.set_result(load())
        except BaseException as error:
            loading.set_exception(error)

    threading.Thread(target=fill, daemon=True).start()
    return loading


def _taken_up(shield: Shield, name: str) -> str:
    """What the log already holds of the conversation that all calls will be of, in words."""
    entries = shield.log.conversation(shield.tenant, name) if shield.log is not None and name else []
    if not entries:
        return ""
    events = sum(entry.kind == "event" for entry in entries)
    return (
        f"conversation `{name}` goes on where the log left it at {local_time(entries[-1].time)}: {events} events, "
        "and what was looked up then counts as seen. For a new one give another --conversation."
    )


def _stranded(shield: Shield) -> str:
    """How many conversations of the last day no loaded version can go on with, in words."""
    if not (count := shield.stranded()):
        return ""
    began = "1 conversation of the last day began" if count == 1 else f"{count} conversations of the last day began"
    return f"{began} under another version of the pack, and calls in them are refused: give it with --earlier"


def _unanswerable(shield: Shield) -> str:
    if shield.log is not None:
        return ""
    return "without --log nobody can approve a call: what only a person can decide stays refused"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise UsageError(f"`--context {text}` is not NAME=VALUE")
    return name, value


def _secret(file: Path | None) -> str:
    if file is None:
        return ""
    secret = file.read_text(encoding="utf-8").strip()
    if len(secret.encode()) < SECRET:
        raise UsageError(f"`--state-key {file}` holds fewer than {SECRET} bytes", hint="such as `openssl rand -hex 32`")
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
        hint = "listen at 127.0.0.1, and put your own gateway before it"
        raise UsageError(f"the proxy does not check who calls, so it does not listen at `{host}`", hint=hint)
    return host, int(port)
