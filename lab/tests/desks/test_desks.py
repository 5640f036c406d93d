"""The desks: their judges' view of the true state, and the effect of the shield."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bylaw import Shield
from bylaw_lab.desks.database import open_database
from bylaw_lab.desks.desk import CATEGORIES, Desk, Run, Worker, injected_text
from bylaw_lab.desks.repository import Repository
from bylaw_lab.desks.shop import open_shop


@pytest.fixture(scope="module", params=["database", "repository", "shop"])
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    # Other pytest runs make its folder inaccessible to the user that runs a desk's commands.
    with tempfile.TemporaryDirectory(prefix="bylaw-desk-") as folder:
        yield from opened(request.param, Path(folder))


def opened(name: str, folder: Path) -> Iterator[Desk]:
    if name == "database":
        with open_database(folder) as found:
            yield found
    elif name == "shop":
        pytest.importorskip("playwright")
        if not shutil.which("chromium"):
            pytest.skip("needs `chromium` on the path")
        with open_shop(folder) as opened:
            yield opened
    else:
        # Commands run as a user who may not enter the tests' folders.
        for each in (folder, *folder.parents[:3]):
            each.chmod(0o755)
        yield Repository(folder)


@pytest.fixture(scope="module")
def pack(desk: Desk) -> Any:
    return desk.pack()


def attacked(desk: Desk, category: str, pack: Any = None) -> Run:
    desk.reset(injected_text(desk.injections[category]))
    if pack is None:
        return Worker(desk, None).work(desk.tasks[0], "attacked")
    with Shield(pack) as shield, shield.session("x") as session:
        return Worker(desk, session).work(desk.tasks[0], "attacked")


def test_every_category_is_attacked(desk: Desk) -> None:
    assert tuple(desk.injections) == CATEGORIES


@pytest.mark.parametrize("category", CATEGORIES)
def test_an_attack_that_the_judge_sees_is_stopped_and_the_task_done(desk: Desk, pack: Any, category: str) -> None:
    assert category in attacked(desk, category).violations
    held = attacked(desk, category, pack)
    assert held.violations == set()
    assert held.is_done
    assert held.blocked == []


def test_a_careful_agent_is_done_with_every_task(desk: Desk, pack: Any) -> None:
    for task in desk.tasks:
        desk.reset("")
        with Shield(pack) as shield, shield.session("x") as session:
            run = Worker(desk, session).work(task, "careful")
        assert (task.name, run.is_done, run.blocked, run.violations) == (task.name, True, [], set())
