"""The command `bylaw stop` blocks the writes of an agent, a tool, a policy or a tenant for a set time."""

import getpass
import sys
import time
from typing import Annotated

import click
import msgspec
from rich.text import Text

from bylaw.cli.command import Json, command
from bylaw.cli.console import local_time, open_console, print_json
from bylaw.cli.group import InOrder
from bylaw.cli.log import TenantLog, existing
from bylaw.errors import UsageError
from bylaw.record import Log
from bylaw.record.stop import Stopped, Target
from bylaw.text.day import read_duration
from bylaw.text.visible import clean, visible

By = Annotated[str, "Your name, for the log.", {"default": getpass.getuser, "show_default": "you"}]
KnownTo = Annotated[str | None, "--pack PACK", "Check that the name is in this pack."]


class StopOptions(TenantLog, frozen=True, kw_only=True):
    reason: Annotated[str, "Reason, shown to agents."]
    span: Annotated[str, "--for TIME", "Duration: 30m, 2h, 7d."]
    ask: Annotated[bool, "Require approval for each write, instead of refusing it."] = False
    by: By


@click.group("stop", cls=InOrder)
def stop_command() -> None:
    """Block an agent, a tool, a policy or all writes for a set time.

    A stop applies from the next decision of every shield and service on the log. Allowed calls are not undone, and
    reads stay allowed.
    """


@command("tool", stop_command)
def tool_command(name: str, *, terms: StopOptions, pack: KnownTo = None) -> None:
    """Stop every write of a tool."""
    _stop("tool", name, terms, pack)


@command("agent", stop_command)
def agent_command(name: str, *, terms: StopOptions) -> None:
    """Stop all writes by the agent with this name in the log."""
    _stop("agent", name, terms)


@command("policy", stop_command)
def policy_command(name: str, *, terms: StopOptions, pack: KnownTo = None) -> None:
    """Stop every write that a policy applies to, even if it is not enforced."""
    _stop("policy", name, terms, pack)


@command("all", stop_command)
def all_command(*, terms: StopOptions) -> None:
    """Stop every write of a tenant."""
    _stop("all", "", terms)


@command("list", stop_command)
def list_command(
    *,
    of: TenantLog,
    every: Annotated[bool, "--all", "Include lifted and expired stops."] = False,
    as_json: Json = False,
) -> None:
    """List active stops."""
    of.existing()
    now = time.time()
    with Log(of.where) as log:
        found = [each for each in log.every_stop(of.tenant) if every or each.stands(now)]
    if as_json:
        print_json([msgspec.to_builtins(each) | {"stands": each.stands(now)} for each in found])
        return
    console = open_console()
    for each in found:
        console.print(Text(each.stop.id, style="bold") + Text(f"  {_description(each, now)}"), soft_wrap=True)
    if not found:
        console.print("No stop is active.")


@command("lift", stop_command)
def lift_command(
    stop: Annotated[str, "ID"],
    *,
    of: TenantLog,
    reason: Annotated[str, "Reason, for the log."] = "",
    by: By,
) -> None:
    """End a stop early."""
    existing(of.where)
    with Log(of.where) as log:
        lifted = log.lift(stop, by=by, reason=reason, tenant=of.tenant)
    done = f"{lifted.stop.id}: {lifted.stop.stopped} is no longer stopped, lifted by {by}"
    open_console().print(Text(visible(done)), soft_wrap=True)


def _stop(what: Target, name: str, terms: StopOptions, pack: str | None = None) -> None:
    from bylaw.pack import load_pack
    from bylaw.shield.stopping import check_target, unheard_of

    if pack is not None:
        check_target(load_pack(pack), what, name)
    seconds = read_duration(terms.span, unit=True)
    if seconds is None:
        raise UsageError(f"`--for {terms.span}` is not a duration", hint="add a unit, such as 30m, 2h or 7d")
    terms.existing()
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
        open_console().print(Text(f"{stop.id}: {_description(Stopped(stop), time.time())}"), soft_wrap=True)
        if warning := unheard_of(log, terms.tenant, what, name):
            print(f"bylaw: {visible(warning)}", file=sys.stderr, flush=True)


def _description(each: Stopped, now: float) -> str:
    stop = each.stop
    what = "needs approval" if stop.answer == "ask" else "is refused"
    end = f"until {local_time(stop.until)}" if stop.stands(now) else f"ended {local_time(stop.until)}"
    if each.lift is not None:
        why = f" ({clean(each.lift.reason, 500)})" if each.lift.reason else ""
        end = f"lifted by {clean(each.lift.by, 200)} {local_time(each.lift.at)}{why}"
    subject = "every write" if stop.what == "all" else f"every write of {stop.what} {clean(stop.name, 200)}"
    return f"{subject} {what}, {end}; by {clean(stop.by, 200)}: {clean(stop.reason, 500)}"
