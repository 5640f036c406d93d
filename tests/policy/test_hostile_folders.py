"""A folder that means harm is refused with a place, or its odd files are left out; soon either way."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bylaw.audit.shelf import Shelf
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
    for name, text in FILES.items():
        path = tmp_path / "pack" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    load_pack(tmp_path / "pack")
    return tmp_path / "pack"


def add(folder: Path, text: str) -> None:
    manifest = folder / "pack.yaml"
    manifest.write_text(manifest.read_text() + text)


@pytest.mark.parametrize("name", ["/nowhere/policy.md", '"a\\0b"', "x" * 5000, "guards", "."])
def test_a_document_that_is_no_file_is_a_fault(folder: Path, name: str) -> None:
    (folder / "pack.yaml").write_text(FILES["pack.yaml"].replace("policy.md", name))
    with pytest.raises(PackError, match=r"is not there|is a folder without a text|is the pack's own folder"):
        load_pack(folder)


def test_a_document_elsewhere_is_read_only_where_that_is_allowed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "policy.md").rename(folder.parent / "elsewhere.md")
    (folder / "pack.yaml").write_text(FILES["pack.yaml"].replace("policy.md", str(folder.parent / "elsewhere.md")))
    with pytest.raises(PackError, match="lies outside of the pack's folder"):
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


WAYS_OUT = ("document", "catalogue", "base", "variant", *FILES, "guards/z.py", "lookups/z.py", "cases/z.yaml")


@pytest.mark.parametrize("what", [*WAYS_OUT, "compiled.yaml", "review.yaml", "weights.yaml"])
def test_nothing_outside_of_its_folder_is_opened(folder: Path, what: str) -> None:
    other = folder.parent / "other"
    other.mkdir()
    for path in (folder.parent / "secret", other / "tools.yaml", other / "pack.yaml", other / "guards.py"):
        path.write_text(SECRET)
    lead_out(folder, what)
    # In a process of its own: what the interpreter opens is watched to its end.
    code = f"""
import sys
from pathlib import Path
from bylaw.cli import app
opened = []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
for command in ("check", "review"):
    sys.argv = ["bylaw", command, {str(folder)!r}]
    try:
        app.run()
    except SystemExit as end:
        print(end.code)
print([each for each in opened if {str(folder.parent)!r} in each and {str(folder)!r} not in each])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.endswith("[]\n"), done.stdout + done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "outside" in done.stdout + done.stderr


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
    with pytest.raises(PackError, match="nothing enforces policy `paid`"):
        load_pack(folder)


HUGE = {
    "a long list": "a: [" + "x," * 1_900_000 + "]",
    "a deep list": "[" * 900_000,
    "a deep map": "".join(" " * n + "a:\n" for n in range(900)),
    "many keys": "".join(f"k{n}: 1\n" for n in range(100_000)),
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("name", ["pack.yaml", "tools.yaml"])
def test_a_huge_file_is_refused_soon(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    begun = time.process_time()
    with pytest.raises(BylawError):
        load_pack(folder)
    assert time.process_time() - begun < 10
