"""An audit of simulated clinic conversations, open in the console as `bylaw view` opens it."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.suite import made_once

HOME = "http://127.0.0.1"


@pytest.fixture(scope="session")
def audited_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from bylaw.audit.request import Request, write_audited
    from bylaw.audit.run import audit
    from bylaw.console.index import open_index
    from bylaw_lab.clinic.simulator.generate import write

    def make(folder: Path) -> None:
        write(folder, seeds=(1,), count=90)
        request = Request((folder / "logs.jsonl.gz",), "clinic", folder / "clinic.sqlite")
        audit(request, folder / "out")
        write_audited(request, folder / "out")
        open_index(folder / "out").close()

    return made_once(tmp_path_factory, "console", make)


@pytest.fixture
def out(audited_once: Path, tmp_path: Path) -> Path:
    """The audit's folder with its index, for one test alone."""
    shutil.copytree(audited_once / "out", tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """A copy of the clinic's pack that may be written to."""
    from bylaw.policy.folder import find_folder

    shutil.copytree(find_folder("clinic"), tmp_path / "pack", ignore=shutil.ignore_patterns("__pycache__", "simulator"))
    return tmp_path / "pack"


class Reader:
    """Somebody at a browser without scripts."""

    def __init__(self, app: Any) -> None:
        from starlette.testclient import TestClient

        self.app = app
        self.client = TestClient(app, base_url=HOME)

    def get(self, path: str, status: int = 200, **more: Any) -> str:
        answer = self.client.get(path, **more)
        assert answer.status_code == status, answer.text[:2000]
        return answer.text

    @property
    def token(self) -> str:
        found = re.search(r'name="token" value="([0-9a-f]+)"', self.get("/findings?state=all"))
        assert found is not None
        return found[1]

    def send(self, path: str, status: int = 200, **fields: str) -> str:
        """Send a form as its page would."""
        answer = self.client.post(path, data={"token": self.token, "by": "Mara", **fields})
        assert answer.status_code == status, answer.text[:2000]
        return answer.text


@pytest.fixture
def reader(out: Path, pack: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    from bylaw.console.pages import view_app
    from bylaw.console.view import View

    monkeypatch.chdir(out.parent)
    return Reader(view_app(View(out, pack=str(pack))))
