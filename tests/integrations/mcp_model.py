"""A folder in the place of a model, for a proxy that reads requests to `agentdojo/banking`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bylaw.answering.request import question
from bylaw.pack import load_pack

TOOLS = load_pack("agentdojo/banking").schema.tools


def answering(folder: Path, answers: Mapping[str, list[dict[str, Any]]] | None = None) -> tuple[str, ...]:
    """The options of a proxy whose model answers these requests with these deeds, and no others."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"custom_id": question(text, TOOLS).key, "text": json.dumps({"deeds": deeds, "delegations": []})}
        for text, deeds in (answers or {}).items()
    ]
    (folder / "answers.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return ("--llm", f"batch:{folder}")


def asked(folder: Path) -> list[str]:
    """The requests that the model was asked about and had no answer to, as it was shown them."""
    files = sorted((folder / "requests").glob("*.jsonl"))
    bodies = [json.loads(line)["body"] for file in files for line in file.read_text().splitlines()]
    return [body["messages"][1]["content"].partition("The user says:\n")[2].strip() for body in bodies]
