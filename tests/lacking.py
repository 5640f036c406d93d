"""A folder of tests whose packages are not installed is skipped as one; `lab/benchmarks/lanes.py` runs them all."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

NEEDS = {
    "align/training": ("torch", "transformers", "trl", "peft"),
    "console/browser": ("playwright",),
    "integrations/adk": ("google.adk", "litellm"),
    "integrations/agent_framework": ("agent_framework", "agent_framework_openai"),
    "integrations/langchain": ("langchain", "langchain_openai"),
    "integrations/openai_agents": ("agents",),
    "integrations/pydantic_ai": ("pydantic_ai", "openai"),
    "reading/browser": ("playwright",),
    "report/browser": ("playwright",),
}


class Lacking(pytest.Dir):
    """A folder that is looked into no further."""

    def collect(self) -> list[pytest.Item]:
        pytest.skip(f"{_within(self.path)} needs {', '.join(lacking(self.path))}")


def lacking(folder: Path) -> list[str]:
    """The packages that the folder's tests need and that are not installed."""
    return [name for name in NEEDS.get(_within(folder), ()) if not _is_installed(name)]


def _within(folder: Path) -> str:
    return os.path.relpath(folder, Path(__file__).parent).replace(os.sep, "/")


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # what it is a part of is not installed
        return False


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return Lacking.from_parent(parent, path=path) if lacking(path) else None
