"""`bylaw rules learn` and `bylaw rules risk`: what recorded conversations say of a pack's rules."""

from pathlib import Path
from typing import Annotated

import click
from rich import box
from rich.table import Table

from bylaw.cli.command import command
from bylaw.cli.console import open_console
from bylaw.cli.given import Count, File, PackOption
from bylaw.cli.logs import GivenLogs, open_logs
from bylaw.compile.lesson import Lesson, episodes, read_labels, teach
from bylaw.errors import BylawError
from bylaw.pack import load_pack
from bylaw.rule.learning import Loss
from bylaw.text.visible import visible


@command("learn")
def learn_command(
    logs: GivenLogs,
    *,
    pack: PackOption,
    labels: Annotated[Path, "--labels FILE", "Which calls a person found safe, as JSON lines."],
    out: Annotated[File, "Where to write the weights if they help; a pack uses its weights.yaml."] = None,
    loss: Annotated[Loss, "Bylaw's own, or Eq. 6 of the ShieldAgent paper."] = "hinge",
    false_alarms: Annotated[
        float | None, "--false-alarms SHARE", click.FloatRange(0, 1), "The share of safe calls that may be stopped."
    ] = None,
) -> int:
    """Learn the weights of soft rules from labelled calls.

    Held-back conversations must show that the weights help; otherwise nothing is written and the status is 1.
    """
    loaded = load_pack(pack)
    given = read_labels(labels)
    faults: list[BylawError] = []
    with open_logs(logs) as opened:
        read = list(opened.readable(faults))
    status = opened.tell(faults)
    lesson = teach(loaded, read, given, loss=loss, false_alarms=false_alarms)
    _print(lesson, labels.name)
    if lesson.fault:
        print(f"Not written: {lesson.fault}")
        return 1
    if out is not None:
        out.write_text(lesson.file(labels.name, loss), encoding="utf-8")
        print(f"Wrote {visible(str(out))}")
    return status


def _print(lesson: Lesson, source: str) -> None:
    console = open_console()
    taught, found = lesson.taught, lesson.learned
    safe = sum(each.safe for each in taught)
    print(f"Learned from {len(taught)} examples, {safe} of them safe ({visible(source)})")
    table = Table("rule", "speaks", "weight", "learned", box=box.SIMPLE)
    for place, rule in enumerate(lesson.rules):
        speaks = sum(each.leans[place] != 0 for each in taught)
        table.add_row(rule.name, str(speaks), f"{rule.weight:g}", f"{found.weights[rule.name]:.2f}")
    console.print(table)
    for words, examples in (("learned from", taught), ("held back", lesson.kept_back)):
        if examples:
            before, after = lesson.accuracies(examples)
            print(
                f"Accuracy on the {len(examples)} {words}: {before:.1%} with the pack's weights, {after:.1%} with these"
            )
    if found.untouched:
        print(f"No example breaks: {visible(', '.join(found.untouched))}")
    if lesson.disarmed:
        print(f"No longer denies on its own: {visible(', '.join(rule.name for rule in lesson.disarmed))}")


@command("risk")
def risk_command(
    logs: GivenLogs,
    *,
    pack: PackOption,
    acts: Annotated[Count, "How many acts to look ahead."] = 20,
) -> int:
    """Say how likely each rule is to be broken, going by these logs."""
    from bylaw.rule.risk import learn_chain, risk

    loaded = load_pack(pack)
    faults: list[BylawError] = []
    with open_logs(logs) as opened:
        read = list(opened.readable(faults))
    status = opened.tell(faults)
    table = Table("rule", "episodes", "left out", f"in {acts} acts", "ever", "unmet", box=box.SIMPLE)
    for each in episodes(loaded, read):
        row = [each.rule.name, str(len(each.seen)), str(each.left_out)]
        if not any(each.seen):
            table.add_row(*row, "-", "-", "-")
            continue
        found = risk(each.rule, learn_chain(each.rule, each.seen), steps=acts)
        table.add_row(*row, *(f"{share:.1%}" for share in (found.within[-1], found.ever, found.unmet)))
    open_console().print(table)
    return status
