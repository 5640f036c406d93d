"""`bylaw log`: look at a decision log, give its conversations to an audit, answer what waits, remove what must go."""

import getpass
import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import click
from rich.text import Text

from bylaw.cli.console import open_console
from bylaw.cli.group import InOrder
from bylaw.errors import BylawError, UsageError
from bylaw.record import Log, Store, open_store
from bylaw.record.approval import Approval, Status
from bylaw.record.entry import DEFAULT_TENANT
from bylaw.text.visible import clean, visible

if TYPE_CHECKING:
    from bylaw.shield.history import History

_log = click.option("--log", "where", metavar="LOG", required=True, help="The log: a file, or postgresql://...")
_tenant = click.option("--tenant", default=DEFAULT_TENANT, help="Whose part of the log.")
MOST = 5
"""Tenants that a message names at most."""
LEAST = 3
"""Characters of what conversations are looked through for, at least."""
LIVE = 24 * 3600.0
"""Seconds after which a conversation is taken to have ended."""
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("log", cls=InOrder)
def log_command() -> None:
    """The decision log: verify it, export it, answer approvals, remove conversations."""


@log_command.command("verify")
@_log
@click.option("--tenant", help="Only this tenant's chain.")
@click.option("--head", default="", metavar="HASH", help="A hash noted earlier, which must still stand in the chain.")
@click.option(
    "--anchors",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="What `bylaw serve` noted of the log; by default LOG.anchors, where it is there.",
)
@_json
def verify_command(where: str, tenant: str | None, head: str, anchors: Path | None, as_json: bool) -> int:
    """Check whether anything in the log was changed, removed or added.

    The exit status is 1 if something was. What Bylaw itself removed counts as intact: an entry says so. Whether the
    end of a log was cut off, or a tenant taken out whole, only anchors can tell, or the hash that this prints.
    """
    from bylaw.record.anchor import beside, read_anchors
    from bylaw.record.verify import verify

    store = existing(where)
    kept = anchors or (path if (path := beside(where)).is_file() else None)
    noted = read_anchors(kept) if kept is not None else []
    # Of a tenant that was taken out whole, only its anchors are left.
    anchored = {each.tenant for each in noted}
    tenants = [tenant] if tenant is not None else sorted({*store.tenants(), *anchored})
    if tenant is not None and not head and tenant not in anchored:
        refuse_stranger(store, tenant, where)
    if head and len(tenants) != 1:
        raise UsageError("a hash belongs to one tenant's chain", hint="say which with --tenant")
    found = [verify(store, name, head=head, anchors=noted) for name in tenants]
    if as_json:
        _print([_plain(each) for each in found])
    console = open_console()
    for each in found if not as_json else ():
        removed = f", of which {each.removed:,} were removed" if each.removed else ""
        removed += f", the first {each.folded:,} of them folded" if each.folded else ""
        fine = "" if each.faults else ", nothing altered"
        console.print(Text(f"{each.tenant}: {each.entries:,} entries{removed}{fine}"))
        console.print(Text(f"  last hash: {each.head}"), soft_wrap=True)
        for fault in each.faults:
            console.print(Text(f"  {fault}", style="red"))
    if not found and not as_json:
        console.print(
            "The log is empty. Whether it always was, only what was noted earlier can tell (--anchors, --head)."
        )
    if kept is not None and not as_json:
        console.print(Text(f"Held against {len(noted):,} anchors in {kept}."), soft_wrap=True)
    return 1 if any(each.faults for each in found) else 0


