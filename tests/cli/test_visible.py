"""What a log, a pack or a file name holds does nothing to a terminal, and no output is written over an input."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from bylaw.integrations.follower import tell
from bylaw.pack import Pack
from bylaw.shield import Shield
from bylaw.text.visible import all_visible, clean, visible
from tests import command
from tests.audit.logs import HASTY, Shop, record
from tests.engine.test_conversation import FILES
from tests.ready import begin
from tests.shield.scenes import shop as shop_pack


def no_look() -> Pack:
    tools = FILES["tools.yaml"].replace(
        "{order_id: string}, changes: []", '{order_id: string, note: "string?"}, changes: []'
    )
    return shop_pack(tools_yaml=tools)


ESCAPE = "\x1b[2J\x1b]0;gone\x07"


def test_what_moves_a_cursor_is_written_out() -> None:
    assert visible(f"a{ESCAPE}\nb\r\udcff") == "a\\u001b[2J\\u001b]0;gone\\u0007\nb\\u000d\\udcff"
    assert clean("a\nb\u202ec", 20) == "a\\u000ab\\u202ec"
    assert all_visible({"\x1b": ["\x07", 1]}) == {"\\u001b": ["\\u0007", 1]}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def audit(shop: Shop, *arguments: str | Path) -> tuple[int, str]:
    ran = command.bylaw(shop.root, "audit", *arguments, "--pack", shop.pack, "--world", shop.world)
    return ran.returncode, ran.stdout + ran.stderr


def test_escapes_in_an_agents_name_do_not_reach_the_screen(shop: Shop) -> None:
    status, said = audit(shop, shop.logs(record(*HASTY)), "--agent", f"bot{ESCAPE}")
    assert status == 0
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "bot\\u001b[" in said


def test_a_file_whose_name_is_not_text_is_named_all_the_same(shop: Shop) -> None:
    path = os.fsdecode(bytes(shop.root) + b"/no\xff.jsonl")
    status, said = audit(shop, path)
    assert status == 2
    assert "no\\udcff.jsonl: no such file or folder" in said


def test_a_file_whose_name_is_not_text_is_audited(shop: Shop) -> None:
    path = os.fsdecode(bytes(shop.root) + b"/no\xff.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{json.dumps(record(*HASTY))}\n{{\n")
    status, said = audit(shop, path)
    assert status == 3
    assert "no\\udcff.jsonl:2:" in said
    summary = json.loads((shop.root / "out" / "summary.json").read_bytes())
    assert summary["verdicts"]["strict"]["near_miss"] == 1


@pytest.mark.parametrize("option", ["--sarif", "--junit"])
def test_no_output_is_written_over_an_input(option: str, shop: Shop) -> None:
    logs = shop.logs(record(*HASTY))
    for path in (logs, shop.world):
        before = path.read_bytes()
        status, said = audit(shop, logs, option, path)
        assert status == 2
        assert f"{option} would overwrite an input file" in said
        assert path.read_bytes() == before


def test_a_world_that_is_no_module_is_a_fault_of_the_pack(shop: Shop) -> None:
    manifest = shop.pack / "pack.yaml"
    manifest.write_text(manifest.read_text() + "world: bylaw.packs.no_such_module\n")
    status, said = audit(shop, shop.logs(record(*HASTY)))
    assert status == 2
    assert "names a world module `bylaw.packs.no_such_module` that does not exist" in said


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.process
@pytest.mark.parametrize(
    "arguments",
    [
        ("log", "verify", "--log", "log.db"),
        ("log", "approvals", "--log", "log.db", "--all"),
        ("log", "approvals", "--log", "log.db", "--all", "--json"),
        ("log", "approve", "--log", "log.db", "chat\x1b[2J\u202e/2"),
        ("log", "verify", "--log", "no\x1b[2J\u202e.db"),
        ("log", "remove", "--log", "log.db", "no\x1b[2J\u202e"),
        ("check", "no\x1b[2J\u202e"),
    ],
    ids=" ".join,
)
def test_nothing_raw_reaches_a_terminal(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    import pty

    evil = "\x1b[2J\u202e\x9b31m\x07"
    with Shield(no_look(), log=str(tmp_path / "log.db")) as shield:
        with shield.session(f"chat{evil[:5]}") as session:
            session.decide("get_order", {"order_id": "7"})
            session.result({"order_id": "7"})
            decision = session.decide("refund", {"order_id": "7", "note": evil})
            assert decision.approval
        assert shield.log is not None
        shield.log.reject(decision.approval, by=f"ann{evil}", note=evil)
    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "200"}
    ran = subprocess.Popen(
        [*begin("bylaw"), *arguments], cwd=tmp_path, stdout=terminal, stderr=terminal, env=environment
    )
    os.close(terminal)
    said = b""
    try:
        while more := os.read(controller, 65536):
            said += more
    except OSError:
        # What a terminal says when nobody is left at the other end.
        pass
    ran.wait()
    os.close(controller)
    text = re.sub(r"\x1b\[[\d;]*m", "", said.decode())
    assert text.strip()
    assert all(each.isprintable() or each in "\r\n" for each in text), text


def test_nor_do_they_by_way_of_the_programs_own_log(caplog: pytest.LogCaptureFixture) -> None:
    """A client may call a tool by any name, and a server may put anything into its errors."""
    tell(RuntimeError(f"the server says {ESCAPE}\u202e"), f"no decision on {ESCAPE}")
    assert "no decision on \\u001b[2J" in caplog.text
    assert "the server says \\u001b[2J" in caplog.text
    assert not any(each in caplog.text for each in ("\x1b", "\x07", "\u202e"))
