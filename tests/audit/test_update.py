"""Outputs that nightly runs add to: the same as one audit of what there is in the end, whatever came when."""

import errno
import json
import os
import random
import re
import shutil
import subprocess
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct

from bylaw.audit.batch.query import Tables
from bylaw.audit.batch.tables import TABLES, arrow, arrow_schema
from bylaw.audit.batch.update import Added, update
from bylaw.audit.output import lock_folder
from bylaw.audit.request import Request
from bylaw.audit.run import audit
from bylaw.audit.store import read_calls
from bylaw.errors import UsageError
from bylaw.trace import source
from tests.audit.logs import CAREFUL, HASTY, WRONG, Shop, record, write_logs
from tests.audit.sharded import Inline, Killed, rows, sharded
from tests.command import bylaw
from tests.ready import begin

pytest.importorskip("pyarrow")

KINDS = {"careful": CAREFUL, "hasty": HASTY, "wrong": WRONG}
UNLIKE = ("files", "date", "skipped")
PLACED = ("ordinal", "file", "position", "record")


class Log(Struct):
    """A log of the model: ids and kinds of its conversations."""

    talks: list[tuple[str, str]]
    day: int

    def records(self) -> list[dict[str, Any]]:
        return [talk(id, kind, self.day) for id, kind in self.talks]


def talk(id: str, kind: str, day: int) -> dict[str, Any]:
    made = record(*KINDS[kind], id=id, agent=f"agent-{len(id) % 2}")
    made["messages"][0] = made["messages"][0] | {"time": f"2025-04-{day:02}T09:00:00Z"}
    return made


def add(
    shop: Shop,
    *files: Path,
    engine: Inline | None = None,
    out: str = "state",
    keep_days: int | None = None,
    **options: Any,
) -> Added:
    request = Request(files, str(shop.pack), shop.world, **options)
    return update(request, shop.root / out, engine or Inline(), size=600, keep_days=keep_days)


def told(out: Path) -> dict[str, Any]:
    """What an output says, but for where its rows came from."""
    found = {
        table: sorted(
            ({name: value for name, value in row.items() if name not in PLACED} for row in rows(out, table)), key=str
        )
        for table in TABLES
    }
    summary = json.loads((out / "summary.json").read_bytes())
    return found | {"summary": {name: value for name, value in summary.items() if name not in UNLIKE}}


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 12))])
def test_any_nights_come_to_one_audit_of_what_there_is_in_the_end(shop: Shop, seed: int) -> None:
    draw = random.Random(seed)
    logs: dict[str, Log] = {}
    held: dict[str, tuple[str, int]] = {}
    came: list[str] = []
    for night in range(1, 6):
        changed = [f"log-{number}" for number in range(night) if number == night - 1 or draw.random() < 0.3]
        for name in changed:
            ids = [
                f"t{draw.randrange(8) if draw.random() < 0.5 else 100 * night + n}" for n in range(draw.randrange(5))
            ]
            logs[name] = Log([(id, draw.choice(list(KINDS))) for id in ids], draw.randrange(1, 4))
            write_logs(shop.root / f"{name}.jsonl", logs[name].records())
            os.utime(shop.root / f"{name}.jsonl", ns=(night * 10**9, night * 10**9 + draw.randrange(10**6)))
        came = [name for name in came if name not in changed] + changed
        held = {id: (kind, logs[name].day) for name in came for id, kind in logs[name].talks}
        added = add(shop, *(shop.root / f"{name}.jsonl" for name in logs))
        assert len(changed) <= added.read <= len(logs)
        assert added.held == len(held)
    whole = write_logs(shop.root / "whole.jsonl", [talk(id, kind, day) for id, (kind, day) in held.items()])
    want = sharded([whole], str(shop.pack), shop.root / "want", world=shop.world).out
    assert told(shop.root / "state") == told(want)


def test_what_is_open_adds_up_over_shards_and_nights(clinic: Path, tmp_path: Path) -> None:
    world = clinic.with_name("clinic.sqlite")
    lines = clinic.read_bytes().splitlines(keepends=True)
    halves = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for half, part in zip(halves, (lines[:40], lines[40:]), strict=True):
        half.write_bytes(b"".join(part))
    want = audit(Request(tuple(halves), "clinic", world), tmp_path / "small").summary["open"]
    shards = sharded(halves, "clinic", tmp_path / "shards", size=9000, world=world).summary["open"]
    update(Request((halves[0],), "clinic", world), tmp_path / "nights", Inline())
    nights = update(Request(tuple(halves), "clinic", world), tmp_path / "nights", Inline()).report.summary["open"]
    assert want["calls"] > 1
    assert len(want["rules"]) > 0
    assert shards == nights == want


