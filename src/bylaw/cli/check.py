"""`bylaw check`: is this pack sound? Loads it, runs its cases, shows what to do next."""

import json
from pathlib import Path

import click

from bylaw.cli.checked import print_checked, print_sentences
from bylaw.cli.console import open_console
from bylaw.cli.word import once
from bylaw.errors import PackError
from bylaw.pack import load_pack
from bylaw.policy.folder import find_folder, read_folder
from bylaw.review.check import check
from bylaw.review.noted import left_out_of


@click.command("check")
@click.argument("pack", metavar="PACK", help="A pack's folder, or the name of one that comes with Bylaw.")
@click.option(
    "--document",
    metavar="FILE",
    type=click.Path(path_type=Path),
    callback=once,
    multiple=True,
    help="The policy document, where the pack only names it.",
)
@click.option("--all", "whole", is_flag=True, help="Show everything that was found, however long it is.")
@click.option("--sentences", is_flag=True, help="List every sentence with what covers it.")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON, one report per line.")
def check_command(pack: str, document: Path | None, whole: bool, sentences: bool, as_json: bool) -> int:
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
