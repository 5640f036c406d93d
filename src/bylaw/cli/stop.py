"""`bylaw stop`: block writes of an agent, a tool, a policy or a whole tenant, immediately, for a set time."""

import getpass
import json
import sys
import time
from typing import Annotated

import click
import msgspec
from msgspec import Struct
from rich.text import Text

from bylaw.cli.command import Json, command
from bylaw.cli.console import local_time, open_console
from bylaw.cli.group import InOrder
from bylaw.cli.log import LogPlace, Tenant, existing, refuse_stranger
from bylaw.errors import UsageError
from bylaw.record import Log
from bylaw.record.entry import DEFAULT_TENANT
from bylaw.record.stop import Stopped, Target
from bylaw.text.duration import read_duration
from bylaw.text.visible import clean, visible

By = Annotated[str, "Who does it; the log says so.", {"default": getpass.getuser, "show_default": "you"}]
KnownTo = Annotated[str | None, "--pack PACK", "Refuse a name that this pack does not know."]


class Terms(Struct, frozen=True, kw_only=True):
    """Where, why and for how long something is stopped."""

    where: LogPlace
    tenant: Tenant = DEFAULT_TENANT
    reason: Annotated[str, "Why; agents are told this."]
    span: Annotated[str, "--for TIME", "How long: 30m, 2h, 7d."]
    ask: Annotated[bool, "Require approval for each write, instead of refusing it."] = False
    by: By


@click.group("stop", cls=InOrder)
def stop_command() -> None:
    """Block an agent, a tool, a policy or all writes of a tenant, immediately, for a set time.

    Applies to the next decision of every shield and service on the log. Earlier decisions are not undone, and reads
    continue.
    """


@command("tool", stop_command)
def tool_command(name: str, *, terms: Terms, pack: KnownTo = None) -> None:
    """Stop every call of a tool that may change something."""
    _stop("tool", name, terms, pack)


@command("agent", stop_command)
def agent_command(name: str, *, terms: Terms) -> None:
    """Stop every write of an agent, by its name in the log."""
    _stop("agent", name, terms)


@command("policy", stop_command)
def policy_command(name: str, *, terms: Terms, pack: KnownTo = None) -> None:
    """Stop every write that a policy binds, whatever its posture."""
    _stop("policy", name, terms, pack)


@command("all", stop_command)
def all_command(*, terms: Terms) -> None:
    """Stop every write of a tenant."""
    _stop("all", "", terms)


@command("list", stop_command)
def list_command(
    *,
    where: LogPlace,
    tenant: Tenant = DEFAULT_TENANT,
    every: Annotated[bool, "--all", "Include lifted and expired stops."] = False,
    as_json: Json = False,
) -> None:
    """List active stops."""
    refuse_stranger(existing(where), tenant, where)
    now = time.time()
    with Log(where) as log:
        found = [each for each in log.every_stop(tenant) if every or each.stands(now)]
    if as_json:
        print(json.dumps([msgspec.to_builtins(each) | {"stands": each.stands(now)} for each in found], indent=2))
        return
    console = open_console()
    for each in found:
        console.print(Text(each.stop.id, style="bold") + Text(f"  {_told(each, now)}"), soft_wrap=True)
    if not found:
        console.print("Nothing is stopped.")


@command("lift", stop_command)
def lift_command(
    stop: Annotated[str, "ID"],
    *,
    where: LogPlace,
    tenant: Tenant = DEFAULT_TENANT,
    reason: Annotated[str, "Why; the log keeps it."] = "",
    by: By,
) -> None:
    """End a stop early."""
    existing(where)
    with Log(where) as log:
        lifted = log.lift(stop, by=by, reason=reason, tenant=tenant)
    told = f"{lifted.stop.id}: {lifted.stop.stopped} is no longer stopped, lifted by {by}"
    open_console().print(Text(visible(told)), soft_wrap=True)


def _stop(what: Target, name: str, terms: Terms, pack: str | None = None) -> None:
    from bylaw.pack import load_pack
    from bylaw.shield.stopping import check_target, unheard_of

    if pack is not None:
        check_target(load_pack(pack), what, name)
    seconds = read_duration(terms.span, unit=True)
    if seconds is None:
        raise UsageError(f"`--for {terms.span}` is not a time", hint="give it a unit, such as 30m, 2h or 7d")
    refuse_stranger(existing(terms.where), terms.tenant, terms.where)
    with Log(terms.where) as log:
        stop = log.stop(
            what,
            name,
            by=terms.by,
            reason=terms.reason,
            until=time.time() + seconds,
            answer="ask" if terms.ask else "deny",
            tenant=terms.tenant,
        )
        told = f"{stop.id}: {_told(Stopped(stop), time.time())}"
        open_console().print(Text(told), soft_wrap=True)
        if warning := unheard_of(log, terms.tenant, what, name):
            print(f"bylaw: {visible(warning)}", file=sys.stderr, flush=True)


def _told(each: Stopped, now: float) -> str:
    stop = each.stop
    what = "is put to a person" if stop.answer == "ask" else "is refused"
    end = f"until {local_time(stop.until)}" if stop.stands(now) else f"ended {local_time(stop.until)}"
    if each.lift is not None:
        why = f" ({clean(each.lift.reason, 500)})" if each.lift.reason else ""
        end = f"lifted by {clean(each.lift.by, 200)} {local_time(each.lift.at)}{why}"
    subject = "every write" if stop.what == "all" else f"every write of {stop.what} {clean(stop.name, 200)}"
    return f"{subject} {what}, {end}; by {clean(stop.by, 200)}: {clean(stop.reason, 500)}"
