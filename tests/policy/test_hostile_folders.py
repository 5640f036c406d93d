"""A folder that means harm is refused with a place, or its odd files are left out; soon either way."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bylaw.audit.request import Shelf
from bylaw.errors import BylawError, PackError
from bylaw.pack import load_pack

FILES = {
    "pack.yaml": "format: 1\nname: p\ndocument: policy.md\n",
    "policy.md": "Ship only what is paid.\n",
    "tools.yaml": "tools:\n  ship: {effect: write, parameters: {order: string}}\n",
    "entities.yaml": "entities:\n  Order: {key: order, fields: {paid: boolean}}\n",
    "policies.yaml": "policies:\n  - {id: paid, tools: [ship], spans: [{quote: Ship only what is paid.}]}\n",
    "guards/g.py": """
def paid(call, facts):
    if facts.Order(call.order).paid:
        return permit()
    return deny("no")
""",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written(tmp_path / "pack")
    load_pack(tmp_path / "pack")
    return tmp_path / "pack"


def written(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def add(folder: Path, text: str) -> None:
    manifest = folder / "pack.yaml"
    manifest.write_text(manifest.read_text() + text)


@pytest.mark.parametrize("name", ["/nowhere/policy.md", '"a\\0b"', "x" * 5000, "guards", "."])
def test_a_document_that_is_no_file_is_a_fault(folder: Path, name: str) -> None:
    (folder / "pack.yaml").write_text(FILES["pack.yaml"].replace("policy.md", name))
    with pytest.raises(PackError, match=r"does not exist|is a folder without text files|is the pack's own folder"):
        load_pack(folder)


def test_a_document_elsewhere_is_read_only_where_that_is_allowed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "policy.md").rename(folder.parent / "elsewhere.md")
    (folder / "pack.yaml").write_text(FILES["pack.yaml"].replace("policy.md", str(folder.parent / "elsewhere.md")))
    with pytest.raises(PackError, match="is outside the pack's folder"):
        load_pack(folder)
    monkeypatch.setenv("BYLAW_OUTSIDE", os.pathsep.join(("/nowhere", str(folder.parent))))
    assert load_pack(folder).stale == ()


SECRET = "password: hunter2"


def lead_out(folder: Path, what: str) -> None:
    """Have a pack name a file that is not its own, in one of the ways there are."""
    secret = folder.parent / "secret"
    manifest = FILES["pack.yaml"]
    match what:
        case "document":
            manifest = manifest.replace("policy.md", "../secret")
        case "catalogue":
            (folder / "tools.yaml").write_text(f"from: {secret}\n{FILES['tools.yaml']}")
        case "base":
            manifest += "base: ../other\n"
        case "variant":
            manifest = "format: 1\nname: p\nvariants: [{name: ../other}]\n"
        case _:
            (folder / what).parent.mkdir(exist_ok=True)
            (folder / what).unlink(missing_ok=True)
            (folder / what).symlink_to(secret)
    if what != "pack.yaml":
        (folder / "pack.yaml").write_text(manifest)


WAYS = (
    *("document", "catalogue", "base", "variant", *FILES),
    *("guards/z.py", "lookups/z.py", "cases/z.yaml", "compiled.yaml", "review.yaml", "weights.yaml"),
)


WATCHED = """
import contextlib, io, json, sys
from pathlib import Path
from bylaw.cli import app
opened = []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
told = {}
for root in map(Path, sys.argv[1:]):
    opened.clear()
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        for command in ("check", "review"):
            sys.argv = ["bylaw", command, str(root / "pack")]
            try:
                app.run()
            except SystemExit:
                pass
    outside = [each for each in opened if str(root) in each and str(root / "pack") not in each]
    told[root.name] = said.getvalue(), outside
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, list[str]]]:
    """For every way out, what `check` and `review` say and what they open outside of the pack; in a process of its own,
    since nobody can stop watching."""
    roots: list[Path] = []
    for number in range(len(WAYS)):
        root = tmp_path_factory.mktemp(f"way{number}-", numbered=False)
        written(root / "pack")
        (root / "other").mkdir()
        for name in ("secret", "other/tools.yaml", "other/pack.yaml", "other/guards.py"):
            (root / name).write_text(SECRET)
        lead_out(root / "pack", WAYS[number])
        roots.append(root)
    done = subprocess.run([sys.executable, "-c", WATCHED, *roots], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    return {way: told[root.name] for way, root in zip(WAYS, roots, strict=True)}


@pytest.mark.parametrize("what", WAYS)
def test_nothing_outside_of_its_folder_is_opened(watched: dict[str, tuple[str, list[str]]], what: str) -> None:
    said, opened = watched[what]
    assert opened == []
    assert "hunter2" not in said
    assert "Traceback" not in said
    assert "outside" in said


@pytest.mark.parametrize("name", ["guards/g.py", "tools.yaml", "policy.md", "cases/z.yaml"])
def test_a_file_of_gigabytes_is_not_read(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    with (folder / name).open("wb") as stream:
        stream.truncate(4 << 30)
    with pytest.raises(PackError, match=r"larger than 16 MB|longer than 2,000,000"):
        load_pack(folder)


@pytest.mark.parametrize("base", ['"\\0"', "../nothing", "x" * 5000])
def test_a_base_that_is_no_folder_is_a_fault(folder: Path, base: str) -> None:
    add(folder, f"base: {base}\n")
    with pytest.raises(PackError, match="is not a folder"):
        load_pack(folder)


@pytest.mark.parametrize("variants", ["[{when: {}}]", "[1]", "[null]", "[{name: null}]"])
def test_a_variant_without_a_name_is_a_fault(folder: Path, variants: str) -> None:
    add(folder, f"variants: {variants}\n")
    for load in (load_pack, lambda path: Shelf(str(path))):
        with pytest.raises(PackError, match=r"a variant needs a name|item 1 of `variants` must be a mapping"):
            load(folder)


ODD: dict[str, Callable[[Path], object]] = {
    "a folder": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "a loop": lambda path: path.symlink_to(path),
    "a dangling link": lambda path: path.symlink_to("/nowhere/at/all"),
}


@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
@pytest.mark.parametrize("name", ["guards/z.py", "lookups/z.py", "cases/z.yaml"])
def test_what_is_no_file_is_no_part_of_the_pack(folder: Path, name: str, make: Callable[[Path], object]) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    make(folder / name)
    load_pack(folder)


@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_a_guard_that_is_no_file_leaves_its_policy_unenforced(folder: Path, make: Callable[[Path], object]) -> None:
    (folder / "guards/g.py").unlink()
    make(folder / "guards/g.py")
    with pytest.raises(PackError, match="policy `paid` has no check"):
        load_pack(folder)


HUGE = {
    "a long list": "a: [" + "x," * 1_900_000 + "]",
    "a deep list": "[" * 900_000,
    "a deep map": "".join(" " * n + "a:\n" for n in range(900)),
    "many keys": "".join(f"k{n}: 1\n" for n in range(40_000)),
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("name", ["pack.yaml", "tools.yaml"])
def test_a_huge_file_is_refused_soon(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    begun = time.process_time()
    with pytest.raises(BylawError):
        load_pack(folder)
    assert time.process_time() - begun < 10


@pytest.mark.parametrize("named", ["/dev/zero", "pipe", "../pipe"])
def test_a_catalogue_that_is_no_regular_file_of_the_pack_is_refused_at_once(folder: Path, named: str) -> None:
    for pipe in (folder / "pipe", folder.parent / "pipe"):
        os.mkfifo(pipe)
    (folder / "tools.yaml").write_text(f"from: {named}\n{FILES['tools.yaml']}")
    started = time.monotonic()
    with pytest.raises(PackError, match="is not a regular file" if named == "pipe" else "is outside the pack's"):
        load_pack(folder)
    assert time.monotonic() - started < 5


def test_a_folder_elsewhere_is_not_listed_for_documents(folder: Path) -> None:
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "notes.png").write_bytes(b"x")
    (folder / "pack.yaml").write_text(FILES["pack.yaml"].replace("policy.md", "../elsewhere"))
    with pytest.raises(PackError, match=r"`\.\./elsewhere` is outside the pack's folder"):
        load_pack(folder)
