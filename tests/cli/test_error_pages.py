"""Every error code has a page, and what the pages show is what happens."""

import contextlib
import importlib
import io
import pkgutil
import re
from pathlib import Path

import pytest

import bylaw
from bylaw.errors import BylawError
from tests.audit.logs import HASTY, record, write_logs
from tests.command import typed
from tests.policy.shop import write_pack

PAGES = Path(__file__).parents[2] / "docs" / "errors"
_BLOCK = re.compile(r"^```(\w+)(?: ([^\n]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def codes() -> dict[str, type[BylawError]]:
    """Every error class of the source by its code."""
    for module in pkgutil.walk_packages(bylaw.__path__, "bylaw."):
        if ".packs." not in module.name:
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    found: dict[str, type[BylawError]] = {}
    pending: list[type[BylawError]] = [BylawError]
    while pending:
        kind = pending.pop()
        pending.extend(kind.__subclasses__())
        if kind.__module__.startswith("bylaw.") and "code" in vars(kind):
            assert kind.code not in found, f"{kind.__name__} and {found[kind.code].__name__} share {kind.code}"
            found[kind.code] = kind
    return found


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert {page.stem for page in PAGES.glob("BY*.md")} == set(codes())


def test_the_index_names_every_page() -> None:
    index = (PAGES / "README.md").read_text()
    for page in PAGES.glob("BY*.md"):
        title = page.read_text().splitlines()[0].removeprefix(f"# {page.stem}: ")
        assert f"| [{page.stem}]({page.name}) | {title} |" in index


@pytest.mark.parametrize("page", sorted(PAGES.glob("BY*.md")), ids=lambda page: page.stem)
def test_the_example_of_a_page_is_real(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem}: ")
    assert "**What to do.**" in text
    monkeypatch.chdir(tmp_path)
    write_pack(tmp_path / "shop")
    write_logs(tmp_path / "logs.jsonl", [record(*HASTY)])
    shown = ""
    examples = 0
    for kind, about, body in _BLOCK.findall(text):
        if kind == "console":
            for line in body.splitlines():
                if line.startswith("$ "):
                    shown = " ".join(typed(line.removeprefix("$ "), tmp_path).stdout.split())
                else:
                    assert " ".join(line.split()) in shown, shown
                    examples += 1
        elif kind == "python" and about == "run":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile(body, str(page), "exec"), {})
            shown = output.getvalue()
        elif about:
            (tmp_path / about).write_text(body)
        else:
            assert body == shown
            examples += 1
    assert examples, "the page shows no example"
    assert page.stem in text.partition("\n")[2]
