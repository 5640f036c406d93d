"""Scores the thoughts that a model wrote for 60 turns, by round: `python lab/scripts/align_recorded.py [DIR]`.

The turns and the policy are frozen in tests/align/recorded, with the original answers in `answers`. With DIR,
unanswered requests are written there as a batch. Without DIR, every answer must exist. The script prints the scores of
each round.
"""

import sys
from pathlib import Path
from statistics import mean

import msgspec

from bylaw import load_pack, read
from bylaw.align.matcher import Checked, Matcher, check
from bylaw.align.thought import think
from bylaw.align.thoughts import RUBRICS, Turn, Written, write_thoughts
from bylaw.align.turn_evidence import TurnEvidence, next_write
from bylaw.llm.recorded import Batch, Recorded, Recordings
from bylaw.rule import monitor
from bylaw.trace import Trajectory

FOLDER = Path(__file__).parent.parent / "tests" / "align" / "recorded"


def turns() -> list[Turn]:
    """Return the frozen turns with the frozen policy."""
    policy = (FOLDER / "policy.txt").read_text(encoding="utf-8").strip()
    rows = (FOLDER / "turns.jsonl").read_bytes().splitlines()
    return [msgspec.structs.replace(msgspec.json.decode(row, type=Turn), policy=policy) for row in rows]


def evidence_by_turn() -> dict[str, TurnEvidence]:
    """Return the results of the guards at each turn."""
    pack = load_pack("clinic")
    found: dict[str, TurnEvidence] = {}
    for trajectory in read(FOLDER / "logs.jsonl"):
        if isinstance(trajectory, Trajectory):
            for span in monitor.turns(trajectory.events):
                target = next_write(pack, trajectory.events, span.start)
                thought = think(pack, trajectory.events, span, target, seed=1)
                found[f"{trajectory.id}@{span.start}"] = thought.evidence
    return found


def written(recordings: Recordings, batch: Batch | None = None) -> list[Written]:
    """Return the thought for each turn with its score, from the recorded answers."""
    pack = load_pack("clinic")
    reader, found, asked = Matcher(pack), evidence_by_turn(), {turn.id: turn for turn in turns()}

    def checked(name: str, thought: str) -> Checked:
        return check(pack, thought, found[name], reader, f"{asked[name].conversation}\n{asked[name].act}")

    return write_thoughts(list(asked.values()), Recorded(recordings, batch), check=checked)


def main(folder: str | None) -> None:
    results = written(Recordings(FOLDER / "answers"), Batch(Path(folder)) if folder else None)
    print(
        "| round | thoughts | " + " | ".join(RUBRICS) + " | passed | faithful by the guards | complete by the guards |"
    )
    print("|---" * (len(RUBRICS) + 5) + "|")
    for number in range(max(len(each.rounds) for each in results)):
        rounds = [each.rounds[number] for each in results if len(each.rounds) > number]
        scores = " | ".join(f"{mean(each.scores[rubric] for each in rounds):.2f}" for rubric in RUBRICS)
        passed, faithful, complete = (
            sum(bool(getattr(each, name)) for each in rounds) for name in ("passed", "faithful", "complete")
        )
        print(f"| {number} | {len(rounds)} | {scores} | {passed} | {faithful} | {complete} |")
    print(f"\nkept {sum(each.thought is not None for each in results)} of {len(results)} turns")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
