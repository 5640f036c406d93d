"""What is published installs by itself: the wheel and the source distribution, each into an empty environment."""

import importlib.metadata
import os
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import bylaw
from tests.command import environment
from tests.docs.walkthrough import installed, walk

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


def python(version: str) -> str:
    """An interpreter of this version, which may not be the one on the path."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for each in (shutil.which(f"python{version}"), *kept.glob(f"{version}.*/bin/python")):
        command = [str(each), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        if each is not None and subprocess.run(command, capture_output=True, text=True).stdout.strip() == version:
            return str(each)
    pytest.skip(f"Python {version} is not there")


class Environment:
    """An environment with nothing but one published file and what it depends on."""

    def __init__(self, folder: Path, published: Path, *, interpreter: str = sys.executable) -> None:
        self.folder = folder
        self.programs = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
        uv("venv", "--quiet", "--no-project", "--python", interpreter, folder / "environment")
        uv("pip", "install", "--quiet", "--python", self.programs / "python", published)
        uv("pip", "check", "--python", self.programs / "python")

    def run(self, program: str, *arguments: str) -> str:
        command = [self.programs / program, *arguments]
        done = subprocess.run(command, cwd=self.folder, env=self._alone(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def typed(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line of a document in a shell that finds the programs of this environment first; errors are output."""
        found = self._alone()
        found["PATH"] = os.pathsep.join([str(self.programs), os.defpath])
        together = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        return subprocess.run(installed(line), shell=True, cwd=self.folder, env=found, check=False, **together)

    def _alone(self) -> dict[str, str]:
        return {name: value for name, value in environment().items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


@pytest.mark.process
def test_the_wheel_installs_into_an_empty_environment_and_its_demo_runs(built: Path, tmp_path: Path) -> None:
    alone = Environment(tmp_path, *built.glob("*.whl"))
    place = alone.run("python", "-c", "import bylaw; print(bylaw.__file__)").strip()
    assert Path(place).is_relative_to(tmp_path)
    assert "near-miss" in alone.run("bylaw", "demo")


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_commands_of_the_readme_run_from_the_wheel(version: str, built: Path, tmp_path: Path) -> None:
    alone = Environment(tmp_path, *built.glob("*.whl"), interpreter=python(version))
    assert alone.run("python", "--version").startswith(f"Python {version}.")
    assert walk(ROOT / "README.md", tmp_path, None, alone.typed) > 4


@pytest.mark.slow
@pytest.mark.process
def test_a_publication_is_tried_and_nothing_is_uploaded(tmp_path: Path) -> None:
    if UV is None:
        pytest.skip("uv is not there")
    script = [sys.executable, str(ROOT / "scripts" / "publish.py")]
    done = subprocess.run(script, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "nothing was uploaded" in done.stdout
    assert f"bylaw-{PROJECT['project']['version']}-py3-none-any.whl" in done.stdout


def test_a_version_that_is_not_the_same_everywhere_is_not_published(tmp_path: Path) -> None:
    checked = runpy.run_path(str(ROOT / "scripts" / "publish.py"))["checked_version"]
    assert checked(ROOT)[0] == PROJECT["project"]["version"]
    for name in ("pyproject.toml", "CHANGELOG.md", "src/bylaw/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 9.9.9\n\n- All is new.\n")
    with pytest.raises(SystemExit, match=r"CHANGELOG\.md 9\.9\.9"):
        checked(tmp_path)


def test_the_notes_of_the_version_fit_a_screen_and_begin_with_what_breaks() -> None:
    notes = (ROOT / "CHANGELOG.md").read_text().partition("\n## ")[2].partition("\n## ")[0].splitlines()
    assert notes[0] == PROJECT["project"]["version"] == bylaw.__version__
    assert [line for line in notes if line.startswith("### ")] == ["### Breaking changes", "### New"]
    assert len(notes) <= 60


@pytest.mark.process
def test_the_source_distribution_installs_into_an_empty_environment(built: Path, tmp_path: Path) -> None:
    alone = Environment(tmp_path, *built.glob("*.tar.gz"))
    assert alone.run("bylaw", "--version").split()[-1] == PROJECT["project"]["version"]


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
