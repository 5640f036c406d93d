"""The command `bylaw log` verifies, exports and prunes a decision log, and answers approval requests."""

import getpass
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import click
import msgspec
from msgspec import Struct
from rich.console import Console
from rich.text import Text

from bylaw.cli.command import File, Json, command
from bylaw.cli.console import counted, local_time, open_console, print_json
from bylaw.cli.group import InOrder
from bylaw.errors import BylawError, UsageError
from bylaw.record import Log, Store, open_store
from bylaw.record.approval import Approval, Status
from bylaw.record.entry import DEFAULT_TENANT, Anchor
from bylaw.record.removal import MAKE_ONE, VARIABLE, read_key
from bylaw.text.visible import clean, visible

if TYPE_CHECKING:
    from bylaw.shield.history import History

MOST = 5
"""The maximum number of tenants to name in a message."""
LEAST = 3
"""The minimum length of a text to search for."""
LIVE = 24 * 3600.0
"""The number of seconds without an event after which a conversation counts as ended."""
_NOBODY = ("root", "nobody", "bylaw")
"""Account names that do not identify a person, so they cannot approve or reject a call."""

LogPlace = Annotated[str, "--log LOG", "The log: a file, or postgresql://..."]
Tenant = Annotated[str, "The tenant in the log."]
Anchors = Annotated[File, "The file of anchors that `bylaw serve` wrote. By default, LOG.anchors, if it exists."]
SigningKey = Annotated[File, f"The key that signs removals. By default, the value of ${VARIABLE}."]


class TenantLog(Struct, frozen=True, kw_only=True):
    """Options that select one tenant's part of a log."""

    where: LogPlace
    tenant: Tenant = DEFAULT_TENANT

    def existing(self) -> Store:
        """Open the store of an existing log. Raise UsageError if the log has entries but none for the tenant."""
        store = existing(self.where)
        if (known := store.tenants()) and self.tenant not in known:
            others = ", ".join(f"`{name}`" for name in known[:MOST]) + (" and more" if len(known) > MOST else "")
            hint = f"add --tenant with a tenant of the log: {others}"
            raise UsageError(f"the log has no tenant `{self.tenant}`", place=self.where, hint=hint)
        return store

    def verified_anchors(self, store: Store, anchors: Path | None, key: bytes) -> list[Anchor]:
        """Return the log's anchors.

        Raise UsageError if they contradict the log, because the log must then not be signed.
        """
        from bylaw.record.verify import beside, read_anchors, verify

        path = anchors or beside(self.where)
        noted = read_anchors(path) if anchors is not None or path.is_file() else []
        if faults := verify(store, self.tenant, anchors=noted, key=key).faults:
            raise UsageError(f"the log does not verify: {faults[0]}", place=self.where, hint="run `bylaw log verify`")
        return noted

    def conversations(self, store: Store, given: Iterable[str]) -> list[str]:
        """Return the given conversations without duplicates.

        Raise UsageError if the log does not contain one of them.
        """
        wanted = list(dict.fromkeys(given))
        if unknown := set(wanted) - set(store.conversations(self.tenant)):
            raise UsageError(f"the log has no conversation `{min(unknown)}`", place=self.where)
        return wanted


def existing(where: str) -> Store:
    """Open an existing log. A misspelled name raises UsageError, so that it does not create an empty log."""
    if "://" not in where and not Path(where).expanduser().is_file():
        raise UsageError("no such log", place=where)
    return open_store(where)


def required_key(path: Path | None) -> bytes:
    """Return the signing key. Raise UsageError if there is none."""
    if (key := read_key(path)) is None:
        raise UsageError("removals require a signing key", hint=f"add --signing-key or ${VARIABLE}; {MAKE_ONE}")
    return key


@click.group("log", cls=InOrder)
def log_command() -> None:
    """Verify, export or prune the decision log; answer approvals."""


