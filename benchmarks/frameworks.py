"""Tests the shield in every framework it plugs into, each in an environment of its own.

    uv run python benchmarks/frameworks.py [FRAMEWORK...] [--folder DIR]

An environment holds Bylaw with the framework's extra, made on the first run. The tests are those of
tests/integrations: they enter by the framework's own run call, with a scripted model on the loopback. Status 1 where
one fails or was skipped.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTING = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis", "openai")
FRAMEWORKS: dict[str, tuple[str, ...]] = {
    "mcp": (),
    "langchain": ("langchain-openai",),
    "openai-agents": (),
    "pydantic-ai": ("pydantic-ai-slim[openai]",),
    "adk": ("litellm", "mcp"),
    "claude": (),
    "agent-framework": ("agent-framework-openai",),
    "litellm": (),
    "loop": (),
}
"""The extra of each, which is also the name of its tests; and what only the tests need."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "frameworks", nargs="*", metavar="FRAMEWORK", help=f"of {', '.join(FRAMEWORKS)}; all by default"
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "bylaw-frameworks")
    given = parser.parse_args()
    failed = [each for each in given.frameworks or FRAMEWORKS if not passes(each, given.folder / each)]
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return 1 if failed else 0


def passes(framework: str, environment: Path) -> bool:
    """Whether the framework's tests pass in its environment, and none is skipped."""
    python = environment / "bin" / "python"
    if not python.exists():
        print(f"{framework}: making its environment", flush=True)
        environment.parent.mkdir(parents=True, exist_ok=True)
        extra = "" if framework == "loop" else f"[{framework}]"
        wanted = (f"{ROOT}{extra}", *FRAMEWORKS[framework], *TESTING)
        subprocess.run(["uv", "venv", "-q", "--python", "3.11", environment], check=True)
        # Away from the project, whose bounds on versions are not those of a user of the framework.
        subprocess.run(
            ["uv", "pip", "install", "-q", "--python", python, "-e", *wanted], check=True, cwd=environment.parent
        )
    found = sorted((ROOT / "tests" / "integrations").glob(f"test_{framework.replace('-', '_')}*.py"))
    tests = [str(each.relative_to(ROOT)) for each in found]
    print(f"{framework}: {' '.join(tests)}", flush=True)
    command = [python, "-m", "pytest", *tests, "-q", "-n", "0", "-rs", "-m", ""]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    print(done.stdout, flush=True)
    return done.returncode == 0 and "SKIPPED" not in done.stdout


if __name__ == "__main__":
    sys.exit(main())
