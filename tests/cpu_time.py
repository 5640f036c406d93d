"""`pytest --cpu-time`: what the tests cost in seconds of processor time, children included.

Unlike `--durations` it hardly depends on what else the machine does. A fixture counts for the test that needs it first,
a process for the test that waits for its end.
"""

import os
from collections import Counter
from collections.abc import Iterator

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
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    now = _read()
    own, children = (new - old for new, old in zip(now, item.config.stash.get(_READ_AT, now), strict=True))
    report.user_properties = [("cpu", own + children), ("children", children)]
    item.config.stash[_READ_AT] = now
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_READ_AT] = _read()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, seconds in report.user_properties:
        if name == "cpu":
            _spent[report.nodeid] += seconds
        elif name == "children":
            _children[report.nodeid] += seconds


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    shown = config.getoption("--cpu-time")
    if shown:
        terminalreporter.section("processor time")
        files: Counter[str] = Counter()
        for test, seconds in _spent.items():
            files[test.partition("::")[0]] += seconds
        terminalreporter.write_line(f"{sum(_children.values()):7.1f} s  in processes that tests started")
        for title, counter in (("files", files), ("tests", _spent)):
            terminalreporter.write_line(f"{sum(counter.values()):7.1f} s  all {len(counter)} {title}")
            for name, seconds in counter.most_common(shown):
                terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
