"""`bylaw rules`: list, draw and simulate a pack's rules; evaluate formulas and margins line by line."""

import random
import sys
from pathlib import Path

import click
from rich.text import Text

from bylaw.cli.console import open_console
from bylaw.engine.act import Act
from bylaw.engine.pack import Pack, load_pack
from bylaw.errors import UsageError
from bylaw.rule.formula import atoms

_pack_argument = click.argument("pack", help="A pack's folder, or the name of one that comes with Bylaw.")


class _InOrder(click.Group):
    """Lists its commands as they stand in this file."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group("rules", cls=_InOrder)
def rules_command() -> None:
    """Rules that bind whole conversations."""


@rules_command.command("eval")
def eval_command() -> int:
    """Evaluate formulas on traces, as JSON lines on stdin."""
    from bylaw.rule.lines import eval_lines

    return eval_lines(sys.stdin.buffer, sys.stdout.buffer)


@rules_command.command("margin")
def margin_command() -> int:
    """Weigh actions under rules, as JSON lines on stdin."""
    from bylaw.rule.margin import margin_lines

    return margin_lines(sys.stdin.buffer, sys.stdout.buffer)


@rules_command.command("list")
@_pack_argument
def list_command(pack: str) -> None:
    """List the rules of a pack with their policies and predicates."""
    loaded = load_pack(pack)
    console = open_console()
    for rule in loaded.book.rules:
        how = "hard" if rule.hard else f"weight {rule.weight:g}"
        console.print(Text(rule.name, style="bold") + Text(f"  ({how})"))
        console.print(Text(f"  {rule.text}"))
        policy = loaded.policies[rule.policy]
        cited = f"{policy.citations[0]}: {policy.citations[0].text or policy.definition}" if policy.citations else ""
        console.print(Text(f"  {cited or policy.definition}", style="italic"))
        for name in atoms(rule.formula):
            predicate = loaded.book.predicates[name]
            console.print(Text(f"    {name}: {predicate.description or predicate.way}", style="dim"))


@rules_command.command("draw")
@_pack_argument
@click.argument("name", help="A rule (its automaton), or an action (its circuit).")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Where to write the SVG; else on stdout.")
def draw_command(pack: str, name: str, out: Path | None) -> None:
    """Draw a rule's automaton or an action's circuit as SVG."""
    picture = _draw(load_pack(pack), name)
    if out is None:
        sys.stdout.write(picture)
    else:
        try:
            out.write_text(picture, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write `{out}`: {error.strerror}") from None
        print(f"wrote {out}")


def _draw(pack: Pack, name: str) -> str:
    rule = next((rule for rule in pack.book.rules if rule.name == name), None)
    if rule is not None:
        from bylaw.rule.drawing import draw_automaton

        return draw_automaton(rule)
    if name in pack.book.actions:
        from bylaw.rule.circuit import Circuit, weighted
        from bylaw.rule.circuit_drawing import draw_circuit

        bearing = tuple(weighted(rule) for rule in pack.book.rules if name in atoms(rule.formula))
        return draw_circuit(Circuit(action=name, rules=bearing, eps=pack.book.eps))
    known = ", ".join([*(rule.name for rule in pack.book.rules), *pack.book.actions])
    raise UsageError(f"`{name}` is neither a rule nor an action of `{pack.name}`", hint=f"known: {known}")


@rules_command.command("simulate")
@_pack_argument
@click.option("--steps", metavar="N", type=click.IntRange(min=1), default=8, help="Acts of the random episode.")
@click.option("--seed", metavar="N", type=int, default=1, help="Another seed gives another episode.")
def simulate_command(pack: str, steps: int, seed: int) -> None:
    """Walk the rules of a pack through a random episode."""
    from bylaw.rule.monitor import Monitor

    loaded = load_pack(pack)
    source = random.Random(seed)
    monitors = [Monitor(rule) for rule in loaded.book.rules]
    for number in range(steps):
        values = _random_act(loaded, number, source)
        true = ", ".join(name for name, value in values.items() if value) or "nothing"
        print(f"act {number}: {true}")
        for monitor in monitors:
            report = monitor.step(values)
            if report.broke:
                print(f"  breaks {monitor.rule.name}: {monitor.rule.text}")
    for monitor in monitors:
        if monitor.finish().broke:
            print(f"end: {monitor.rule.name} was still waiting")


def _random_act(pack: Pack, step: int, source: random.Random) -> dict[str, bool]:
    """The predicates of a random act: what its tool and its turn settle follows from them, the rest is drawn."""
    tool = source.choice([None, *pack.schema.tools])
    effect = pack.schema.tools[tool].effect if tool else ""
    calls = source.choice((1, 1, 1, 2)) if tool else source.choice((0, 0, 0, 1))
    writes = calls if effect == "write" else 0
    act = Act(step, tool, {}, "", (), (), calls, writes, tool is None or source.random() < 0.3, effect)
    values: dict[str, bool] = {}
    for name, predicate in pack.book.predicates.items():
        drawn = source.random() < 0.4
        if predicate.way == "pattern":
            drawn = drawn and tool is None
        if predicate.find is not None and predicate.way in ("tool", "effect", "message", "turn"):
            drawn = bool(predicate.find(act))
        values[name] = drawn
    return values
