"""Renews the compiled clinic's recordings after a change of prompts.

    uv run python lab/benchmarks/renew_clinic.py DIR

Each run is one round. It reads the answers to the questions in DIR, continues the compile, and writes the questions of
the next round, as lab/scripts/reader_chunks.py does. The exit status is 1 while questions wait. People who answer see
only these files. The last round replaces the recordings and the files of lab/packs/clinic_compiled, and exits with 0.
"""

import hashlib
import json
import sys
from pathlib import Path

from bylaw.cli.logs import open_logs
from bylaw.compile.assemble import assemble
from bylaw.compile.pipeline import Source, compile_pack
from bylaw.compile.reading import read_documents
from bylaw.compile.tools import read_tools, with_logs
from bylaw.llm import Pending
from bylaw.llm.recorded import Batch, Recorded, Recordings

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "lab" / "scripts"))
from reader_chunks import gather, write_chunks  # noqa: E402

CLINIC, PACK = ROOT / "src" / "bylaw" / "packs" / "clinic", ROOT / "lab" / "packs" / "clinic_compiled"
ANSWERS = PACK / "source" / "answers"
MADE = ("*.yaml", "guards/*.py", "cases/*.yaml", "lookups/*.py")


def source() -> Source:
    reading = read_documents([CLINIC / "policy.md"])
    with open_logs([CLINIC / "demo" / "logs.jsonl.bz2"]) as opened:
        cards, trajectories = with_logs(read_tools([str(PACK / "source" / "tools.json")]), opened.trajectories())
    return Source(reading.document, reading.title, cards, trajectories, "2025-03-12T09:00:00", refinements=8)


def main(folder: Path) -> int:
    """Run one round."""
    folder.mkdir(parents=True, exist_ok=True)
    gather(folder)
    given, chat = source(), Recorded(Recordings(ANSWERS), Batch(folder))
    try:
        work, desk = compile_pack(given, chat, progress=print)
    except Pending:
        write_chunks(folder, size=25, seed=7)
        return 1
    used = {key: answer.text for key, request in desk.asked.items() if (answer := chat.find(request)) is not None}
    lines = "".join(f"{json.dumps({'custom_id': key, 'text': text})}\n" for key, text in used.items())
    for file in [*ANSWERS.glob("*.jsonl"), *(file for pattern in MADE for file in PACK.glob(pattern))]:
        file.unlink()
    # Committed recordings never change. New recordings go into a separate file.
    (ANSWERS / f"{hashlib.sha256(lines.encode()).hexdigest()[:12]}.jsonl").write_text(lines, encoding="utf-8")
    for name, text in assemble(given, work, name="clinic-compiled").items():
        (PACK / name).parent.mkdir(parents=True, exist_ok=True)
        (PACK / name).write_text(text, encoding="utf-8")
    failed = {name: check.failed for name, check in work.checks.items() if check.failed}
    print(f"{len(desk.asked)} answers kept; {len(work.checks) - len(failed)} of {len(work.checks)} with a check")
    print("".join(f"unenforced: {name}: {why}\n" for name, why in failed.items()), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