@log_command.command("export")
@_log
@_tenant
@click.option("--out", type=click.Path(path_type=Path), help="File to write; by default standard output.")
@click.option(
    "--format",
    "format",
    type=click.Choice(("jsonl", "parquet")),
    default="jsonl",
    help="Lines, or a Parquet file with the decisions beside the messages; that needs --out.",
)
@click.argument("conversations", nargs=-1, metavar="[CONVERSATION]...")
def export_command(
    where: str, tenant: str, out: Path | None, format: Literal["jsonl", "parquet"], conversations: tuple[str, ...]
) -> int:
    """Write conversations as `bylaw audit` reads them, one per line or row.

    A conversation that cannot be read is named and left out, and the exit status is 1.
    """
    store = existing(where)
    refuse_stranger(store, tenant, where)
    known = store.conversations(tenant)
    if unknown := set(conversations) - set(known):
        raise UsageError(f"the log has no conversation `{sorted(unknown)[0]}`", place=where)
    wanted = conversations or known
    if out is None:
        if format == "parquet":
            raise UsageError("a Parquet file needs a place to lie", hint="give --out FILE.parquet")
        return _export(store, tenant, wanted, sys.stdout.buffer)
    if _is_of_log(out, where):
        raise UsageError("this is the log itself, which an export does not overwrite", place=str(out))
    if out.exists() and not out.is_file() and format == "jsonl":
        with out.open("wb") as target:
            return _export(store, tenant, wanted, target)
    if not out.parent.is_dir():
        raise UsageError("the folder does not exist", place=str(out.parent), hint="make it first")
    rough = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        if format == "parquet":
            status = _export_table(store, tenant, wanted, rough)
        else:
            with rough.open("xb") as target:
                status = _export(store, tenant, wanted, target)
        os.replace(rough, out)
    finally:
        rough.unlink(missing_ok=True)
    return status


def _export(store: Store, tenant: str, names: Iterable[str], target: BinaryIO) -> int:
    from bylaw.trace.chat_record import chat_line

    status = 0
    for name, history in _histories(store, tenant, names):
        if history is None:
            status = 1
        else:
            target.write(chat_line(history.trajectory(name)))
    target.flush()
    return status


def _export_table(store: Store, tenant: str, names: Iterable[str], target: Path) -> int:
    from bylaw.cli.log_table import LogTable

    status, table = 0, LogTable(target)
    for name, history in _histories(store, tenant, names):
        if history is None:
            status = 1
        else:
            table.add(name, history)
    table.close()
    return status


def _histories(store: Store, tenant: str, names: Iterable[str]) -> "Iterator[tuple[str, History | None]]":
    """What the log holds of each conversation; None for one that cannot be read, which is told."""
    from bylaw.shield.history import read_history

    for name in names:
        try:
            history = read_history(store.conversation(tenant, name))
        except BylawError as error:
            print(f"bylaw: `{name}` is left out: {error}", file=sys.stderr, flush=True)
            yield name, None
            continue
        if history is not None:
            yield name, history


def _is_of_log(out: Path, where: str) -> bool:
    """Whether a file is the log's own, or one that SQLite keeps beside it."""
    if "://" in where:
        return False
    log = Path(where).expanduser()
    own = [log.with_name(log.name + end) for end in ("", "-wal", "-shm", "-journal", "-queue", ".anchors")]
    return any(
        out.resolve() == each.resolve() or (out.exists() and each.exists() and out.samefile(each)) for each in own
    )


@log_command.command("approvals")
@_log
@_tenant
@click.option("--all", "every", is_flag=True, help="Also list those that are answered or over.")
@_json
def approvals_command(where: str, tenant: str, every: bool, as_json: bool) -> int:
    """List the calls that wait for a person.

    Each is checked against the entries of its conversation; the exit status is 1 if they do not confirm one.
    """
    from bylaw.record.verify import unsupported

    now, store = time.time(), existing(where)
    refuse_stranger(store, tenant, where)
    found = store.approvals(tenant, status="" if every else "waiting")
    # What nobody answered in time waits for nobody; the log says so when the call is next made.
    found = [each for each in found if every or each.expires > now]
    wrong = unsupported(store, tenant, found)
    if as_json:
        _print([_plain(each) | ({"fault": wrong[each.id]} if each.id in wrong else {}) for each in found])
        return 1 if wrong else 0
    console = open_console()
    for each in found:
        _print_approval(each, console, now)
        if each.id in wrong:
            console.print(Text(f"  not to be trusted: {wrong[each.id]}", style="red"))
    if not found:
        console.print("Nothing waits for a person.")
    return 1 if wrong else 0


def _print_approval(approval: Approval, console: Any, now: float) -> None:
    request = approval.request
    shown = clean(approval.id, 400)
    if shown != approval.id or " " in shown:
        # A conversation's name may read like another approval.
        shown = json.dumps(shown)
    console.print(Text(shown, style="bold") + Text(f"  {_standing(approval, now)}"), soft_wrap=True)
    if request.for_person:
        for line in request.for_person.splitlines():
            console.print(Text(f"  {visible(line)}"), soft_wrap=True)
        return
    given = ", ".join(f"{name}={value}" for name, value in (request.arguments or {}).items())
    console.print(Text(f"  {clean(f'{request.tool}({given})', 1000)}"))
    console.print(Text(f"  {clean(request.question, 1000)}", style="italic"))


