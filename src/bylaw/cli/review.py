"""The command `bylaw review` shows the checks in a pack and accepts or rejects them."""

import getpass
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, cast

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from bylaw.cli.command import File, Name, command
from bylaw.cli.console import counted, open_console
from bylaw.console.pack_state import case_names, cases_of
from bylaw.console.records import accept_unenforced, refuse_installed, sign
from bylaw.errors import MissingExtra, UsageError
from bylaw.pack import Pack
from bylaw.pack.review import (
    Sides,
    Standing,
    Word,
    is_compiled,
    read_signatures,
    sides_of,
    standings,
    told_unaccepted,
    unaccepted,
)
from bylaw.policy.document import is_named
from bylaw.policy.folder import find_folder, own_record, read_folder
from bylaw.review.case import CaseResult, run_cases
from bylaw.review.check import NOBODY, WEIGHTS, Noted, loaded, most_pressing_first, noted_of, signed_lines

_STYLES: dict[str, str] = {
    "accepted": "green",
    "rejected": "red",
    "lapsed": "yellow",
    "unsigned": "yellow",
    "unreviewed": "dim",
}
_SHOWN = 3
"""The default number of cases to show for each outcome."""


@command("review")
def review_command(
    pack: Annotated[str, "PACK", "The folder of a pack."],
    policies: Annotated[tuple[str, ...], "[POLICY]...", "Show only these policies."] = (),
    *,
    document: Annotated[Name, "Show only policies that cite this file of the document."] = "",
    accept: Annotated[tuple[str, ...], "--accept POLICY", "Accept the current check of a policy."] = (),
    reject: Annotated[tuple[str, ...], "--reject POLICY", "Reject the check of a policy."] = (),
    unenforced: Annotated[
        tuple[str, ...],
        "--unenforced POLICY",
        "Accept that a policy is not enforced; `all` means every policy without a check.",
    ] = (),
    by: Annotated[Name, "Your name, for the record."] = "",
    note: Annotated[str, "--note TEXT", "The reason."] = "",
    ask: Annotated[bool, "Ask about each unsigned policy in turn."] = False,
    page: Annotated[File, "Also write the review as an HTML page. Requires the `serve` extra."] = None,
    all_cases: Annotated[bool, "--cases", "Show every case."] = False,
) -> int:
    """Review the checks of a pack, and accept or reject them."""
    root = find_folder(pack)
    if (accept or reject or unenforced or ask) and not by:
        raise UsageError("a review requires your name", hint=f"add --by {_user()}")
    if both := sorted({*accept, *unenforced} & set(reject)):
        raise UsageError(f"`{both[0]}` is both accepted and rejected", hint="choose one")
    if accept or reject or unenforced or ask:
        refuse_installed(root)
    lacking = _lacking(loaded(read_folder(root))) if "all" in unenforced else unenforced
    for name in lacking:
        accept_unenforced(root, name, by, note)
    folder = read_folder(root)
    sides = sides_of(folder)
    for name in (*policies, *accept, *reject):
        if name not in sides:
            raise UsageError(f"`{name}` is not a policy of the pack", hint="`bylaw review PACK` lists them")
    words: dict[str, Word] = {
        **dict.fromkeys((*accept, *(lacking if is_compiled(root) else ())), "accepted"),
        **dict.fromkeys(reject, "rejected"),
    }
    sign(root, sides, words, by, note)
    shown = loaded(folder)
    console = open_console()
    for name, count in _failing(shown, accept).items():
        warning = f"{name} is accepted, but {counted(count, 'case')} failed: run `bylaw check`"
        console.print(Text(warning, style="red"))
    if ask:
        _go_through(root, shown, sides, console, by)
        return 0
    standing = standings(root)
    is_decision = bool(words or unenforced)
    if not is_decision and page is None:
        noted = noted_of(root)
        for name in policies or most_pressing_first(shown, _citing(shown, sides, document), noted):
            _show(shown, name, standing[name], noted.get(name, Noted()), console, everything=all_cases)
    if page is not None:
        try:
            from bylaw.console.review_page import review_page
        except ImportError as error:
            raise MissingExtra("a review page requires jinja2", "serve") from error
        checks = {name: signed_lines(shown, policy) for name, policy in shown.policies.items()}
        text = review_page(shown, standing, noted_of(root), read_signatures(root), checks, _weighed(shown))
        page.write_text(text, encoding="utf-8")
        console.print(f"Wrote {page}", markup=False)
    counts = {state: list(standing.values()).count(cast(Standing, state)) for state in _STYLES}
    console.print(", ".join(f"{count} {state}" for state, count in counts.items() if count), markup=False)
    if counts["unreviewed"] == len(standing):
        console.print("this pack has not been reviewed; a shield enforces it anyway, because it is handwritten")
    elif counts["unreviewed"]:
        console.print("a shield also enforces unreviewed policies of this pack, because it is handwritten")
    if weights := _weighed(shown):
        console.print(weights, markup=False)
    if missing := told_unaccepted(unaccepted(root)):
        console.print(Text(missing, style="red"))
    return 0 if is_decision or counts["accepted"] + counts["unreviewed"] == len(standing) else 1


