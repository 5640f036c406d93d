"""Which files' contents a command may show or copy."""

import pytest

from bylaw.reading.shell import read_shell
from bylaw.reading.shell_contents import shown_files


def shown(text: str) -> tuple[str, ...] | None:
    (command,) = read_shell(text)
    return shown_files(command)


NAMED = {
    "cat a.py b.md": ("a.py", "b.md"),
    "cat -- -x.py": ("-x.py",),
    "cat src/*.py": ("src/*.py",),
    "cat < a.py": ("a.py",),
    "head -n 5 a.py": ("a.py",),
    "tail -20 a.py": ("a.py",),
    "grep -n -A 3 x a.py": ("a.py",),
    "grep -e x a.py": ("a.py",),
    "grep x": (),
    "grep -rn --include='*.py' x src": ("*.py",),
    "grep -rn --include=*.py x src": ("*.py",),
    "grep -rn --exclude-dir=a --include='*.py' x src": ("*.py",),
    "rg -g '*.py' x": ("*.py",),
    "rg --glob='*.py' x src/ config": ("config", "*.py"),
    "rg x a.py": ("a.py",),
    "rg --files": (),
    "sed -n 1,4p a.py": ("a.py",),
    "awk -F , '{print $1}' a.py b": ("a.py", "b"),
    "jq . package.json": ("package.json",),
    "sort -k 2 a.py": ("a.py",),
    "uniq -c": (),
    "diff a.py b": ("a.py", "b"),
    "diff --from-file b a.py": ("b", "a.py"),
    "cp a.py b": ("a.py",),
    "git mv a.py b": ("a.py",),
    "ls -la config": (),
    "find . -name x": (),
    "wc -l config": (),
    "python --version": (),
    'echo "$x"': (),
    "git status -s": (),
    "git log --oneline -5": (),
    "git log -n 5 --stat": (),
    "git log -p -- a.py": ("a.py",),
    "git diff --stat": (),
    "git diff --cached --name-only": (),
    "git diff HEAD~1 -- a.py": ("a.py",),
    "git diff main...HEAD -- a.py b": ("a.py", "b"),
    "git show --stat HEAD": (),
    "git show HEAD~1:src/a.py": ("src/a.py",),
    "git show HEAD:.env": (".env",),
    "git blame HEAD a.py": ("a.py",),
    "git cat-file -t HEAD": (),
}
UNNAMED = r"""
cat $x
cat "$x"
cat a.py < "$x"
head -n * a.py
grep *
grep -e * a.py
grep -rn x .
grep -r
grep -rn --include='*.py' --inc='*' x .
grep -rn --include='*.py' --include '*' x .
grep -rn --exclude='*.lock' --include='*.py' x .
grep -drecurse x .
grep --direct=recurse x .
grep -f words a.py
grep --fi=words a.py
grep -ifwords a.py
rg x
rg x .
rg x src/
rg x < /dev/null
rg -g '!a.py' x
rg --glob='!a.py' x
rg -g '*.py' -ig '*' x
rg -g '*.py' "-g*" x
diff --from-file=b a.py
diff --fr=b a.py
cp -t a.py b
cp --target=a.py b
git diff
git diff a.py
git diff --cached
git diff --stat -p
git diff --stat -U3
git diff -- ':!a.py'
git diff -- ':(exclude)a.py'
git diff 3f2a -- a.py
git diff HEAD:b -- a.py
git log -p
git log -L1,5:a.py
git log --word-diff
git log -p HEAD a.py
git show
git show HEAD
git show a.py
git show --stat 3f2a
git show :/a.py
git show 'HEAD^{/x:a.py'
git show HEAD HEAD:a.py
git stash show -p
git config -l
git config --list
git remote -v
git status -v
git cat-file -p HEAD
git cat-file blob HEAD:a.py
git cat-file --batch
git diff-tree -p HEAD
git whatchanged -p
git -c color.ui=never show
python a.py
unknown a.py
""".strip().splitlines()


@pytest.mark.parametrize("text", NAMED)
def test_the_files_that_a_command_shows_are_those_it_names(text: str) -> None:
    assert shown(text) == NAMED[text]


@pytest.mark.parametrize("text", UNNAMED)
def test_a_command_that_may_show_other_files_names_none(text: str) -> None:
    assert shown(text) is None
