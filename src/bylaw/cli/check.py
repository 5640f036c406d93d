"""`bylaw check`: is this pack sound? Loads it, runs its cases, shows what to do next."""

import json
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

from rich.console import Console
from rich.text import Text

from bylaw.cli.command import DocumentOption, command
from bylaw.cli.console import counted, open_console, say, wrapped
from bylaw.errors import BylawError, PackError
from bylaw.pack import load_pack
from bylaw.pack.causes import one_for_all
from bylaw.pack.review import told_unaccepted
from bylaw.policy.folder import find_folder, read_folder
from bylaw.policy.statement import DRAFTED_BY
from bylaw.review.check import CheckReport, check
from bylaw.review.coverage import Covered
from bylaw.review.noted import left_out_of

SCREEN = 24
"""Lines of a terminal that nobody has made larger."""
_DOCUMENTS = 5
"""Of so many documents each has a line of its own."""
_FEWEST = 2
"""So many lines every section gets, however many sections there are."""


class Section(NamedTuple):
    """Things that are alike, under one heading."""

    title: str
    entries: Sequence[str]
    style: str
    next: str
    """What to do about the first of them."""


def print_checked(report: CheckReport, console: Console, *, whole: bool) -> None:
    """What to do next, then everything it rests on; without `whole`, the first few of each kind."""
    sections = [*_to_mend(report), *_to_look_at(report)]
    state = "sound" if report.is_sound else "not sound"
    style = "green" if report.is_sound else "red"
    console.print(Text(f"{report.pack} {report.version}  {report.digest[:12]}  ", style="bold") + Text(state, style))
    then = wrapped(console, f"next: {_next(report, sections)}", hang=2)
    for line in then:
        console.print(Text(line))
    figures = list(_figures(report))
    # Each section has a blank line, its title, and a line for what is left out.
    room = SCREEN - len(then) - len(figures) - 3 - 3 * len(sections)
    share = max(_FEWEST, room // len(sections)) if sections else 0
    hidden = False
    for section in sections:
        console.print()
        console.print(Text(section.title, style=section.style))
        shown = 0
        for number, entry in enumerate(section.entries):
            lines = wrapped(console, entry, "  ", hang=4)
            if not whole and number and shown + len(lines) > share:
                console.print(f"  and {len(section.entries) - number:,} more", markup=False)
                hidden = True
                break
            shown += len(lines)
            for line in lines:
                console.print(Text(line))
    if sections:
        console.print()
    for line in figures:
        say(console, line, hang=2)
    if hidden:
        console.print("`--all` shows everything that was found.", style="dim", markup=False)


def _next(report: CheckReport, sections: Sequence[Section]) -> str:
    first = next((section for section in sections if section.next), None)
    drafted, undecided = _drafted(report), _undecided(report)
    if (first is None or report.is_sound) and undecided:
        start = f"start with line {undecided[0].sentence.line} of the document"
        if len(undecided) == len(report.sentences):
            return (
                "this is a draft of `bylaw init`, and nothing is enforced yet; an audit shows what it finds. Write a"
                f" guard for each sentence that a call can break, and sign for the others with your name; {start}"
            )
        return (
            f"{len(undecided)} of {len(report.sentences)} sentences are still as `bylaw init` drafted them: write a"
            f" guard for each that a call can break, and sign for the others with your name; {start}"
        )
    if first is not None:
        return first.next
    if drafted:
        return f"nothing is enforced yet: `bylaw init` has drafted {', '.join(drafted)}; give each a guard or your name"
    return "nothing is left to do here" if report.sentences else "nothing; `--document` adds coverage by sentence"


def _drafted(report: CheckReport) -> list[str]:
    return [name for name, _, who in report.unenforced if who == DRAFTED_BY]


def _undecided(report: CheckReport) -> list[Covered]:
    """The sentences of which only `bylaw init` has said anything."""
    drafted = set(_drafted(report))
    return [
        each for each in report.sentences if each.policies and all(policy.id in drafted for policy in each.policies)
    ]


def _to_mend(report: CheckReport) -> Iterator[Section]:
    """What keeps a pack from being sound, the most pressing first."""
    if faults := report.faults:
        title = _counted(len(faults), "case", "cannot be run")
        yield Section(title, _alike(faults), "red", f"correct {faults[0].place}")
    if stale := report.stale:
        what = "sentence is no longer in the document" if len(stale) == 1 else "sentences are no longer there"
        title = f"{_counted(len(stale), 'policy', '')}: the {what}"
        then = f"read what the document says now, and change `{stale[0]}` or its quote"
        yield Section(title, [str(each) for each in report.lost] or [", ".join(stale)], "red", then)
    if failed := report.failed:
        entries = [
            f"{': '.join(filter(None, (case.place, case.policy, case.note)))}\nwant {case.want}, got {case.got}"
            for case in failed
        ]
        then = f"look at {failed[0].place}, and correct the case or its guard"
        yield Section(_counted(len(entries), "case", "fails", "fail"), entries, "red", then)
    # What cases that cannot be run leave out is told once they can.
    if report.untested and not report.faults:
        guards = _counted(len(report.untested), "guard", "")
        title = f"{guards} without both a case that it permits and one that it denies"
        then = f"write a case that `{report.untested[0]}` permits and one that it denies, in cases/"
        yield Section(title, [", ".join(report.untested)], "red", then)
    if report.conflicts:
        entries = [f"{found.kind}: {found.message}" for found in report.conflicts]
        yield Section(_counted(len(entries), "problem", "between rules"), entries, "red", "settle which rule is meant")


def _to_look_at(report: CheckReport) -> Iterator[Section]:
    """What a sound pack may have too."""
    if count := len(report.unaccepted):
        are = "is" if count == 1 else "are"
        title = f"{_counted(count, 'policy', 'waits', 'wait')} for review, and {are} not enforced"
        then = "`bylaw review` shows each check beside its sentence, to accept or reject"
        yield Section(title, [told_unaccepted(dict(report.unaccepted))], "yellow", then)
    if disarmed := report.disarmed:
        title = _counted(
            len(disarmed), "rule", "no longer denies a call on its own", "no longer deny a call on their own"
        )
        then = f"give `{disarmed[0][0]}` a higher weight, or `hard: true`, unless it is meant to be outvoted"
        yield Section(title, [f"{name}: weight {weight:g}" for name, weight in disarmed], "yellow", then)
    missed: dict[str, list[str]] = {}
    for branch in report.untaken if not report.faults else ():
        # A guard without cases is told of already.
        if branch.policy not in report.untested:
            missed.setdefault(branch.policy, []).append(f"line {branch.line} {branch.kind}")
    if missed:
        entries = [f"{name}: {', '.join(places)}" for name, places in missed.items()]
        title = _counted(sum(map(len, missed.values())), "branch", "that no case takes")
        then = f"add a case to `{next(iter(missed))}` that takes {next(iter(missed.values()))[0]}"
        yield Section(title, entries, "yellow", then)
    if uncovered := [each for each in report.sentences if each.state == "uncovered"]:
        first, several = uncovered[0], len({each.document for each in report.sentences}) > 1
        document = first.document if several else "the document"
        then = (
            f"say what line {first.sentence.line} of {document} means: a guard, a rule, or a policy that only lists it"
        )
        entries = [
            f"{each.document}:{each.sentence.line}  {_cut(each, 60)}"
            if several
            else f"{each.sentence.line:>4}  {_cut(each, 68)}"
            for each in uncovered
        ]
        yield Section(_counted(len(uncovered), "sentence", "that no policy cites"), entries, "yellow", then)
    if report.ambiguous:
        entries = [
            f"{each.policy}: `{each.quote}` is in {len(each.lines)} sentences that differ ({each.places}), and covers"
            f" them all; quote more, or say which: `{each.example}`"
            for each in report.ambiguous
        ]
        yield Section(_counted(len(entries), "quote", "in several sentences"), entries, "yellow", "")
    if report.unsaid:
        entries = [
            f"{tool}: {', '.join((*kinds, 'and whatever else')) if kinds else 'whatever'} its arguments name"
            for tool, kinds in report.unsaid
        ]
        what = "without `changes` {} taken to change"
        title = _counted(len(entries), "write", what.format("is"), what.format("are"))
        yield Section(title, entries, "dim", "")
    if report.unread:
        title = f"every yes in words is left open: {', '.join(f'`{name}`' for name in report.unread)}"
        then = "write `put_as` under the tools in tools.yaml, let a model read (`model: may settle`), or show cards"
        yield Section(title, [then], "dim", "")
    if chosen := [each for each in report.unenforced if each[2] != DRAFTED_BY]:
        entries = [f"{name}: {reason} (accepted by {who})" for name, reason, who in chosen]
        title = _counted(len(chosen), "policy", "is unenforced by choice", "are unenforced by choice")
        yield Section(title, entries, "dim", "")


def _cut(covered: Covered, room: int) -> str:
    return textwrap.shorten(covered.sentence.text, room, placeholder=" ...")


def _alike(faults: Sequence[BylawError]) -> list[str]:
    """Faults that say the same, once, with all their places."""
    alike: dict[tuple[str, str, str], list[BylawError]] = {}
    for fault in faults:
        alike.setdefault((fault.code, fault.message, fault.hint), []).append(fault)
    return [f"{each.code} {each}" for each in map(one_for_all, alike.values())]


def _figures(report: CheckReport) -> Iterable[str]:
    cases, failed = len(report.cases), len(report.failed)
    yield f"cases: {_share(cases - failed, cases)} pass{'es' if cases == 1 else ''}" if cases else "cases: none"
    if report.branches:
        taken = report.branches - len(report.untaken)
        yield f"branches of guards: {_share(taken, report.branches)} taken by a case"
    if report.rules:
        found = counted(len(report.conflicts), "problem") if report.conflicts else "no problems"
        yield f"rules: {report.rules}, {found} between them"
    yield told_sentences(report)
    yield from _by_document(report.sentences)


def _by_document(covered: Sequence[Covered]) -> list[str]:
    """Of several documents what is covered in each, those with most left first; nothing where there is one."""
    states: dict[str, Counter[str]] = {}
    for entry in covered:
        states.setdefault(entry.document, Counter())[entry.state] += 1
    if len(states) < 2:
        return []
    order = sorted(states.items(), key=lambda item: -item[1]["uncovered"])
    shown = [
        f"  {name}: {', '.join(f'{counts[state]} {state}' for state in ('enforced', 'listed', 'uncovered'))}"
        for name, counts in order[:_DOCUMENTS]
    ]
    left = [counts["uncovered"] for _, counts in order[_DOCUMENTS:]]
    return [*shown, f"  and {len(left):,} more documents, {sum(left):,} uncovered"] if left else shown


def told_sentences(report: CheckReport) -> str:
    """How many sentences are enforced, and how the others stand."""
    covered = report.sentences
    if not covered:
        return "sentences: not known, as the pack only names its document; `--document FILE` gives it"
    held_back = {name for name, _ in report.unaccepted}
    waiting = sum(waits(entry, held_back) for entry in covered)
    undecided = len(_undecided(report))
    counts = {state: sum(c.state == state for c in covered) for state in ("enforced", "listed", "uncovered")}
    told = {
        "enforced": counts["enforced"] - waiting,
        "not accepted": waiting or None,
        "not decided": undecided or None,
        "listed": counts["listed"] - undecided,
        "uncovered": counts["uncovered"],
    }
    parts = [f"{count} {state}" for state, count in told.items() if count is not None]
    return f"sentences: {len(covered)}; {', '.join(parts)}"


def waits(entry: Covered, held_back: set[str]) -> bool:
    """Whether calls would be held to a sentence, had anybody accepted one of its checks."""
    return entry.enforced and held_back.issuperset(entry.checked)


def print_sentences(report: CheckReport, console: Console, said: Mapping[str, str]) -> None:
    """Every sentence in full beside its line, and under it what covers it, or why a compile made nothing of it."""
    held_back = {name for name, _ in report.unaccepted}
    heading = None
    several = len({entry.document for entry in report.sentences}) > 1
    for entry in report.sentences:
        above = " > ".join(filter(None, (entry.document if several else "", entry.sentence.heading)))
        if above != heading:
            heading = above
            console.print()
            say(console, heading, style="bold", hang=2)
        state = "not accepted" if waits(entry, held_back) else entry.state
        number = f"{entry.sentence.line:>4}  "
        say(console, entry.sentence.text, number)
        kinds = [f"{policy.id} ({policy.kind})" for policy in entry.policies]
        why = said.get(entry.sentence.text, "")
        uncovered = f"uncovered; as compiled, no policy: {why}" if why else "uncovered"
        style = {"enforced": "green", "uncovered": "red"}.get(state, "yellow")
        say(console, f"{state}: {', '.join(kinds)}" if kinds else uncovered, " " * len(number), style, len(number) + 2)


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" if part != whole or whole == 1 else f"all {whole:,}"


def _counted(count: int, noun: str, what: str, plural: str | None = None) -> str:
    """`1 case fails`, `3 cases fail`, `2 policies ...`."""
    nouns = {"policy": "policies", "branch": "branches"}.get(noun, f"{noun}s")
    words = what if count == 1 or plural is None else plural
    return f"{count:,} {noun if count == 1 else nouns} {words}".rstrip()


@command("check")
def check_command(
    pack: Annotated[str, "PACK", "A pack's folder, or the name of one that comes with Bylaw."],
    *,
    document: DocumentOption = None,
    whole: Annotated[bool, "--all", "Show everything that was found, however long it is."] = False,
    sentences: Annotated[bool, "List every sentence with what covers it."] = False,
    as_json: Annotated[bool, "--json", "Print what was found as JSON, one report per line."] = False,
) -> int:
    """Check a pack: what to do next, whether its cases pass, what covers each sentence."""
    root = find_folder(pack)
    folder = read_folder(root)
    variants = folder.manifest.variants
    if variants and folder.faults:
        raise PackError(folder.faults, place=root.name)
    names = [root / str(variant.name) for variant in variants] if variants else [root]
    console = open_console()
    reports = [check(load_pack(name, document=document)) for name in names]
    for number, report in enumerate(reports):
        if as_json:
            print(json.dumps(report.record(), ensure_ascii=False))
            continue
        if number:
            console.print()
        print_checked(report, console, whole=whole)
        if sentences:
            print_sentences(report, console, left_out_of(root))
    return 0 if all(report.is_sound for report in reports) else 1
