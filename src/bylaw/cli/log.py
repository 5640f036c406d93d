"""`bylaw log`: look at a decision log, give its conversations to an audit, answer what waits, remove what must go."""

import getpass
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import click
import msgspec
from msgspec import Struct
from rich.text import Text

from bylaw.cli.command import File, Json, command
from bylaw.cli.console import local_time, open_console
from bylaw.cli.group import InOrder
from bylaw.errors import BylawError, UsageError
from bylaw.record import Log, Store, open_store
from bylaw.record.approval import Approval, Status
from bylaw.record.entry import DEFAULT_TENANT
from bylaw.record.signing import MAKE_ONE, VARIABLE, read_key
from bylaw.text.visible import clean, visible

MOST = 5
"""Tenants that a message names at most."""

LogPlace = Annotated[str, "--log LOG", "The log: a file, or postgresql://..."]
Tenant = Annotated[str, "Whose part of the log."]
Anchors = Annotated[File, "The file that `bylaw serve` writes anchors to; by default LOG.anchors, if it exists."]
SigningKey = Annotated[File, f"The key that removals are signed with; by default the value of ${VARIABLE}."]


def required_key(path: Path | None) -> bytes:
    """The signing key; an error says how to make one."""
    if (key := read_key(path)) is None:
        raise UsageError(
            "removals are signed, and there is no key", hint=f"give --signing-key or ${VARIABLE}; {MAKE_ONE}"
        )
    return key


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


if TYPE_CHECKING:
    from bylaw.shield.history import History


LEAST = 3
"""Characters of what conversations are looked through for, at least."""
LIVE = 24 * 3600.0
"""Seconds after which a conversation is taken to have ended."""


@command("remove")
def remove_command(
    conversations: Annotated[tuple[str, ...], "[CONVERSATION]..."] = (),
    *,
    where: LogPlace,
    tenant: Tenant = DEFAULT_TENANT,
    before: Annotated[
        str | None, "--before TIME", "All conversations that ended before: 2026-03-31, or with a time of day."
    ] = None,
    even_live: Annotated[bool, "Also conversations of the last day, which may still go on."] = False,
    person: Annotated[
        str | None,
        "--person NAME=VALUE",
        "All conversations of one person: those whose context says so, such as signed_in_as=C7.",
    ] = None,
    mentions: Annotated[str | None, "--mentions TEXT", "All conversations that contain this text."] = None,
    signing_key: SigningKey = None,
) -> int:
    """Remove conversations from the log, permanently.

    Their entries are emptied and stay in the chain, which still verifies; a signed entry lists them. No call is allowed
    any more in a conversation of that name.
    """
    key = required_key(signing_key)
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
    emptied = sum(store.remove(tenant, key=key, conversation=name) for name in dict.fromkeys(conversations))
    if end is not None:
        emptied = store.remove(tenant, key=key, before=end)
    gone = known - len(store.conversations(tenant))
    store.close()
    told = f"{gone:,} conversation{'' if gone == 1 else 's'} removed, {emptied:,} entries emptied"
    open_console().print(Text(told if gone else "Nothing was removed."))
    return 0


@command("fold")
def fold_command(
    *,
    where: LogPlace,
    tenant: Tenant = DEFAULT_TENANT,
    before: Annotated[str, "--before TIME", "Entries before: 2026-03-31, or with a time of day."],
    anchors: Anchors = None,
    signing_key: SigningKey = None,
) -> int:
    """Delete the emptied beginning of the log, after `log remove`.

    `log remove` keeps one hash per entry. This deletes all entries before a time, up to the last anchored entry before
    the first one that still has text. The log still verifies, from there on. A log that does not verify is not folded.
    """
    from bylaw.record.anchor import beside, read_anchors
    from bylaw.record.verify import verify

    key, end, store = required_key(signing_key), _moment(before), existing(where)
    refuse_stranger(store, tenant, where)
    path = anchors or beside(where)
    noted = read_anchors(path) if anchors is not None or path.is_file() else []
    if faults := verify(store, tenant, anchors=noted, key=key).faults:
        raise UsageError(f"it does not verify: {faults[0]}", place=where, hint="see `bylaw log verify`")
    folded = store.fold(tenant, key=key, before=end, anchors=noted)
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


