"""What the files of `deploy` start: the very commands, with other places. Those that serve, and one audit, are
processes in an environment with nothing else in it."""

import bz2
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import yaml

from bylaw.policy.folder import READY
from bylaw_lab.clinic.simulator.world import build
from tests.command import bylaw
from tests.ready import begin

pytest.importorskip("uvicorn")
pytestmark = pytest.mark.process

DEPLOY = Path(__file__).parents[2] / "deploy"
BYLAW = Path(sys.executable).with_name("bylaw")


def of_container() -> list[str]:
    text = (DEPLOY / "Containerfile").read_text()
    entry, command = (re.search(rf"^{name} (\[.*\])$", text, re.M) for name in ("ENTRYPOINT", "CMD"))
    assert entry is not None
    assert command is not None
    assert json.loads(entry[1]) == ["bylaw"]
    return json.loads(command[1])


def of_compose(service: str = "bylaw") -> list[str]:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"][service]["command"]


def of_unit(name: str) -> list[str]:
    line = re.search(r"^ExecStart=(.*)$", (DEPLOY / name).read_text(), re.M)
    assert line is not None
    program, *arguments = shlex.split(line[1])
    assert program == "/opt/bylaw/bin/bylaw"
    return arguments


def of_kubernetes(name: str) -> list[str]:
    first = next(yaml.safe_load_all((DEPLOY / "kubernetes" / name).read_text()))
    spec = first["spec"]["jobTemplate"]["spec"] if first["kind"] == "CronJob" else first["spec"]
    return spec["template"]["spec"]["containers"][0]["args"]


