"""`bylaw log remove` and `log fold`: conversations are removed from a log, and the chain still verifies."""

import json
import time
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from rich.text import Text

from bylaw.cli.command import command
from bylaw.cli.console import open_console
from bylaw.cli.log_place import Anchors, LogPlace, SigningKey, Tenant, existing, refuse_stranger, required_key
from bylaw.errors import UsageError
from bylaw.record import Store
from bylaw.record.entry import DEFAULT_TENANT

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
