"""Runs real agent libraries through the same conversations, exports each as its users do, and compares verdicts.

    uv run python lab/benchmarks/stacks.py [STACK...] [--folder DIR] [--fixtures]

Each library gets an environment in the folder, created by the first run. The exports use the code of
docs/guides/get-your-logs-out.md. A verdict must equal the verdict on the plain loop's log, or be `inconclusive` with a
reason; otherwise the exit status is 1. `--fixtures` keeps the exports of a few conversations for the tests.
"""

import argparse
import gzip
import json
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from bylaw.audit.request import Request
from bylaw.audit.run import audit
from bylaw.pack import load_pack
from bylaw.trace import Message, Result, Trajectory, read
from bylaw_lab.clinic.simulator.generate import write

HERE = Path(__file__).parent / "stacks"
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "get-your-logs-out.md"
FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures" / "stacks"
COUNT = 40
OTEL = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http")
STACKS: dict[str, tuple[str, ...]] = {
    "loop": ("openai",),
    "langfuse": ("openai", "langfuse", *OTEL),
    "langsmith": ("openai", "langsmith", "zstandard"),
    "agents": ("openai-agents", "openinference-instrumentation-openai-agents", *OTEL),
    "langgraph": ("langgraph", "langchain", "langchain-openai", "openinference-instrumentation-langchain", *OTEL),
    "pydantic-ai": ("pydantic-ai-slim[openai]", *OTEL),
    "adk": ("google-adk", "litellm", "mcp", *OTEL),
    "llamaindex": (
        *("llama-index-core", "llama-index-llms-openai-like", "openinference-instrumentation-llama-index"),
        *OTEL,
    ),
    "claude": ("claude-agent-sdk",),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stacks", nargs="*", metavar="STACK", help=f"of {', '.join(STACKS)}; all by default")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bylaw-stacks")
    parser.add_argument("--fixtures", action="store_true", help="keep the exports of a few conversations for the tests")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    if not (given.folder / "clinic.sqlite").exists():
        write(given.folder, seeds=(1,), count=500)
    script = given.folder / "script.json"
    script.write_text(json.dumps(script_of(given.folder / "logs.jsonl.gz", 6 if given.fixtures else COUNT)))
    exports = given.folder / "exports"
    shutil.rmtree(exports, ignore_errors=True)
    for stack in dict.fromkeys(("loop", *(given.stacks or STACKS))):
        drive(stack, script, exports / stack, given.folder / "environments")
    plain = exports / "loop" / "plain.jsonl"
    files = sorted(path for path in exports.glob("*/*.json*") if path != plain)
    differences = sum([compare(path, plain, given.folder / "clinic.sqlite") for path in files])
    if given.fixtures:
        keep(exports)
    return 1 if differences else 0


def script_of(logs: Path, count: int) -> dict[str, Any]:
    """Return a few simulated conversations, with parallel calls, failures, refusals, and results of every kind."""
    talks = [talk for each in read(logs) if isinstance(each, Trajectory) and (talk := _talk(each)) is not None]
    rng = random.Random(1)
    rng.shuffle(talks)
    chosen: list[dict[str, Any]] = []
    for wanted in (_fails, _is_refused, _is_parallel, _calls):
        quota = count // 4 if wanted is not _calls else count - len(chosen)
        chosen += [talk for talk in talks if wanted(talk) and talk not in chosen][:quota]
    for number, talk in enumerate(chosen):
        _return(talk, number)
    tools = load_pack("clinic").schema.tools.values()
    definitions = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": {
                    "type": "object",
                    "properties": tool.parameters,
                    "required": [name for name in tool.parameters if name in tool.required],
                },
            },
        }
        for tool in tools
    ]
    return {"conversations": chosen, "tools": definitions}


def _talk(recorded: Trajectory) -> dict[str, Any] | None:
    """Return a recorded conversation as a script, or None if an agent's loop could not produce it."""
    talk: dict[str, Any] = {"id": recorded.id, "system": recorded.instructions, "turns": []}
    answers = {event.call: event for event in recorded.events if isinstance(event, Result)}
    turn = -1
    for at, event in enumerate(recorded.events):
        if isinstance(event, Message) and event.by == "user":
            talk["turns"].append({"user": event.text, "steps": []})
        elif isinstance(event, Result):
            continue
        elif not talk["turns"]:
            return None
        else:
            steps = talk["turns"][-1]["steps"]
            if event.turn != turn or not steps:
                turn = event.turn
                steps.append({"text": None, "calls": []})
            if isinstance(event, Message):
                steps[-1]["text"] = event.text
                continue
            answer = answers.get(at)
            if event.fault or answer is None or not answer.captured or event.by != "agent":
                return None
            id = f"call_{recorded.id.replace('-', '_')}_{at}"
            call = {"id": id, "name": event.tool, "arguments": event.arguments, "result": str(answer.content)}
            steps[-1]["calls"].append(call)
    if talk["turns"] and not talk["turns"][-1]["steps"]:
        talk["turns"].pop()
    if any(len({(call["name"], str(call["arguments"])) for call in step}) < len(step) for step in _each_step(talk)):
        # If two equal calls are made at once, each may get the result of the other.
        return None
    is_loop = talk["turns"] and all(
        turn["steps"]
        and not turn["steps"][-1]["calls"]
        and turn["steps"][-1]["text"]
        and all(step["calls"] and all(call["result"] for call in step["calls"]) for step in turn["steps"][:-1])
        for turn in talk["turns"]
    )
    return talk if is_loop else None


