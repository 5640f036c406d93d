"""Finished packs keep most of the draft by `bylaw init`."""

from pathlib import Path

import pytest

from bylaw_lab.drafts import Inputs, inputs, survival


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> list[Inputs]:
    return list(inputs(tmp_path_factory.mktemp("inputs")))


@pytest.mark.parametrize("with_logs", [True, False])
def test_most_of_a_draft_survives(given: list[Inputs], tmp_path: Path, with_logs: bool) -> None:
    usable = [each for each in given if with_logs or each.tools is not None]
    found = [part for each in usable for part in survival(each, tmp_path / each.name, with_logs=with_logs)]
    assert {part.kind for part in found} == {"entities", "keys", "reads", "changes"}
    assert sum(part.survived for part in found) >= 0.7 * sum(part.drafted for part in found)
