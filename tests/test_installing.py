"""What is published installs by itself: the wheel and the source distribution, each into an empty environment."""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.command import environment

ROOT = Path(__file__).parents[1]
UV = os.environ.get("UV") or shutil.which("uv")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def uv(*arguments: str | Path) -> None:
    assert UV is not None
    done = subprocess.run([UV, *arguments], cwd=ROOT.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with both, the wheel built from the source distribution."""
    if UV is None:
        pytest.skip("uv is not there")
    folder = tmp_path_factory.mktemp("dist")
    uv("build", "--quiet", "--out-dir", folder, ROOT)
    return folder


class Environment:
    """An environment with nothing but one published file and what it depends on."""

    def __init__(self, folder: Path, published: Path) -> None:
        self.folder = folder
        self.programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
        uv("venv", "--quiet", "--no-project", "--python", sys.executable, folder / "environment")
        uv("pip", "install", "--quiet", "--python", self.programs / "python", published)
        uv("pip", "check", "--python", self.programs / "python")

    def run(self, program: str, *arguments: str) -> str:
        alone = {name: value for name, value in environment().items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
        command = [self.programs / program, *arguments]
        done = subprocess.run(command, cwd=self.folder, env=alone, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.mark.process
def test_the_wheel_installs_into_an_empty_environment_and_its_demo_runs(built: Path, tmp_path: Path) -> None:
    installed = Environment(tmp_path, *built.glob("*.whl"))
    place = installed.run("python", "-c", "import bylaw; print(bylaw.__file__)").strip()
    assert Path(place).is_relative_to(tmp_path)
    assert "near-miss" in installed.run("bylaw", "demo")


@pytest.mark.process
def test_the_source_distribution_installs_into_an_empty_environment(built: Path, tmp_path: Path) -> None:
    installed = Environment(tmp_path, *built.glob("*.tar.gz"))
    assert installed.run("bylaw", "--version").split()[-1] == PROJECT["project"]["version"]


@pytest.mark.process
def test_the_wheel_holds_every_file_of_the_package(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    source = ROOT / "src"
    wanted = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as found:
        assert {name for name in found.namelist() if ".dist-info/" not in name} == wanted


def test_all_that_the_test_command_installs_is_pinned() -> None:
    pins = {canonicalize_name(pin.partition("==")[0]) for pin in PROJECT["tool"]["uv"]["constraint-dependencies"]}
    found: set[tuple[str, str]] = set()
    left = [(Requirement(each), "") for each in PROJECT["dependency-groups"]["dev"]]
    while left:
        wanted, extra = left.pop()
        name = canonicalize_name(wanted.name)
        if wanted.marker and not wanted.marker.evaluate({"extra": extra}):
            continue
        for more in {"", *wanted.extras} - {each for known, each in found if known == name}:
            found.add((name, more))
            left += [(Requirement(each), more) for each in importlib.metadata.requires(name) or ()]
    assert len(found) > 100
    assert {name for name, _ in found} - pins == {"bylaw", "bylaw-lab"}


@pytest.mark.process
def test_the_hashed_requirements_are_those_of_the_project() -> None:
    if UV is None:
        pytest.skip("uv is not there")
    check = [sys.executable, str(ROOT / "scripts" / "pin.py"), "--check"]
    done = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
