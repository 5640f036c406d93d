"""The command `bylaw check` loads a pack, runs its cases and shows what to do next."""

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from rich.console import Console
from rich.text import Text

from bylaw.cli.command import DocumentOption, PackArgument, command
from bylaw.cli.console import SCREEN, Entry, Section, counted, open_console, print_sections, say
from bylaw.errors import BylawError, PackError
from bylaw.pack import load_pack
from bylaw.pack.pack import one_for_all
from bylaw.pack.review import told_unaccepted
from bylaw.policy.folder import find_folder, read_folder
from bylaw.policy.statement import DRAFTED_BY
from bylaw.review.check import CheckReport, Covered, check, left_out_of
from bylaw.text.visible import visible_json

_DOCUMENTS = 5
"""The maximum number of documents to list individually."""


def print_checked(report: CheckReport, console: Console, *, whole: bool) -> None:
    """Print the next step and the first results of each kind. If `whole` is set, print all results."""
    sections = [*_to_mend(report), *_to_look_at(report)]
    state, style = ("sound", "green") if report.is_sound else ("not sound", "red")
    console.print(Text(f"{report.pack} {report.version}  {report.digest[:12]}  ", style="bold") + Text(state, style))
    say(console, f"next: {_next(report, sections)}", hang=2)
    figures = list(_figures(report))
    # Each section takes three additional lines: a blank line, a title, and the number of omitted entries.
    room = None if whole else SCREEN - len(figures) - 5 - 3 * len(sections)
    is_cut = print_sections(console, sections, room=room)
    if sections:
        console.print()
    for line in figures:
        say(console, line, hang=2)
    if is_cut:
        say(console, "--all shows everything.", style="dim")


def _next(report: CheckReport, sections: Sequence[Section]) -> str:
    first = next((section for section in sections if section.next), None)
    drafted, undecided = _drafted(report), _undecided(report)
    if (first is None or report.is_sound) and undecided:
        start = f"start with line {undecided[0].sentence.line} of the document"
        if len(undecided) == len(report.sentences):
            return (
                "this is a draft from `bylaw init`, and nothing is enforced yet. Write a guard for each sentence that a"
                f" call can break, and accept the other sentences by name; {start}"
            )
        return (
            f"{len(undecided)} of {len(report.sentences)} sentences are still drafts from `bylaw init`: write a guard"
            f" for each that a call can break, and accept the other sentences by name; {start}"
        )
    if first is not None:
        return first.next
    if drafted:
        return f"nothing is enforced yet: write a guard for {', '.join(drafted)}, or accept each of them by name"
    return "no action needed" if report.sentences else "no action needed; --document adds coverage by sentence"


def _drafted(report: CheckReport) -> list[str]:
    return [name for name, _, who in report.unenforced if who == DRAFTED_BY]


def _undecided(report: CheckReport) -> list[Covered]:
    drafted = set(_drafted(report))
    return [
        each for each in report.sentences if each.policies and all(policy.id in drafted for policy in each.policies)
    ]


def _to_mend(report: CheckReport) -> Iterator[Section]:
    """Yield the errors that make a pack unsound, most urgent first."""
    if faults := report.faults:
        title = _counted(len(faults), "case", "cannot be run")
        yield _section(title, _alike(faults), "red", f"correct {faults[0].place}")
    if stale := report.stale:
        what = "cites a sentence that is not", "cite sentences that are not"
        title = f"{_counted(len(stale), 'policy', *what)} in the document"
        then = f"read the document, and correct `{stale[0]}` or its quote"
        yield _section(title, [str(each) for each in report.lost] or [", ".join(stale)], "red", then)
    if failed := report.failed:
        entries = [
            f"{': '.join(filter(None, (case.place, case.policy, case.note)))}\nwant {case.want}, got {case.got}"
            for case in failed
        ]
        then = f"correct {failed[0].place}, or its guard"
        yield _section(_counted(len(entries), "case", "fails", "fail"), entries, "red", then)
    # A case may be unable to run because its guard is missing.
    if report.untested and not report.faults:
        lack = "a permitted or a denied case"
        title = _counted(len(report.untested), "guard", f"lacks {lack}", f"lack {lack}")
        then = f"in cases/, write a case that `{report.untested[0]}` permits and one that it denies"
        yield _section(title, [", ".join(report.untested)], "red", then)
    if report.conflicts:
        entries = [f"{found.kind}: {found.message}" for found in report.conflicts]
        yield _section(
            _counted(len(entries), "problem", "between rules"), entries, "red", "change one of the conflicting rules"
        )


