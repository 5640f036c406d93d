"""The matcher is good enough for rewards: on held-out labelled thoughts, all four figures exceed 0.95."""

import pytest
from align_matcher import agreed, compare, lines, read

from bylaw.align.matcher import Matcher
from tests.engine import clinic

LEAST = 0.95


@pytest.mark.parametrize("is_shown", [False, True], ids=["nothing was shown", "every value was shown"])
def test_precision_and_recall_on_held_out_thoughts_pass(is_shown: bool) -> None:
    """The two extremes: the conversation showed no value, or every value of the thought, even wrong ones."""
    sheet = lines("sheet.jsonl")
    labels = agreed(lines("labels-A.jsonl"), lines("labels-B.jsonl"))
    assert len(sheet) == 200
    assert len(labels) >= 190
    matcher = Matcher(clinic.pack())
    held_out = [name for name in labels if int(name[1:]) % 2]
    said = {name: read(matcher, sheet[name]["thought"], is_shown=is_shown) for name in held_out}
    for count in compare(said, said, labels):
        assert count.hits >= LEAST * (count.hits + count.false)
        assert count.hits >= LEAST * (count.hits + count.missed)
