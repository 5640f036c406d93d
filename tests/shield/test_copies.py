"""What a pack, a shield and a session say where somebody copies them, or sends them to another process."""

import copy
import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from bylaw import BylawError, Pack, load_pack
from bylaw.policy.folder import find_folder
from bylaw.shield import Shield
from tests.shield.scenes import CANCEL, asked, shop


def decide(pack: Pack) -> str:
    """In another process."""
    return asked(Shield(pack).session()).decide("cancel_appointment", CANCEL).answer


def test_a_pack_goes_to_another_process_which_decides_the_same() -> None:
    pack = load_pack("clinic")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(decide, pack).result() == decide(pack) == "look_up"
    again = pickle.loads(pickle.dumps(pack))
    assert (again.digest, again.pin) == (pack.digest, pack.pin)


def test_a_pack_that_has_changed_on_disk_is_not_taken_for_the_one_that_was_pickled(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(find_folder("clinic"), tmp_path / "clinic"))
    sent = pickle.dumps(load_pack(folder))
    (folder / "policies.yaml").open("a").write("# another\n")
    with pytest.raises(BylawError, match="is no longer the pack that was pickled: its files have changed"):
        pickle.loads(sent)


def test_a_pack_of_texts_says_that_the_texts_can_be_sent() -> None:
    with pytest.raises(
        BylawError, match="has no folder that another process could read it from; send the contents of the files"
    ):
        pickle.dumps(shop())


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_who_copies_a_pack_or_a_shield_has_the_same_one(copied: object, tmp_path: Path) -> None:
    assert callable(copied)
    with Shield(shop(), log=tmp_path / "decisions.db") as shield:
        held = {"agent": [shield, shield.pack]}
        taken = copied(held)["agent"]
        assert taken[0] is shield
        assert taken[1] is shield.pack


def test_a_shield_and_a_session_say_what_to_do_in_another_process(tmp_path: Path) -> None:
    with Shield(shop(), log=tmp_path / "decisions.db") as shield:
        with pytest.raises(BylawError, match=r"a shield cannot be pickled.*in each process"):
            pickle.dumps(shield)
        session = shield.session("c")
        for wrong in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(BylawError, match=r"a session cannot be pickled or copied.*shield.session"):
                wrong(session)
