"""A service that starts with another version of its pack tells of conversations that cannot go on."""

from pathlib import Path

from bylaw.cli.serve import _stranded as told_of_stranded  # pyright: ignore[reportPrivateUsage]
from bylaw.pack import load_pack
from bylaw.record import Log
from tests.integrations.rental import CUSTOMER, FILES, desk


def test_conversations_on_the_old_pack_are_told_of(tmp_path: Path) -> None:
    with desk(tmp_path, log=tmp_path / "log.db", tenant="north") as shield:
        shield.session("c", context=CUSTOMER).decide("get_rental", {"rental_id": "R1"})
        old = shield.pack
    (tmp_path / "desk" / "pack.yaml").write_text(FILES["pack.yaml"].replace("'1'", "'2'"))
    new = load_pack(tmp_path / "desk")
    with Log(str(tmp_path / "log.db")) as log:
        assert told_of_stranded(log, old, []) == ""
        assert told_of_stranded(log, new, [old]) == ""
        told = told_of_stranded(log, new, [])
    assert "1 conversation from the last day began under another version of the pack" in told
    assert "--earlier (north: 1)" in told
