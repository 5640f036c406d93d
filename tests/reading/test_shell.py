"""Which programs a shell command runs, and that none that writes passes for one that reads."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from bylaw.reading import Unreadable
from bylaw.reading.shell import Command, read_shell

READS = r"""
ls -la
cat a.txt | grep -n foo | head -5
cd src && ls
ls 2>/dev/null
ls > /dev/null 2>&1
timeout 10s ls
git status
git log --oneline -5
git diff HEAD~1 -- a.py
git branch --show-current
sed -n '1,5p' f
uniq -c
echo "it's" a#b
set -euo pipefail; ls
python3 --version
""".strip().splitlines()

ASKED = r"""
find . -name '*.py' -type f -print0
find . -name x | xargs grep -l foo --
sh -c 'ls; cat x'
nice -n 5 ls
env LANG=C ls
x=1; echo "$x"
echo $(date) `whoami`
if test -f x; then cat x; else ls; fi
for f in *.txt; do cat -- "$f"; done
[[ -f x ]] && echo y
[[ "$x" == 'a|b' ]] && ls
case $x in a) ls;; *) cat y;; esac
git --no-pager show --stat
sed 's/a/b/g' f
awk '{print $1}' f
sort -u -k2 -t: f
awk -F: '{print $1}' f
date -d yesterday +%F
date +%F
grep -rn "foo" --include='*.py' .
diff -- <(ls a) <(ls b)
find src -type f -exec head -n 1 -- {} +
printf '%s' "$x" $y
ls | while IFS= read -r f; do echo "$f"; done
[ $? -eq 0 ]
cat - x
cat x - <y
echo 'rm x' # rm y
""".strip().splitlines()
"""Commands that only read, but not in a closed form."""

HOSTILE = Path(__file__).with_name("hostile_shell.txt").read_text(encoding="utf-8").splitlines()
"""Commands that write, or that cannot be followed."""

HOSTILE_LINES = [
    "ls\nrm x",
    "[[sh -f\nrm x\n -f y ]]",
    "[[ -f x\n]] && ls",
    "{ls; }",
    "!ls",
    "ls # a comment\nrm x",
    "ls \\\n; rm x",
    "r\\\nm x",
    "cat <<E\n$(rm x)\nE",
    "cat <<E\n`rm x`\nE",
    "cat <<E\n${x:-$(rm y)}\nE",
    "cat <<E\n\\\\$(rm x)\nE",
    "cat <<E\n$[a[$(rm x)]]\nE",
    "cat <<E > y\nhi\nE",
    "cat <<E | sh\nrm x\nE",
    "cat <<E; rm x\nhi\nE",
    "cat <<E\nhi\nE\nrm x",
    "cat <<'E'\nhi\nE\nrm x",
    "cat <<-E\n\thi\n\tE\nrm x",
    "sh <<E\nrm x\nE",
    "ls 'a\nb'; rm x",
    "ls\r\nrm x",
    "ls\x00; rm x",
    "ls\u00a0; rm x",
    "ls \u202e; rm x",
    "",
    " ",
    "# only a comment",
    "ls && # rm x\nrm y",
    "cd a && # b\nls",
    "ls 'a",
    'ls "a',
    "ls $(cat",
    "ls (",
    "ls )",
    "ls ;; cat",
    "(" * 200 + "ls" + ")" * 200,
    "ls " + "a" * 100_000,
    "echo " + "$(echo " * 30 + ")" * 30,
]


def writes(text: str) -> bool:
    """Whether the text may write: an unreadable one may."""
    try:
        return any(command.writes for command in read_shell(text))
    except Unreadable:
        return True


@pytest.mark.parametrize("text", [*READS, "ls \\\n -l", "# the files\nls", "ls\n# rm x\npwd"])
def test_a_look_only_reads(text: str) -> None:
    assert not writes(text)


@pytest.mark.parametrize("text", [*HOSTILE, *HOSTILE_LINES, *ASKED])
def test_no_write_passes_for_a_read(text: str) -> None:
    assert writes(text)


def programs(text: str) -> list[str]:
    return [command.program for command in read_shell(text)]


def last(text: str) -> Command:
    return read_shell(text)[-1]


@pytest.mark.parametrize("text", ["rm x", "r''m x", "/bin/rm x", "env A=b rm x", "sudo -u root rm x", "timeout 3 rm x"])
def test_a_removal_is_one_by_any_spelling(text: str) -> None:
    assert last(text).program == "rm"


RUN_OTHERS = r"""
\rm x
$'\162m' x
busybox rm x
env A=b nice rm x
sh -c 'sh -c "rm x"'
timeout 3 sh -c 'rm x'
find . -delete
find . -exec rm {} +
ls | xargs -0 rm
find /etc -name x -execdir rm x ';'
su - bob -c 'rm x'
find . -okdir rm x ';'
rm {a,/etc/b}
(cd a && ls); ls
cd a | ls; ls
cd a & ls
sh -c 'cd a'; ls
if cd a; then ls; fi
for i in 1 2; do rm x; cd ..; done
while ls; do cd a; done; ls
echo "$(cat a $(ls))" <(head b)
cat <<< x
cat $(ls)
x=1; ls
export X=1
lower=1 ls
./env rm x
ls &
ls &> x
ls ;; ls
ls 12> x
ls =cat
""".strip().splitlines()
BROKEN = ["cat <<E\n$(head b)\nE", "cat <<'E'\n$(head b)\nE", "ls &&", "ls |\n", "&& ls", "ls\n|| ls"]


@pytest.mark.parametrize("text", [*RUN_OTHERS, *BROKEN])
def test_anything_but_simple_commands_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read_shell(text)


def test_a_command_has_options_operands_and_files() -> None:
    command = last("A=1 cp -rf --force -- -x 'a b' \"$c\" *.d < e > f")
    assert command.options == ("-rf", "--force")
    assert command.operands == ("-x", "a b", None, None)
    assert [word.text for word in command.files_read] == ["e"]
    assert [word.text for word in command.files_written] == ["f"]
    assert [name for name, _ in command.assignments] == ["A"]


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("git push --force", True),
        ("git push --forc", True),
        ("git push -uf origin", True),
        ("git push $x", True),
        ('git push "$x"', True),
        ("git push origin -- -f", False),
        ("git push origin main", False),
        ('git push origin "main-$x"', True),
    ],
)
def test_an_option_is_found_in_clusters_and_abbreviations(text: str, may: bool) -> None:
    assert last(text).may_have_option("-f", "--force") == may


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("rm a b", ["a", "b"]),
        ("cd s && rm a", ["s/a"]),
        ("cd s; rm a", ["a", "s/a"]),
        ("cp -t/etc x", ["/etc", "/etc", "x"]),
        ("cp --target-directory=/etc x", ["/etc", "x"]),
        ("cp -rt../x y", ["/x", "../x", "t../x", "y"]),
        ("dd if=/etc/a of=b", ["if=/etc/a", "/etc/a", "of=b", "b"]),
        ("cat x > /etc/y", ["x", "/etc/y"]),
        ("cat src/*.py", None),
        ("cat src/.*/x", None),
        ("cat */../../x", None),
        ("cat ~/x", None),
        ("cd a && rm ~/x", None),
        ("rm '~/x'", ["~/x"]),
        ('rm "$x"', None),
        ('cd "$x" && rm a', None),
    ],
)
def test_the_paths_of_a_command(text: str, paths: list[str] | None) -> None:
    found = last(text).paths
    assert found == (None if paths is None else tuple(paths))


def test_privilege_and_variables_are_kept() -> None:
    command = last("sudo env A=b rm x")
    assert command.is_privileged
    assert [name for name, _ in command.assignments] == ["A"]
    assert not last("rm x").is_privileged


@pytest.mark.parametrize(
    ("text", "directories"),
    [
        ("ls", {""}),
        ("cd a && ls", {"a"}),
        ("cd a && cd b && ls", {"a/b"}),
        ("cd /a && ls", {"/a"}),
        ("cd a; ls", {"", "a"}),
        ("cd a\nls", {"", "a"}),
        ("cd a || ls", {"", "a"}),
        ('cd "$x" && ls', None),
        ("cd ~ && ls", None),
        ("cd - && ls", None),
        ("cd && ls", None),
        ("cd a && cd b || ls", {"", "a", "a/b"}),
        ("cd a || cd b && ls", {"", "a", "b", "a/b"}),
        ("cd a && ls | cat && rm x", {"", "a"}),
        ("cd a; cd b && ls", {"b", "a/b"}),
    ],
)
def test_the_folder_of_a_command_is_followed(text: str, directories: set[str] | None) -> None:
    assert last(text).directories == directories


# A real shell runs nothing that was not read.

PIECES = [
    " ",
    "\n",
    "\t",
    "'",
    '"',
    "\\",
    "$",
    "(",
    ")",
    ";",
    "`",
    "|",
    "&",
    "<",
    ">",
    "{",
    "}",
    "#",
    "x",
    "y",
    "!",
    "=",
    "*",
    "?",
    "~",
    ",",
    "@",
    "%",
    "+",
    "-",
    "1",
    "[",
    "]",
    "rm ",
    "ls ",
    "cat ",
    "$(",
    "<<E",
    "\nE\n",
    "<<-E",
    "<<'E'",
    "<<<",
    "&&",
    "||",
    "$'",
    "\\'",
    "''",
    '""',
    "2>",
    "$x",
    "${x}",
    "a=",
    "env ",
    "xargs ",
    "sh -c ",
    "time ",
    "if ",
    "then ",
    "fi",
    "for i in ",
    "do ",
    "done",
    "case ",
    "in ",
    "esac",
    "[[ ",
    " ]]",
    ";rm y",
    " rm y ",
]
SEEDS = [
    "ls 'a' \"b\" x",
    "ls x | cat y",
    "ls x; cat y\nls y",
    'ls "$i" && cat x || ls y',
    "ls $x ${x} *",
    "timeout 3 ls x; cat y",
    "a=1 ls x",
    "A=1 ls x",
    "ls x # rm y\ncat z",
    "cat a\\ b \\' 'c'd\"e\"",
    "ls 2>/dev/null <x",
    "ls x > y 2>&1",
    "cd x && ls; cat y",
    "sudo -n ls x && env A=b cat",
    "time -p ls x",
]
PROGRAMS = ("rm", "ls", "cat", "xargs", "x", "y")


@pytest.mark.process
@pytest.mark.parametrize("name", ["bash", "dash"])
@pytest.mark.parametrize("seed", range(3))
def test_a_real_shell_runs_only_what_was_read(seed: int, name: str, tmp_path: Path) -> None:
    shell, bash = shutil.which(name), shutil.which("bash")
    if shell is None or bash is None:
        pytest.skip(f"needs bash and {name}")
    stubs = tmp_path / "bin"
    stubs.mkdir()
    for program in PROGRAMS:
        (stubs / program).write_text(f"#!{bash}\necho {program} >> $LOG\n")
        (stubs / program).chmod(0o755)
    choose = random.Random(seed)
    tried = 0
    while tried < 60:
        text = choose.choice(SEEDS)
        for _ in range(choose.randint(1, 3)):
            at = choose.randint(0, len(text))
            text = text[:at] + choose.choice(PIECES) + text[at + choose.choice([0, 0, 1, 3]) :]
        try:
            read = read_shell(text)
        except Unreadable:
            continue
        written = [word.text for command in read for word in command.files_written]
        if any("/dev" in each for each in written):
            continue  # a file that is not in the folder
        tried += 1
        log, folder = tmp_path / f"log{tried}", tmp_path / f"folder{tried}"
        folder.mkdir()
        log.touch()
        subprocess.run(
            [shell, "-c", text],
            cwd=folder,
            env={"PATH": str(stubs), "LOG": str(log)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
        names = {command.program for command in read}
        assert set(log.read_text().split()) <= names, text
        if not any(command.writes for command in read):
            assert os.listdir(folder) == [], text