@command("verify", log_command)
def verify_command(
    *,
    where: LogPlace,
    tenant: Annotated[str | None, "Verify only this tenant's chain."] = None,
    head: Annotated[str, "--head HASH", "An earlier hash that the chain must still contain."] = "",
    anchors: Anchors = None,
    signing_key: SigningKey = None,
    as_json: Json = False,
) -> int:
    """Check whether anything in the log was changed, removed or added.

    Exit status: 0 if intact, 1 if tampered with or not fully checked, 4 if intact except for signed removals.
    Only anchors, or the hash that this command prints, show whether the end of a log or a whole tenant was removed.
    """
    from bylaw.record.verify import beside, read_anchors, verify

    key, store = read_key(signing_key), existing(where)
    kept = anchors or (path if (path := beside(where)).is_file() else None)
    noted = read_anchors(kept) if kept is not None else []
    # If all of a tenant's entries were removed, only the tenant's anchors remain.
    anchored = {each.tenant for each in noted}
    tenants = [tenant] if tenant is not None else sorted({*store.tenants(), *anchored})
    if tenant is not None and not head and tenant not in anchored:
        TenantLog(where=where, tenant=tenant).existing()
    if head and len(tenants) != 1:
        raise UsageError("--head applies to a single tenant", hint="name the tenant with --tenant")
    found = [verify(store, name, head=head, anchors=noted, key=key) for name in tenants]
    if as_json:
        print_json(found)
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
        console.print("The log is empty. To check that no entries were deleted, pass --anchors or --head.")
    if kept is not None and not as_json:
        console.print(Text(f"Checked against {len(noted):,} anchors in {kept}."), soft_wrap=True)
    if any(each.faults for each in found):
        return 1
    return 4 if any(each.removed or each.folded for each in found) else 0


@command("export", log_command)
def export_command(
    conversations: Annotated[tuple[str, ...], "[CONVERSATION]..."] = (),
    *,
    of: TenantLog,
    out: Annotated[Path | None, "File to write (default: standard output)."] = None,
    format: Annotated[
        Literal["jsonl", "parquet"], "JSON lines, or a Parquet file that also contains the decisions (requires --out)."
    ] = "jsonl",
) -> int:
    """Write conversations, one per line or row, for `bylaw audit`.

    A conversation that cannot be read is reported and skipped, and the exit status is 1.
    """
    store = of.existing()
    wanted = of.conversations(store, conversations or store.conversations(of.tenant))
    if out is None:
        if format == "parquet":
            raise UsageError("a Parquet file cannot be written to standard output", hint="add --out FILE.parquet")
        return _export(store, of.tenant, wanted, _line_to(sys.stdout.buffer))
    if _is_of_log(out, of.where):
        raise UsageError("the export would overwrite the log itself", place=str(out), hint="choose another --out")
    if out.exists() and not out.is_file() and format == "jsonl":
        with out.open("wb") as target:
            return _export(store, of.tenant, wanted, _line_to(target))
    if not out.parent.is_dir():
        raise UsageError("the folder does not exist", place=str(out.parent), hint="create it first")
    rough = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        if format == "parquet":
            from bylaw.cli.log_table import LogTable

            table = LogTable(rough)
            status = _export(store, of.tenant, wanted, table.add)
            table.close()
        else:
            with rough.open("xb") as target:
                status = _export(store, of.tenant, wanted, _line_to(target))
        os.replace(rough, out)
    finally:
        rough.unlink(missing_ok=True)
    return status


def _line_to(target: BinaryIO) -> "Callable[[str, History], object]":
    from bylaw.trace.transcript import chat_line

    return lambda name, history: target.write(chat_line(history.trajectory(name)))


def _export(store: Store, tenant: str, names: Iterable[str], write: "Callable[[str, History], object]") -> int:
    """Write each conversation. If any conversation cannot be read, report it, skip it, and return 1 at the end."""
    from bylaw.shield.history import read_history

    status = 0
    for name in names:
        try:
            if (history := read_history(store.conversation(tenant, name))) is not None:
                write(name, history)
        except BylawError as error:
            print(visible(f"bylaw: skipped `{name}`: {error}"), file=sys.stderr, flush=True)
            status = 1
    return status


