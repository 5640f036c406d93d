"""Commands that a pack lists under `runs`."""

import pytest

from bylaw import Shield
from bylaw.errors import BylawError
from tests.packs import made

FILES = {
    "pack.yaml": "format: 1\nname: coding\ndocument: policy.md\n",
    "policy.md": "Only listed commands run.\n",
    "tools.yaml": """tools:
  bash: {effect: write, parameters: {command: string}}
actions:
  listed: {of: bash, reads: {argument: command, as: shell, runs: true, root: /repo, inside: true}, effect: write}
  look: {of: bash, reads: {argument: command, as: shell, root: /repo, inside: true}, effect: read}
runs:
  - pytest [-q -x] *paths*
  - make test
  - NODE_ENV=test npm test
  - ./gradlew check
  - python tools/check.py
""",
    "guards/run.py": '''def listed_runs(call: listed, facts):
    """Only listed commands run."""
    return permit()
''',
}


@pytest.fixture(scope="module")
def shield() -> Shield:
    return Shield(made(FILES))


@pytest.mark.parametrize(
    "command",
    [
        "pytest",
        "pytest -q tests/test_a.py::test_b -x",
        "timeout 60 pytest",
        "cd sub && pytest",
        "cd sub && make test",
        "CI=1 make test",
        "NODE_ENV=test npm test",
        "./gradlew check",
        "python tools/check.py | head -5",
        "/usr/bin/make test",
    ],
)
def test_a_listed_command_runs(shield: Shield, command: str) -> None:
    assert shield.session(command).decide("bash", {"command": command}).answer == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "make",
        "make test deploy",
        "make test SHELL=./x",
        "make -C .. test",
        "pytest -qx",
        "pytest -p evil",
        "pytest @args",
        "pytest -x=1",
        "pytest ../other",
        "pytest /etc",
        'pytest "$x"',
        "pytest $x",
        "pytest *",
        "pytest src/*.py",
        "pytest > a.py",
        "pytest {a,-p}",
        "PYTEST_ADDOPTS=-pevil pytest",
        "npm test",
        "NODE_ENV=prod npm test",
        "NODE_ENV=test NODE_OPTIONS=-r./x npm test",
        "./pytest",
        "sub/gradlew check",
        "cd sub && ./gradlew check",
        "cd sub && python tools/check.py",
        "cd .. && make test",
        "sudo make test",
        "echo a | xargs pytest",
        "for i in 1 2; do make test; done",
    ],
)
def test_another_command_does_not(shield: Shield, command: str) -> None:
    assert shield.session(command).decide("bash", {"command": command}).answer == "ask"


def test_a_shell_that_moved_runs_no_program_of_the_first_folder(shield: Shield) -> None:
    session = shield.session("moved")
    assert session.decide("bash", {"command": "cd sub"}).allowed
    session.result("")
    assert session.decide("bash", {"command": "pytest"}).allowed
    session.result("")
    assert not session.decide("bash", {"command": "./gradlew check"}).allowed


def test_a_line_that_cannot_be_read_is_an_error() -> None:
    tools = FILES["tools.yaml"].replace("make test", "'make [a] [b]'")
    with pytest.raises(BylawError, match=r"`make \[a\] \[b\]` is not a command"):
        made({**FILES, "tools.yaml": tools})