def _to_look_at(report: CheckReport) -> Iterator[Section]:
    """Yield warnings. A pack with warnings can be sound."""
    if count := len(report.unaccepted):
        are = "is" if count == 1 else "are"
        title = f"{_counted(count, 'policy', 'waits', 'wait')} for review and {are} not enforced"
        then = "run `bylaw review` to accept or reject each check"
        yield _section(title, [told_unaccepted(dict(report.unaccepted))], "yellow", then)
    if disarmed := report.disarmed:
        title = _counted(
            len(disarmed), "rule", "no longer denies a call on its own", "no longer deny a call on their own"
        )
        then = f"give `{disarmed[0][0]}` a higher weight, or `hard: true`, unless other rules are meant to outvote it"
        yield _section(title, [f"{name}: weight {weight:g}" for name, weight in disarmed], "yellow", then)
    missed: dict[str, list[str]] = {}
    for branch in report.untaken if not report.faults else ():
        # Guards without cases have already been reported above.
        if branch.policy not in report.untested:
            missed.setdefault(branch.policy, []).append(f"line {branch.line} {branch.kind}")
    if missed:
        entries = [f"{name}: {', '.join(places)}" for name, places in missed.items()]
        title = _counted(sum(map(len, missed.values())), "branch", "without a case")
        then = f"add a case for `{next(iter(missed))}` that takes {next(iter(missed.values()))[0]}"
        yield _section(title, entries, "yellow", then)
    if uncovered := [each for each in report.sentences if each.state == "uncovered"]:
        first, several = uncovered[0], len({each.document for each in report.sentences}) > 1
        document = first.document if several else "the document"
        then = f"write a guard, a rule or a `knowledge` policy for line {first.sentence.line} of {document}"
        entries = [
            f"{each.document}:{each.sentence.line}  {_cut(each, 60)}"
            if several
            else f"{each.sentence.line:>4}  {_cut(each, 68)}"
            for each in uncovered
        ]
        yield _section(_counted(len(uncovered), "sentence", "without a policy"), entries, "yellow", then)
    if report.ambiguous:
        entries = [
            f"{each.policy}: `{each.quote}` covers {len(each.lines)} different sentences ({each.places}); quote more"
            f" text, or name one sentence: `{each.example}`"
            for each in report.ambiguous
        ]
        yield _section(_counted(len(entries), "quote", "in several sentences"), entries, "yellow", "")
    if report.unmatched:
        entries = [f"{tool}: `{phrase}`: {why}" for tool, phrase, why in report.unmatched]
        title = _counted(len(entries), "consent sentence", "can never match a call", "can never match a call")
        then = f"in tools.yaml, correct `put_as` of `{report.unmatched[0][0]}`"
        yield _section(title, entries, "yellow", then)
    if undecided := report.undecided:
        entries = [": ".join(filter(None, (case.place, case.policy, case.note))) for case in undecided]
        passes = "passes", "pass"
        title = f"{_counted(len(entries), 'case', *passes)} only because consent is undecided"
        then = f"in {undecided[0].place}, ask in the words of `put_as` and answer yes, or write `want: open`"
        yield _section(title, entries, "yellow", then)
    if report.unsaid:
        entries = [
            f"{tool}: {', '.join((*kinds, 'and every other')) if kinds else 'every'} record that its arguments name"
            for tool, kinds in report.unsaid
        ]
        title = f"{_counted(len(entries), 'write', '')} without `changes`, assumed to change"
        yield _section(title, entries, "dim", "")
    if report.shown:
        entries = [f"{tool}: {'; '.join(lines)}" for tool, lines in report.shown]
        yield _section(f"{_counted(len(entries), 'write', '')} confirmed with facts from look-ups", entries, "dim", "")
    if report.preparing:
        title = _counted(len(report.preparing), "write", "only prepares other calls", "only prepare other calls")
        then = f"a model may allow these calls without a request: {', '.join(report.preparing)}"
        yield _section(title, [then], "dim", "")
    if report.unread:
        title = f"spoken consent stays undecided: {', '.join(f'`{name}`' for name in report.unread)}"
        then = "add `put_as` to the tools in tools.yaml, let a model decide (`model: may settle`), or use cards"
        yield _section(title, [then], "dim", "")
    if chosen := [each for each in report.unenforced if each[2] != DRAFTED_BY]:
        entries = [f"{name}: {reason} (accepted by {who})" for name, reason, who in chosen]
        title = _counted(len(chosen), "policy", "accepted as unenforced")
        yield _section(title, entries, "dim", "")


