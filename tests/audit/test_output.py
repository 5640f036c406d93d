"""The folder of an audit: an earlier one is not lost to a file nobody can read; what was killed is cleaned up."""

import json
from pathlib import Path
from typing import Any

import pytest

from bylaw.errors import UsageError
from tests.audit.logs import CAREFUL, HASTY, Shop, record
from tests.docs.walkthrough import run


def files_in(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


def at(time: Any, talk: dict[str, Any]) -> dict[str, Any]:
    return talk | {"messages": [message | {"timestamp": time} for message in talk["messages"]]}


def test_an_unreadable_file_does_not_replace_an_earlier_audit(shop: Shop) -> None:
    report = shop.audit(shop.logs(record(*HASTY, id="t1")))
    before = files_in(report.out)
    broken = shop.root / "broken.jsonl"
    broken.write_text("{not JSON\n")
    with pytest.raises(UsageError, match="no conversation could be read") as error:
        shop.audit(broken)
    assert "broken.jsonl" in error.value.message
    assert files_in(report.out) == before
    done = run(f"bylaw audit broken.jsonl --pack {shop.pack} --out out", shop.root)
    assert done.returncode == 2
    assert files_in(report.out) == before


def test_an_unreadable_file_beside_a_readable_one_is_named_and_the_audit_replaced(shop: Shop) -> None:
    shop.audit(shop.logs(record(*HASTY, id="t1")))
    broken = shop.root / "broken.jsonl"
    broken.write_text("{not JSON\n")
    report = shop.audit(broken, shop.logs(record(*CAREFUL, id="t2")))
    assert len(report.skipped) == 1
    assert report.summary["agents"][0]["trajectories"] == 1


def test_an_unreadable_file_alone_is_told_where_nothing_was_there(shop: Shop) -> None:
    broken = shop.root / "broken.jsonl"
    broken.write_text("{not JSON\n")
    assert len(shop.audit(broken).summary["skipped"]) == 1


def test_what_a_killed_audit_left_is_cleaned_by_the_next(shop: Shop) -> None:
    left = shop.root / "out" / ".audit-killed"
    (left / "parts-x").mkdir(parents=True)
    (left / "parts-x" / "part-0").write_bytes(b"x")
    report = shop.audit(shop.logs(record(*CAREFUL)))
    assert not left.exists()
    assert not list(report.out.glob(".audit-*"))


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.usefixtures("quick_workers")
def test_parts_of_an_audit_lie_where_the_next_one_cleans_up(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, jobs: int
) -> None:
    elsewhere = shop.root / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    shop.audit(shop.logs(record(*CAREFUL), record(*HASTY)), jobs=jobs)
    assert not list(elsewhere.glob("bylaw-*"))


def test_the_summary_says_when_of_what_and_of_which_days(shop: Shop) -> None:
    first = at("2025-05-02T10:00:00Z", record(*CAREFUL, id="a"))
    last = at("2025-05-09T11:30:00Z", record(*HASTY, id="b"))
    summary = shop.audit(shop.logs(first, last), shop.logs(record(*CAREFUL, id="c"), name="more.jsonl")).summary
    assert summary["files"] == ["logs.jsonl", "more.jsonl"]
    assert summary["period"] == {"from": "2025-05-02T10:00:00+00:00", "to": "2025-05-09T11:30:00+00:00"}
    assert len(summary["date"]) == len("2025-05-09")
    shown = run("bylaw explain out", shop.root).stdout
    assert f"audited on {summary['date']}: logs.jsonl, more.jsonl, conversations from 2025-05-02 to" in shown
    assert shop.audit(shop.logs(record(*CAREFUL))).summary["period"] is None


def test_times_that_are_no_times_are_no_period(shop: Shop) -> None:
    report = shop.audit(shop.logs(at(1e300, record(*CAREFUL))))
    assert report.summary["period"] is None
    assert json.loads((report.out / "summary.json").read_text()) == report.summary


def test_a_pack_that_sets_the_time_says_that_it_overrides_the_logs(shop: Shop) -> None:
    shop.logs(at(1_750_000_000, record(*HASTY)))
    command = f"bylaw audit logs.jsonl --pack {shop.pack} --out out"
    told = "The pack sets the time (`now: 2025-01-01T10:00:00`). Calls were judged as of that time"
    assert told in " ".join(run(command, shop.root).stdout.split())
    manifest = shop.pack / "pack.yaml"
    manifest.write_text("".join(line for line in manifest.read_text().splitlines(True) if not line.startswith("now:")))
    assert "sets the time" not in run(command, shop.root).stdout
