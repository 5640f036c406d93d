"""`bylaw rules learn` and `bylaw rules risk`: what recorded conversations say of a pack's rules."""

from pathlib import Path
from typing import get_args

import click
import yaml
from rich import box
from rich.table import Table

from bylaw.cli.console import open_console
from bylaw.cli.logs import Logs, logs_argument, open_logs
from bylaw.cli.visible import visible
from bylaw.engine.lesson import episodes, labelled, read_labels, soft_rules
from bylaw.engine.pack import Pack, load_pack
from bylaw.errors import UsageError
from bylaw.policy.folder import READY
from bylaw.rule.learning import LabelledAct, Learned, Loss, accuracy, learn, threshold_for, threshold_of
from bylaw.trace import Trajectory

_FILE = click.Path(path_type=Path)
_pack_option = click.option(
    "--pack", metavar="PACK", required=True, help="A pack's folder, or the name of one that comes with Bylaw."
)


@click.command("learn")
@logs_argument
@_pack_option
@click.option("--labels", metavar="FILE", type=_FILE, help="Which calls were safe, as JSON lines; else the guards say.")
@click.option("--out", metavar="FILE", type=_FILE, help="Where to write the weights; else weights.yaml in the pack.")
@click.option("--loss", type=click.Choice(get_args(Loss)), default="hinge", help="Ours, or Eq. 6 of ShieldAgent.")
@click.option("--false-alarms", metavar="SHARE", type=click.FloatRange(0, 1), help="Of the safe calls, stop so many.")
def learn_command(
    logs: tuple[Path, ...], pack: str, labels: Path | None, out: Path | None, loss: Loss, false_alarms: float | None
) -> int:
    """Learn the weights of soft rules from recorded conversations."""
    loaded = load_pack(pack)
    names = [rule.name for rule in soft_rules(loaded)]
    if not names:
        raise UsageError(f"`{loaded.name}` has no rule whose weight matters", hint="rules with `hard: true` have none")
    if out is None and loaded.root.resolve().is_relative_to(READY.resolve()):
        raise UsageError(f"`{loaded.name}` comes with Bylaw and is not written to", hint="give --out FILE")
    given = read_labels(labels) if labels is not None else None
    by_talk: list[list[LabelledAct]] = []
    with open_logs(logs) as opened:
        read, status = _read(opened)
    for trajectory in read:
        mine = labelled(loaded, trajectory, None if given is None else given.pop(trajectory.id, []))
        by_talk += [mine] if mine else []
    if given:
        raise UsageError(f"no conversation `{next(iter(given))}` in these logs", place=str(labels))
    kept_back = [example for mine in by_talk[4::5] for example in mine]
    taught = [example for number, mine in enumerate(by_talk) if number % 5 != 4 for example in mine]
    if not taught:
        raise UsageError("no call in these logs has a label", hint="give --labels FILE, or logs with judged writes")
    found = learn(taught, names, loss=loss)
    if false_alarms is not None:
        limit = threshold_for(taught, list(found.weights.values()), false_alarms)
        found = Learned(weights=found.weights, threshold=limit, untouched=found.untouched)
    source = f"{labels.name}" if labels is not None else "what the guards say"
    _tell(loaded, found, taught, kept_back, source)
    target = out if out is not None else loaded.root / "weights.yaml"
    _write(target, found, {"labels": source, "loss": loss, "examples": len(taught)})
    print(f"Wrote {visible(str(target))}")
    return status


def _read(logs: Logs) -> tuple[list[Trajectory], int]:
    """The conversations that could be read, and the exit status: 3 where some could not."""
    every = list(logs.trajectories())
    for each in every:
        if not isinstance(each, Trajectory):
            click.echo(visible(logs.named(f"bylaw: {each.code} {each}")), err=True)
    found = [each for each in every if isinstance(each, Trajectory)]
    return found, 0 if len(found) == len(every) else 3


def _tell(pack: Pack, found: Learned, taught: list[LabelledAct], kept_back: list[LabelledAct], source: str) -> None:
    console = open_console()
    safe = sum(each.safe for each in taught)
    print(f"Learned from {len(taught)} examples, {safe} of them safe ({visible(source)})")
    table = Table("rule", "speaks", "weight", "learned", box=box.SIMPLE)
    rules = soft_rules(pack)
    for place, rule in enumerate(rules):
        speaks = sum(each.leans[place] != 0 for each in taught)
        table.add_row(rule.name, str(speaks), f"{rule.weight:g}", f"{found.weights[rule.name]:.2f}")
    console.print(table)
    before = ([rule.weight for rule in rules], threshold_of(pack.book.eps))
    after = ([found.weights[rule.name] for rule in rules], found.threshold)
    for words, examples in (("learned from", taught), ("kept back", kept_back)):
        if examples:
            shares = [accuracy(examples, *each) for each in (before, after)]
            print(
                f"Right about the {len(examples)} {words}: {shares[0]:.1%} with the weights of the pack,"
                f" {shares[1]:.1%} with these"
            )
    if found.untouched:
        print(f"No example speaks of: {visible(', '.join(found.untouched))}")


def _write(path: Path, found: Learned, learned: dict[str, str | int]) -> None:
    record = {"weights": found.weights, "eps": round(found.eps, 6), "learned": learned}
    try:
        path.write_text(yaml.safe_dump(record, sort_keys=False, allow_unicode=True), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {error.strerror}") from None


@click.command("risk")
@logs_argument
@_pack_option
@click.option("--acts", metavar="N", type=click.IntRange(min=1), default=20, help="Acts ahead that are shown.")
def risk_command(logs: tuple[Path, ...], pack: str, acts: int) -> int:
    """Say how likely an agent that goes on as in these logs is to break each rule."""
    from bylaw.rule.risk import learn_chain, risk

    loaded = load_pack(pack)
    with open_logs(logs) as opened:
        read, status = _read(opened)
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
