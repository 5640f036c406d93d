"""The matcher may serve as a reward: on the labelled thoughts that were held out it passes 0.95 in all four figures."""

from bylaw.align.matcher import Matcher
from scripts.align_matcher import agreed, compare, lines
from tests.engine import clinic

LEAST = 0.95


def test_precision_and_recall_on_held_out_thoughts_pass() -> None:
    sheet = lines("sheet.jsonl")
    labels = agreed(lines("labels-A.jsonl"), lines("labels-B.jsonl"))
    assert len(sheet) == 200
    assert len(labels) >= 190
    matcher = Matcher(clinic.pack())
    said = {}
    for name in (name for name in labels if int(name[1:]) % 2):
        found = matcher.mentions(sheet[name]["thought"])
        said[name] = {"recalled": found.recalled, "made_up": found.made_up}
    for count in compare(said, said, labels):
        assert count.hits >= LEAST * (count.hits + count.false)
        assert count.hits >= LEAST * (count.hits + count.missed)