_NOBODY = ("root", "nobody", "bylaw")
"""Accounts that are no person's: what they answer, anybody may have answered."""


@click.group("log", cls=InOrder)
def log_command() -> None:
    """The decision log: verify it, export it, answer approvals, remove conversations."""


@command("verify", log_command)
def verify_command(
    *,
    where: LogPlace,
    tenant: Annotated[str | None, "Only this tenant's chain."] = None,
    head: Annotated[str, "--head HASH", "A hash noted earlier, which must still stand in the chain."] = "",
    anchors: Anchors = None,
    signing_key: SigningKey = None,
    as_json: Json = False,
) -> int:
    """Check whether anything in the log was changed, removed or added.

    Exit status: 0, intact; 1, it was tampered with, or something could not be checked; 4, intact except for signed
    removals. Only anchors, or the hash that this prints, show whether the end of a log was cut off or a tenant removed.
    """
    from bylaw.record.anchor import beside, read_anchors
    from bylaw.record.verify import verify

    key, store = read_key(signing_key), existing(where)
    kept = anchors or (path if (path := beside(where)).is_file() else None)
    noted = read_anchors(kept) if kept is not None else []
    # Of a tenant that was removed whole, only its anchors are left.
    anchored = {each.tenant for each in noted}
    tenants = [tenant] if tenant is not None else sorted({*store.tenants(), *anchored})
    if tenant is not None and not head and tenant not in anchored:
        refuse_stranger(store, tenant, where)
    if head and len(tenants) != 1:
        raise UsageError("a hash belongs to one tenant's chain", hint="say which with --tenant")
    found = [verify(store, name, head=head, anchors=noted, key=key) for name in tenants]
    if as_json:
        _print([msgspec.to_builtins(each) for each in found])
    console = open_console()
    for each in found if not as_json else ():
        removed = f", {each.removed:,} of them removed" if each.removed else ""
        removed += f", the first {each.folded:,} deleted" if each.folded else ""
        intact = "" if each.faults else ", intact except for signed removals" if removed else ", intact"
        console.print(Text(f"{each.tenant}: {each.entries:,} entries{removed}{intact}"))
        console.print(Text(f"  last hash: {each.head}"), soft_wrap=True)
        for fault in each.faults:
            console.print(Text(f"  {fault}", style="red"))
    if not found and not as_json:
        console.print("The log is empty. Only --anchors or --head can show whether it always was.")
    if kept is not None and not as_json:
        console.print(Text(f"Checked against {len(noted):,} anchors in {kept}."), soft_wrap=True)
    if any(each.faults for each in found):
        return 1
    return 4 if any(each.removed or each.folded for each in found) else 0


