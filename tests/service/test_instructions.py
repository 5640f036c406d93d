"""Over HTTP, what belongs in an agent's system prompt."""

from pathlib import Path

from bylaw.record import Log
from bylaw.service.app import Service
from bylaw.service.desk import Desk
from bylaw.service.keys import key_line, new_key, read_keys
from bylaw.shield import Shield
from tests.integrations.rental import FILES
from tests.packs import made
from tests.service.asgi import get


def test_they_are_those_of_the_pack(log: Log) -> None:
    pack = made(FILES)
    told = get(Service(Desk(pack, log), {}), "/v1/instructions").json
    assert told["text"] == Shield(pack).instructions()
    assert [(each["tool"], each["questions"]) for each in told["writes"]] == [
        ("extend_rental", ["Shall I extend rental {rental_id} to {new_end}?"]),
        ("refund", ["Shall I refund {amount} for rental {rental_id}?"]),
    ]


def test_they_need_a_key(log: Log, tmp_path: Path) -> None:
    key = new_key()
    (tmp_path / "keys").write_text(key_line("t", key))
    app = Service(Desk(made(FILES), log), read_keys(tmp_path / "keys"))
    assert [get(app, "/v1/instructions", key=each).status for each in ("", key)] == [401, 200]
