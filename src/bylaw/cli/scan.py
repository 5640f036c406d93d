"""`bylaw scan`: what logs tell by themselves, at 80 columns or as JSON."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from rich.console import Console
from rich.text import Text

from bylaw.cli.command import Count, File, Name, command
from bylaw.cli.console import counted, open_console
from bylaw.cli.logs import GivenLogs, open_logs
from bylaw.errors import UsageError
from bylaw.facts.evidence import LookupEvidence
from bylaw.scan import Scan, scan
from bylaw.scan.argument import Argument, Strange
from bylaw.scan.effect import Guess, effects_file, read_effects
from bylaw.scan.habit import FEWEST, CallPlace, Habit
from bylaw.text.visible import clean
from bylaw.trace.log_file import LogFile

_SHOWN = 3
_LEFT_OUT = 12
_REASONS = {
    "keyed": "called with",
    "shows": "shows",
    "belongs": "a record that names",
    "distinctive": "rare before other writes; perhaps needed in some cases",
}


_READING = {
    "sure": "how far to trust a guess. Of a tool: how much more speaks for this effect than for the others. Of a"
    " look-up: the low end of its share, times how sure the effects are. Of a value: the low end of the share of"
    " this argument's values that came from somewhere.",
    "(a to b)": "where the true share lies, with 95% confidence.",
    "id @step": "a call: its conversation, and which event there, counted from 0. Messages, calls and results each"
    " count and system messages do not, so a step is not an index into the log's `messages`.",
    "left out": "arguments whose values often come from nowhere, so that one more is not suspicious.",
    "and more": "lists show three; --json has the first 20 of each, or as many as --examples says.",
}
_LIMITS = (
    "What this cannot see: whether a policy asks for a look-up, and whether a call was right. Guesses rest on habit"
    " alone. Correct effects with --write-effects FILE, then --effects FILE; for verdicts, start a pack with"
    " `bylaw init LOGS --document FILE`."
)


@command("scan")
def scan_command(
    logs: GivenLogs,
    *,
    effects: Annotated[File, "Effects that you corrected."] = None,
    write_effects: Annotated[File, "Write the guessed effects there, to be corrected."] = None,
    as_json: Annotated[bool, "--json", "Print everything as JSON."] = False,
    agent: Annotated[Name | None, "Count every conversation under this name."] = None,
    examples: Annotated[Count, "Calls listed per finding in the JSON."] = 20,
) -> int:
    """Show what logs tell without a pack, a model or a database."""
    found = scan_logs(
        logs, effects=effects, write_effects=write_effects, as_json=as_json, agent=agent, examples=examples
    )
    return 3 if found.unreadable else 0


def scan_logs(
    logs: Sequence[LogFile],
    *,
    effects: Path | None = None,
    write_effects: Path | None = None,
    as_json: bool = False,
    agent: str | None = None,
    examples: int = 20,
    console: Console | None = None,
) -> Scan:
    """Scan the logs, print what they show, and give it back."""
    if write_effects is not None and write_effects.exists():
        raise UsageError("the file exists already, perhaps with corrections", place=str(write_effects))
    known = read_effects(effects) if effects is not None else None
    with open_logs(logs) as opened:
        found = scan(opened.trajectories(agent=agent), effects=known, examples=examples)
        found = msgspec.structs.replace(found, faults=tuple(map(opened.named, found.faults)))
    if write_effects is not None:
        write_effects.write_text(effects_file(found.tools), encoding="utf-8")
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
    else:
        print_scan(found, console or open_console())
    return found


def print_scan(found: Scan, console: Console) -> None:
    _head(found, console)
    if not found.trajectories:
        return
    _tools(found.tools, console)
    show_evidence(found.evidence, console)
    _habits(found, console)
    _origins(found, console)
    console.print()
    _say(console, "How to read this", style="bold")
    for word, meaning in _READING.items():
        _say(console, meaning, head=f"  {word:<10}")
    console.print()
    _say(console, _LIMITS)


def _head(found: Scan, console: Console) -> None:
    agents = [name for name in found.agents if name]
    by = f" by {counted(len(agents), 'agent')}" if agents else ""
    formats = ", ".join(f"{name or 'given'} {count:,}" for name, count in found.formats.items())
    formats = f" ({formats})" if formats else ""
    _say(console, f"{counted(found.trajectories, 'conversation')}{by}{formats}", style="bold")
    if found.unreadable:
        _say(console, f"{counted(found.unreadable, 'record')} could not be read, e.g. {clean(found.faults[0], 200)}")
    if not found.trajectories:
        _say(console, "Nothing to scan: no conversation was found.")


def _tools(guesses: Iterable[Guess], console: Console) -> None:
    console.print()
    _say(console, "Tools, and what they are taken to do", style="bold")
    _say(console, "effect  sure    calls refused  tool: why")
    for guess in guesses:
        head = f"{guess.effect:<6} {guess.sure:>5.0%} {guess.calls:>8,} {guess.refused:>7,}  "
        _say(console, f"{clean(guess.tool, 60)}: {'; '.join(clean(why, 90) for why in guess.why)}", head=head)
        if guess.declaration:
            told = f"if such a result means that nothing was done, declare {clean(guess.declaration, 90)}"
            _say(console, told, head=" " * len(head))


def show_evidence(evidence: Sequence[LookupEvidence], console: Console) -> None:
    """Say what became of the results of look-ups; what could not be used, with what to do about it."""
    lacking = [each for each in evidence if each.cures]
    console.print()
    _say(console, "What the look-ups showed, as far as it was recorded and can be read", style="bold")
    for each in lacking:
        numbers = f"{each.results:,} results, {each.captured:,} captured, {each.readable:,} readable"
        _say(console, f"{clean(each.tool, 60)}: {numbers}", head="  ", style="yellow")
        for cure in each.cures:
            _say(console, cure, head="      ")
    whole = sum(each.results for each in evidence if not each.cures)
    if whole:
        _say(console, f"{'the other' if lacking else 'all'} {counted(whole, 'result')}: whole", head="  ")
    elif not lacking:
        _say(console, "no result of a look-up was found", head="  ")


def _habits(found: Scan, console: Console) -> None:
    console.print()
    _say(console, "Look-ups that usually precede a write, on a value the two share", style="bold")
    for write in found.writes:
        _say(console, f"{clean(write.tool, 60)} ({counted(write.cases, 'accepted call')})", style="cyan")
        if not write.habits:
            why = "too few calls to tell" if write.cases < FEWEST else "no look-up usually precedes it"
            _say(console, why, head="  ")
        for habit in write.habits:
            _habit(habit, console)


def _habit(habit: Habit, console: Console) -> None:
    tools = " or ".join(clean(name, 60) for name in habit.tools)
    _say(
        console,
        f"{tools}: {_REASONS[habit.reason]} {', '.join(clean(name, 60) for name in habit.arguments)}",
        head="  ",
    )
    share = f"before {habit.hits:,} of {habit.cases:,} calls ({habit.low:.0%} to {habit.high:.0%})"
    numbers = f"{share}, sure {habit.sure:.0%}"
    _say(console, numbers, head="      ")
    lacking = habit.cases - habit.hits
    if lacking and habit.reason != "distinctive":
        seen = ""
        if habit.shown:
            tools = " or ".join(clean(name, 60) for name in habit.shown_by)
            seen = f" ({habit.shown:,} of them saw a record that names it, from {tools})"
        _say(console, f"lacked by {lacking:,}{seen}: {_places(habit.lacking, lacking)}", head="      ", style="yellow")


def _origins(found: Scan, console: Console) -> None:
    arguments = [argument for write in found.writes for argument in write.arguments]
    strange = sorted((each for each in arguments if each.strange), key=lambda each: (-each.sure, each.tool, each.name))
    console.print()
    _say(console, "Values that no tool result showed and no user said", style="bold")
    _say(console, "Whole numbers below 20 are left out: they occur everywhere.", head="  ")
    if not strange:
        _say(console, "none, among arguments whose values usually come from somewhere", head="  ")
    for each in strange:
        _argument(each, each.nowhere, each.strange, f"sure {each.sure:.0%}", console)
    if left := sorted((each for each in arguments if each.left_out), key=lambda each: (each.vocabulary, -each.nowhere)):
        _left_out(left, console)
    texts = sorted((each for each in arguments if each.from_text), key=lambda each: (-each.text, each.tool, each.name))
    console.print()
    _say(console, "Values that stood only in free text inside a tool result", style="bold")
    _say(console, "Neither the user nor a record gave them. An order hidden in data looks like this.", head="  ")
    if not texts:
        _say(console, "none", head="  ")
    for each in texts:
        _argument(each, each.text, each.from_text, "", console)


def _left_out(arguments: Sequence[Argument], console: Console) -> None:
    """The arguments whose values from nowhere are not listed, and why; all of them are in the JSON."""
    named = [
        f"{clean(each.tool, 60)} {clean(each.name, 60)} ({each.nowhere:,} of {each.cases:,}"
        f"{', few words' if each.vocabulary else ''})"
        for each in arguments[:_LEFT_OUT]
    ]
    more = f" and {len(arguments) - _LEFT_OUT:,} more" if len(arguments) > _LEFT_OUT else ""
    _say(console, f"left out: {', '.join(named)}{more}", head="  ")


def _argument(argument: Argument, count: int, values: Sequence[Strange], note: str, console: Console) -> None:
    name = f"{clean(argument.tool, 60)} {clean(argument.name, 60)}"
    _say(console, f"{name}: {count:,} of {argument.cases:,}{f', {note}' if note else ''}", head="  ")
    shown: dict[str, Strange] = {}
    for value in values:
        shown.setdefault(value.value, value)
    first = list(shown.values())[:_SHOWN]
    for value in first:
        source = f" from {clean(value.source, 60)}" if value.source else ""
        _say(console, f"`{clean(value.value, 60)}` in {_place(value.place)}{source}", head="      ")
    named = {value.value for value in first}
    if (left := count - sum(value.value in named for value in values)) > 0:
        _say(console, f"and {left:,} more", head="      ")


def _places(places: Sequence[CallPlace], total: int) -> str:
    listed = ", ".join(_place(place) for place in places[:_SHOWN])
    return f"{listed} and {total - _SHOWN:,} more" if total > _SHOWN else listed


def _place(place: CallPlace) -> str:
    return f"{clean(place.trajectory, 80)} @{place.step}"


def _say(console: Console, text: str, *, head: str = "", style: str = "") -> None:
    """Print one wrapped line, later lines indented under the first; logs' own text is never read as markup."""
    body = Text(text, style=style)
    lines = body.wrap(console, max(20, console.width - len(head)))
    for number, line in enumerate(lines):
        line.rstrip()
        console.print(Text(head if number == 0 else " " * len(head)) + line, soft_wrap=True)