def _standing(approval: Approval, now: float) -> str:
    """How an approval stands: who said what when, and what became of it."""
    told: list[str] = []
    answer, end = approval.answer, approval.end
    if approval.status == "waiting":
        left = approval.expires - now
        told.append(f"waiting, {left / 60:.0f} minutes left" if left > 0 else "waiting, too late")
    if answer is not None:
        note = f" ({visible(answer.note)})" if answer.note else ""
        told.append(f"{answer.status} by {visible(answer.by)}{_at(approval.answered)}{note}")
        if approval.status == "approved" and answer.expires:
            told.append(f"holds until{_at(answer.expires)}" if answer.expires > now else "lapsed")
    if end is not None:
        told.append(f"{end.status}{_at(approval.ended)}{f': {end.note}' if end.note else ''}")
    return ", ".join(told) or approval.status


def _at(moment: float) -> str:
    return f" {datetime.fromtimestamp(moment).isoformat(' ', 'minutes')}" if moment else ""


@log_command.command("remove")
@_log
@_tenant
@click.option(
    "--before", metavar="TIME", help="All conversations that ended before: 2026-03-31, or with a time of day."
)
@click.option("--even-live", is_flag=True, help="Also conversations of the last day, which may still go on.")
@click.option(
    "--person",
    metavar="NAME=VALUE",
    help="All conversations of one person: those whose context says so, such as signed_in_as=C7.",
)
@click.option("--mentions", metavar="TEXT", help="All conversations in which these words stand anywhere.")
@click.argument("conversations", nargs=-1, metavar="[CONVERSATION]...")
def remove_command(
    where: str,
    tenant: str,
    before: str | None,
    even_live: bool,
    person: str | None,
    mentions: str | None,
    conversations: tuple[str, ...],
) -> int:
    """Take out of the log, for good, what conversations say.

    Their entries are emptied and stay in the chain, which still verifies; an entry says which they were. A
    conversation that goes on starts over: a shield no longer knows what was done in it, and may allow it again.
    """
    if [bool(conversations), bool(before), person is not None or mentions is not None].count(True) != 1:
        raise UsageError("say which conversations to remove, or give --before, or --person and --mentions")
    end, store = _moment(before) if before else None, existing(where)
    refuse_stranger(store, tenant, where)
    if person is not None or mentions is not None:
        conversations = _concerning(store, tenant, person, mentions)
    if unknown := set(conversations) - set(store.conversations(tenant)):
        raise UsageError(f"the log has no conversation `{sorted(unknown)[0]}`", place=where)
    if not even_live:
        _refuse_live(store, tenant, conversations, end)
    known = len(store.conversations(tenant))
    emptied = sum(store.remove(tenant, conversation=name) for name in dict.fromkeys(conversations))
    if end is not None:
        emptied = store.remove(tenant, before=end)
    gone = known - len(store.conversations(tenant))
    store.close()
    told = f"{gone:,} conversation{'' if gone == 1 else 's'} removed, {emptied:,} entries emptied"
    open_console().print(Text(told if gone else "Nothing was removed."))
    return 0


@log_command.command("fold")
@_log
@_tenant
@click.option("--before", metavar="TIME", required=True, help="Entries before: 2026-03-31, or with a time of day.")
def fold_command(where: str, tenant: str, before: str) -> int:
    """Take the emptied beginning of the log out of the database, after `log remove`.

    What `log remove` has emptied keeps a hash an entry, as long as the log. This takes out all entries before a time,
    up to the first that still says something. The log goes on to verify, from there: an entry keeps the hash there and
    that of the end of every month. A log that does not verify is not folded.
    """
    from bylaw.record.verify import verify

    end, store = _moment(before), existing(where)
    refuse_stranger(store, tenant, where)
    if faults := verify(store, tenant).faults:
        raise UsageError(f"it does not verify: {faults[0]}", place=where, hint="see `bylaw log verify`")
    folded = store.fold(tenant, before=end)
    store.close()
    said = f"{folded.entries:,} entries folded" if folded.entries else "Nothing was folded"
    open_console().print(Text(f"{said}; the chain begins after entry {folded.until:,}."))
    return 0


