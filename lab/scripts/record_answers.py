"""Keeps a model's answers as recordings, unchanged: each with the hash of what was asked, the attempt and the date.

    python lab/scripts/record_answers.py OUT.jsonl ANSWERS.jsonl...     lines with `custom_id` and `text`

A file of recordings is written once; where it is there already, nothing is done.
"""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path


def main(out: Path, answers: list[Path]) -> int:
    """Write the recordings of one round."""
    if out.exists():
        print(f"{out} is there already: recordings are never changed", file=sys.stderr)
        return 2
    today = datetime.now(UTC).date().isoformat()
    lines: dict[str, str] = {}
    for file in answers:
        for line in file.read_text(encoding="utf-8").splitlines():
            if not line.strip():
                continue
            record = json.loads(line)
            key = record["custom_id"]
            prompt, _, attempt = key.rpartition("-")
            kept = {"custom_id": key, "prompt": prompt, "attempt": int(attempt), "date": today, "text": record["text"]}
            # The first answer counts.
            lines.setdefault(key, json.dumps(kept, ensure_ascii=False))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text("".join(f"{line}\n" for line in lines.values()), encoding="utf-8")
    print(f"{out}: {len(lines)} answers")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]]))