def test_a_log_whose_correction_is_taken_back_is_read_again(shop: Shop) -> None:
    day = write_logs(shop.root / "day.jsonl", [talk(id, "hasty", 1) for id in "abc"])
    fix = write_logs(shop.root / "fix.jsonl", [talk("a", "careful", 1)])
    assert add(shop, day, fix).held == 3
    write_logs(fix, [talk("d", "careful", 1), talk("e", "careful", 1)])
    added = add(shop, day, fix)
    assert (added.read, added.replaced, added.removed, added.held) == (2, 3, 0, 5)
    assert sorted(row["conversation"] for row in rows(shop.root / "state", "conversations")) == list("abcde")
    assert add(shop, day, fix).read == 0


def test_what_is_in_no_log_any_more_and_logs_that_are_gone_are_told(shop: Shop) -> None:
    day = write_logs(shop.root / "day.jsonl", [talk(id, "hasty", 1) for id in "abc"])
    fix = write_logs(shop.root / "fix.jsonl", [talk("a", "careful", 1), talk("d", "careful", 1)])
    assert add(shop, day, fix).held == 4
    day.unlink()
    write_logs(fix, [talk("d", "wrong", 1)])
    added = add(shop, fix)
    assert (added.replaced, added.removed, added.held) == (1, 1, 3)
    (fault,) = added.report.skipped
    assert (fault.place, fault.message.partition(";")[0]) == (
        str(day),
        "this log is missing, so Bylaw cannot tell which conversations of other logs it replaced",
    )


def test_another_criterion_is_refused(shop: Shop) -> None:
    log = write_logs(shop.root / "one.jsonl", [talk("a", "hasty", 1)])
    add(shop, log)
    with pytest.raises(UsageError, match="uses the criterion `determined`, not `strict`"):
        add(shop, log, criterion="strict")


def test_a_log_that_cannot_be_opened_keeps_its_rows_and_is_tried_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = (write_logs(shop.root / f"{name}.jsonl", [talk(name, "hasty", 1)]) for name in ("one", "two"))
    assert add(shop, one).held == 1
    write_logs(one, [talk("one", "careful", 1), talk("more", "careful", 1)])
    opened = source.open_bytes

    def shut(path: Any, size: int) -> Any:
        if Path(path).parent == shop.root:
            raise PermissionError(errno.EACCES, "Permission denied")  # root is let in everywhere
        return opened(path, size)

    with monkeypatch.context() as while_shut:
        while_shut.setattr(source, "open_bytes", shut)
        added = add(shop, one, two)
    assert added.held == 1
    assert {fault.message for fault in added.report.skipped} == {"cannot read: permission denied"}
    added = add(shop, one, two)
    assert (added.read, added.held, added.report.skipped) == (2, 3, ())


