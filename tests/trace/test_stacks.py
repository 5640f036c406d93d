"""Exports of real agent libraries, recorded from the same conversations: every verdict is that of the plain log."""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from bylaw.audit.request import Request
from bylaw.audit.run import audit
from bylaw.errors import RecordError
from bylaw.trace import read

FOLDER = Path(__file__).parents[1] / "fixtures" / "stacks"
PLAIN = FOLDER / "loop-plain.jsonl.gz"
EXPORTS = sorted(path.name for path in FOLDER.iterdir() if path != PLAIN)


def verdicts(path: Path, out: Path) -> dict[str, list[tuple]]:
    audit(Request((path,), "clinic", None, "hindsight"), out)
    found = defaultdict(list)
    for line in map(json.loads, (out / "calls.jsonl").read_text().splitlines()):
        rules = sorted({each["rule"] for each in line.get("rules") or ()})
        found[line["trajectory"]].append((line["tool"], line["executed"], line["strict"], line["determined"], rules))
    return found


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> dict[str, list[tuple]]:
    return verdicts(PLAIN, tmp_path_factory.mktemp("plain") / "audit")


@pytest.mark.parametrize("name", EXPORTS)
def test_every_verdict_is_that_of_the_plain_log(name, plain, tmp_path):
    assert not [each for each in read(FOLDER / name) if isinstance(each, RecordError)]
    assert verdicts(FOLDER / name, tmp_path / "audit") == plain


def test_the_plain_conversations_hold_what_the_comparison_is_about(plain):
    talks = {each.id: each for each in read(PLAIN)}
    calls = [call for found in plain.values() for call in found]
    assert {executed for _, executed, *_ in calls} == {True, False}
    assert len({strict for _, _, strict, *_ in calls}) > 2
    turns = [event.turn for each in talks.values() for event in each.events if hasattr(event, "arguments")]
    assert len(turns) > len(set(turns))
    assert len(EXPORTS) >= 12
