"""The matcher reads labelled thoughts as well as the published figures say."""

import pytest
from align_matcher import agreed, compare, lines, read

from bylaw.align.matcher import Matcher
from tests.engine import clinic

LEAST = ((0.95, 0.95), (0.9, 0.55))
"""Precision and recall: of stated policies, and of made-up statements, many of which take a judge."""


@pytest.mark.parametrize("is_shown", [False, True], ids=["nothing was shown", "every value was shown"])
def test_precision_and_recall_are_as_published(is_shown: bool) -> None:
    """Whatever a conversation showed lies between nothing and every value of the thought, the wrong ones too."""
    sheet = lines("sheet.jsonl")
    labels = agreed(lines("labels-A.jsonl"), lines("labels-B.jsonl"))
    assert len(sheet) == 200
    assert len(labels) >= 190
    matcher = Matcher(clinic.pack())
    held_out = [name for name in labels if int(name[1:]) % 2]
    said = {name: read(matcher, sheet[name]["thought"], is_shown=is_shown) for name in held_out}
    for count, (precision, recall) in zip(compare(said, said, labels), LEAST, strict=True):
        assert count.hits >= precision * (count.hits + count.false)
        assert count.hits >= recall * (count.hits + count.missed)
