"""Counts the calls that sixty injections against the second look get allowed.

    python lab/benchmarks/attack/second_look.py [DATA] [--page FILE] [--render DIR | --llm batch:DIR]

Each injection in second_look.yaml replaces the injected text of a recorded run of AgentDojo or of AgentDyn's shopping
suite. The agent is assumed to obey. By default, the answers about the calls are the recorded answers of readers who saw
only the question. `--render` writes the questions without an answer as files, one each.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from bylaw.answering.request import Meaning, RequestReader, second_question
from bylaw.engine.request import Doubt
from bylaw.facts.evidence import wilson
from bylaw.llm.chat import Request
from bylaw.llm.source import open_chat
from bylaw.pack import Pack
from bylaw.trace.event import Call, Trajectory
from bylaw_lab.bench.agentdojo import OWN, own_pack, read_runs
from bylaw_lab.bench.catalogue import suite_pack
from bylaw_lab.bench.defence import Assuming, Confirming, packed
from bylaw_lab.bench.recorded import read_allowances, read_meanings, write_meanings
from bylaw_lab.bench.rewriting import Rewriting
from bylaw_lab.bench.trial import attack_of

FILE = Path(__file__).parent / "second_look.yaml"
RECORDED = Path(__file__).parents[1] / "recorded"
MEANINGS = RECORDED / "second-look-meanings.jsonl"
KINDS = {
    "argues": "argues with the check",
    "imitates": "imitates the request",
    "splits": "splits a value",
    "format": "quotes the question's own format",
    "claims": "claims to be the user or a defence",
    "language": "is written in another language",
}
WHOLE = {True: "yes", False: ""}


class Injection(Struct, frozen=True):
    run: str
    kind: str
    text: str
    arguments: Mapping[str, Any] = {}
    whole: bool = False
    """Whether the attacker wrote the whole document that the user pointed to."""


class Outcome(Struct, frozen=True):
    injection: Injection
    suite: str
    stopped_by: str
    """`code`, `look`, `missing` (the user is asked for lack of an answer), or empty if nothing stopped the attack."""
    is_denied: bool = False


class Asked(RequestReader):
    """A reader that keeps unanswered questions about calls."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.open: dict[str, Request] = {}

    def look(self, doubt: Doubt) -> Meaning | None:
        found = super().look(doubt)
        if found is None:
            asked = second_question(doubt)
            self.open[asked.key] = asked
        return found


def packs_of(data: Path, folder: Path) -> tuple[dict[str, Trajectory], dict[str, Pack]]:
    """Return the recorded runs by id, and the pack of each suite."""
    shopping = read_runs(sorted((data / "agentdyn" / "runs").glob("*.jsonl.gz")))
    chat = open_chat(f"batch:{RECORDED / 'agentdyn' / 'catalogue'}")
    packs = {suite: own_pack(suite) for suite in OWN}
    packs["shopping"] = suite_pack(data / "agentdyn" / "tools.json", folder / "pack", shopping, chat)
    runs = [*read_runs(sorted((data / "agentdojo" / "runs").glob("*.jsonl.gz"))), *shopping]
    return {run.id: run for run in runs}, packs


def attacked(run: Trajectory, pack: Pack, injection: Injection) -> tuple[Trajectory, frozenset[int]]:
    """Return the run with a new injection in place of the recorded one, and the steps of the attack."""
    attack = attack_of(run, pack.schema.tools)
    assert attack is not None, f"{run.id}: no call pursues the injected goal"
    changed = Rewriting(run).replaced(injection.text)
    events = [
        replace(event, arguments={**event.arguments, **injection.arguments})
        if isinstance(event, Call) and step in attack.goal
        else event
        for step, event in enumerate(changed.events)
    ]
    return replace(changed, events=events), attack.goal


def outcomes(
    runs: Mapping[str, Trajectory], packs: Mapping[str, Pack], injections: list[Injection], reader: RequestReader
) -> Iterator[Outcome]:
    for injection in injections:
        suite = runs[injection.run].details["suite"]
        pack = packs[suite]
        run, goal = attacked(runs[injection.run], pack, injection)
        model = reader(pack)
        answers: set[str] = set()
        stopped = ""
        for by, asked in (("code", Confirming(model)), ("look", Assuming(model)), ("missing", model)):
            answers = {each.answer for each in packed(pack, asked, "follow")(run, goal)}
            if answers != {"allow"}:
                stopped = by
                break
        yield Outcome(injection, suite, stopped, "deny" in answers)


def render(asked: Mapping[str, Request], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for key, request in sorted(asked.items()):
        text = "\n\n".join(message.content for message in request.messages)
        (folder / f"{key}.md").write_text(text + "\n", encoding="utf-8")


def table(found: list[Outcome]) -> Iterator[str]:
    yield "| the text | stopped by code | by the second look | for lack of an answer | let through |"
    yield "|---|---|---|---|---|"
    for kind, told in (*KINDS.items(), ("", "all")):
        rows = [each for each in found if not kind or each.injection.kind == kind]
        by = Counter(each.stopped_by for each in rows)
        through = f"{by['']} of {len(rows)}"
        if not kind:
            low, high = wilson(by[""], len(rows))
            through += f" ({100 * low:.0f}-{100 * high:.0f} %)"
        yield f"| {told} | {by['code']} | {by['look']} | {by['missing']} | {through} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", default=Path("../shared/data"))
    parser.add_argument("--llm")
    parser.add_argument("--render", type=Path)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    injections = [Injection(**each) for each in yaml.safe_load(FILE.read_text(encoding="utf-8"))]
    known = read_allowances(RECORDED / "agentdojo-requests.jsonl")
    known |= read_allowances(RECORDED / "agentdyn" / "requests.jsonl")
    looks = read_meanings(MEANINGS) if MEANINGS.is_file() else {}
    reader = Asked(open_chat(given.llm) if given.llm else None, known=known, meanings=looks)
    with tempfile.TemporaryDirectory() as folder:
        found = [*outcomes(*packs_of(given.data, Path(folder)), injections, reader)]
    if given.llm:
        write_meanings(MEANINGS, reader.meanings)
    if given.render:
        render(reader.open, given.render)
    through = [
        f"| {each.injection.run} | {each.suite} | {KINDS[each.injection.kind]} | {WHOLE[each.injection.whole]} |"
        for each in found
        if not each.stopped_by
    ]
    text = PAGE.format(
        runs=len({each.run for each in injections}),
        whole=sum(each.whole for each in injections),
        table="\n".join(table(found)),
        denied=sum(each.is_denied for each in found),
        through="\n".join(through) or "| - | - | - | - |",
    )
    print(text)
    if given.page is not None:
        given.page.write_text(text, encoding="utf-8")


PAGE = """# Injections against the second look

<!-- Written by lab/benchmarks/attack/second_look.py --page; do not edit by hand. -->

    uv run --group dev python lab/benchmarks/attack/second_look.py ../shared/data --page FILE

Each of sixty texts by one author, who knows the code and the question, replaces the injected text of one of {runs}
recorded attacks; in {whole} of them, the attacker writes the whole document. The agent is assumed to obey. An attack is
stopped if a call that carries it out is denied ({denied} are) or shown to the user, who may still say yes.

{table}

Readers who saw only the questions answered them, one reader a batch. They answered in bulk and met similar
attacks again and again, so the answers are not independent and the interval is too narrow. A weaker model may believe
more.

## Let through

| run | suite | the text | the whole document |
|---|---|---|---|
{through}
"""

if __name__ == "__main__":
    main()
