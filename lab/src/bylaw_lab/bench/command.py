"""Implements `bylaw-lab bench`: what a pack stops and disturbs on recorded runs."""

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
    runs: Annotated[tuple[Path, ...], "Files of AgentDojo's runs, or of a benchmark built on it, one a line."],
    *,
    tools: Annotated[
        Path | None,
        "The tool catalogue, or a folder with SUITE.json for each suite; without it, Bylaw's own packs.",
    ] = None,
    pack_out: Annotated[
        Path | None, "--pack-out DIR", "The pack drafted from --tools, to review; one that is there is used as it is."
    ] = None,
    as_json: Annotated[bool, "--json", "Print all numbers as JSON, with every class that was got wrong."] = False,
    llm: Annotated[
        str | None, "--llm MODEL", "Who says what a request allows: a model at OPENAI_BASE_URL, or batch:DIR."
    ] = None,
    allowances: Annotated[File, "Earlier answers about requests; new answers are added."] = None,
    meanings: Annotated[File, "Earlier answers about calls (the second look); new answers are added."] = None,
    sample: Annotated[int | None, "--sample N", "Of the successful attacks at most N, drawn by seed."] = None,
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
    from bylaw_lab.bench.agentdojo import LOOK, SETTINGS, drawn, measure, own_pack, read_runs, requests_of
    from bylaw_lab.bench.catalogue import suite_pack
    from bylaw_lab.bench.recorded import read_allowances, read_meanings, write_meanings
    from bylaw_lab.bench.trial import try_tricks

    if missing := [path for path in runs if not path.is_file()]:
        raise UsageError("no such file", place=str(missing[0]), hint="give files of runs, one a line")
    if (tools is None) != (pack_out is None):
        raise UsageError("--tools and --pack-out go together", hint="--pack-out names the folder of the drafted pack")
    chat = open_chat(llm) if llm is not None else None
    found = read_runs(runs)
    suites = dict.fromkeys(run.details["suite"] for run in found)
    if tools is not None and pack_out is not None and tools.is_dir():
        packs = {suite: suite_pack(tools / f"{suite}.json", pack_out / suite, found, chat) for suite in suites}
    elif tools is not None and pack_out is not None:
        packs = dict.fromkeys(suites, suite_pack(tools, pack_out, found, chat))
    else:
        packs = {suite: own_pack(suite) for suite in suites}
    found = drawn(found, sample) if sample is not None else found
    reader: RequestReader | None = None
    if llm is not None or allowances is not None:
        known = read_allowances(allowances) if allowances is not None and allowances.is_file() else {}
        looks = read_meanings(meanings) if meanings is not None and meanings.is_file() else {}
        reader = RequestReader(chat, known=known, meanings=looks)
        for suite, text in requests_of(found):
            reader.read(text, packs[suite].schema.tools)
        _settle(reader, allowances if llm is not None else None)
    if adaptive is not None:
        tried = try_tricks(found, packs, adaptive, requests=reader, looks=meanings is not None)
        if reader is not None and meanings is not None and llm is not None:
            write_meanings(meanings, reader.meanings)
        if reader is not None and reader.not_looked_at:
            raise UsageError(f"{len(reader.not_looked_at)} second looks have no answer")
        _tell_tricks(tried, as_json)
        return
    measured = measure(found, packs, requests=reader, looks=meanings is not None, is_asking=llm is not None)
    if reader is not None:
        if meanings is not None and llm is not None:
            write_meanings(meanings, reader.meanings)
        # This also finds texts to which users delegate the request.
        _settle(reader, allowances if llm is not None else None, looks=llm is not None)
    told: dict[str, Any] = {}
    for each in measured:
        queries = 1.0 if each.setting.startswith("question") else 0.0
        told[each.setting] = {
            "about": SETTINGS[each.setting],
            "counts": {
                "runs": each.whole.runs.total(),
                "broken_off": each.whole.runs["broken_off"],
                "broken_off_attacks": each.whole.broken_off_attacks,
                "not_looked_at": len(reader.not_looked_at) if reader is not None and each.setting == LOOK else 0,
            },
            "whole": each.whole.rates(queries),
            "suites": {suite: tally.rates(queries) for suite, tally in each.suites.items()},
            "pipelines": {pipeline: tally.rates(queries) for pipeline, tally in each.pipelines.items()},
            "missed": each.whole.misses("missed"),
            "alarms": each.whole.misses("alarm"),
        }
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=1))
        return
    for setting, told_of in told.items():
        _print(setting, told_of)


def _settle(reader: "RequestReader", kept: Path | None, *, looks: bool = False) -> None:
    """Save the answers. Stop if a request has no answer or, with `looks`, if a second look is missing."""
    from bylaw_lab.bench.recorded import write_allowances

    if kept is not None:
        write_allowances(kept, reader.known)
    for missing, asked in ((reader.unanswered, "requests"), (reader.not_looked_at, "second looks")):
        if missing and (looks or asked == "requests"):
            why = next(iter(missing.values()))
            raise UsageError(f"{len(missing)} {asked} have no answer. The first failure: {why}")


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
