"""Splits the unanswered requests of a batch folder into Markdown files for readers.

    python lab/scripts/reader_chunks.py DIR [--size 25] [--seed 7]

DIR is the folder of `--llm batch:DIR`. Each kind of question (one schema, or one instruction for plain text) gets a
folder `DIR/KIND` with `instructions.md` and `chunk-NN.md`, in random order. Readers write `answers-NN.jsonl` there,
with lines of `custom_id` and `text`. Run the script again after a round: it copies the answers to the batch folder, and
writes new chunks for new questions.
"""

import argparse
import hashlib
import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

from bylaw.llm.recorded import Recordings

INSTRUCTIONS = """# How to answer

Read these instructions, then answer every question of the chunk you were given, each from its own text alone.

{system}

# What to write

One line of JSON for each question, and nothing else, to `{home}/answers-NN.jsonl`, where NN is the number of
the chunk. `custom_id` is the heading of the question, `text` the answer{schema}
"""


def gather(folder: Path) -> None:
    """Copy the answers to the batch folder."""
    for file in folder.glob("*/answers-*.jsonl"):
        shutil.copyfile(file, folder / f"{file.parent.name}-{file.name}")


def open_requests(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the requests in a batch that have no answer, by id."""
    answered = Recordings(folder).keys()
    found: dict[str, dict[str, Any]] = {}
    for file in sorted((folder / "requests").glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            request = json.loads(line)
            if request["custom_id"] not in answered:
                found[request["custom_id"]] = request["body"]
    return found


def schema_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the name and the schema of the answer. Both are empty for plain text."""
    return body.get("response_format", {}).get("json_schema", {})


def turns_of(body: dict[str, Any]) -> str:
    """Return the messages after the instructions: the question, then any rejected answer and its faults."""
    names = {"assistant": "**Your earlier answer:**\n\n", "user": "**What is wrong with it:**\n\n"}
    first, *later = body["messages"][1:]
    return "\n\n".join([first["content"], *(names[each["role"]] + each["content"] for each in later)])


def write_chunks(folder: Path, size: int, seed: int) -> None:
    """Write chunks for the questions that are not in a chunk yet."""
    gather(folder)
    kinds: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for key, body in open_requests(folder).items():
        digest = hashlib.sha256(body["messages"][0]["content"].encode()).hexdigest()[:6]
        kinds.setdefault(str(schema_of(body).get("name", f"text-{digest}")), []).append((key, body))
    for kind, asked in kinds.items():
        home = folder / kind
        home.mkdir(exist_ok=True)
        chunks = sorted(home.glob("chunk-*.md"))
        known = {
            key
            for chunk in folder.glob("*/chunk-*.md")
            for key in re.findall(r"^# (\S+)$", chunk.read_text(), re.MULTILINE)
        }
        new = [each for each in asked if each[0] not in known]
        random.Random(seed).shuffle(new)
        if new:
            body = new[0][1]
            schema = schema_of(body).get("schema")
            told = f" as JSON in a string, in this schema:\n\n    {json.dumps(schema)}" if schema else "."
            text = INSTRUCTIONS.format(system=body["messages"][0]["content"], home=home, schema=told)
            (home / "instructions.md").write_text(text, encoding="utf-8")
        for number, start in enumerate(range(0, len(new), size), start=len(chunks) + 1):
            parts = (f"# {key}\n\n{turns_of(body)}\n" for key, body in new[start : start + size])
            (home / f"chunk-{number:02}.md").write_text("\n---\n\n".join(parts), encoding="utf-8")
        print(f"{home}: {len(new)} questions in {-(-len(new) // size)} new chunks")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", type=int, default=25)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    write_chunks(given.folder, given.size, given.seed)
