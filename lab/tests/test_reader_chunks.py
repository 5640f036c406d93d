"""Readers see a question with everything that was said after it."""

import json
from pathlib import Path

from bylaw.compile.desk import sent_back
from bylaw.llm import ModelMessage, Request
from lab.scripts.reader_chunks import write_chunks

FIRST = Request((ModelMessage("system", "Write a guard."), ModelMessage("user", "Refunds within 30 days.")))


def test_a_correction_shows_the_earlier_answer_and_its_faults(tmp_path: Path) -> None:
    asked = [FIRST, sent_back(FIRST, "def refund(): ...", ["`refund` takes call and facts"])]
    lines = [json.dumps({"custom_id": each.key, "body": each.body("batch")}) for each in asked]
    (tmp_path / "requests").mkdir()
    (tmp_path / "requests" / "001.jsonl").write_text("\n".join(lines), encoding="utf-8")
    write_chunks(tmp_path, size=1, seed=7)
    fresh, corrected = sorted((each.read_text() for each in tmp_path.glob("*/chunk-*.md")), key=len)
    assert fresh == f"# {FIRST.key}\n\nRefunds within 30 days.\n"
    order = ("Refunds within 30 days.", "def refund(): ...", "Your answer cannot be used", "takes call and facts")
    places = [corrected.index(part) for part in order]
    assert places == sorted(places)
