"""Paths lead inside a folder only if they do by every reading."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bylaw.reading import Unreadable
from bylaw.reading.path import resolve_path


@pytest.mark.parametrize(
    ("text", "cwd", "inside"),
    [
        ("a/b.txt", "", "a/b.txt"),
        ("./a//b/./c", "", "a/b/c"),
        ("a/../b", "", "b"),
        (".", "", "."),
        ("/repo", "", "."),
        ("/repo/a", "", "a"),
        ("//repo/a", "", "a"),
        ("x", "src", "src/x"),
        ("../x", "src", "x"),
        ("../../x", "src", None),
        ("..", "", None),
        ("../repo/a", "", "a"),
        ("../repository/a", "", None),
        ("/repository", "", None),
        ("/", "", None),
        ("/etc/passwd", "", None),
        ("a/../../../../../../repo/b", "", "b"),
        ("...", "", "..."),
        ("a\\..\\..\\b", "", "a\\..\\..\\b"),
        ("file:///repo/a%20b", "", "a b"),
        ("FILE://localhost/etc/passwd", "", None),
        ("x", "/etc", None),
        ("x", "../other", None),
    ],
)
def test_a_posix_path_is_inside_or_outside(text: str, cwd: str, inside: str | None) -> None:
    assert resolve_path(text, "/repo", cwd).inside == inside


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("a\\b.txt", "a/b.txt"),
        ("a/../b", "b"),
        ("C:\\Repo\\a", "a"),
        ("c:/REPO/a", "a"),
        ("\\repo\\a", "a"),
        ("..\\b", None),
        ("D:\\repo\\a", None),
        ("\\\\server\\share\\a", None),
        ("//server/share/repo", None),
        ("file:///C:/repo/a", "a"),
    ],
)
def test_a_windows_path_is_inside_or_outside(text: str, inside: str | None) -> None:
    assert resolve_path(text, "C:\\repo").inside == inside


@pytest.mark.parametrize(
    "text",
    ["", "~/x", "~root/x", "~", "a\0b", "a\nb", "a\u202eb", "file://host/x", "file:x", "file:///a%2fb", "file:///a%2e%2e%2f",
     "file:///%zz", "file:///a%00", "file:///a?b", "file:///%ff", "a" * 5000],
)  # fmt: skip
def test_what_names_no_single_path_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        resolve_path(text, "/repo")


@pytest.mark.parametrize(
    "text",
    ["C:a", "\\\\?\\C:\\repo\\a", "\\\\.\\C:", "a.txt.", "a ", "a\\...\\b", "a:stream", "CON", "nul.txt", "com1", "A~1",
     "a*b", "\\\\server", "file:///C:/repo/a%5c..%5cb"],
)  # fmt: skip
def test_what_windows_reads_in_its_own_way_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        resolve_path(text, "C:\\repo")


def test_a_root_must_be_absolute() -> None:
    with pytest.raises(ValueError, match="absolute"):
        resolve_path("a", "repo")


def test_links_are_followed_if_asked(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "inner").mkdir(parents=True)
    (tmp_path / "outer").mkdir()
    (root / "out").symlink_to(tmp_path / "outer")
    (root / "in").symlink_to("inner")
    (root / "loop").symlink_to("loop")

    def inside(text: str) -> str | None:
        return resolve_path(text, str(root), follow_links=True).inside

    assert inside("in/x") == "inner/x"
    assert inside("out/x") is None
    assert inside("out/../root/inner/x") == "inner/x"
    assert inside("out/../x") is None
    assert inside("new/x") == "new/x"
    assert resolve_path("out/x", str(root)).inside == "out/x"


NAMES = st.sampled_from(["a", "b", "..", ".", "", "root", "out", "in", "inner", "..."])


@given(parts=st.lists(NAMES, max_size=8), is_absolute=st.booleans())
def test_a_path_is_where_the_system_says(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str], is_absolute: bool
) -> None:
    folder = tmp_path_factory.getbasetemp() / "links"
    root = folder / "root"
    if not root.exists():
        (root / "inner").mkdir(parents=True)
        (root / "out").symlink_to("..")
        (root / "in").symlink_to("inner")
    text = (f"{folder}/" if is_absolute else "") + "/".join(parts)
    if not text:
        return
    whole = os.path.realpath(root / text if not text.startswith("/") else text)
    is_inside = whole == str(root.resolve()) or whole.startswith(f"{root.resolve()}/")
    assert resolve_path(text, str(root), follow_links=True).is_inside == is_inside
