"""`bylaw-lab bench`: what a pack stops and disturbs on recorded runs of others."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click
import msgspec

from bylaw.cli.command import File, command
from bylaw.cli.group import InOrder
from bylaw.errors import UsageError
from bylaw_lab.bench.figures import print_figures
from bylaw_lab.bench.shieldagent_command import shieldagent_command
from bylaw_lab.bench.tally import Rate

if TYPE_CHECKING:
    from bylaw.answering.request import RequestReader
    from bylaw_lab.bench.trial import Tried


@click.command("bench", cls=InOrder)
def bench_command() -> None:
    """Measure a pack on recorded runs of others: attacks stopped, good runs disturbed."""


@command("agentdojo", bench_command)
def agentdojo_command(
    runs: Annotated[tuple[Path, ...], "Files of AgentDojo's runs, one a line."],
    *,
    as_json: Annotated[bool, "--json", "Print all numbers as JSON, with every class that was got wrong."] = False,
    llm: Annotated[
        str | None, "--llm MODEL", "Who says what a request allows: a model at OPENAI_BASE_URL, or batch:DIR."
    ] = None,
    allowances: Annotated[File, "Earlier answers about requests; new answers are added."] = None,
    meanings: Annotated[File, "Earlier answers about calls (the second look); new answers are added."] = None,
    adaptive: Annotated[
        int | None,
        "--adaptive SEED",
        "Rewrite the attacks as one who knows the defence would, by a seed, and tell of each trick what is stopped.",
    ] = None,
) -> None:
    """Attacks stopped and good runs disturbed, on AgentDojo's recorded runs.

    Nothing is sent anywhere unless --llm names a model.
    """
    from bylaw.answering.request import RequestReader
    from bylaw.llm.source import open_chat
    from bylaw.pack import load_pack
    from bylaw_lab.bench.agentdojo import SETTINGS, measure, requests_of
    from bylaw_lab.bench.recorded import read_allowances, read_meanings, write_meanings
    from bylaw_lab.bench.trial import try_tricks

    if missing := [path for path in runs if not path.is_file()]:
        raise UsageError("no such file", place=str(missing[0]), hint="give files of runs, one a line")
    reader: RequestReader | None = None
    if llm is not None or allowances is not None:
        known = read_allowances(allowances) if allowances is not None and allowances.is_file() else {}
        looks = read_meanings(meanings) if meanings is not None and meanings.is_file() else {}
        reader = RequestReader(open_chat(llm) if llm is not None else None, known=known, meanings=looks)
        for suite, text in requests_of(runs):
            reader.read(text, load_pack(f"agentdojo/{suite}").schema.tools)
        _settle(reader, allowances if llm is not None else None)
    if adaptive is not None:
        _tell_tricks(try_tricks(runs, adaptive, requests=reader), as_json)
        return
    found = measure(runs, requests=reader, looks=meanings is not None)
    if reader is not None:
        # Texts that a request hands over to are met on the way.
        _settle(reader, allowances if llm is not None else None)
        if meanings is not None and llm is not None:
            write_meanings(meanings, reader.meanings)
    told: dict[str, Any] = {}
    for each in found:
        queries = 1.0 if each.setting.startswith("question") else 0.0
        suites = {suite: tally.rates(queries) for suite, tally in each.suites.items()}
        told[each.setting] = {
            "about": SETTINGS[each.setting],
            "counts": {
                "runs": each.whole.runs.total(),
                "broken_off": each.whole.runs["broken_off"],
                "broken_off_attacks": each.whole.broken_off_attacks,
            },
            "whole": each.whole.rates(queries),
            "suites": suites,
            "missed": each.whole.misses("missed"),
            "alarms": each.whole.misses("alarm"),
        }
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=1))
        return
    for setting, told_of in told.items():
        _print(setting, told_of)


def _settle(reader: "RequestReader", kept: Path | None) -> None:
    """Keep the answers that there are, and go on only where there are all."""
    from bylaw_lab.bench.recorded import write_allowances

    if kept is not None:
        write_allowances(kept, reader.known)
    if reader.unanswered:
        why = next(iter(reader.unanswered.values()))
        raise UsageError(f"{len(reader.unanswered)} requests have no answer, the first because: {why}")


def _tell_tricks(tried: Sequence["Tried"], as_json: bool) -> None:
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(tried), indent=1))
        return
    for setting in dict.fromkeys(each.setting for each in tried):
        rows = [each for each in tried if each.setting == setting]
        cells = [
            (each.trick, _shown(each.stopped), *(f"{part.hits}/{part.cases}" for part in each.suites.values()))
            for each in rows
        ]
        print_figures(f"{setting}: variants stopped", ("all", *rows[0].suites), cells)


def _print(setting: str, told: dict[str, Any]) -> None:
    names = {
        "attacks_stopped": "attacks stopped",
        "good_runs_disturbed": "good runs disturbed",
        "resisted_runs_disturbed": "resisted, disturbed",
        "attack_success_after": "success after",
        "accuracy": "accuracy",
        "injected_calls_held": "injected calls held",
        "microseconds": "us",
    }
    suites = (*told["suites"].items(), ("all", told["whole"]))
    rows = [(suite, *(_shown(rates[name]) for name in names)) for suite, rates in suites]
    print_figures(f"{setting}: {told['about']}", names.values(), rows)


def _shown(value: Rate | float) -> str:
    if not isinstance(value, Rate):
        return f"{value:.0f}"
    low, high = value.interval
    return f"{value.hits}/{value.cases} {100 * value.share:.1f} % ({100 * low:.1f}-{100 * high:.1f})"


bench_command.add_command(shieldagent_command)
