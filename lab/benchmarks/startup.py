"""CPU seconds until `bylaw audit` has judged a log of one conversation: all that is not the conversations; and what
importing the proxy takes beyond the MCP SDK that it stands on (fastmcp), where that is installed.

    uv run python lab/benchmarks/startup.py [--world DIR] [--runs 9]

The airline's pack, and with `--world` the folder of its databases (`../shared/data/tau-airline`, if it is there). The
least of several runs counts: other work on the machine only ever adds to it.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
AIRLINE = ROOT.parent / "shared" / "data" / "tau-airline"
GOAL_S = 0.6
PROXY_GOAL_S = 0.5
PROXY = """
import time
import fastmcp.client.transports, fastmcp.server.middleware, fastmcp.server.providers.proxy
sdk = time.process_time()
import bylaw.integrations.mcp
print(time.process_time() - sdk, sdk)
"""
CALL = {"name": "cancel_reservation", "arguments": {"reservation_id": "4WQ150"}, "requestor": "assistant", "id": "1"}
RUN = {
    "info": {"environment_info": {"domain_name": "airline"}},
    "tasks": [],
    "simulations": [
        {
            "id": "one",
            "task_id": "0",
            "reward_info": {"reward": 1.0},
            "messages": [
                {"role": "user", "content": "Please cancel 4WQ150. Yes."},
                {"role": "assistant", "content": None, "tool_calls": [CALL]},
                {"role": "tool", "id": "1", "content": '{"reservation_id": "4WQ150", "status": "cancelled"}'},
            ],
        }
    ],
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world", type=Path, default=AIRLINE if AIRLINE.is_dir() else None)
    parser.add_argument("--runs", type=int, default=9)
    given = parser.parse_args()
    bylaw = Path(sys.executable).with_name("bylaw")
    with tempfile.TemporaryDirectory(prefix="bylaw-startup-") as folder:
        log = Path(folder) / "run.json"
        log.write_text(json.dumps(RUN), encoding="utf-8")
        command = [str(bylaw), "audit", str(log), "--pack", "tau-airline", "--out", f"{folder}/out"]
        if given.world is not None:
            command += ["--world", str(given.world)]
        # Compiled files are there after the first run, wherever the machine keeps them otherwise.
        os.environ["PYTHONPYCACHEPREFIX"] = f"{folder}/compiled"
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        audit = min(cpu(command) for _ in range(given.runs))
        calls = (Path(folder) / "out" / "calls.jsonl").read_text(encoding="utf-8").count("\n")
        assert calls == 1, "the conversation was not judged"
        told = min(cpu([str(bylaw), "--help"]) for _ in range(given.runs))
        proxy = min((imported() for _ in range(given.runs)), default=None) if find_spec("fastmcp") else None
    print(f"bylaw audit, airline{' with world' if given.world else ''}: {audit:6.3f} CPU s  (goal {GOAL_S})")
    print(f"bylaw --help:                    {told:6.3f} CPU s")
    if proxy is not None:
        beyond, sdk = proxy
        told_of_proxy = f"{beyond:6.3f} CPU s beyond {sdk:.3f} of fastmcp  (goal {PROXY_GOAL_S})"
        print(f"bylaw.integrations.mcp:          {told_of_proxy}")
    return 0 if audit <= GOAL_S and (proxy is None or proxy[0] <= PROXY_GOAL_S) else 1


def imported() -> tuple[float, float]:
    """CPU seconds that the proxy's import takes, in one process, and those that the SDK's took before it."""
    told = subprocess.run([sys.executable, "-c", PROXY], check=True, capture_output=True, text=True).stdout
    beyond, sdk = map(float, told.split())
    return beyond, sdk


def cpu(command: list[str]) -> float:
    """CPU seconds of a process, user and system, the compiled files being there."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