def _is_of_log(out: Path, where: str) -> bool:
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
    of: TenantLog,
    every: Annotated[bool, "--all", "Include approvals that were answered or have expired."] = False,
    as_json: Json = False,
) -> int:
    """List the calls that are waiting for approval.

    Approvals are checked against the log. If the log does not confirm an approval, the exit status is 1.
    """
    from bylaw.record.verify import checked

    now, store = time.time(), of.existing()
    found = store.approvals(of.tenant, status=None if every else "waiting")
    # An expired approval keeps the state `waiting` until the call is made again.
    found = [each for each in found if every or each.expires > now]
    right, wrong = checked(store, of.tenant, found)
    found = [right.get(each.id, each) for each in found]
    if as_json:
        faults = [{"fault": wrong[each.id]} if each.id in wrong else {} for each in found]
        print_json([msgspec.to_builtins(each) | fault for each, fault in zip(found, faults, strict=True)])
        return 1 if wrong else 0
    console = open_console()
    for each in found:
        _print_approval(each, console, now)
        if each.id in wrong:
            console.print(Text(f"  do not trust this entry: {wrong[each.id]}", style="red"))
    if not found:
        console.print("No call is waiting for approval.")
    return 1 if wrong else 0


def _print_approval(approval: Approval, console: Console, now: float) -> None:
    request = approval.request
    shown = clean(approval.id, 400)
    if shown != approval.id or " " in shown:
        # Quote the name, because it could contain text that imitates another approval.
        shown = json.dumps(shown)
    console.print(Text(shown, style="bold") + Text(f"  {_status(approval, now)}"), soft_wrap=True)
    if request.for_person:
        for line in request.for_person.splitlines():
            console.print(Text(f"  {visible(line)}"), soft_wrap=True)
        return
    given = ", ".join(f"{name}={value}" for name, value in (request.arguments or {}).items())
    console.print(Text(f"  {clean(f'{request.tool}({given})', 1000)}"))
    console.print(Text(f"  {clean(request.question, 1000)}", style="italic"))


def _status(approval: Approval, now: float) -> str:
    parts: list[str] = []
    answer, end = approval.answer, approval.end
    if approval.status == "waiting":
        left = approval.expires - now
        parts.append(f"waiting, {left / 60:.0f} minutes left" if left > 0 else "expired without an answer")
    if answer is not None:
        note = f" ({visible(answer.note)})" if answer.note else ""
        at = f" {local_time(approval.answered)}" if approval.answered else ""
        parts.append(f"{answer.status} by {visible(answer.by)}{at}{note}")
        if approval.status == "approved" and answer.expires:
            parts.append(f"valid until {local_time(answer.expires)}" if answer.expires > now else "expired unused")
    if end is not None:
        at = f" {local_time(approval.ended)}" if approval.ended else ""
        parts.append(f"{end.status}{at}{f': {end.note}' if end.note else ''}")
    return ", ".join(parts) or approval.status


@command("remove")
def remove_command(
    conversations: Annotated[tuple[str, ...], "[CONVERSATION]..."] = (),
    *,
    of: TenantLog,
    before: Annotated[
        str | None,
        "--before TIME",
        "Remove conversations that ended before this time: 2026-03-31, or a date and time.",
    ] = None,
    even_live: Annotated[bool, "Also remove conversations from the last day, which may still be running."] = False,
    person: Annotated[
        str | None,
        "--person NAME=VALUE",
        "Remove conversations with this value in their context, such as signed_in_as=C7.",
    ] = None,
    mentions: Annotated[str | None, "--mentions TEXT", "Remove conversations that contain this text."] = None,
    anchors: Anchors = None,
    signing_key: SigningKey = None,
) -> int:
    """Remove conversations from the log permanently.

    Their entries are emptied but stay in the chain, which still verifies. A signed entry lists the removed
    conversations. Bylaw allows no further call in them. A log that does not verify is left unchanged.
    """
    key = required_key(signing_key)
    if [bool(conversations), bool(before), person is not None or mentions is not None].count(True) != 1:
        raise UsageError("name the conversations to remove, or add --before, --person or --mentions")
    end, store = _moment(before) if before else None, of.existing()
    if person is not None or mentions is not None:
        conversations = _concerning(store, of.tenant, person, mentions)
    wanted = of.conversations(store, conversations)
    if not even_live:
        _refuse_live(store, of.tenant, wanted, end)
    if wanted or end is not None:
        of.verified_anchors(store, anchors, key)
    known = len(store.conversations(of.tenant))
    emptied = sum(store.remove(of.tenant, key=key, conversation=name) for name in wanted)
    if end is not None:
        emptied = store.remove(of.tenant, key=key, before=end)
    gone = known - len(store.conversations(of.tenant))
    store.close()
    done = f"{counted(gone, 'conversation')} removed, {emptied:,} entries emptied"
    open_console().print(Text(done if gone else "Nothing was removed."))
    return 0