def _section(title: str, entries: Sequence[str], style: str, then: str) -> Section:
    return Section(title, [Entry(each) for each in entries], style, next=then)


def _cut(covered: Covered, room: int) -> str:
    return textwrap.shorten(covered.sentence.text, room, placeholder=" ...")


def _alike(faults: Sequence[BylawError]) -> list[str]:
    alike: dict[tuple[str, str, str], list[BylawError]] = {}
    for fault in faults:
        alike.setdefault((fault.code, fault.message, fault.hint), []).append(fault)
    return [f"{each.code} {each}" for each in map(one_for_all, alike.values())]


def _figures(report: CheckReport) -> Iterable[str]:
    cases, failed = len(report.cases), len(report.failed)
    yield f"cases: {_share(cases - failed, cases)} pass{'es' if cases == 1 else ''}" if cases else "cases: none"
    if report.branches:
        taken = report.branches - len(report.untaken)
        yield f"guard branches: {_share(taken, report.branches)} taken by a case"
    if report.rules:
        found = counted(len(report.conflicts), "problem") if report.conflicts else "no problems"
        yield f"rules: {report.rules}, {found}"
    yield told_sentences(report)
    yield from _by_document(report)


_STATES = ("enforced", "not accepted", "listed", "uncovered")


def _by_document(report: CheckReport) -> list[str]:
    states: dict[str, Counter[str]] = {}
    held_back = {name for name, _ in report.unaccepted}
    for entry in report.sentences:
        state = "not accepted" if waits(entry, held_back) else entry.state
        states.setdefault(entry.document, Counter())[state] += 1
    if len(states) < 2:
        return []
    order = sorted(states.items(), key=lambda item: -item[1]["uncovered"])
    shown = [
        f"  {name}: {', '.join(f'{counts[each]} {each}' for each in _STATES if counts[each] or each != 'not accepted')}"
        for name, counts in order[:_DOCUMENTS]
    ]
    left = [counts["uncovered"] for _, counts in order[_DOCUMENTS:]]
    return [*shown, f"  and {len(left):,} more documents, {sum(left):,} uncovered"] if left else shown


def told_sentences(report: CheckReport) -> str:
    covered = report.sentences
    if not covered:
        return "sentences: unknown, because the pack does not contain its document; add --document FILE"
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
    """Whether a sentence has checks, but no accepted check."""
    return entry.enforced and held_back.issuperset(entry.checked)


def print_sentences(report: CheckReport, console: Console, said: Mapping[str, str]) -> None:
    """Print every sentence with its policies. If `bylaw compile` made no policy for a sentence, print the reason."""
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
        uncovered = f"uncovered: `bylaw compile` wrote no policy ({why})" if why else "uncovered"
        style = {"enforced": "green", "uncovered": "red"}.get(state, "yellow")
        say(console, f"{state}: {', '.join(kinds)}" if kinds else uncovered, " " * len(number), style, len(number) + 2)


def _share(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,}" if part != whole or whole == 1 else f"all {whole:,}"


def _counted(count: int, noun: str, what: str, plural: str | None = None) -> str:
    nouns = {"policy": "policies", "branch": "branches"}.get(noun, f"{noun}s")
    words = what if count == 1 or plural is None else plural
    return f"{count:,} {noun if count == 1 else nouns} {words}".rstrip()


@command("check")
def check_command(
    pack: PackArgument,
    *,
    document: DocumentOption = None,
    whole: Annotated[bool, "--all", "Show every result."] = False,
    sentences: Annotated[bool, "List every sentence with its policies."] = False,
    as_json: Annotated[bool, "--json", "Print JSON, one report per line."] = False,
) -> int:
    """Check a pack: show the next step, run the cases, and measure coverage."""
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
            print(visible_json(report.record()))
            continue
        if number:
            console.print()
        print_checked(report, console, whole=whole)
        if sentences:
            print_sentences(report, console, left_out_of(root))
    return 0 if all(report.is_sound for report in reports) else 1