def _each_step(talk: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [step["calls"] for turn in talk["turns"] for step in turn["steps"]]


def _each_call(talk: dict[str, Any]) -> list[dict[str, Any]]:
    return [call for step in _each_step(talk) for call in step]


def _fails(talk: dict[str, Any]) -> bool:
    return any(call["result"].startswith("Error") for call in _each_call(talk))


def _is_refused(talk: dict[str, Any]) -> bool:
    return any(call["result"].startswith('{"error"') for call in _each_call(talk))


def _is_parallel(talk: dict[str, Any]) -> bool:
    return any(len(step) > 1 for step in _each_step(talk))


def _calls(talk: dict[str, Any]) -> bool:
    return bool(_each_call(talk))


def _return(talk: dict[str, Any], number: int) -> None:
    """Replace the tools' results in this conversation with objects, JSON text, instances of classes, or exceptions."""
    for call in _each_call(talk):
        text = call["result"]
        if text.startswith("Error: "):
            call["returns"] = "raise" if number % 2 else "text"
            call["result"] = text.removeprefix("Error: ") if number % 2 else text
        elif text[:1] in "{[":
            call["result"] = json.loads(text)
            kind = ("data", "json", "record")[number % 3]
            call["returns"] = "data" if kind == "record" and not _is_record(call["result"]) else kind
        else:
            call["returns"] = "text"


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) and "error" not in value and all(name.isidentifier() for name in value)


def drive(stack: str, script: Path, out: Path, environments: Path) -> None:
    python = environments / stack / "bin" / "python"
    if not python.exists():
        print(f"{stack}: making its environment", flush=True)
        subprocess.run(["uv", "venv", "-q", "--python", "3.11", environments / stack], check=True)
        # Outside the project's folder, because users do not have its version bounds.
        subprocess.run(["uv", "pip", "install", "-q", "--python", python, *STACKS[stack]], check=True, cwd=environments)
    out.mkdir(parents=True)
    subprocess.run([python, HERE / "drive.py", stack, script, PAGE, out], check=True, cwd=out)


def compare(path: Path, plain: Path, world: Path) -> int:
    """Compare the verdicts on an export with those on the plain log. Print and return how many differ."""
    name = f"{path.parent.name}/{path.name}"
    total = 0
    for database in (world, None):
        want, have = verdicts(plain, database), verdicts(path, database)
        found = differences(want, have)
        counts = Counter(kind for kind, _ in found)
        total += sum(count for kind, count in counts.items() if kind != "inconclusive")
        how = "database" if database else "hindsight"
        print(f"{name:50} {how:9} {len(want):4} calls: {dict(counts) or 'the same'}", flush=True)
        for kind, what in [each for each in found if each[0] != "inconclusive"][:4]:
            print(f"    {kind}: {what}")
    return total


def verdicts(path: Path, world: Path | None) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the verdicts on a log, by conversation and number of earlier judged calls."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "audit"
        audit(Request((path,), "clinic", world, "hindsight"), out)
        lines = [json.loads(line) for line in (out / "calls.jsonl").read_text().splitlines()]
    counts: Counter[str] = Counter()
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for line in lines:
        line["rules"] = sorted({each["rule"] for each in line.get("rules") or ()})
        found[line["trajectory"], counts[line["trajectory"]]] = line
        counts[line["trajectory"]] += 1
    return found


def differences(
    want: dict[tuple[str, int], dict[str, Any]], have: dict[tuple[str, int], dict[str, Any]]
) -> list[tuple[str, str]]:
    """Return each difference by kind and place. A verdict that is `inconclusive` with a reason is its own kind."""
    found: list[tuple[str, str]] = []
    for key in sorted(want.keys() | have.keys()):
        left, right = want.get(key), have.get(key)
        if left is None or right is None:
            found.append(("a call more" if left is None else "a call less", f"{key}"))
            continue
        for what in ("tool", "executed", "strict", "determined", "rules"):
            if left.get(what) == right.get(what):
                continue
            is_told = "inconclusive" in (right["strict"], right["determined"]) and _is_told(right)
            kind = "inconclusive" if is_told else f"another {what}"
            found.append((kind, f"{key} {left['tool']}: {left.get(what)} / {right.get(what)}"))
            break
    return found


def _is_told(line: dict[str, Any]) -> bool:
    """Whether a call's line explains an inconclusive verdict: every undecided policy has a reason."""
    open = [policy for policy in line["policies"] if "inconclusive" in (policy["strict"], policy["determined"])]
    return bool(open) and all(policy["reason"]["kind"] != "none" for policy in open)


def keep(exports: Path) -> None:
    shutil.rmtree(FIXTURES, ignore_errors=True)
    FIXTURES.mkdir(parents=True)
    for path in sorted(exports.glob("*/*.json*")):
        with (FIXTURES / f"{path.parent.name}-{path.name}.gz").open("wb") as out:
            out.write(gzip.compress(path.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    sys.exit(main())