@command("export", log_command)
def export_command(
    conversations: Annotated[tuple[str, ...], "[CONVERSATION]..."] = (),
    *,
    where: LogPlace,
    tenant: Tenant = DEFAULT_TENANT,
    out: Annotated[Path | None, "File to write; by default standard output."] = None,
    format: Annotated[
        Literal["jsonl", "parquet"],
        "Lines, or a Parquet file with the decisions beside the messages; that needs --out.",
    ] = "jsonl",
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
        return _export(store, tenant, wanted, _line_to(sys.stdout.buffer))
    if _is_of_log(out, where):
        raise UsageError("this is the log itself, which an export does not overwrite", place=str(out))
    if out.exists() and not out.is_file() and format == "jsonl":
        with out.open("wb") as target:
            return _export(store, tenant, wanted, _line_to(target))
    if not out.parent.is_dir():
        raise UsageError("the folder does not exist", place=str(out.parent), hint="make it first")
    rough = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        if format == "parquet":
            from bylaw.cli.log_table import LogTable

            table = LogTable(rough)
            status = _export(store, tenant, wanted, table.add)
            table.close()
        else:
            with rough.open("xb") as target:
                status = _export(store, tenant, wanted, _line_to(target))
        os.replace(rough, out)
    finally:
        rough.unlink(missing_ok=True)
    return status


def _line_to(target: BinaryIO) -> "Callable[[str, History], object]":
    from bylaw.trace.chat_record import chat_line

    return lambda name, history: target.write(chat_line(history.trajectory(name)))


def _export(store: Store, tenant: str, names: Iterable[str], write: "Callable[[str, History], object]") -> int:
    """Write what the log holds of each conversation; one that cannot be read is told and left out."""
    from bylaw.shield.history import read_history

    status = 0
    for name in names:
        try:
            if (history := read_history(store.conversation(tenant, name))) is not None:
                write(name, history)
        except BylawError as error:
            print(visible(f"bylaw: `{name}` is left out: {error}"), file=sys.stderr, flush=True)
            status = 1
    return status


def _is_of_log(out: Path, where: str) -> bool:
    """Whether a file is the log's own, or one that SQLite keeps beside it."""
    if "://" in where:
        return False
    log = Path(where).expanduser()
    own = [log.with_name(log.name + end) for end in ("", "-wal", "-shm", "-journal", "-queue", ".anchors")]
    return any(
        out.resolve() == each.resolve() or (out.exists() and each.exists() and out.samefile(each)) for each in own
    )


@command("approvals", log_command)
def approvals_command(
    *,
    where: LogPlace,
    tenant: Tenant = DEFAULT_TENANT,
    every: Annotated[bool, "--all", "Also list those that are answered or over."] = False,
    as_json: Json = False,
) -> int:
    """List the calls that wait for a person.

    Each is checked against the entries of its conversation; the exit status is 1 if they do not confirm one.
    """
    from bylaw.record.verify import unsupported

    now, store = time.time(), existing(where)
    refuse_stranger(store, tenant, where)
    found = store.approvals(tenant, status=None if every else "waiting")
    # What nobody answered in time waits for nobody; the log says so when the call is next made.
    found = [each for each in found if every or each.expires > now]
    wrong = unsupported(store, tenant, found)
    if as_json:
        _print([msgspec.to_builtins(each) | ({"fault": wrong[each.id]} if each.id in wrong else {}) for each in found])
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
        at = f" {local_time(approval.answered)}" if approval.answered else ""
        told.append(f"{answer.status} by {visible(answer.by)}{at}{note}")
        if approval.status == "approved" and answer.expires:
            told.append(f"holds until {local_time(answer.expires)}" if answer.expires > now else "lapsed")
    if end is not None:
        at = f" {local_time(approval.ended)}" if approval.ended else ""
        told.append(f"{end.status}{at}{f': {end.note}' if end.note else ''}")
    return ", ".join(told) or approval.status


log_command.add_command(remove_command)
log_command.add_command(fold_command)


def person() -> str:
    """The name of the account, where it is somebody's."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = ""
    if not name or name in _NOBODY:
        told = f"`{name}` is nobody's name" if name else "this account has no name"
        raise UsageError(f"{told}, and the record says who did it", hint="give yours: --by NAME")
    return name


class Answered(Struct, frozen=True, kw_only=True):
    where: LogPlace
    tenant: Tenant = DEFAULT_TENANT
    by: Annotated[str, "Who answers.", {"default": person, "show_default": "you"}]
    note: Annotated[str, "Why; the agent is told this if the answer is no."] = ""


@command("approve", log_command)
def approve_command(approval: Annotated[str, "ID"], *, said: Answered) -> None:
    """Say yes to one call, once."""
    _answer("approved", approval, said)


@command("reject", log_command)
def reject_command(approval: Annotated[str, "ID"], *, said: Answered) -> None:
    """Say no to one call."""
    _answer("rejected", approval, said)


def _answer(status: Status, approval: str, said: Answered) -> None:
    existing(said.where)
    with Log(said.where) as log:
        answer = log.approve if status == "approved" else log.reject
        answered = answer(approval, by=said.by, note=said.note, tenant=said.tenant)
    told = f"{answered.id}: {answered.request.tool} {status} by {said.by}"
    open_console().print(Text(told), soft_wrap=True)


def _print(value: Any) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    # JSON has its own way to write what cannot be seen.
    print(text if text.replace("\n", "").isprintable() else json.dumps(value, indent=2))