@command("fold")
def fold_command(
    *,
    of: TenantLog,
    before: Annotated[
        str, "--before TIME", "Delete entries made before this time: a date such as 2026-03-31, or a date and time."
    ],
    anchors: Anchors = None,
    signing_key: SigningKey = None,
) -> int:
    """Delete the emptied beginning of the log, after `log remove`.

    `log remove` keeps one hash per entry. This command deletes old entries that an anchor covers, up to the first entry
    that still has text. The rest of the log still verifies. A log that does not verify is left unchanged.
    """
    key, end, store = required_key(signing_key), _moment(before), of.existing()
    folded = store.fold(of.tenant, key=key, before=end, anchors=of.verified_anchors(store, anchors, key))
    store.close()
    done = f"{folded.entries:,} entries folded" if folded.entries else "No entries were folded"
    open_console().print(Text(f"{done}; the chain now begins after entry {folded.until:,}."))
    return 0


def _concerning(store: Store, tenant: str, person: str | None, mentions: str | None) -> tuple[str, ...]:
    """Return the conversations whose host context contains a given value, and those that contain a given text."""
    from bylaw.shield.history import added_context, read_opening

    if mentions is not None and len(mentions.strip()) < LEAST:
        raise UsageError(f"`{mentions}` is too short to search for", hint=f"pass at least {LEAST} characters")
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
    # The log may contain the text unchanged, or escaped as in JSON.
    words = {mentions.encode(), json.dumps(mentions).strip('"').encode()} if mentions is not None else set[bytes]()
    for entry in store.entries(tenant) if words else ():
        if entry.conversation and entry.body and any(each in entry.body for each in words):
            found[entry.conversation] = None
    return tuple(found)


def _refuse_live(store: Store, tenant: str, conversations: Iterable[str], end: float | None) -> None:
    since, hint = time.time() - LIVE, "add --even-live to remove it anyway"
    if end is not None and end > since:
        hint = "pass an earlier time, or --even-live"
        raise UsageError("conversations from the last day may still be running", hint=hint)
    for name in conversations:
        if store.conversation(tenant, name)[-1].time > since:
            raise UsageError(f"conversation `{name}` had an event in the last day and may still be running", hint=hint)


def _moment(text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise UsageError(f"`{text}` is not a time", hint="such as 2026-03-31, or 2026-03-31T18:00") from None


def person() -> str:
    """Return the name of the account that runs the command. Raise UsageError if the name does not identify a person."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError):
        name = ""
    if not name or name in _NOBODY:
        what = f"the account `{name}` does not identify a person" if name else "this account has no name"
        raise UsageError(f"{what}, but the log must record who answers", hint="pass your name: --by NAME")
    return name


class AnswerOptions(TenantLog, frozen=True, kw_only=True):
    by: Annotated[str, "Your name, for the log.", {"default": person, "show_default": "you"}]
    note: Annotated[str, "Reason, shown to the agent after a rejection."] = ""


@command("approve", log_command)
def approve_command(approval: Annotated[str, "ID"], *, given: AnswerOptions) -> None:
    """Approve one call, once."""
    _answer("approved", approval, given)


@command("reject", log_command)
def reject_command(approval: Annotated[str, "ID"], *, given: AnswerOptions) -> None:
    """Reject one call."""
    _answer("rejected", approval, given)


def _answer(status: Status, approval: str, given: AnswerOptions) -> None:
    existing(given.where)
    with Log(given.where) as log:
        answer = log.approve if status == "approved" else log.reject
        answered = answer(approval, by=given.by, note=given.note, tenant=given.tenant)
    open_console().print(Text(f"{answered.id}: {answered.request.tool} {status} by {given.by}"), soft_wrap=True)


log_command.add_command(remove_command)
log_command.add_command(fold_command)
