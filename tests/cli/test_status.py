"""What the command line says by its exit status: 2 usage or pack, else 1 findings, else 3 unreadable input, else 0."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests import command
from tests.audit.logs import CAREFUL, HASTY, WRONG, Shop, record, user


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def bylaw(shop: Shop, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return command.bylaw(shop.root, *arguments)


def audit(shop: Shop, *arguments: str | Path, world: bool = True) -> subprocess.CompletedProcess[str]:
    chosen: list[str | Path] = ["--world", shop.world] if world else []
    return bylaw(shop, "audit", *arguments, "--pack", shop.pack, *chosen)


KINDS = {"careful": CAREFUL, "hasty": HASTY, "wrong": WRONG}


@pytest.mark.parametrize(
    ("kinds", "broken", "fail_on", "status"),
    [
        (["careful"], False, "", 0),
        (["careful"], False, "violation", 0),
        (["careful"], True, "near_miss", 3),
        (["hasty", "wrong"], False, "", 0),
        (["hasty"], False, "violation", 0),
        (["hasty"], False, "near_miss", 1),
        (["hasty"], True, "near_miss", 1),
        (["hasty"], True, "violation", 3),
        (["wrong"], False, "violation", 1),
        (["wrong"], False, "near_miss", 1),
        (["wrong"], True, "violation", 1),
        (["hasty", "wrong"], True, "", 3),
    ],
)
def test_findings_then_unreadable_input(kinds: list[str], broken: bool, fail_on: str, status: int, shop: Shop) -> None:
    lines = [record(*KINDS[kind]) for kind in kinds]
    logs = shop.logs(*lines, *(["{"] if broken else []))
    ran = audit(shop, logs, *(["--fail-on", fail_on] if fail_on else []))
    assert ran.returncode == status, ran.stderr
    assert ("logs.jsonl:" in ran.stderr) == broken
    assert (shop.root / "out" / "summary.json").is_file()


def test_refused_violations_do_not_fail(shop: Shop) -> None:
    from tests.audit.logs import ship

    logs = shop.logs(record(ship("OPEN", {"error": "no"})))
    assert audit(shop, logs, "--fail-on", "near_miss").returncode == 0


@pytest.mark.parametrize(
    ("option", "value", "written"),
    [
        ("--pack", "nothing", WRONG),
        ("--world", "nowhere.sqlite", WRONG),
        ("--world", "nowhere.sqlite", (user("hi"),)),
        ("--world", ".", WRONG),
        ("--jobs", "0", WRONG),
        ("--fail-on", "x", WRONG),
    ],
)
def test_usage_comes_before_everything(option: str, value: str, written: Any, shop: Shop) -> None:
    chosen = {"--pack": str(shop.pack), "--fail-on": "violation", option: value}
    ran = bylaw(shop, "audit", shop.logs(record(*written), "{"), *(part for pair in chosen.items() for part in pair))
    assert ran.returncode == 2
    assert ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_log_that_is_not_there_is_usage(shop: Shop) -> None:
    ran = audit(shop, "nowhere.jsonl")
    assert (ran.returncode, ran.stderr) == (
        2,
        "bylaw: BY001 nowhere.jsonl: no such file or folder; pass files or folders of recorded conversations\n",
    )


def test_a_pack_with_faults_lists_them_all(shop: Shop) -> None:
    policies = shop.pack / "policies.yaml"
    policies.write_text(
        policies.read_text().replace("severity: high", "severity: fatal").replace("[refund]", "[repay]")
    )
    ran = audit(shop, shop.logs(record(*WRONG)), "--fail-on", "violation")
    assert ran.returncode == 2
    assert "BY406 policies.yaml:7: severity of `only-paid` must be" in ran.stderr
    assert "BY406 policies.yaml:10: `repay` of policy `no-gifts` is not a tool" in ran.stderr
    assert ran.stderr.endswith("bylaw: pack `shop` contains 2 errors\n")


def test_a_file_nobody_can_read_is_said_and_the_rest_is_audited(shop: Shop) -> None:
    (shop.root / "odd.bin").write_bytes(b"\x89PNG")
    ran = audit(shop, "odd.bin", shop.logs(record(*HASTY)))
    assert ran.returncode == 3
    assert "odd.bin: not in a trace format that Bylaw reads" in ran.stderr
    assert json.loads((shop.root / "out" / "summary.json").read_text())["agents"][0]["trajectories"] == 1


def test_without_a_world_the_table_says_how_many_verdicts_stay_uninformed(shop: Shop) -> None:
    ran = audit(shop, shop.logs(record(*HASTY), record(user("hi"))), "--without-world", "none", world=False)
    assert ran.returncode == 0
    assert "1 of 1 verdicts stay uninformed" in " ".join(ran.stdout.split())


def test_output_is_quiet_and_narrow_when_piped(shop: Shop) -> None:
    ran = audit(shop, shop.logs(record(*HASTY, agent="a" * 200)))
    assert ran.stderr == ""
    assert max(len(line) for line in ran.stdout.splitlines()) <= 80
    assert "\x1b" not in ran.stdout


def test_check_is_0_for_a_sound_pack_and_1_for_one_whose_cases_fail(shop: Shop) -> None:
    sound = bylaw(shop, "check", shop.pack)
    assert sound.returncode == 0
    assert "cases: all 4 pass" in sound.stdout
    assert "guard branches: all 8 taken by a case" in sound.stdout
    cases = shop.pack / "cases" / "shop.yaml"
    cases.write_text(cases.read_text().replace("want: permit", "want: deny", 1))
    spoiled = bylaw(shop, "check", shop.pack)
    assert spoiled.returncode == 1
    assert "cases/shop.yaml:1: only-paid: a paid order" in spoiled.stdout
    assert "want deny, got permit" in spoiled.stdout
    assert "1 guard lacks a permitted or a denied case\n  only-paid" in spoiled.stdout


def test_check_is_1_for_a_stale_pack_and_2_for_one_that_does_not_load(shop: Shop) -> None:
    document = shop.pack / "policy.md"
    changed = document.with_name("next.md")
    changed.write_text(document.read_text().replace("Gifts are never", "Gifts are seldom"))
    stale = bylaw(shop, "check", shop.pack, "--document", changed)
    assert stale.returncode == 1
    assert "1 policy cites a sentence that is not in the document\n" in stale.stdout
    assert "policies.yaml:12: `Gifts are never refunded.`" in " ".join(stale.stdout.split())
    changed.replace(document)
    assert bylaw(shop, "check", shop.pack).returncode == 2
    (shop.pack / "pack.yaml").write_text("format: 9\n")
    assert bylaw(shop, "check", shop.pack).returncode == 2


def test_check_lists_every_sentence_in_full(shop: Shop) -> None:
    ran = bylaw(shop, "check", shop.pack, "--sentences")
    tail = ran.stdout[ran.stdout.index("sentences:") :]
    assert (
        tail
        == """\
