"""`bylaw stop`: an operator stops, lists and lifts."""

from pathlib import Path

from bylaw.record import Log
from tests.command import bylaw
from tests.integrations.rental import EXTEND, desk
from tests.shield.test_stops import agreed


def test_an_operator_stops_a_tool_and_lifts_that(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    with desk(tmp_path, log=log) as shield:
        session = agreed(shield)
        session.flush()
        asked = ("--log", log, "--reason", "cars are recalled", "--for", "2h", "--by", "ann")
        made = bylaw(tmp_path, "stop", "tool", "extend_rental", *asked)
        assert made.returncode == 0, made.stderr
        assert "every write of tool extend_rental is refused, until" in made.stdout
        assert "by ann: cars are recalled" in made.stdout
        assert not session.decide("extend_rental", EXTEND).allowed
        listed = bylaw(tmp_path, "stop", "list", "--log", log)
        assert "extend_rental" in listed.stdout
        name = listed.stdout.split()[0]
        lifted = bylaw(tmp_path, "stop", "lift", name, "--log", log, "--by", "bo", "--reason", "mended")
        assert lifted.returncode == 0, lifted.stderr
        assert "lifted by bo" in lifted.stdout
        assert session.decide("extend_rental", EXTEND).allowed
        assert "No stop is active." in bylaw(tmp_path, "stop", "list", "--log", log).stdout
        assert "lifted by bo" in bylaw(tmp_path, "stop", "list", "--log", log, "--all").stdout
    exported = bylaw(tmp_path, "log", "export", "--log", log)
    assert (exported.returncode, exported.stderr, len(exported.stdout.splitlines())) == (0, "", 1)


def test_what_cannot_be_stopped_is_said_and_nothing_is_written(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    with desk(tmp_path, log=log) as shield:
        agreed(shield).flush()
    asked = ("--log", log, "--reason", "why")
    for wrong, message in (
        (("all", *asked, "--for", "soon"), "`--for soon` is not a duration"),
        (("all", *asked, "--for", "5"), "`--for 5` is not a duration"),
        (("all", *asked, "--for", "900d"), "in the future, within a year"),
        (("all", *asked, "--for", "1h", "--tenant", "x"), "the log has no tenant `x`"),
        (("tool", "refnd", *asked, "--for", "1h", "--pack", tmp_path / "desk"), "the pack has no tool `refnd`"),
        (("policy", "confrm", *asked, "--for", "1h", "--pack", tmp_path / "desk"), "the pack has no policy `confrm`"),
        (("all", "--log", tmp_path / "none", "--reason", "why", "--for", "1h"), "no such log"),
    ):
        ran = bylaw(tmp_path, "stop", *wrong)
        assert (ran.returncode, message in ran.stderr) == (2, True), ran.stderr
    with Log(str(log)) as opened:
        assert opened.every_stop("default") == []


def test_a_stop_of_what_the_log_has_never_seen_says_so_and_stands(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    with desk(tmp_path, log=log) as shield:
        session = agreed(shield, agent="Night")
        assert session.decide("extend_rental", EXTEND).allowed
        session.flush()
    asked = ("--log", log, "--reason", "why", "--for", "1h")
    for what, wrong, right in (
        ("agent", "nihgt", "Night"), ("tool", "extend_rentl", "extend_rental"), ("policy", "own-rentals", "own-rental"),
    ):  # fmt: skip
        made = bylaw(tmp_path, "stop", what, wrong, *asked)
        assert made.returncode == 0, made.stderr
        assert "may have no effect: the log has no" in made.stderr
        assert f"`{wrong}` (did you mean `{right}`?)" in made.stderr
        assert bylaw(tmp_path, "stop", what, right.upper(), *asked).stderr == ""
    with Log(str(log)) as opened:
        assert len(opened.every_stop("default")) == 6
