"""The clinic's part of the page agrees with the recorded answers."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "lab" / "results" / "pages" / "answering.md"


@pytest.fixture(scope="module", name="benchmark")
def load() -> Iterator[ModuleType]:
    sys.path.insert(0, str(ROOT / "lab" / "benchmarks"))
    try:
        import answering  # pyright: ignore[reportMissingImports]

        yield answering
    finally:
        sys.path.remove(str(ROOT / "lab" / "benchmarks"))


def test_the_page_says_what_the_recorded_answers_come_to(benchmark: ModuleType) -> None:
    sites = benchmark.clinic_sites()
    chat = benchmark.Asked([benchmark.Recordings(benchmark.HERE / "recorded")])
    results = benchmark.everything(sites, {"clinic": benchmark.pack_of("clinic")}, chat)
    assert not chat.missing, "prompts or plans have changed since: ask again with --ask"
    assert sum(len(site.truth) for site in sites) == 20
    page = PAGE.read_text(encoding="utf-8").splitlines()
    rows = list(benchmark.page.settled_rows(results, ["clinic"]))
    assert len(rows) == 3
    assert set(rows) <= set(page)
    assert set(benchmark.page.kind_rows(results.settled["long"])) <= set(page)
    asked = [sum(each.queries for each in found) for found in results.settled.values()]
    assert asked == sorted(asked, reverse=True), "memory spares queries"
    values = [[each.value for each in found] for found in results.settled.values()]
    assert values[0] == values[1] == values[2], "and changes no answer"


def test_every_recorded_answer_is_used_once(benchmark: ModuleType) -> None:
    lines = (benchmark.HERE / "recorded" / "clinic.jsonl").read_bytes().splitlines()
    keys = [line.split(b'"')[3] for line in lines]
    assert len(keys) == len(set(keys))
    assert all(key.endswith(b"-1") for key in keys), "the first answer counts"