def placed(command: list[str], **places: Any) -> list[str]:
    """A command with other places for the options that name one; each of `places` must be there."""
    split = [part for word in command for part in (word.split("=", 1) if word.startswith("--") else [word])]
    for option, place in places.items():
        split[split.index(f"--{option}") + 1] = str(place)
    return split


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A pack, keys for it, and a world."""
    made = bylaw(tmp_path, "serve", "--new-key", "acme")
    assert made.returncode == 0, made.stderr
    key, line = (each.partition(":")[2].strip() for each in made.stdout.splitlines())
    (tmp_path / "keys").write_text(line + "\n")
    (tmp_path / "key").write_text(key)
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.defpath, "HOME": str(folder)}
    return subprocess.run(
        [BYLAW, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=250
    )


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def answered(port: int, path: str, key: str = "", body: Any = None) -> tuple[int, bytes]:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    data = json.dumps(body).encode() if body is not None else None
    try:
        asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
        with urllib.request.urlopen(asked, timeout=120) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def serving(
    folder: Path, command: list[str], port: int, *, ready: str = "/health", from_nothing: bool = True
) -> Iterator[None]:
    environment = {"PATH": os.defpath, "HOME": str(folder)}
    start = [str(BYLAW)] if from_nothing else begin("bylaw")
    with subprocess.Popen([*start, *command], cwd=folder, env=environment, stdout=subprocess.DEVNULL) as process:
        try:
            deadline = time.monotonic() + 200
            while time.monotonic() < deadline and process.poll() is None:
                try:
                    if answered(port, ready)[0] == 200:
                        break
                except OSError:
                    time.sleep(0.1)
            yield
        finally:
            process.terminate()
            assert process.wait(200) in (0, -15)


@pytest.mark.parametrize("name", ["container", "compose", "unit", "kubernetes"])
def test_each_serves_decisions_under_keys(name: str, folder: Path, port: int, postgres: str) -> None:
    command = {
        "container": of_container,
        "compose": of_compose,
        "unit": lambda: of_unit("bylaw.service"),
        "kubernetes": lambda: of_kubernetes("service.yaml"),
    }[name]()
    store = str(folder / "decisions.db") if name == "unit" else postgres
    places = {"pack": READY / "clinic", "store": store, "host": "127.0.0.1", "port": port}
    command = placed(command, **places, keys=folder / "keys", anchors=folder / "anchors")
    key = (folder / "key").read_text()
    asked = {"conversation": f"deploy-{name}", "tool": "get_patient", "arguments": {"patient_id": "P003"}}
    # One begins as the installed command does.
    for _ in serving(folder, command, port, from_nothing=name == "container"):
        assert answered(port, "/v1/decide", body=asked)[0] == 401
        status, body = answered(port, "/v1/decide", key, asked)
        assert (status, json.loads(body)["decisions"][0]["answer"]) == (200, "allow")
        assert answered(port, "/metrics")[0] == 200
    verified = bylaw(folder, "log", "verify", "--log", store, "--tenant", "acme", "--anchors", str(folder / "anchors"))
    assert verified.returncode == 0, verified.stderr


def test_a_service_that_cannot_note_anchors_is_not_healthy(folder: Path, port: int) -> None:
    places = {"pack": READY / "clinic", "store": folder / "decisions.db", "host": "127.0.0.1", "port": port}
    command = placed(of_unit("bylaw.service"), **places, keys=folder / "keys", anchors=folder / "missing" / "anchors")
    # Either of its workers may answer.
    for _ in serving(folder, command, port, ready="/metrics", from_nothing=False):
        deadline = time.monotonic() + 100
        while (told := answered(port, "/health"))[0] == 200 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert (told[0], json.loads(told[1])["status"]) == (503, "anchors cannot be written")
        for _ in range(8):
            page = answered(port, "/metrics")[1].decode()
            assert float(re.search(r"^bylaw_anchors_failing_seconds (.*)$", page, re.M)[1]) > 0
        (folder / "missing").mkdir()
        while (told := answered(port, "/health"))[0] == 503 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert told[0] == 200


def test_the_image_owns_the_folder_of_anchors_and_its_default_command_uses_it() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    assert "install -d -o bylaw -g bylaw /anchors" in text.partition("USER bylaw")[0]
    for command in (of_container(), of_compose(), of_kubernetes("service.yaml")):
        (anchors,) = (word for word in command if "/anchors/" in word)
        assert anchors.removeprefix("--anchors=") == "/anchors/log.anchors"


def test_a_status_of_the_audit_itself_is_not_tried_again() -> None:
    job = yaml.safe_load((DEPLOY / "kubernetes" / "nightly.yaml").read_text())["spec"]["jobTemplate"]["spec"]
    (rule,) = job["podFailurePolicy"]["rules"]
    (container,) = job["template"]["spec"]["containers"]
    assert (rule["action"], rule["onExitCodes"]["containerName"]) == ("FailJob", container["name"])
    assert {2, 3} <= {*rule["onExitCodes"]["values"]}
    assert job["template"]["spec"]["restartPolicy"] == "Never"
    assert "\nSuccessExitStatus=3\n" in (DEPLOY / "bylaw-nightly.service").read_text()
    assert "\nRestart=" not in (DEPLOY / "bylaw-nightly.service").read_text()


@pytest.fixture
def nightly(tmp_path: Path) -> dict[str, Any]:
    """Logs and a world, and the places of what audits them."""
    pytest.importorskip("pyarrow")
    build(tmp_path / "world.sqlite").close()
    (tmp_path / "logs").mkdir()
    with bz2.open(READY / "clinic" / "demo" / "logs.jsonl.bz2") as demo:
        (tmp_path / "logs" / "logs.jsonl").write_bytes(b"".join(islice(demo, 12)))
    return {"pack": READY / "clinic", "world": tmp_path / "world.sqlite", "out": tmp_path / "state", "jobs": 1}


@pytest.mark.parametrize("name", ["unit", "kubernetes", "compose"])
@pytest.mark.usefixtures("quick_workers")
def test_each_audits_every_night(name: str, tmp_path: Path, nightly: dict[str, Any]) -> None:
    command = {
        "unit": lambda: of_unit("bylaw-nightly.service"),
        "kubernetes": lambda: of_kubernetes("nightly.yaml"),
        "compose": lambda: of_compose("audit"),
    }[name]()
    command = placed(command, **nightly)
    assert command[:2] in (["audit", "/srv/logs"], ["audit", "/logs"])
    command[1] = str(tmp_path / "logs")
    assert "Read 1 new or changed logs" in (done := bylaw(tmp_path, *command)).stdout, done.stderr
    assert "Read 0 new or changed logs (1 were already known)" in bylaw(tmp_path, *command).stdout


def test_the_console_shows_what_the_nightly_audit_wrote(tmp_path: Path, nightly: dict[str, Any], port: int) -> None:
    audit = placed(of_compose("audit"), **nightly)
    audit[1] = str(tmp_path / "logs")
    assert run(tmp_path, *audit).returncode == 0
    assert of_compose("console")[1] == of_compose("audit")[-1].removeprefix("--out=")
    places = {"port": port, "pack": READY / "clinic", "waivers": tmp_path / "waivers.yaml"}
    command = placed(of_compose("console"), **places)
    command[1] = str(tmp_path / "state")
    for _ in serving(tmp_path, command, port, ready="/"):
        status, page = answered(port, "/findings")
        assert status == 200
        assert b"clinic" in page


def test_every_volume_of_compose_is_where_its_command_looks() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    for name in ("bylaw", "audit", "console"):
        held = {volume.split(":")[1] for volume in services[name].get("volumes", ())}
        named = {word.partition("=")[2] or word for word in services[name]["command"]}
        places = {"/" + place.split("/")[1] for place in named if place.startswith("/")} - {"/run"}
        assert places == held, name


def test_the_container_installs_packages_by_their_hashes() -> None:
    installed = (DEPLOY / "Containerfile").read_text()
    assert all(f"--require-hashes -r /build/{name}.txt" in installed for name in ("build", "service"))
    others = [line for line in installed.splitlines() if "pip " in line and "--require-hashes" not in line]
    assert len(others) == 2
    assert all("--no-index" in line for line in others)
    assert "hatchling==" in (DEPLOY.parent / "requirements" / "build.txt").read_text()
    pinned = (DEPLOY.parent / "requirements" / "service.txt").read_text()
    assert all(f"{name}==" in pinned for name in ("starlette", "uvicorn", "psycopg", "pyarrow", "duckdb"))