sentences: 4; 2 enforced, 1 listed, 1 uncovered

Shipping
   5  Only paid orders are shipped.
      enforced: only-paid (guard)
   5  Nothing is shipped to somebody else.
      uncovered

Refunds
   9  Gifts are never refunded.
      enforced: no-gifts (guard)
   9  Say what you are about to do.
      listed: say-it (conversation)
"""
    )


def test_explain_names_sentence_fact_and_look_up(shop: Shop) -> None:
    audit(shop, shop.logs(record(*HASTY, id="t1")))
    ran = bylaw(shop, "explain", "out", "t1", "1")
    assert ran.returncode == 0
    text = " ".join(ran.stdout.split())
    assert "Only paid orders are shipped." in text
    assert "Order[PAID].paid: never seen" in text
    assert "get_order(order_id='PAID')" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["out", "t1", "7"], "nothing was judged at step 7 of `t1`; known steps: 1"),
        (["out", "t9", "1"], "no judged conversation or finding starts with `t9`"),
        (["elsewhere", "t1", "1"], "use the output folder of an audit"),
    ],
)
def test_explain_says_what_it_cannot_find(arguments: list[str], said: str, shop: Shop) -> None:
    audit(shop, shop.logs(record(*HASTY, id="t1")))
    ran = bylaw(shop, "explain", *arguments)
    assert ran.returncode == 2
    assert said in " ".join(ran.stderr.split())


def test_a_full_disk_or_a_file_in_the_way_is_not_a_finding(shop: Shop) -> None:
    logs = shop.logs(record(*CAREFUL))
    (shop.root / "taken").write_text("mine")
    for out in ("taken", "taken/below", "/proc/nowhere"):
        ran = audit(shop, logs, "--out", out, "--fail-on", "violation")
        assert ran.returncode == 2
        assert "Traceback" not in ran.stderr
        assert ran.stderr.startswith("bylaw: ")
    assert (shop.root / "taken").read_text() == "mine"


def test_what_an_earlier_audit_left_does_not_pass_for_one_that_was_stopped(shop: Shop) -> None:
    logs = shop.logs(record(*CAREFUL))
    assert audit(shop, logs).returncode == 0
    (shop.root / "out" / "findings.jsonl").unlink()
    (shop.root / "out" / "findings.jsonl").mkdir()
    assert audit(shop, logs).returncode == 2
    assert not (shop.root / "out" / "summary.json").exists()


def test_a_pack_that_asks_for_the_time_of_calls_nobody_timed_is_inconclusive(shop: Shop) -> None:
    (guard,) = (path for path in (shop.pack / "guards").glob("*.py") if "def only_paid" in path.read_text())
    late = '(call, facts):\n    if now() > time("2025-01-01T00:00:00"):\n        return deny("late")\n'
    guard.write_text(guard.read_text().replace("def only_paid(call, facts):\n", "def only_paid" + late))
    manifest = shop.pack / "pack.yaml"
    manifest.write_text("".join(line for line in manifest.open() if not line.startswith("now:")))
    ran = audit(shop, shop.logs(record(*CAREFUL)), world=False)
    assert ran.returncode == 0, ran.stderr
    line = json.loads((shop.root / "out" / "calls.jsonl").read_text())
    assert line["strict"] == "inconclusive"
    assert {"fact": "context.now", "question": "what is context.now?"} in line["policies"][0]["asks"]
    assert "1 calls depend on the time" in ran.stdout


@pytest.mark.parametrize(("was", "now"), [('"PAID", "paid": true', '"PAID", "paid": false'), ('"PAID"', '"paid"')])
def test_a_database_of_other_conversations_is_told(was: str, now: str, shop: Shop) -> None:
    logs = shop.logs(record(*CAREFUL), record(*HASTY))
    assert "disagrees" not in audit(shop, logs).stdout
    shop.world.write_text(shop.world.read_text().replace(was, now))
    told = " ".join(audit(shop, logs).stdout.split())
    assert "At 1 call, the database contradicts what the agent had looked up" in told


@pytest.mark.parametrize("command", [("scan",), ("init", "--document", "policy.md", "--out")])
def test_scan_and_init_say_by_status_3_that_records_could_not_be_read(command: tuple[str, ...], shop: Shop) -> None:
    (shop.root / "policy.md").write_text("Only paid orders are shipped.\n")
    first, second = (["one"], ["two"]) if "--out" in command else ([], [])
    assert bylaw(shop, *command, *first, shop.logs(record(*CAREFUL))).returncode == 0
    ran = bylaw(shop, *command, *second, shop.logs(record(*CAREFUL), '{"messages": ['))
    assert ran.returncode == 3
    assert "1 record could not be read" in ran.stdout
    assert "cut off" in " ".join(ran.stdout.split())


@pytest.mark.parametrize(("source", "jobs"), [("-", 1), ("/dev/stdin", 1), ("-", 2)])
@pytest.mark.usefixtures("quick_workers")
def test_logs_may_come_by_standard_input(source: str, jobs: int, shop: Shop) -> None:
    logs = shop.logs(record(*HASTY), "{").read_bytes()
    options = ("--pack", shop.pack, "--world", shop.world, "--jobs", str(jobs))
    ran = command.bylaw(shop.root, "audit", source, *options, stdin=logs)
    assert ran.returncode == 3
    assert "bylaw: BY102 stdin:2: not JSON" in ran.stderr
    assert json.loads((shop.root / "out" / "summary.json").read_text())["verdicts"]["strict"] == {"near_miss": 1}


@pytest.mark.process
@pytest.mark.parametrize(
    "line",
    [
        "cat logs.jsonl | bylaw scan -",
        "cat logs.jsonl | bylaw scan /dev/stdin",
        "bylaw scan <(cat logs.jsonl)",
        "mkfifo f; (cat logs.jsonl > f &); bylaw scan f",
    ],
)
def test_logs_may_come_through_a_pipe(line: str, shop: Shop) -> None:
    shop.logs(record(*HASTY), "{")
    # A shell's own pipe is open for its own children only.
    ran = command.shell(line, shop.root, from_nothing="<(" in line)
    assert ran.returncode == 3
    assert "1 record could not be read" in ran.stdout


def test_what_can_be_read_neither_as_a_file_nor_as_a_pipe_is_usage(shop: Shop) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as here:
        here.bind(str(shop.root / "s"))
        ran = bylaw(shop, "scan", "s")
    assert (ran.returncode, ran.stderr) == (2, "bylaw: BY001 s: neither a file nor a pipe; pass a file\n")


@pytest.mark.process
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_interrupt_is_one_line_and_130_and_leaves_an_earlier_audit_whole(jobs: str, shop: Shop) -> None:
    assert audit(shop, shop.logs(record(*CAREFUL))).returncode == 0
    before = {path.name: path.read_bytes() for path in (shop.root / "out").iterdir()}
    logs = shop.logs(*[record(*HASTY)] * 30_000)
    # Where the tests run in the background, Ctrl-C is ignored, and so it would be here.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from bylaw.cli import main; main()"
    options = ["audit", str(logs), "--pack", str(shop.pack), "--jobs", jobs]
    started = subprocess.Popen(
        [sys.executable, "-c", code, *options],
        cwd=shop.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while not list((shop.root / "out").glob(".audit-*/calls.jsonl")):
        assert started.poll() is None, started.communicate()
        time.sleep(0.02)
    time.sleep(0.2)
    os.killpg(started.pid, signal.SIGINT)
    _, errors = started.communicate()
    assert (started.returncode, errors.strip()) == (130, "bylaw: interrupted")
    assert {path.name: path.read_bytes() for path in (shop.root / "out").iterdir()} == before


def test_a_mistyped_command_leaves_an_earlier_audit_whole(shop: Shop) -> None:
    logs = shop.logs(record(*CAREFUL))
    assert audit(shop, logs).returncode == 0
    before = {path.name: path.read_bytes() for path in (shop.root / "out").iterdir()}
    for mistyped in (("--pack", "nopack"), ("--pack", str(shop.pack), "--world", "nowhere.json")):
        assert bylaw(shop, "audit", str(logs), *mistyped).returncode == 2
    assert {path.name: path.read_bytes() for path in (shop.root / "out").iterdir()} == before


def test_a_second_audit_into_the_same_folder_at_the_same_time_is_refused(shop: Shop) -> None:
    import fcntl

    logs = shop.logs(record(*CAREFUL))
    (shop.root / "out").mkdir()
    folder = os.open(shop.root / "out", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        ran = audit(shop, logs)
        assert (ran.returncode, ran.stderr.split(";")[0]) == (2, "bylaw: BY001 another audit is writing to `out`")
    finally:
        os.close(folder)
    assert audit(shop, logs).returncode == 0


@pytest.mark.parametrize("name", ["report.html", "summary.json", "calls.jsonl"])
def test_a_folder_with_somebody_elses_file_of_our_name_is_refused(name: str, shop: Shop) -> None:
    (shop.root / "out").mkdir()
    (shop.root / "out" / name).write_text("{}")
    ran = audit(shop, shop.logs(record(*CAREFUL)))
    assert (ran.returncode, ran.stderr.split(";")[0]) == (2, f"bylaw: BY001 `out/{name}` was not written by an audit")
    assert (shop.root / "out" / name).read_text() == "{}"