def _failing(pack: Pack, names: Sequence[str]) -> Counter[str]:
    results = run_cases(pack, {}) if names else ()
    return Counter(
        each.policy for each in results if isinstance(each, CaseResult) and not each.passed and each.policy in names
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "NAME"


def _go_through(root: Path, pack: Pack, sides: dict[str, Sides], console: Console, by: str) -> None:
    noted, standing = noted_of(root), standings(root)
    waiting = [name for name, state in standing.items() if state not in ("accepted", "rejected")]
    for name in most_pressing_first(pack, waiting, noted):
        _show(pack, name, standing[name], noted.get(name, Noted()), console, everything=False)
        is_lacking = name in _lacking(pack)
        what = "accept that it is not enforced" if is_lacking else "accept"
        said = click.prompt(f"{what}, reject, skip or quit", type=click.Choice(["a", "r", "s", "q"]), default="s")
        if said == "q":
            break
        if said == "a" and is_lacking:
            accept_unenforced(root, name, by, "")
            sides = sides_of(read_folder(root))
        if said in "ar":
            sign(root, sides, {name: "accepted" if said == "a" else "rejected"}, by, "")


def _lacking(pack: Pack) -> list[str]:
    return [
        name
        for name, policy in pack.policies.items()
        if policy.unenforced is not None and policy.unenforced.accepted_by == NOBODY
    ]


def _citing(pack: Pack, names: Iterable[str], document: str) -> list[str]:
    """Return the policies that cite `document`, in document order.

    If `document` is empty, return the policies that cite any document.
    """
    files = pack.document.files if pack.document is not None else ()
    order = {file.name: number for number, file in enumerate(files)}
    if document and not any(is_named(file, document) for file in order):
        hint = f"known: {', '.join(list(order)[: _SHOWN * 3])}" if order else "the pack has no document"
        raise UsageError(f"the pack has no document `{document}`", hint=hint)
    stands = {
        name: [stand.document for each in pack.policies[name].citations for stand in (each, *each.again)]
        for name in names
    }
    chosen = [name for name, found in stands.items() if not document or any(is_named(each, document) for each in found)]
    return sorted(chosen, key=lambda name: min((order.get(each, 0) for each in stands[name]), default=0))


def _show(pack: Pack, name: str, state: Standing, noted: Noted, console: Console, *, everything: bool) -> None:
    policy = pack.policies[name]
    console.print(Text.assemble((name, "bold"), f"  {policy.kind}  ", (state, _STYLES[state])))
    for citation in policy.citations:
        console.print(Padding(Text(f"{citation}: {citation.text}"), (0, 2)))
    if policy.definition:
        console.print(Padding(Text(policy.definition, style="italic"), (0, 2)))
    if policy.unenforced is not None:
        who = policy.unenforced.accepted_by
        console.print(Padding(Text(f"unenforced ({who}): {policy.unenforced.reason}", style="yellow"), (0, 2)))
    for line in signed_lines(pack, policy):
        console.print(Padding(Text(line), (0, 4)))
    for line in _cases(pack, name, everything):
        console.print(Padding(Text(line), (0, 2)))
    for verdict, body in noted.in_logs.items():
        console.print(Padding(Text(f"in the logs: {verdict} {body.calls} times, such as"), (0, 2)))
        for each in body.first:
            console.print(Padding(Text(f"{each.conversation} step {each.step}: {each.why}"), (0, 4)))
    for question in noted.questions:
        console.print(Padding(Text(f"? {question.about}: {question.text}", style="yellow"), (0, 2)))
        if question.input is not None:
            console.print(Padding(Text(json.dumps(question.input, ensure_ascii=False)), (0, 4)))
    console.print()


def _weighed(pack: Pack) -> str:
    from bylaw.compile.lesson import describe_weights

    learned = own_record(pack.root, WEIGHTS).get("learned") if (pack.root / WEIGHTS).is_file() else None
    return describe_weights(learned) if learned else ""


def _cases(pack: Pack, name: str, everything: bool) -> list[str]:
    found: dict[str, list[str]] = {}
    for case in cases_of(pack, case_names(pack, name)):
        found.setdefault(case.wanted, []).append(str(case.note))
    lines: list[str] = []
    for want, notes in found.items():
        kept = notes if everything else notes[:_SHOWN]
        more = f"; and {len(notes) - len(kept)} more" if len(notes) > len(kept) else ""
        lines.append(f"{want}: {'; '.join(kept)}{more}")
    return lines
