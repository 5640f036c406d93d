"""Which files' contents a command in a closed form shows."""

from contextlib import suppress

import pytest

from bylaw.reading import Unreadable
from bylaw.reading.shell import read_shell


def shown(text: str) -> tuple[str, ...] | None:
    form = read_shell(text)[-1].form
    return None if form is None else form.shown


NAMED = {
    "cat a.py b.md": ("a.py", "b.md"),
    "cat < a.py": ("a.py",),
    "head -n 5 a.py": ("a.py",),
    "tail -20 a.py": ("a.py",),
    "grep -nA 3 x a.py": ("a.py",),
    "grep x": (),
    "sed -n 1,4p a.py": ("a.py",),
    "sed -i 's/a/b/' a.py": (),
    "diff a.py b": ("a.py", "b"),
    "cp a.py b": ("a.py",),
    "ls -la config": (),
    "find . -name '*.py' -type f": (),
    "wc -l config": (),
    "python --version": (),
    "set -e; pwd": (),
    "git status -s": (),
    "git log --oneline -5": (),
    "git log -p -- a.py": ("a.py",),
    "git diff --cached --name-only": (),
    "git diff HEAD~1 -- a.py": ("a.py",),
    "git show --stat HEAD": (),
    "git show HEAD~1:src/a.py": ("src/a.py",),
}
UNNAMED = r"""
cat $x
cat "$x"
cat *.py
cat {a,b}.py
cat ~/a.py
cat a.py > "$x"
cat -- a.py
cat <<< x
cat a.py; ls *
bash -c 'cat a.py'
FOO=1 cat a.py
./cat a.py
if true; then cat a.py; fi
(cat a.py)
cat $(ls)
cat a.py; [ -n "$x" ]
head -n x a.py
head a.py -n 5
grep -rn x .
grep -e x a.py
grep -v -e --include=zz.py a.py
grep -nA a.py
grep -n
grep -fwords a.py
grep --include='*.py' x a.py
sed -n p -i a.py
sed -i.bak s/a/b/ a.py
sed -i /x/d a.py
find . -exec cat a.py ';'
find . -name -delete
cp a.py
cp -t a.py b
git -C sub status
git diff
git diff a.py
git diff --stat -p
git diff -- ':!a.py'
git diff 3f2a -- a.py
git log -p
git log -L1,5:a.py
git show
git show --stat 3f2a
git show :/a.py
git blame a.py
git status -v
git branch x
python a.py
""".strip().splitlines()


@pytest.mark.parametrize("text", NAMED)
def test_a_command_in_a_closed_form_names_the_files_that_it_shows(text: str) -> None:
    assert shown(text) == NAMED[text]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("echo x > a.md", ("a.md",)),
        ("cat a.py >> b.py", ("b.py",)),
        ("touch a.py", ("a.py",)),
        ("sed -i 's/a/b/' a.py b.py", ("a.py", "b.py")),
        ("cp a.py b.py", ("a.py", "b.py")),
        ("cp a.py sub/", ("a.py", "sub/a.py")),
        ("cp src/a.py b.py sub", ("src/a.py", "b.py", "sub/a.py", "sub/b.py")),
        ("mv src/a.py .", ("src/a.py", "./a.py")),
        ("mv a.py HEAD", ("a.py", "HEAD")),
        ("mkdir -p sub", ("sub/",)),
        ("cat a.py", ()),
    ],
)
def test_a_command_in_a_closed_form_names_the_files_that_it_changes(text: str, changed: tuple[str, ...]) -> None:
    form = read_shell(text)[-1].form
    assert form is not None
    assert form.changed == changed


@pytest.mark.parametrize("text", UNNAMED)
def test_any_other_command_has_no_form(text: str) -> None:
    with suppress(Unreadable):
        assert shown(text) is None
