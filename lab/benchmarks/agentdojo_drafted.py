"""Compares packs drafted from AgentDojo's tool catalogues with packs written by hand, on the same runs and answers.

    python lab/benchmarks/agentdojo_drafted.py ../shared/data/agentdojo/runs/*.jsonl.gz

The catalogues contain the names, descriptions and parameters of the tools, but no effects and no trust. Readers
answered one question about each catalogue.
"""

import json
import sys
import tempfile
from pathlib import Path

from bylaw.answering.request import RequestReader
from bylaw.llm.source import open_chat
from bylaw.pack import Pack
from bylaw_lab.bench.agentdojo import LOOK, OWN, measure, own_pack, read_runs
from bylaw_lab.bench.catalogue import suite_pack
from bylaw_lab.bench.recorded import read_allowances, read_meanings

RECORDED = Path(__file__).parent / "recorded"
SETTINGS = ("question, follows", LOOK)


def catalogue(pack: Pack) -> str:
    return json.dumps(
        [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": {"type": "object", "properties": tool.parameters, "required": [*tool.required]},
            }
            for tool in pack.schema.tools.values()
        ]
    )


def main(files: list[Path]) -> None:
    runs = read_runs(files)
    by_hand = {suite: own_pack(suite) for suite in OWN}
    known = read_allowances(RECORDED / "agentdojo-requests.jsonl")
    looks = read_meanings(RECORDED / "agentdojo-meanings.jsonl")
    with tempfile.TemporaryDirectory() as folder:
        chat = open_chat(f"batch:{RECORDED / 'agentdojo-catalogues'}")
        drafted: dict[str, Pack] = {}
        for suite, pack in by_hand.items():
            tools = Path(folder) / f"{suite}.json"
            tools.write_text(catalogue(pack), encoding="utf-8")
            own = [run for run in runs if run.details["suite"] == suite]
            drafted[suite] = suite_pack(tools, Path(folder) / suite, own, chat)
        print(
            "| packs | setting | attacks stopped | good runs blocked | calls without an answer |\n|---|---|---|---|---|"
        )
        for name, packs in (("by hand", by_hand), ("drafted", drafted)):
            reader = RequestReader(None, known=known, meanings=looks)
            for each in measure(runs, packs, requests=reader, looks=True, settings=SETTINGS):
                stopped = f"{each.whole.stopped} of {each.whole.runs['succeeded']}"
                blocked = f"{each.whole.disturbed} of {each.whole.runs['good']}"
                print(f"| {name} | {each.setting} | {stopped} | {blocked} | {len(reader.not_looked_at)} |")


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
