"""`pytest --cpu-time`: what the tests cost in seconds of processor time, children included.

Unlike `--durations` it hardly depends on what else the machine does. A fixture counts for the test that needs it first,
a process for the test that waits for its end.
"""

import os
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

_spent: Counter[str] = Counter()
_children: Counter[str] = Counter()
_READ_AT = pytest.StashKey[tuple[float, float]]()


def _read() -> tuple[float, float]:
    """What this process has spent so far, and what those that it started and that have ended."""
    times = os.times()
    return times.user + times.system, times.children_user + times.children_system


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-time", type=int, default=0, metavar="N", help="show the N dearest tests, by processor time")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    now = _read()
    own, children = (new - old for new, old in zip(now, item.config.stash.get(_READ_AT, now), strict=True))
    spent: list[tuple[str, object]] = [("cpu", own + children), ("children", children)]
    report.user_properties = spent
    item.config.stash[_READ_AT] = now
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_READ_AT] = _read()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    spent: dict[str, Any] = dict(report.user_properties)
    _spent[report.nodeid] += spent["cpu"]
    _children[report.nodeid] += spent["children"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    shown = config.getoption("--cpu-time")
    if shown:
        terminalreporter.section("processor time")
        terminalreporter.write_line("    all  of it in processes that tests started")
        for title, whole, children in (("files", by_file(_spent), by_file(_children)), ("tests", _spent, _children)):
            terminalreporter.write_line(f"{whole.total():7.1f} {children.total():7.1f} s  all {len(whole)} {title}")
            for name, seconds in whole.most_common(shown):
                terminalreporter.write_line(f"{seconds:7.1f} {children[name]:7.1f} s  {name}")


def by_file(tests: Counter[str]) -> Counter[str]:
    files: Counter[str] = Counter()
    for test, seconds in tests.items():
        files[test.partition("::")[0]] += seconds
    return files
