"""The command `bylaw serve` serves decisions over HTTP."""

import hashlib
import importlib.util
import os
import secrets
from collections.abc import Mapping, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import click

from bylaw.cli.answers import ModelOptions, open_answers
from bylaw.cli.command import EarlierPacks, File, Name, Port, command
from bylaw.cli.console import stranded
from bylaw.errors import MissingExtra, UsageError
from bylaw.pack import Pack, load_pack
from bylaw.text.visible import visible

if TYPE_CHECKING:
    from bylaw.record import Log
    from bylaw.service.keys import Key

SECRET = 32


@command("serve")
def serve_command(
    *,
    pack: Annotated[str | None, "--pack PACK", "The folder of a pack, or the name of a built-in pack."] = None,
    store: Annotated[str, "--store --log LOG", "The decision log: a file, or postgresql://..."] = "decisions.db",
    earlier: EarlierPacks = (),
    host: Annotated[str, "Address to listen on; remote access requires --keys."] = "127.0.0.1",
    port: Port = 8300,
    keys: Annotated[File, "File of API keys, with a tenant and a hash on each line."] = None,
    public_url: Annotated[
        str,
        "--public-url URL",
        "Public address of the service, for the AuthZEN configuration.",
    ] = "",
    new_key: Annotated[str | None, "--new-key TENANT", "Print a new key and its line for --keys, and exit."] = None,
    approver: Annotated[
        bool, "With --new-key: create a key for a person who may answer approvals and stop agents."
    ] = False,
    reviewer: Annotated[bool, "With --new-key: create a key for a person who may only read and add notes."] = False,
    viewer: Annotated[bool, "With --new-key: create a read-only key for a person."] = False,
    holder: Annotated[str, "--name NAME", "With --new-key: the person's name, for the log."] = "",
    proxy_header: Annotated[
        Name,
        "Header (such as X-Forwarded-User) in which a proxy names the signed-in user. Roles are in --keys.",
    ] = "",
    proxy_address: Annotated[str, "--proxy-address IP", "The proxy's address; required with --proxy-header."] = "",
    webhook: Annotated[
        str,
        "--webhook URL",
        "URL to notify of calls that wait for approval. Requests are signed if BYLAW_WEBHOOK_SECRET is set.",
    ] = "",
    anchors: Annotated[File, "File for anchors, read by `bylaw log verify --anchors`.  [default: LOG.anchors]"] = None,
    connections: Annotated[int, click.IntRange(1), "Maximum connections per client address and worker."] = 512,
    workers: Annotated[int, click.IntRange(1, 64), "Worker processes."] = 1,
    asking: ModelOptions,
) -> int:
    """Serve decisions over HTTP.

    Requires the `serve` extra. Every decision is stored before it is sent. See /openapi.json for the API.
    """
    from bylaw.service.keys import Key, KeyFile, key_line
    from bylaw.service.keys import new_key as make_key

    if new_key is not None:
        key, role = make_key(), "approve" if approver else "review" if reviewer else "view" if viewer else "decide"
        print(f"key (will not be shown again): {key}\nline for --keys:     {key_line(new_key, key, role, holder)}")
        return 0
    if not pack:
        raise UsageError("no pack", hint="add --pack")
    try:
        from bylaw.service.run import check_address, check_url, listen, run
    except ImportError as error:
        raise MissingExtra("the service requires starlette and uvicorn", "serve") from error
    from bylaw.record import Log
    from bylaw.record.log import LastWriter
    from bylaw.record.verify import Anchoring, beside
    from bylaw.service.desk import Desk
    from bylaw.service.doors import Limits
    from bylaw.service.metrics import Board, Failing
    from bylaw.service.run import supervise
    from bylaw.service.webhook import Webhook, check_hook

    known: Mapping[str, Key] = KeyFile(keys) if keys is not None else {}
    check_address(host, known)
    proxy = _checked_proxy(proxy_header, proxy_address, known)
    check_url(public_url)
    check_hook(webhook)
    loaded, older = load_pack(pack), [load_pack(each) for each in earlier]
    with Log(store) as log:
        # Open the log first, so that an error appears before the address is printed.
        where = log.name
        warning = _stranded(log, loaded, older)
    sockets = listen(host, port, workers)
    at = f"[{host}]" if ":" in host else host
    address = f"http://{at}:{sockets[0].getsockname()[1]}"
    # If the server listens on all addresses, it has no single public address to print.
    public_url = public_url or ("" if host in ("0.0.0.0", "::") else address)
    shown = f"{loaded.name} {loaded.version} at {address}, log {where}"
    print(shown + (f", {workers} workers" if workers > 1 else ""), flush=True)
    if importlib.util.find_spec("jinja2") is not None:
        from bylaw.console.pages import SERVICE_PAGES

        print(f"pages: {SERVICE_PAGES}", flush=True)
    if warning:
        print(warning, flush=True)
    kept = anchors or beside(store)
    if "://" not in store and kept.resolve().parent == Path(store).expanduser().resolve().parent:
        # Warn about anchors next to the log, because anyone who can write to the log could also forge them.
        print(f"warning: the anchors in {kept} are next to the log; keep them elsewhere with --anchors", flush=True)
    board, last, failing = Board(workers) if workers > 1 else None, LastWriter(), Failing()
    # Share the secret between all workers, so that each worker accepts every session.
    secret = _session_secret(os.environ.get("BYLAW_SESSION_SECRET", ""))

    def serve(worker: int) -> None:
        log = Log(store, is_shared=workers > 1, last=last, process=worker)
        with log, open_answers(asking) as models:
            desk = Desk(loaded, log, earlier=older, answers=models.answers, requests=models.requests)
            limits = Limits(connections=connections)
            anchoring = Anchoring(store, kept, _tell, failing=failing.note) if worker == 0 else None
            try:
                run(
                    desk,
                    known,
                    sockets[worker],
                    board=board,
                    worker=worker,
                    url=public_url,
                    limits=limits,
                    anchors=failing,
                    webhook=Webhook(webhook, os.environ.get("BYLAW_WEBHOOK_SECRET", "")) if webhook else None,
                    **pages_of(log, loaded, known, public_url, secret, proxy),
                )
            finally:
                if anchoring is not None:
                    anchoring.end()

    if workers == 1:
        serve(0)
        return 0
    return supervise(workers, serve)