def test_a_log_that_was_read_is_not_read_again(shop: Shop) -> None:
    one = write_logs(shop.root / "one.jsonl", [talk("a", "hasty", 1)])
    add(shop, one)
    stamp = one.stat()
    one.write_bytes(b"x" * stamp.st_size)
    os.utime(one, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    two = write_logs(shop.root / "two.jsonl", [talk("b", "wrong", 2)])
    engine = Inline()
    added = add(shop, one, two, engine=engine)
    assert (added.read, added.known, added.held, added.replaced) == (1, 1, 2, 0)
    assert [shard.file for shard in engine.judged] == [0]
    assert added.report.skipped == ()
    assert {row["conversation"] for row in rows(shop.root / "state", "conversations")} == {"a", "b"}


def test_files_that_nothing_was_taken_from_are_the_same_files(shop: Shop) -> None:
    logs = [write_logs(shop.root / f"{day}.jsonl", [talk(f"t{day}", "hasty", day)]) for day in (1, 2, 3)]
    add(shop, *logs)
    calls = shop.root / "state" / "tables" / "calls"
    before = {path.parent.name: path.stat().st_ino for path in calls.rglob("*.parquet")}
    add(shop, write_logs(shop.root / "late.jsonl", [talk("t2", "wrong", 2)]))
    after = {path.parent.name: path.stat().st_ino for path in calls.rglob("*.parquet")}
    assert [day for day in before if before[day] != after[day]] == ["day=2025-04-02"]


def test_a_rewritten_file_keeps_the_types_of_its_columns(shop: Shop) -> None:
    add(shop, write_logs(shop.root / "first.jsonl", [talk("kept", "hasty", 1), talk("replaced", "hasty", 1)]))
    add(shop, write_logs(shop.root / "second.jsonl", [talk("replaced", "wrong", 2)]))
    for table in TABLES:
        for file in (shop.root / "state" / "tables" / table).rglob("*.parquet"):
            wanted = arrow_schema(table)
            assert arrow("parquet").read_schema(file).equals(wanted.remove(wanted.get_field_index("day"))), file


def test_a_copy_of_an_output_goes_on_where_it_was_copied(shop: Shop) -> None:
    logs = [write_logs(shop.root / f"{n}.jsonl", [talk(f"t{n}", "hasty", n)]) for n in (1, 2)]
    add(shop, logs[0])
    subprocess.run(["cp", "-a", "state", "copy"], cwd=shop.root, check=True)
    shutil.rmtree(shop.root / "state")
    added = add(shop, *logs, out="copy")
    assert (added.read, added.known, added.held) == (1, 1, 2)
    assert {row["conversation"] for row in rows(shop.root / "copy", "conversations")} == {"t1", "t2"}


def test_conversations_without_ids_are_told_apart_by_the_whole_path(shop: Shop) -> None:
    for day in (1, 2):
        (shop.root / f"day-{day}").mkdir()
        add(shop, write_logs(shop.root / f"day-{day}" / "logs.jsonl", [record(*HASTY), record(*WRONG)]))
    assert len(rows(shop.root / "state", "conversations")) == 4


@pytest.mark.parametrize("at", range(4))
def test_a_run_killed_while_it_puts_tables_in_place_is_ended_by_the_next(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    import bylaw.audit.batch.update as replacing

    one = write_logs(shop.root / "one.jsonl", [talk("a", "hasty", 1), talk("b", "careful", 1)])
    two = write_logs(shop.root / "two.jsonl", [talk("a", "wrong", 1)])
    add(shop, one, out="want")
    add(shop, one, two, out="want")
    add(shop, one)
    steps = 0

    def killed_at(*paths: Path) -> None:
        nonlocal steps
        if steps == at:
            raise Killed
        steps += 1
        os.rename(*paths)

    def removed(path: Path, **_: object) -> None:
        if at == 3 and steps == 3:
            raise Killed
        shutil.rmtree(path, ignore_errors=True)

    with monkeypatch.context() as patched:
        patched.setattr(replacing, "os", SimpleNamespace(replace=killed_at, link=os.link))
        patched.setattr(replacing, "shutil", SimpleNamespace(rmtree=removed))
        with pytest.raises(Killed):
            add(shop, one, two)
    assert steps == at
    added = add(shop, one, two)
    assert added.held == 2
    assert told(shop.root / "state") == told(shop.root / "want")
    assert not [path.name for path in (shop.root / "state").iterdir() if path.name.startswith(".")]


def test_a_run_killed_between_shards_is_taken_up(shop: Shop) -> None:
    logs = write_logs(shop.root / "one.jsonl", [talk(f"t{n}", "hasty", 1) for n in range(8)])
    first, second = Inline(ends_after=2), Inline()
    with pytest.raises(Killed):
        add(shop, logs, engine=first)
    add(shop, logs, engine=second)
    assert {shard.key for shard in first.judged}.isdisjoint({shard.key for shard in second.judged})
    assert len(rows(shop.root / "state", "conversations")) == 8


def test_a_log_that_was_set_aside_in_part_is_read_again(shop: Shop) -> None:
    class Failing(Inline):
        def run(self, job: Any, shards: Any) -> Any:
            from bylaw.audit.batch.run import Outcome

            every = list(shards)
            yield Outcome(every[0], why="too much")
            yield from super().run(job, iter(every[1:]))

    logs = write_logs(shop.root / "one.jsonl", [talk(f"t{n}", "hasty", 1) for n in range(8)])
    added = add(shop, logs, engine=Failing())
    assert "set aside: too much" in added.report.skipped[0].message
    assert 0 < added.held < 8
    added = add(shop, logs)
    assert added.report.skipped == ()
    assert added.held == len(rows(shop.root / "state", "conversations")) == 8


@pytest.mark.process
def test_two_runs_at_once_leave_what_one_after_the_other_leaves(shop: Shop) -> None:
    logs = [write_logs(shop.root / f"{n}.jsonl", [talk(f"t{n}-{k}", "hasty", 1) for k in range(4)]) for n in (1, 2)]
    command = ("audit", "--pack", "pack", "--world", "world.json", "--update", "--out", "state")
    told: list[str] = []
    started = [
        subprocess.Popen([*begin("bylaw"), *command, str(log)], cwd=shop.root, stderr=subprocess.PIPE, text=True)
        for log in logs
    ]
    for process in started:
        told.append(process.communicate()[1])
        assert process.returncode in (0, 2)
    # The lock goes with its process: whoever was refused comes again.
    for process, text, log in zip(started, told, logs, strict=True):
        if process.returncode:
            assert "another audit is writing to" in text
            assert bylaw(shop.root, *command, log).returncode == 0
    assert len(rows(shop.root / "state", "conversations")) == 8


def test_what_is_added_to_is_refused_where_nothing_can_lock(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(95, "not supported")

    monkeypatch.setattr("bylaw.audit.output.fcntl.flock", no_locks)
    with pytest.raises(UsageError, match="does not support locks"), lock_folder(shop.root, surely=True):
        pass


def test_another_audit_does_not_take_its_place_nor_the_other_way_round(shop: Shop) -> None:
    logs = write_logs(shop.root / "one.jsonl", [talk("a", "hasty", 1)])
    add(shop, logs)
    with pytest.raises(UsageError, match="the output of nightly runs"):
        sharded([logs], str(shop.pack), shop.root / "state")
    with pytest.raises(UsageError, match="the output of nightly runs"):
        audit(Request((logs,), str(shop.pack)), shop.root / "state")
    sharded([logs], str(shop.pack), shop.root / "plain")
    with pytest.raises(UsageError, match="run without --update"):
        add(shop, logs, out="plain")


def test_another_pack_is_refused_and_nothing_changes(shop: Shop) -> None:
    logs = write_logs(shop.root / "one.jsonl", [talk("a", "hasty", 1)])
    add(shop, logs)
    policies = shop.pack / "policies.yaml"
    policies.write_text(policies.read_text() + "\n# another day\n")
    before = (shop.root / "state" / "summary.json").read_bytes()
    with pytest.raises(UsageError, match="another pack"):
        add(shop, logs, agent="somebody")
    assert (shop.root / "state" / "summary.json").read_bytes() == before


@pytest.mark.usefixtures("quick_workers")
def test_the_command_adds_and_sql_and_report_read_all_nights(shop: Shop) -> None:
    pytest.importorskip("duckdb")
    for day, kind in ((1, "hasty"), (2, "wrong")):
        write_logs(shop.root / f"day-{day}.jsonl", [talk(f"t{day}", kind, day)])
        done = bylaw(
            shop.root, "audit", "day-*.jsonl", "--pack", "pack", "--world", "world.json", "--update", "--out", "state"
        )
        assert done.returncode == 0, done.stderr
        assert (
            f"Read 1 new or changed logs ({day - 1} were already known): 1 conversations, 0 replaced; {day} in total"
            in done.stdout
        )
    found = Tables(shop.root / "state").query("SELECT conversation, verdict FROM calls ORDER BY conversation")[1]
    assert found == [("t1", "near_miss"), ("t2", "violation")]
    done = bylaw(shop.root, "report", "state")
    assert done.returncode == 0, done.stderr
    page = (shop.root / "state" / "report.html").read_text()
    assert "t1" in page
    assert "t2" in page
    assert not (shop.root / "state" / "calls.jsonl").exists()


@pytest.mark.process
def test_the_console_shows_all_nights(shop: Shop) -> None:
    pytest.importorskip("uvicorn")
    pytest.importorskip("jinja2")
    for day, kind in ((1, "hasty"), (2, "wrong")):
        add(shop, write_logs(shop.root / f"day-{day}.jsonl", [talk(f"t{day}", kind, day)]))
    command = [*begin("bylaw"), "view", "state", "--port", "0", "--pack", "pack"]
    with subprocess.Popen(command, cwd=shop.root, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = re.search(r"http://\S+", process.stdout.readline())
            assert address is not None
            with urllib.request.urlopen(f"{address[0]}findings", timeout=120) as page:
                told = page.read().decode()
        finally:
            process.terminate()
            process.wait(120)
    assert "near-miss (1)" in told
    assert "violation (1)" in told


def test_many_nights_leave_few_files(shop: Shop) -> None:
    logs = [write_logs(shop.root / f"{n}.jsonl", [talk(f"t{n}-{k}", "hasty", 1) for k in range(2)]) for n in range(12)]
    for count in range(1, len(logs) + 1):
        add(shop, *logs[:count])
        files = len([*(shop.root / "state" / "tables" / "calls").rglob("*.parquet")])
        assert files <= 8
    assert told(shop.root / "state") == told(sharded(logs, str(shop.pack), shop.root / "want", world=shop.world).out)
    lines = [row["trajectory"] for row in read_calls(shop.root / "state")]
    assert lines == [f"t{n}-{k}" for n in range(12) for k in range(2)]


def test_days_that_are_not_kept_leave_tables_counts_and_state(shop: Shop) -> None:
    now = datetime.now(UTC).date()

    def day(name: str, ago: int) -> Path:
        made = talk(name, "hasty", 1)
        made["messages"][0]["time"] = f"{now - timedelta(days=ago)}T09:00:00Z"
        return write_logs(shop.root / f"{name}.jsonl", [made, untimed(name)])

    def untimed(name: str) -> dict[str, Any]:
        return record(*WRONG, id=f"{name}-untimed", agent="clerk")

    old, new = day("old", 31), day("new", 2)
    assert (add(shop, old, new).held, add(shop, old, new, keep_days=40).held) == (4, 4)
    kept = add(shop, old, new, keep_days=30)
    assert (kept.read, kept.expired, kept.held) == (0, 1, 3)
    # An old conversation that comes late is not kept either, nor is its log read every night.
    later = add(shop, old, new, day("late", 33), keep_days=30)
    assert (later.read, later.expired, later.held) == (1, 1, 4)
    assert add(shop, old, new, shop.root / "late.jsonl", keep_days=30).read == 0
    undated = [write_logs(shop.root / f"{name}-left.jsonl", [untimed(name)]) for name in ("old", "late")]
    want = sharded([new, *undated], str(shop.pack), shop.root / "want", world=shop.world).out
    assert told(shop.root / "state") == told(want)


def test_a_run_that_is_too_old_and_left_nothing_is_forgotten_with_its_logs(shop: Shop) -> None:
    now = datetime.now(UTC).date()
    logs: dict[str, Path] = {}
    # The new log has a conversation of the one that is gone.
    for name, id, ago in (("gone", "twice", 31), ("given", "given", 31), ("new", "twice", 1)):
        made = talk(id, "hasty", 1)
        made["messages"][0]["time"] = f"{now - timedelta(days=ago)}T09:00:00Z"
        logs[name] = write_logs(shop.root / f"{name}.jsonl", [made])
    add(shop, logs["gone"], logs["given"])
    state = shop.root / "state" / "tables" / "state" / "state.json"
    state.write_text(state.read_text().replace(str(datetime.now(UTC).date()), str(now - timedelta(days=31))))
    logs["gone"].unlink()
    added = add(shop, logs["given"], logs["new"], keep_days=30)
    assert (added.read, added.expired, added.held, added.report.skipped) == (1, 1, 1, ())
    held = json.loads(state.read_text())
    assert [Path(name).stem for name in held["files"]] == ["given", "new"]
    assert held["conversations"] == 1
    # What is still given is not read again, and what the new log replaced is not asked for.
    assert add(shop, logs["given"], logs["new"], keep_days=30).read == 0
    write_logs(logs["new"], [talk("later", "wrong", 1)])
    added = add(shop, logs["given"], logs["new"])
    assert (added.held, added.report.skipped) == (1, ())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--keep-days", "30"], "`--keep-days` is for nightly runs"),
        (["--format", "both"], "`--update` adds to tables"),
        (["--redact"], "requires stable pseudonyms"),
        (["--sarif", "x.sarif"], "`--sarif` does not work with --update"),
    ],
)
def test_what_cannot_be_added_to_is_told_in_a_line(shop: Shop, options: list[str], said: str) -> None:
    write_logs(shop.root / "one.jsonl", [talk("a", "hasty", 1)])
    nightly = () if "--keep-days" in options else ("--update",)
    done = bylaw(shop.root, "audit", "one.jsonl", "--pack", "pack", *nightly, *options)
    assert done.returncode == 2
    assert said in done.stderr
