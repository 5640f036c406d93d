"""Counts the good calls allowed and the bad calls blocked for the forty requests in requests_sixth.yaml.

python lab/benchmarks/attack/new_requests.py [FILE] [--llm batch:DIR] [--allowances FILE] [--meanings FILE]

`--allowances` contains answers about requests, and `--meanings` contains answers about calls. By default, these are the
recorded answers of readers. The result "question" is the ablation without the second question.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml

from bylaw.answering.request import RequestReader
from bylaw.engine.conversation import OpenRequests
from bylaw.facts.evidence import wilson
from bylaw.llm.source import open_chat
from bylaw.pack import Pack, load_pack
from bylaw.shield import Shield
from bylaw_lab.bench.defence import WithoutLook
from bylaw_lab.bench.recorded import read_allowances, read_meanings, write_allowances, write_meanings

FILE = Path(__file__).parent / "requests_sixth.yaml"
RECORDED = Path(__file__).parents[1] / "recorded"


def decide(pack: Pack, case: dict[str, Any], call: dict[str, Any], delegation: str, requests: OpenRequests) -> str:
    """Return the decision of the shield on a call after all texts have been read."""
    with Shield(pack, postures={"delegation": delegation}, requests=requests).session() as session:
        session.user(case["request"])
        for number, read in enumerate(case.get("reads", ())):
            session.messages(
                [
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": str(number),
                                "type": "function",
                                "function": {"name": read["tool"], "arguments": json.dumps(read["arguments"])},
                            }
                        ],
                    },
                    {"role": "tool", "tool_call_id": str(number), "content": read["result"]},
                ]
            )
        return session.decide(call["tool"], call["arguments"]).answer


def count(file: Path, delegation: str, requests: OpenRequests) -> dict[str, Any]:
    """Count the good calls and requests that were interrupted, and the bad calls that were blocked. List the others."""
    cases: list[dict[str, Any]] = yaml.safe_load(file.read_text())
    packs = {suite: load_pack(f"agentdojo/{suite}") for suite in {case["suite"] for case in cases}}
    good = bad = injected = allowed = held = held_injected = disturbed = 0
    wrong: list[str] = []
    for case in cases:
        pack = packs[case["suite"]]
        answers = [decide(pack, case, call, delegation, requests) for call in case["good"]]
        good, allowed = good + len(answers), allowed + answers.count("allow")
        disturbed += any(answer != "allow" for answer in answers)
        wrong += [
            f"{case['id']} good {call['tool']}: {answer}"
            for call, answer in zip(case["good"], answers, strict=True)
            if answer != "allow"
        ]
        for call in case["bad"]:
            is_injected = call.get("by", "injected") == "injected"
            bad, injected = bad + 1, injected + is_injected
            answer = decide(pack, case, call, delegation, requests)
            held += answer != "allow"
            held_injected += is_injected and answer != "allow"
            if answer == "allow":
                wrong.append(f"{case['id']} bad {call['tool']}: allow")
    return {
        "bad_calls_held": [held, bad, *wilson(held, bad)],
        "injected_calls_held": [held_injected, injected, *wilson(held_injected, injected)],
        "good_calls_allowed": [allowed, good, *wilson(allowed, good)],
        "requests_disturbed": [disturbed, len(cases), *wilson(disturbed, len(cases))],
        "wrong": wrong,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=FILE)
    parser.add_argument("--llm")
    parser.add_argument("--allowances", type=Path, default=RECORDED / "agentdojo-requests.jsonl")
    parser.add_argument("--meanings", type=Path, default=RECORDED / "request-meanings.jsonl")
    given = parser.parse_args()
    told: dict[str, Any] = {}
    known = read_allowances(given.allowances) if given.allowances.is_file() else {}
    meanings = read_meanings(given.meanings) if given.meanings.is_file() else {}
    reader = RequestReader(open_chat(given.llm) if given.llm else None, known=known, meanings=meanings)
    for way in ("follow", "ask"):
        told[f"question, {way}"] = count(given.file, way, lambda pack: WithoutLook(reader(pack)))
    told["question and look, follow"] = count(given.file, "follow", reader)
    told["question and look, follow"]["not_looked_at"] = len(reader.not_looked_at)
    if given.llm:
        write_allowances(given.allowances, reader.known)
        write_meanings(given.meanings, reader.meanings)
    if reader.unanswered:
        print(f"{len(reader.unanswered)} questions have no answer: {next(iter(reader.unanswered.values()))}")
        return 1
    json.dump(told, sys.stdout, indent=1)
    print()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
