"""The command `bylaw scan` shows patterns in logs as text in 80 columns or as JSON."""

import sys
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

import msgspec
from rich.console import Console

from bylaw.cli.command import Count, File, Name, command
from bylaw.cli.console import SCREEN, counted, open_console, say
from bylaw.cli.logs import GivenLogs, open_logs, with_progress
from bylaw.errors import UsageError
from bylaw.facts.evidence import LookupEvidence
from bylaw.scan import Scan, scan
from bylaw.scan.effect import Guess, effects_file, read_effects
from bylaw.scan.generic import Generic, summary
from bylaw.scan.habit import FEWEST, Argument, CallPlace, Habit, Strange
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
        read = with_progress(opened.trajectories(agent=agent), opened.files)
        found = scan(read, effects=known, examples=examples)
        found = msgspec.structs.replace(found, faults=tuple(map(opened.named, found.faults)))
    if write_effects is not None:
        write_effects.write_text(effects_file(found.tools), encoding="utf-8")
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() + "\n")
    else:
        print_scan(found, open_console(), whole=whole)
    return 3 if found.unreadable else 0


class _Entry(NamedTuple):
    """A result: its main line and more lines."""

    head: str
    text: str
    more: Sequence[str] = ()
    """More lines about the result. If the output must fit on one screen, only the first is shown."""
    style: str = ""
    later: Sequence[str] = ()
    """Lines for `--all` only."""
    brief: str = ""
    """A shorter version for one-screen output. It may be empty."""


class _Section(NamedTuple):
    title: str
    entries: Sequence[_Entry]
    header: str = ""
    note: str = ""
    empty: str = ""


def print_scan(found: Scan, console: Console, *, whole: bool = False) -> None:
    """Print what fits on one screen. With `whole`, print the whole result with an explanation."""
    agents = [name for name in found.agents if name]
    by = f" by {counted(len(agents), 'agent')}" if agents else ""
    formats = ", ".join(f"{name or 'given'} {count:,}" for name, count in found.formats.items())
    say(console, f"{counted(found.trajectories, 'conversation')}{by}{f' ({formats})' if formats else ''}", "", "bold")
    if found.unreadable:
        say(console, f"{counted(found.unreadable, 'record')} could not be read, e.g. {clean(found.faults[0], 200)}")
    if not found.trajectories:
        say(console, "No conversation found.")
        return
    sections = [
        _tools(found.tools),
        _generic(found.generic),
        _evidence(found.evidence),
        _habits(found),
        *_sources(found),
    ]
    sections = [each for each in sections if each.entries or (whole and each.empty)]
    for section, shown in zip(sections, _fitting(sections), strict=True):
        _print(section, console, whole=whole, shown=shown)
    console.print()
    if not whole:
        say(console, "--all shows everything. Next: `bylaw init LOGS --document FILE`.")
        return
    say(console, "How to read this", "", "bold")
    for word, meaning in _READING.items():
        say(console, meaning, f"  {word:<10}")
    console.print()
    say(console, _LIMITS)


def _fitting(sections: Sequence[_Section]) -> list[int]:
    """Return how many lines of each section fit on one screen. Each section gets at least one line."""
    shown = [1] * len(sections)
    # Reserve space for the first line, the last line and the blank line above it. Each section also has a blank line, a
    # title and a line with the number of omitted entries.
    room = SCREEN - 3 - sum(4 + bool(section.header) for section in sections)
    while waiting := [at for at, section in enumerate(sections) if shown[at] < len(_lines(section, whole=False))]:
        for at in waiting[: max(room, 0)]:
            shown[at] += 1
            room -= 1
        if room <= 0:
            break
    return shown


def _lines(section: _Section, *, whole: bool) -> list[tuple[int, str, str, str]]:
    """Return the lines of a section, each with its entry's number. Without `whole`, an entry has at most two lines."""
    return [
        (number, head, text, style)
        for number, entry in enumerate(section.entries, 1)
        for head, text, style in [
            (entry.head, entry.text if whole else entry.brief or entry.text, ""),
            *(("      ", each, entry.style) for each in ((*entry.more, *entry.later) if whole else entry.more[:1])),
        ]
    ]


def _print(section: _Section, console: Console, *, whole: bool, shown: int) -> None:
    console.print()
    say(console, section.title, "", "bold")
    if section.header:
        say(console, section.header)
    if section.note and whole:
        say(console, section.note)
    if not section.entries:
        say(console, section.empty, "  ")
    lines = _lines(section, whole=whole)
    for _, head, text, style in lines if whole else lines[:shown]:
        say(console, text if whole else _cut(text, console.width - 1 - len(head)), head, style)
    if not whole and (left := len(section.entries) - max((number for number, *_ in lines[:shown]), default=0)) > 0:
        say(console, f"and {left:,} more", "  ")


