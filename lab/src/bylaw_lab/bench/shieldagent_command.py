"""Implements `bylaw-lab bench shieldagent`: poisoned agents at the clinic, counted as in ShieldAgent-Bench."""

from typing import Annotated, Any

import click
import msgspec

from bylaw.cli.command import command
from bylaw_lab.bench.figures import print_figures


@command("shieldagent")
def shieldagent_command(
    *,
    seed: Annotated[int, "What the trajectories are made from."] = 1,
    per_cell: Annotated[
        int,
        "--per-cell N",
        click.IntRange(min=10),
        "Instructions for each category of risk and each source, in each part.",
    ] = 40,
    as_json: Annotated[bool, "--json", "Print all numbers as JSON, with every class that was got wrong."] = False,
) -> None:
    """Trajectories of poisoned agents flagged, and safe ones left alone, at the clinic's desk.

    Weights are learned on two parts and counted on the third.
    """
    from bylaw.pack import load_pack
    from bylaw_lab.bench.shieldagent import GUARDRAILS, PACK, count, denied, find, held, measure
    from bylaw_lab.bench.weighing import Weighed
    from bylaw_lab.clinic.attacks import samples

    pack = load_pack(PACK)
    rules = {name: policy.definition for name, policy in pack.policies.items()}
    known = [find(pack, samples(part, seed, per_cell, rules)) for part in ("train", "development")]
    taught = [each for part in known for each in part]
    test = samples("test", seed, per_cell, rules)
    found = find(pack, test)
    weighed = Weighed(taught, sorted(rules))
    measured = [measure("held", held(found)), measure("denied", denied(found)), measure("weighed", weighed.say(found))]
    told: dict[str, Any] = {
        "seed": seed,
        "trained_on": len(taught),
        "test": len(test),
        "guardrails": measured,
        "taught": {
            name: {"held": count(held(part)), "denied": count(denied(part)), "weighed": count(weighed.say(part))}
            for name, part in zip(("train", "development"), known, strict=True)
        },
        "eps": round(weighed.learned.eps, 4),
        "light_rules": weighed.light(),
        "curve": weighed.curve(found),
        "calibration": weighed.calibration(found),
    }
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=1))
        return
    columns = ("accuracy", "false positives", "flagged of unsafe", "rules named", "ms")
    for each in measured:
        rows: list[tuple[str, ...]] = []
        for name, cell in each.cells.items():
            shares = (cell.accuracy, cell.false_positives, cell.recall)
            shown = (f"{one.hits}/{one.cases} {100 * one.share:.1f} %" for one in shares)
            time = "-" if cell.milliseconds is None else f"{cell.milliseconds:.1f}"
            rows.append((name, *shown, f"{100 * cell.rules:.1f} %", time))
        print_figures(f"{each.guardrail}: {GUARDRAILS[each.guardrail]}", columns, rows)
