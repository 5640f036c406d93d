"""The command `bylaw rules` lists, draws and learns the rules in a pack."""

import sys
from pathlib import Path
from typing import Annotated

import click
from rich import box
from rich.table import Table
from rich.text import Text

from bylaw.cli.command import Count, File, PackArgument, PackOption, command
from bylaw.cli.console import open_console
from bylaw.cli.group import InOrder
from bylaw.cli.logs import GivenLogs, open_logs
from bylaw.compile.lesson import Lesson, episodes, read_labels, teach
from bylaw.errors import UsageError
from bylaw.pack import Pack, load_pack
from bylaw.rule.formula import atoms
from bylaw.rule.learning import Loss
from bylaw.text.visible import visible


@command("learn")
def learn_command(
    logs: GivenLogs,
    *,
    pack: PackOption,
    labels: Annotated[Path, "--labels FILE", "JSON lines that label calls as safe or unsafe."],
    out: Annotated[File, "Where to write the weights if they help, such as PACK/weights.yaml."] = None,
    loss: Annotated[Loss, "Bylaw's loss, or Eq. 6 of the ShieldAgent paper."] = "hinge",
    false_alarms: Annotated[
        float | None, "--false-alarms SHARE", click.FloatRange(0, 1), "The share of safe calls that may be blocked."
    ] = None,
) -> int:
    """Learn the weights of soft rules from labelled calls.

    The weights must help on held-out conversations; otherwise nothing is written and the exit status is 1.
    """
    loaded = load_pack(pack)
    given = read_labels(labels)
    with open_logs(logs) as opened:
        read = list(opened.readable())
    status = opened.report_faults()
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
                f"Accuracy on the {len(examples)} {words}: {before:.1%} with the pack's weights,"
                f" {after:.1%} with the new weights"
            )
    if found.untouched:
        print(f"Rules that no example breaks: {visible(', '.join(found.untouched))}")
    if lesson.disarmed:
        print(f"Rules that no longer deny on their own: {visible(', '.join(rule.name for rule in lesson.disarmed))}")


@command("risk")
def risk_command(
    logs: GivenLogs,
    *,
    pack: PackOption,
    acts: Annotated[Count, "Number of acts to look ahead."] = 20,
) -> int:
    """Estimate from logs how likely each rule is to be broken."""
    from bylaw.rule.lines import learn_chain, risk

    loaded = load_pack(pack)
    with open_logs(logs) as opened:
        read = list(opened.readable())
    status = opened.report_faults()
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


@click.group("rules", cls=InOrder)
def rules_command() -> None:
    """List, draw and learn the rules of a pack."""


@command("eval", rules_command)
def eval_command() -> int:
    """Evaluate formulas on traces from stdin (JSON lines)."""
    from bylaw.rule.lines import eval_lines

    return eval_lines(sys.stdin.buffer, sys.stdout.buffer)


@command("margin", rules_command)
def margin_command() -> int:
    """Compute margins of actions from stdin (JSON lines)."""
    from bylaw.rule.lines import margin_lines

    return margin_lines(sys.stdin.buffer, sys.stdout.buffer)


@command("list", rules_command)
def list_command(pack: PackArgument) -> None:
    """List rules with their policies and predicates."""
    loaded = load_pack(pack)
    console = open_console()
    for rule in loaded.book.every:
        how = ("knowledge, " if rule.physical else "") + ("hard" if rule.hard else f"weight {rule.weight:g}")
        console.print(Text(rule.name, style="bold") + Text(f"  ({how})"))
        console.print(Text(f"  {rule.text}"))
        if policy := loaded.policies.get(rule.policy):
            cited = next((f"{each}: {each.text or policy.definition}" for each in policy.citations), policy.definition)
            console.print(Text(f"  {cited}", style="italic"))
        for name in atoms(rule.formula):
            predicate = loaded.book.predicates[name]
            console.print(Text(f"    {name}: {predicate.description or predicate.way}", style="dim"))


@command("draw", rules_command)
def draw_command(
    pack: PackArgument,
    name: Annotated[str, "The rule or action to draw."],
    *,
    out: Annotated[File, "Where to write the SVG (default: standard output)."] = None,
) -> None:
    """Draw a rule's automaton or an action's circuit as SVG."""
    picture = draw(load_pack(pack), name)
    if out is None:
        sys.stdout.write(picture)
    else:
        out.write_text(picture, encoding="utf-8")
        print(f"wrote {out}")


def draw(pack: Pack, name: str) -> str:
    rule = next((rule for rule in pack.book.rules if rule.name == name), None)
    if rule is not None:
        from bylaw.rule.drawing import draw_automaton

        return draw_automaton(rule)
    if name in pack.book.actions:
        from bylaw.rule.drawing import draw_circuit
        from bylaw.rule.structure import circuits

        return draw_circuit(circuits(pack.book.every, (name,), eps=pack.book.eps)[name])
    known = ", ".join([*(rule.name for rule in pack.book.rules), *pack.book.actions])
    raise UsageError(f"`{name}` is neither a rule nor an action of `{pack.name}`", hint=f"known: {known}")


@command("clusters", rules_command)
def clusters_command(pack: PackArgument) -> None:
    """Cluster predicates, and count the rules for each action."""
    from bylaw.rule.structure import by_clusters, circuits, cluster, rule_vagueness, vagueness

    book = load_pack(pack).book
    console = open_console()
    states = {name: each.text for name, each in book.predicates.items() if not each.is_action}
    actions = {name: each.text for name, each in book.predicates.items() if each.is_action}
    found = cluster(book.every, states)
    for number, group in enumerate(found.groups, 1):
        console.print(Text(f"group {number}: {', '.join(group)}"))
    table = Table("rule", "vagueness", box=box.SIMPLE, title="Vagueness of the rules (1: the rule adds no information)")
    for name, score in rule_vagueness(book.every, vagueness(states) | vagueness(actions)).items():
        table.add_row(name, f"{score:.2f}")
    console.print(table)
    table = Table(
        "action", "its rules", "by clusters", box=box.SIMPLE, title=f"Rules in circuits, out of {len(book.every)}"
    )
    for name, circuit in circuits(book.every, actions).items():
        table.add_row(name, str(len(circuit.rules)), str(len(by_clusters(name, book.every, found))))
    console.print(table)


rules_command.add_command(learn_command)
rules_command.add_command(risk_command)
