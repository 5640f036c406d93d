"""`bylaw check`: is this pack sound? Loads it, runs its cases, shows what to do next."""

import json
from typing import Annotated

from bylaw.cli.checked import print_checked, print_sentences
from bylaw.cli.command import command
from bylaw.cli.console import open_console
from bylaw.cli.given import DocumentOption
from bylaw.errors import PackError
from bylaw.pack import load_pack
from bylaw.policy.folder import find_folder, read_folder
from bylaw.review.check import check
from bylaw.review.noted import left_out_of


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
