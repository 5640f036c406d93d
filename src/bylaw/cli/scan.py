"""The command `bylaw scan` shows patterns in logs, as text with 80 columns or as JSON."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec
from rich.console import Console

from bylaw.cli.command import Count, File, Name, command
from bylaw.cli.console import SCREEN, Entry, Section, counted, open_console, print_sections, say
from bylaw.cli.logs import GivenLogs, open_logs, with_progress
from bylaw.errors import UsageError
from bylaw.facts.evidence import LookupEvidence
from bylaw.scan import Scan, scan
from bylaw.scan.effect import Guess, effects_file, read_effects
from bylaw.scan.generic import summary
from bylaw.scan.habit import FEWEST, Argument, CallPlace, Habit, UnsourcedValue
from bylaw.text.visible import clean

_SHOWN = 3
_REASONS = {
    "keyed": "called with",
    "shows": "shows",
    "belongs": "a record that names",
    "distinctive": "rare before other writes",
}
_READING = {
    "sure": "how certain a guess is. For a tool: the evidence for this effect, compared with the other effects. For a"
    " look-up: the lower bound of its share, multiplied by the certainty of the effects. For a value: the lower bound"
    " of the share of this argument's values that have a known source.",
    "(a to b)": "the 95% confidence interval of the share.",
    "id @step": "a call, by its conversation and its event number. Events are messages, calls and results, counted from"
    " 0; system messages are not counted.",
    "left out": "arguments that often have values without a known source. Another such value is not suspicious.",
    "and more": "a list shows three calls; --json has the first 20, or the number in --examples.",
}
_LIMITS = (
    "These guesses only count frequencies. A scan cannot know whether a policy requires a look-up, or whether a call"
    " was right. To correct the effects, run with --write-effects FILE, edit the file, and pass it with --effects"
    " FILE. For verdicts, start a pack with `bylaw init LOGS --document FILE`."
)


@command("scan")
def scan_command(
    logs: GivenLogs,
    *,
    effects: Annotated[File, "Effects to use instead of guesses, as written by --write-effects."] = None,
    write_effects: Annotated[File, "Write the guessed effects to this file, for you to correct."] = None,
    whole: Annotated[bool, "--all", "Show everything, with an explanation."] = False,
    as_json: Annotated[bool, "--json", "Print everything as JSON."] = False,
    agent: Annotated[Name | None, "Use this agent name for every conversation."] = None,
    examples: Annotated[Count, "Number of calls listed per finding in the JSON."] = 20,
) -> int:
    """Find patterns in logs, without a pack, a model or a database."""
    if write_effects is not None and write_effects.exists():
        raise UsageError("the file already exists, perhaps with corrections", place=str(write_effects))
    known = read_effects(effects) if effects is not None else None
    with open_logs(logs) as opened:
        read = with_progress(opened.trajectories(agent=agent))
        found = scan(read, effects=known, examples=examples)
        found = msgspec.structs.replace(found, faults=tuple(map(opened.named, found.faults)))
    if write_effects is not None:
        write_effects.write_text(effects_file(found.tools), encoding="utf-8")
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
    else:
        print_scan(found, open_console(), whole=whole)
    return 3 if found.unreadable else 0


def print_scan(found: Scan, console: Console, *, whole: bool = False) -> None:
    """Print the first results of each kind. If `whole` is set, print all results and explain them."""
    agents = [name for name in found.agents if name]
    by = f" by {counted(len(agents), 'agent')}" if agents else ""
    formats = ", ".join(f"{name or 'given'} {count:,}" for name, count in found.formats.items())
    say(console, f"{counted(found.trajectories, 'conversation')}{by}{f' ({formats})' if formats else ''}", "", "bold")
    if found.unreadable:
        say(console, f"{counted(found.unreadable, 'record')} could not be read, e.g. {clean(found.faults[0], 200)}")
    if not found.trajectories:
        say(console, "No conversation found.")
        return
    generic = [Entry(f"{clean(each.tool, 60)}: {clean(summary(each), 2000)}") for each in found.generic]
    title = "Generic tools, whose arguments determine the effect; `bylaw init` drafts actions"
    sections = [_tools(found.tools, whole), Section(title, generic), _evidence(found.evidence, whole)]
    sections = [each for each in (*sections, _habits(found, whole), *_sources(found, whole)) if each.entries]
    room = None if whole else SCREEN - 3 - sum(3 + bool(section.header) for section in sections)
    print_sections(console, sections, room=room)
    console.print()
    if not whole:
        say(console, "--all shows everything. Next: `bylaw init LOGS --document FILE`.")
        return
    say(console, "How to read this", "", "bold")
    for word, meaning in _READING.items():
        say(console, meaning, f"  {word:<10}")
    console.print()
    say(console, _LIMITS)


def _tools(guesses: Sequence[Guess], whole: bool) -> Section:
    entries: list[Entry] = []
    for guess in sorted(guesses, key=lambda each: each.effect != "write"):
        head = f"{guess.effect:<6} {guess.sure:>5.0%} {guess.calls:>8,} {guess.refused:>7,}  "
        why = [clean(why, 90) for why in guess.why]
        told = f"if such a result means that the call failed, declare {clean(guess.declaration, 90)}"
        more = [told] if whole and guess.declaration else []
        entries.append(Entry(f"{clean(guess.tool, 60)}: {'; '.join(why if whole else why[:1])}", head, more))
    header = "effect  sure    calls refused  tool: why"
    return Section("Tools and inferred effects, writes first", entries, header=header)


def _evidence(evidence: Sequence[LookupEvidence], whole: bool) -> Section:
    entries: list[Entry] = []
    for each in evidence:
        told = f"{each.results:,} results, {each.captured:,} captured, {each.readable:,} readable"
        if each.cures:
            entries.append(Entry(f"{clean(each.tool, 60)}: {told}", more=each.cures if whole else ()))
    if whole and not entries:
        entries = [Entry("none: every result is recorded and readable" if evidence else "no look-up results found")]
    return Section("Look-ups with unusable results", entries)


def _habits(found: Scan, whole: bool) -> Section:
    entries: list[Entry] = []
    for write in found.writes:
        tool = clean(write.tool, 60)
        if not write.habits:
            why = "too few calls" if write.cases < FEWEST else "no look-up usually precedes it"
            entries.append(Entry(f"{tool} ({counted(write.cases, 'accepted call')}): {why}"))
        entries += [_habit(tool, habit, whole) for habit in write.habits]
    return Section("Look-ups that usually precede a write", entries)


def _habit(tool: str, habit: Habit, whole: bool) -> Entry:
    tools = " or ".join(clean(name, 60) for name in habit.tools)
    share = f"before {habit.hits:,} of {habit.cases:,} calls ({habit.low:.0%} to {habit.high:.0%})"
    if not whole:
        return Entry(f"{tool}: {tools} {share}")
    how = f"{_REASONS[habit.reason]} {', '.join(clean(name, 60) for name in habit.arguments)}".strip()
    text, lacking = f"{tool}: {tools} ({how}) {share}, sure {habit.sure:.0%}", habit.cases - habit.hits
    if not lacking or habit.reason == "distinctive":
        return Entry(text)
    by = " or ".join(clean(name, 60) for name in habit.shown_by)
    seen = f" (for {habit.shown:,} of them, {by} had shown a record that names the value)" if habit.shown else ""
    places = ", ".join(map(_place, habit.lacking[:_SHOWN]))
    rest = f" and {lacking - _SHOWN:,} more" if lacking > _SHOWN else ""
    return Entry(text, more=[f"lacked by {lacking:,}: {places}{rest}{seen}"])


def _sources(found: Scan, whole: bool) -> Iterator[Section]:
    every = [argument for write in found.writes for argument in write.arguments]
    strange = sorted((each for each in every if each.strange), key=lambda each: (-each.sure, each.tool, each.name))
    entries = [_argument(each, each.nowhere, each.strange, f", sure {each.sure:.0%}", whole) for each in strange]
    if left := sorted((each for each in every if each.left_out), key=lambda each: (each.vocabulary, -each.nowhere)):
        named = (
            f"{_called(each)} ({each.nowhere:,} of {each.cases:,}{', few words' * each.vocabulary})" for each in left
        )
        entries.append(Entry(f"left out: {', '.join(named)}"))
    title, none = "Arguments with no known source", [Entry("none")] if whole else []
    note = "No tool result and no user message contains these values. Whole numbers below 20 are left out."
    yield Section(title, entries or none, header=note if whole else "")
    texts = sorted((each for each in every if each.from_text), key=lambda each: (-each.text, each.tool, each.name))
    entries = [_argument(each, each.text, each.from_text, "", whole) for each in texts]
    title, note = "Arguments found only in free text inside a tool result", "Prompt injection can look like this."
    yield Section(title, entries or none, header=note if whole else "")


def _argument(argument: Argument, count: int, values: Sequence[UnsourcedValue], note: str, whole: bool) -> Entry:
    text = f"{_called(argument)}: {count:,} of {argument.cases:,}{note}"
    if not whole:
        return Entry(text)
    first = list({value.value: value for value in reversed(values)}.values())[::-1][:_SHOWN]
    more = [
        f"`{clean(each.value, 60)}` in {_place(each.place)}{f' from {clean(each.source, 60)}' if each.source else ''}"
        for each in first
    ]
    named = {value.value for value in first}
    if (left := count - sum(value.value in named for value in values)) > 0:
        more.append(f"and {left:,} more")
    return Entry(text, more=more)


def _called(argument: Argument) -> str:
    return f"{clean(argument.tool, 60)} {clean(argument.name, 60)}"


def _place(place: CallPlace) -> str:
    return f"{clean(place.trajectory, 80)} @{place.step}"
