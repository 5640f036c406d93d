"""`bylaw stop`: keep an agent, a tool, a policy or a whole tenant from writing, at once and for a while."""

import getpass
import json
import sys
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import click
import msgspec
from rich.text import Text

from bylaw.cli.console import open_console
from bylaw.cli.group import InOrder
from bylaw.cli.log_place import existing, log_option, refuse_stranger, tenant_option
from bylaw.errors import UsageError
from bylaw.record import Log
from bylaw.record.stop import Stopped, Target
from bylaw.text.duration import read_duration
from bylaw.text.visible import clean, visible

_by = click.option("--by", default=getpass.getuser, show_default="you", help="Who does it; the log says so.")
_ways = (
    log_option,
    tenant_option,
    click.option("--reason", required=True, help="Why; agents are told this."),
    click.option("--for", "span", metavar="TIME", required=True, help="How long: 30m, 2h, 7d."),
    click.option("--ask", is_flag=True, help="Put each write to a person, instead of refusing it."),
    _by,
)


def _stopping(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_ways):
        command = option(command)
    return command


@click.group("stop", cls=InOrder)
def stop_command() -> None:
    """Stop an agent, a tool, a policy or all writes of a tenant, at once and for a while.

    Every shield and service on the log obeys with the next decision that it writes; what was decided before is done.
    Calls that only read go on.
    """


_pack = click.option("--pack", metavar="PACK", help="Refuse a name that this pack does not know.")


@stop_command.command("tool")
@_stopping
@_pack
@click.argument("name")
def tool_command(name: str, pack: str | None, **given: Any) -> None:
    """Stop every call of a tool that may change something."""
    _check(pack, "tool", name)
    _stop("tool", name, **given)


@stop_command.command("agent")
@_stopping
@click.argument("name")
def agent_command(name: str, **given: Any) -> None:
    """Stop every write of an agent, by the name its runs are counted under."""
    _stop("agent", name, **given)


@stop_command.command("policy")
@_stopping
@_pack
@click.argument("name")
def policy_command(name: str, pack: str | None, **given: Any) -> None:
    """Stop every write that a policy binds, whatever its posture."""
    _check(pack, "policy", name)
    _stop("policy", name, **given)


@stop_command.command("all")
@_stopping
def all_command(**given: Any) -> None:
    """Stop every write of a tenant."""
    _stop("all", "", **given)


@stop_command.command("list")
@log_option
@tenant_option
@click.option("--all", "every", is_flag=True, help="Also those that were lifted or are over.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(where: str, tenant: str, every: bool, as_json: bool) -> None:
    """List the stops that stand."""
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


@stop_command.command("lift")
@log_option
@tenant_option
@click.option("--reason", default="", help="Why; the log keeps it.")
@_by
@click.argument("stop", metavar="ID")
def lift_command(where: str, tenant: str, reason: str, by: str, stop: str) -> None:
    """End a stop before its time."""
    existing(where)
    with Log(where) as log:
        lifted = log.lift(stop, by=by, reason=reason, tenant=tenant)
    told = f"{lifted.stop.id}: {lifted.stop.stopped} is no longer stopped, lifted by {by}"
    open_console().print(Text(visible(told)), soft_wrap=True)


def _stop(what: Target, name: str, *, where: str, tenant: str, reason: str, span: str, ask: bool, by: str) -> None:
    seconds = read_duration(span, unit=True)
    if seconds is None:
        raise UsageError(f"`--for {span}` is not a time", hint="give it a unit, such as 30m, 2h or 7d")
    refuse_stranger(existing(where), tenant, where)
    with Log(where) as log:
        stop = log.stop(
            what,
            name,
            by=by,
            reason=reason,
            until=time.time() + seconds,
            answer="ask" if ask else "deny",
            tenant=tenant,
        )
        told = f"{stop.id}: {_told(Stopped(stop), time.time())}"
        open_console().print(Text(told), soft_wrap=True)
        if warning := _unheard_of(log, tenant, what, name):
            print(f"bylaw: {visible(warning)}", file=sys.stderr, flush=True)


def _told(each: Stopped, now: float) -> str:
    """A stop on one line."""
    stop = each.stop
    what = "is put to a person" if stop.answer == "ask" else "is refused"
    end = f"until {_at(stop.until)}" if stop.stands(now) else f"ended {_at(stop.until)}"
    if each.lift is not None:
        why = f" ({clean(each.lift.reason, 500)})" if each.lift.reason else ""
        end = f"lifted by {clean(each.lift.by, 200)} {_at(each.lift.at)}{why}"
    subject = "every write" if stop.what == "all" else f"every write of {stop.what} {clean(stop.name, 200)}"
    return f"{subject} {what}, {end}; by {clean(stop.by, 200)}: {clean(stop.reason, 500)}"


def _check(pack: str | None, what: Target, name: str) -> None:
    if pack is not None:
        from bylaw.pack import load_pack
        from bylaw.shield.stopping import check_target

        check_target(load_pack(pack), what, name)


def _unheard_of(log: Log, tenant: str, what: Target, name: str) -> str:
    from bylaw.shield.stopping import unheard_of

    return unheard_of(log, tenant, what, name)


def _at(moment: float) -> str:
    return datetime.fromtimestamp(moment).isoformat(" ", "minutes")