def _concerning(store: Store, tenant: str, person: str | None, mentions: str | None) -> tuple[str, ...]:
    """The conversations of one person, by what the host vouched for, and those in which words stand."""
    from bylaw.shield.history import added_context, read_opening

    if mentions is not None and len(mentions.strip()) < LEAST:
        raise UsageError(f"`{mentions}` stands nearly everywhere", hint=f"give {LEAST} characters or more")
    name, equals, value = (person or "").partition("=")
    if person is not None and not (name and equals):
        raise UsageError(f"`--person {person}` is not NAME=VALUE", hint="such as signed_in_as=C7")
    found: dict[str, None] = {}
    for conversation, body in store.opened(tenant) if person is not None else ():
        if str(read_opening(body).context.get(name)) == value:
            found[conversation] = None
    for entry in store.entries(tenant) if person is not None else ():
        if entry.conversation and entry.kind == "event" and str(added_context(entry.body or b"").get(name)) == value:
            found[entry.conversation] = None
    # As JSON writes it, and as it is.
    words = {mentions.encode(), json.dumps(mentions).strip('"').encode()} if mentions is not None else set[bytes]()
    for entry in store.entries(tenant) if words else ():
        if entry.conversation and entry.body and any(each in entry.body for each in words):
            found[entry.conversation] = None
    return tuple(found)


def _refuse_live(store: Store, tenant: str, conversations: Iterable[str], end: float | None) -> None:
    """What was done in a conversation that still goes on must not be forgotten by mistake."""
    since, hint = time.time() - LIVE, "add --even-live to remove it anyway"
    if end is not None and end > since:
        raise UsageError("what ended within the last day may still go on", hint="give an earlier time, or --even-live")
    for name in conversations:
        if store.conversation(tenant, name)[-1].time > since:
            raise UsageError(f"conversation `{name}` is of the last day, and may still go on", hint=hint)


def _moment(said: str) -> float:
    """A time of the user's clock, as seconds since 1970."""
    try:
        return datetime.fromisoformat(said).timestamp()
    except ValueError:
        raise UsageError(f"`{said}` is not a time", hint="such as 2026-03-31, or 2026-03-31T18:00") from None


_by = click.option("--by", default=getpass.getuser, show_default="you", help="Who answers.")
_note = click.option("--note", default="", help="Why; the agent is told this if the answer is no.")
_id = click.argument("approval", metavar="ID")


@log_command.command("approve")
@_log
@_tenant
@_by
@_note
@_id
def approve_command(where: str, tenant: str, by: str, note: str, approval: str) -> None:
    """Say yes to one call, once."""
    _answer("approved", where, tenant, by, note, approval)


@log_command.command("reject")
@_log
@_tenant
@_by
@_note
@_id
def reject_command(where: str, tenant: str, by: str, note: str, approval: str) -> None:
    """Say no to one call."""
    _answer("rejected", where, tenant, by, note, approval)


def _answer(status: Status, where: str, tenant: str, by: str, note: str, approval: str) -> None:
    existing(where)
    with Log(where) as log:
        answer = log.approve if status == "approved" else log.reject
        answered = answer(approval, by=by, note=note, tenant=tenant)
    request = answered.request
    open_console().print(Text(f"{answered.id}: {request.tool} {status} by {by}"), soft_wrap=True)


def existing(where: str) -> Store:
    """A log that is there: a wrong name must not make an empty one."""
    if "://" not in where and not Path(where).expanduser().is_file():
        raise UsageError("no such log", place=where)
    return open_store(where)


def refuse_stranger(store: Store, tenant: str, where: str) -> None:
    """A log of others must not look like an empty one."""
    if (known := store.tenants()) and tenant not in known:
        others = ", ".join(f"`{name}`" for name in known[:MOST]) + (" and more" if len(known) > MOST else "")
        hint = f"give --tenant with one of those it has: {others}"
        raise UsageError(f"the log has nothing of tenant `{tenant}`", place=where, hint=hint)


def _plain(record: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(record)


def _print(value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # JSON has its own way to write what cannot be seen.
    print(text if text.replace("\n", "").isprintable() else json.dumps(value, indent=2))