def _tools(guesses: Sequence[Guess]) -> _Section:
    entries: list[_Entry] = []
    for guess in sorted(guesses, key=lambda each: each.effect != "write"):
        head = f"{guess.effect:<6} {guess.sure:>5.0%} {guess.calls:>8,} {guess.refused:>7,}  "
        told = f"if such a result means that the call failed, declare {clean(guess.declaration, 90)}"
        tool, why = clean(guess.tool, 60), [clean(why, 90) for why in guess.why]
        later, brief = [told] if guess.declaration else [], f"{tool}: {next(iter(why), '')}"
        entries.append(_Entry(head, f"{tool}: {'; '.join(why)}", later=later, brief=brief))
    return _Section("Tools and inferred effects, writes first", entries, "effect  sure    calls refused  tool: why")


def _generic(found: Sequence[Generic]) -> _Section:
    entries = [_Entry("  ", f"{clean(each.tool, 60)}: {clean(summary(each), 2000)}") for each in found]
    return _Section("Generic tools, whose arguments determine the effect; `bylaw init` drafts actions", entries)


def _evidence(evidence: Sequence[LookupEvidence]) -> _Section:
    entries = [
        _Entry(
            "  ",
            f"{clean(each.tool, 60)}: {each.results:,} results, {each.captured:,} captured, {each.readable:,} readable",
            each.cures,
            "yellow",
        )
        for each in evidence
        if each.cures
    ]
    empty = "none: every result is recorded and readable" if evidence else "no look-up results found"
    return _Section("Look-ups with unusable results", entries, empty=empty)


def _habits(found: Scan) -> _Section:
    entries: list[_Entry] = []
    for write in found.writes:
        tool = clean(write.tool, 60)
        if not write.habits:
            why = "too few calls" if write.cases < FEWEST else "no look-up usually precedes it"
            entries.append(_Entry("  ", f"{tool} ({counted(write.cases, 'accepted call')}): {why}"))
        entries += [_habit(tool, habit) for habit in write.habits]
    return _Section("Look-ups that usually precede a write", entries)


def _habit(tool: str, habit: Habit) -> _Entry:
    tools = " or ".join(clean(name, 60) for name in habit.tools)
    how = f"{_REASONS[habit.reason]} {', '.join(clean(name, 60) for name in habit.arguments)}".strip()
    share = f"before {habit.hits:,} of {habit.cases:,} calls ({habit.low:.0%} to {habit.high:.0%})"
    lacking, more = habit.cases - habit.hits, list[str]()
    if lacking and habit.reason != "distinctive":
        by = " or ".join(clean(name, 60) for name in habit.shown_by)
        seen = f" (for {habit.shown:,} of them, {by} had shown a record that names the value)" if habit.shown else ""
        places = ", ".join(map(_place, habit.lacking[:_SHOWN]))
        rest = f" and {lacking - _SHOWN:,} more" if lacking > _SHOWN else ""
        more = [f"lacked by {lacking:,}: {places}{rest}{seen}"]
    text = f"{tool}: {tools} ({how}) {share}, sure {habit.sure:.0%}"
    return _Entry("  ", text, more, "yellow", brief=f"{tool}: {tools} {share}")


def _sources(found: Scan) -> Iterator[_Section]:
    every = [argument for write in found.writes for argument in write.arguments]
    strange = sorted((each for each in every if each.strange), key=lambda each: (-each.sure, each.tool, each.name))
    entries = [_argument(each, each.nowhere, each.strange, f", sure {each.sure:.0%}") for each in strange]
    left = sorted((each for each in every if each.left_out), key=lambda each: (each.vocabulary, -each.nowhere))
    if left:
        named = [
            f"{_called(each)} ({each.nowhere:,} of {each.cases:,}{', few words' * each.vocabulary})" for each in left
        ]
        entries.append(_Entry("  ", f"left out: {', '.join(named)}"))
    note = "No tool result and no user message contains these values. Whole numbers below 20 are left out."
    yield _Section("Arguments with no known source", entries, note=note, empty="none")
    texts = sorted((each for each in every if each.from_text), key=lambda each: (-each.text, each.tool, each.name))
    note = "Prompt injection can look like this."
    entries = [_argument(each, each.text, each.from_text, "") for each in texts]
    yield _Section("Arguments found only in free text inside a tool result", entries, note=note, empty="none")


def _argument(argument: Argument, count: int, values: Sequence[Strange], note: str) -> _Entry:
    first = list({value.value: value for value in reversed(values)}.values())[::-1][:_SHOWN]
    more = [
        f"`{clean(each.value, 60)}` in {_place(each.place)}{f' from {clean(each.source, 60)}' if each.source else ''}"
        for each in first
    ]
    named = {value.value for value in first}
    if (left := count - sum(value.value in named for value in values)) > 0:
        more.append(f"and {left:,} more")
    return _Entry("  ", f"{_called(argument)}: {count:,} of {argument.cases:,}{note}", more)


def _called(argument: Argument) -> str:
    return f"{clean(argument.tool, 60)} {clean(argument.name, 60)}"


def _place(place: CallPlace) -> str:
    return f"{clean(place.trajectory, 80)} @{place.step}"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(room, 20) - 4].rpartition(' ')[0].rstrip(',')} ..."
