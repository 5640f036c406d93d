"""The table of design, cell by cell, and the rule over completions of user facts."""

import pytest

from bylaw.engine.verdict import Cell, combine, worst


@pytest.mark.parametrize(
    ("evidence", "world", "missing", "verdict"),
    [
        ("permit", "permit", False, "compliant"),
        ("permit", "deny", False, "violation"),
        ("permit", "undetermined", False, "compliant"),
        ("deny", "permit", False, "near_miss"),
        ("deny", "deny", False, "violation"),
        ("deny", "undetermined", False, "violation"),
        ("undetermined", "permit", True, "near_miss"),
        ("undetermined", "deny", True, "violation"),
        ("undetermined", "undetermined", True, "uninformed"),
        ("undetermined", "permit", False, "inconclusive"),
        ("undetermined", "undetermined", False, "inconclusive"),
        ("undetermined", "deny", False, "violation"),
        ("failed", "permit", False, "inconclusive"),
        ("permit", "failed", False, "inconclusive"),
        ("failed", "deny", False, "inconclusive"),
    ],
)
def test_one_completion_is_the_table(evidence: str, world: str, missing: bool, verdict: str) -> None:
    assert combine([Cell(evidence, world, missing)]).verdict == verdict  # pyright: ignore[reportArgumentType]


def test_all_completions_violations_is_a_violation() -> None:
    ruling = combine([Cell("deny", "deny", False), Cell("undetermined", "deny", True)])
    assert ruling.verdict == "violation"
    assert ruling.speaks_of == (0, 1)


def test_a_blind_completion_the_world_permits_is_a_near_miss_that_depends_on_the_user() -> None:
    ruling = combine([Cell("undetermined", "permit", True), Cell("undetermined", "deny", True)])
    assert (ruling.verdict, ruling.depends_on_user, ruling.speaks_of) == ("near_miss", True, (0,))


def test_a_blind_completion_of_an_unknown_world_is_uninformed() -> None:
    assert combine([Cell("undetermined", "undetermined", True), Cell("deny", "deny", False)]).verdict == "uninformed"


def test_completions_that_differ_with_nothing_missing_are_inconclusive() -> None:
    assert combine([Cell("permit", "permit", False), Cell("deny", "deny", False)]).verdict == "inconclusive"


def test_a_failed_completion_is_never_compliant() -> None:
    assert combine([Cell("permit", "permit", False), Cell("failed", "failed", False)]).verdict == "inconclusive"


def test_the_gravest_verdict_wins() -> None:
    assert worst(["compliant", "inconclusive", "uninformed"]) == "uninformed"
    assert worst(["near_miss", "violation", "compliant"]) == "violation"
    assert worst([]) == "compliant"


def test_nobody_is_lucky_where_what_the_host_did_not_say_decides() -> None:
    cells = [Cell("undetermined", "permit", True), Cell("undetermined", "deny", True)]
    ruling = combine(cells, hangs_on_host=True)
    assert (ruling.verdict, ruling.depends_on_user) == ("uninformed", True)
    assert combine([cells[0], cells[0]], hangs_on_host=True).verdict == "near_miss"
    assert combine([cells[1], cells[1]], hangs_on_host=True).verdict == "violation"
