"""`pytest --cpu-time`: what the tests cost in seconds of processor time, children included.

Unlike `--durations` it hardly depends on what else the machine does. A fixture counts for the test that needs it first.
"""

import os
from collections import Counter
from collections.abc import Iterator

import pytest

_spent: Counter[str] = Counter()
_READ_AT = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-time", type=int, default=0, metavar="N", help="show the N dearest tests, by processor time")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    now = sum(os.times()[:4])
    report.user_properties = [("cpu", now - item.config.stash.get(_READ_AT, now))]
    item.config.stash[_READ_AT] = now
    return report


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_READ_AT] = sum(os.times()[:4])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for name, seconds in report.user_properties:
        if name == "cpu":
            _spent[report.nodeid] += seconds


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    shown = config.getoption("--cpu-time")
    if shown:
        terminalreporter.section("processor time")
        files: Counter[str] = Counter()
        for test, seconds in _spent.items():
            files[test.partition("::")[0]] += seconds
        for title, counter in (("files", files), ("tests", _spent)):
            terminalreporter.write_line(f"{sum(counter.values()):7.1f} s  all {len(counter)} {title}")
            for name, seconds in counter.most_common(shown):
                terminalreporter.write_line(f"{seconds:7.1f} s  {name}")