def pages_of(
    log: "Log", pack: Pack, keys: "Mapping[str, Key]", url: str, secret: bytes, proxy: tuple[str, str] | None = None
) -> dict[str, Any]:
    """Return the console's pages.

    Return an empty mapping if its packages are not installed. `proxy` is a header and an address.
    """
    try:
        from bylaw.console.pages import is_page, service_app
        from bylaw.console.sign_in import Proxy, SignIn
    except ImportError:
        return {}
    from bylaw.console.door import Visitor
    from bylaw.service.keys import hash_of, person_named

    def visitor(key: "Key | None", *, by_key: bool) -> Visitor | None:
        if key is None or key.role == "decide":
            return None
        return Visitor(key.name, bool(key.name), key.tenant, key.role, is_signed_in=by_key)

    def whose(name: str) -> Visitor | None:
        return visitor(keys.get(name), by_key=True)

    vouching = Proxy(*proxy, lambda name: visitor(person_named(name, keys), by_key=False)) if proxy else None
    is_secure = url.startswith("https:")
    known = SignIn(whose, hash_of, secret=secret, is_secure=is_secure, proxy=vouching) if keys else None
    hosts = (urlsplit(url).netloc,) if url else ()
    return {"pages": service_app(log, pack, sign_in=known, hosts=hosts, secret=secret), "is_page": is_page}


def _session_secret(given: str) -> bytes:
    """Return the key that signs sessions.

    If the operator provides the key, it survives restarts and several hosts can share it.
    """
    if not given:
        return secrets.token_bytes(32)
    if len(given) < SECRET:
        hint = f"use at least {SECRET} characters, such as the output of `openssl rand -hex 32`"
        raise UsageError(f"BYLAW_SESSION_SECRET is too short: {len(given)} characters", hint=hint)
    return hashlib.sha256(given.encode("utf-8", "surrogateescape")).digest()


def _checked_proxy(header: str, address: str, keys: "Mapping[str, Key]") -> tuple[str, str] | None:
    if not header and not address:
        return None
    if not header or not address:
        raise UsageError("--proxy-header and --proxy-address must be used together", hint="pass both")
    if not keys:
        raise UsageError("--proxy-header requires --keys", hint="add a line `TENANT - approve NAME` for each user")
    try:
        return header, str(ip_address(address))
    except ValueError:
        raise UsageError(f"`{address}` is not an IP address", hint="such as 10.0.0.5") from None


def _tell(line: str) -> None:
    print(visible(line), flush=True)


def _stranded(log: "Log", pack: Pack, earlier: Sequence[Pack]) -> str:
    """Return a warning about recent conversations that began with a version of the pack that is not loaded."""
    from bylaw.shield.shield import Shield

    shields = [Shield(pack, log=log, tenant=tenant, earlier=earlier) for tenant in log.tenants()]
    by_tenant = {shield.tenant: count for shield in shields if (count := shield.stranded())}
    if not by_tenant:
        return ""
    whose = ", ".join(f"{visible(tenant)}: {count}" for tenant, count in by_tenant.items())
    return f"{stranded(sum(by_tenant.values()))} ({whose})"
