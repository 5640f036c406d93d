"""The command `bylaw backtest` shows the effect of a pack change on recorded calls."""

import sys
from collections import Counter
from itertools import groupby
from typing import Annotated

import click
import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from bylaw.cli.command import command
from bylaw.cli.console import counted, open_console
from bylaw.cli.logs import GivenLogs, open_logs
from bylaw.pack import load_pack
from bylaw.shield.backtest import Backtest, CallOutcome, Changed, backtest
from bylaw.text.visible import clean


@command("backtest")
def backtest_command(
    logs: GivenLogs,
    *,
    old: Annotated[str, "--old PACK", "The current pack."],
    new: Annotated[str, "--new PACK", "The changed pack."],
    show: Annotated[int, "--show N", click.IntRange(min=0), "Calls to list per kind of change."] = 5,
    as_json: Annotated[bool, "--json", "Print every change as JSON."] = False,
) -> int:
    """Show how a pack change would affect recorded calls.

    Lists every decision and verdict that would change, by policy. Calls are replayed as recorded. The agent's reactions
    to different decisions are not simulated.
    """
    with open_logs(logs) as opened:
        found = backtest(load_pack(old), load_pack(new), opened.readable())
        named = tuple(replace(each, file=opened.named(each.file)) for each in found.changed)
        found, is_one = replace(found, changed=named), len(opened.files) == 1
    if as_json:
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(found, enc_hook=str), indent=2) + b"\n")
    else:
        _print(found, open_console(), show, is_one=is_one)
    return opened.report_faults()


def _print(found: Backtest, console: Console, show: int, *, is_one: bool) -> None:
    console.print(Text(f"{found.old} -> {found.new}", style="bold"), soft_wrap=True)
    console.print(
        f"{counted(found.conversations, 'conversation')}, {counted(found.calls, 'call')}\n"
        f"{found.changed_calls:,} decided differently, {found.now_stopped:,} now stopped,"
        f" {found.now_allowed:,} now allowed",
        markup=False,
    )
    if found.uncounted:
        calls = counted(found.uncounted, "call")
        console.print(f"{calls} could not be checked against a limit, because no time is recorded", markup=False)
    if not found.changed:
        console.print("No policy judges any call differently.")
        return
    if rest := len({(each.conversation, each.step) for each in found.changed if not each.is_flip}):
        console.print(
            f"{counted(rest, 'more call')} judged differently by a policy, with the same decision", markup=False
        )
    ordered = sorted(found.changed, key=lambda each: (each.policy, _kind(each)))
    for policy, changes in groupby(ordered, key=lambda each: each.policy):
        console.print()
        console.print(Text(clean(policy, 78) or "(calls that could not be judged)", style="bold"))
        listed = list(changes)
        conversations = counted(len({each.conversation for each in listed}), "conversation")
        console.print(f"  {counted(len(listed), 'call')} in {conversations}", markup=False)
        counts = Counter(map(_kind, listed))
        for kind, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
            console.print(Text(f"  {count:>6,}  {kind}"), soft_wrap=True)
            same = [each for each in listed if _kind(each) == kind]
            for each in same[:show]:
                file = "" if is_one else f"{clean(each.file, 60)}: "
                at = f"{clean(each.conversation, 44)} @{each.step}"
                console.print(Text(f"          {file}{at} {clean(each.tool, 22)}"), soft_wrap=True)
            if count > show:
                console.print(f"          and {count - show:,} more", markup=False)


def _kind(changed: Changed) -> str:
    old, new = changed.old, changed.new
    words: list[str] = []
    if old.decision != new.decision:
        words.append(f"decision {old.decision or 'none'} -> {new.decision or 'none'}")
    if old.verdict != new.verdict:
        words.append(f"verdict {old.verdict or 'none'} -> {new.verdict or 'none'}")
    if old.decision == new.decision and old.stops != new.stops:
        words.append(f"{new.decision or 'none'} {'now' if new.stops else 'no longer'} stops the call")
    return "; ".join([*words, *_whole(changed)])


def _whole(changed: Changed) -> list[str]:
    """Return how the decision on the whole call changes, if this differs from the change for the one policy."""
    said = [CallOutcome(each.decision or "allow", not each.stops) for each in (changed.old, changed.new)]
    was, is_now = changed.old_call, changed.new_call
    if [was, is_now] == said or said[0] == said[1]:
        return []
    ends = "runs" if is_now.runs else "is stopped"
    if not changed.is_flip:
        return [f"the whole call: {is_now.decision} as before, and {ends}"]
    return [f"the whole call: {was.decision} -> {is_now.decision}, and {'now ' * (was.runs != is_now.runs)}{ends}"]
