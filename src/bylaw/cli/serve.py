"""`bylaw serve`: decisions over HTTP."""

import hashlib
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
from bylaw.errors import UsageError
from bylaw.pack import Pack, load_pack
from bylaw.text.visible import visible

if TYPE_CHECKING:
    from bylaw.record import Log
    from bylaw.service.keys import Key

SECRET = 32
"""Characters of a session secret at least."""


@command("serve")
def serve_command(
    *,
    pack: Annotated[str | None, "--pack PACK", "A pack's folder, or the name of one that comes with Bylaw."] = None,
    store: Annotated[str, "--store --log LOG", "The decision log: a file, or postgresql://..."] = "decisions.db",
    earlier: EarlierPacks = (),
    host: Annotated[str, "Where to listen; beyond this machine only with --keys."] = "127.0.0.1",
    port: Port = 8300,
    keys: Annotated[File, "API keys: a tenant and a hash on each line."] = None,
    public_url: Annotated[
        str,
        "--public-url URL",
        "Where clients find the service, if not where it listens: told in the AuthZEN configuration.",
    ] = "",
    new_key: Annotated[
        str | None, "--new-key TENANT", "Make a key, print it and the line for --keys, and stop."
    ] = None,
    approver: Annotated[bool, "For --new-key: a person's key, which answers approvals and makes stops."] = False,
    reviewer: Annotated[bool, "For --new-key: a person's key that looks and leaves notes."] = False,
    viewer: Annotated[bool, "For --new-key: a person's key that only looks."] = False,
    holder: Annotated[str, "--name NAME", "For a person's key: who holds it, for the log."] = "",
    proxy_header: Annotated[
        Name,
        "A header in which a proxy names who it has signed in, such as X-Forwarded-User. Their roles are in --keys.",
    ] = "",
    proxy_address: Annotated[str, "--proxy-address IP", "Where that proxy connects from; needed with it."] = "",
    webhook: Annotated[
        str,
        "--webhook URL",
        "Where to post each call that waits for a person; signed with BYLAW_WEBHOOK_SECRET if that is set.",
    ] = "",
    anchors: Annotated[
        File, "Where the ends of the log's chains are noted, for `bylaw log verify --anchors`.  [default: LOG.anchors]"
    ] = None,
    connections: Annotated[
        int, click.IntRange(1), "Connections of one address at a time, to each worker; a proxy in front is one address."
    ] = 512,
    workers: Annotated[int, click.IntRange(1, 64), "Processes that share the work."] = 1,
    asking: ModelOptions,
) -> int:
    """Answer over HTTP whether an agent may make a call. Needs the extra `serve`.

    Every decision is on disk before it is answered. /openapi.json describes the requests.
    """
    from bylaw.service.keys import Key, KeyFile, key_line
    from bylaw.service.keys import new_key as make_key

    if new_key is not None:
        key, role = make_key(), "approve" if approver else "review" if reviewer else "view" if viewer else "decide"
        print(f"key, shown only now: {key}\nline for --keys:     {key_line(new_key, key, role, holder)}")
        return 0
    if not pack:
        raise UsageError("say which pack to hold calls to", hint="give --pack")
    try:
        from bylaw.service.run import check_address, check_url, listen, run
    except ImportError as error:
        hint = "in your clone of Bylaw: pip install '.[serve]'"
        raise UsageError("the service needs starlette and uvicorn", hint=hint) from error
    from bylaw.record import Log
    from bylaw.record.anchor import Anchoring, beside
    from bylaw.record.last_writer import LastWriter
    from bylaw.service.board import Board
    from bylaw.service.desk import Desk
    from bylaw.service.doors import Limits
    from bylaw.service.webhook import Webhook, check_hook
    from bylaw.service.workers import supervise

    known: Mapping[str, Key] = KeyFile(keys) if keys is not None else {}
    check_address(host, known)
    proxy = _checked_proxy(proxy_header, proxy_address, known)
    check_url(public_url)
    check_hook(webhook)
    loaded, older = load_pack(pack), [load_pack(each) for each in earlier]
    with Log(store) as log:
        # A log that cannot be opened is told before any address is.
        where = log.name
        told = _stranded(log, loaded, older)
    sockets = listen(host, port, workers)
    at = f"[{host}]" if ":" in host else host
    address = f"http://{at}:{sockets[0].getsockname()[1]}"
    # At every address of a machine there is no one name that clients would know it by.
    public_url = public_url or ("" if host in ("0.0.0.0", "::") else address)
    shown = f"{loaded.name} {loaded.version} at {address}, log {where}"
    print(shown + (f", {workers} workers" if workers > 1 else ""), flush=True)
    if told:
        print(told, flush=True)
    kept = anchors or beside(store)
    if "://" not in store and kept.resolve().parent == Path(store).expanduser().resolve().parent:
        # A writer of the database could forge both.
        print(f"warning: the anchors in {kept} lie next to the log; keep them elsewhere with --anchors", flush=True)
    board, last = Board(workers) if workers > 1 else None, LastWriter()
    # Whichever worker answers, it knows the sessions of all.
    secret = _session_secret(os.environ.get("BYLAW_SESSION_SECRET", ""))

    def serve(worker: int) -> None:
        log = Log(store, is_shared=workers > 1, last=last, process=worker, in_loop=True)
        with log, open_answers(asking) as models:
            desk = Desk(loaded, log, earlier=older, answers=models.answers, requests=models.requests)
            limits = Limits(connections=connections)
            anchoring = Anchoring(store, kept, _tell) if worker == 0 else None
            try:
                run(
                    desk,
                    known,
                    sockets[worker],
                    board=board,
                    worker=worker,
                    url=public_url,
                    limits=limits,
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
    """The pages for people; none where what they need is not installed. `proxy` is its header and its address."""
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
    """What sign-ins are sealed with; one that is given outlives a restart, and other hosts know it, too."""
    if not given:
        return secrets.token_bytes(32)
    if len(given) < SECRET:
        hint = f"give it {SECRET} or more, such as `openssl rand -hex 32` prints"
        raise UsageError(f"BYLAW_SESSION_SECRET has {len(given)} characters, too few to be safe", hint=hint)
    return hashlib.sha256(given.encode("utf-8", "surrogateescape")).digest()


def _checked_proxy(header: str, address: str, keys: "Mapping[str, Key]") -> tuple[str, str] | None:
    """The proxy whose word on names counts; None for none."""
    if not header and not address:
        return None
    if not header or not address:
        raise UsageError("a proxy needs both", hint="give --proxy-header and --proxy-address")
    if not keys:
        raise UsageError("whom a proxy names has a role in --keys", hint="a line `TENANT - approve NAME` for each")
    try:
        return header, str(ip_address(address))
    except ValueError:
        raise UsageError(f"`{address}` is not an address", hint="such as 10.0.0.5") from None


def _tell(line: str) -> None:
    print(visible(line), flush=True)


def _stranded(log: "Log", pack: Pack, earlier: Sequence[Pack]) -> str:
    """What to tell of conversations of the last day that began under a pack that is not loaded; empty for none."""
    from bylaw.shield.shield import Shield

    shields = [Shield(pack, log=log, tenant=tenant, earlier=earlier) for tenant in log.tenants()]
    by_tenant = {shield.tenant: count for shield in shields if (count := shield.stranded())}
    if not by_tenant:
        return ""
    total = sum(by_tenant.values())
    whose = ", ".join(f"{visible(tenant)}: {count}" for tenant, count in by_tenant.items())
    what = "conversation of the last day is" if total == 1 else "conversations of the last day are"
    return f"{total} {what} under another version of the pack, and cannot go on: load it with --earlier ({whose})"
