"""The alignment experiment's arms, and how lanes side by side share them."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    monkeypatch.syspath_prepend(str(ROOT / "lab" / "benchmarks"))
    import align_arms
    import align_experiment

    return SimpleNamespace(arms=align_arms, experiment=align_experiment)


@pytest.fixture
def lane(modules: SimpleNamespace, tmp_path: Path) -> Any:
    """A lane of the experiment that takes arms and trains nothing."""

    def begin(name: str, wanted: list[Any], left: float = 100.0) -> Iterator[Any]:
        return modules.experiment.queue(SimpleNamespace(work=tmp_path, lane=name, left=lambda: left), wanted)

    return begin


def test_every_model_is_trained_after_what_it_begins_from_and_is_played(modules: SimpleNamespace) -> None:
    planned = modules.arms.plan(("worked", "fair", "asked", "episodes"), 2, [1, 3])
    names = [arm.name for arm in planned]
    assert len(set(names)) == len(names)
    for place, arm in enumerate(planned):
        assert set(arm.needs) <= set(names[:place])
        assert arm.is_training or not any(later.is_training for later in planned[place:])
        if arm.stage:
            assert f"test-{arm.name}" in names
    passes = {arm.name: arm.epochs for arm in planned if arm.stage}
    both = passes["stage1-1"] + passes["stage2-3"]
    assert all(passes[f"worked-{k}"] == passes[f"stage2-{k}"] for k in (1, 3))
    assert next(arm for arm in planned if arm.name == "asked-3").matches == "worked-3"
    assert {passes["stage1-1"] + passes["reads-3"], passes["alone-3"], passes["long-3"]} == {both}
    assert all("show" in arm.shields for arm in planned if arm.policy)


def test_lanes_take_each_arm_once_and_wait_for_what_it_needs(
    modules: SimpleNamespace, lane: Any, tmp_path: Path
) -> None:
    arm = modules.arms.Arm
    wanted = [arm("one", 1), arm("two", 2, "one", needs=("one",)), arm("three", 1)]
    a, b = lane("a", wanted), lane("b", wanted)
    assert [next(a).name, next(b).name] == ["one", "three"]  # `two` waits
    (tmp_path / "done" / "one").touch()
    assert next(b).name == "two"
    assert list(a) == []


def test_what_needs_an_arm_that_failed_is_given_up_whole(modules: SimpleNamespace, lane: Any, tmp_path: Path) -> None:
    arm = modules.arms.Arm
    chain = [
        arm("one", 1),
        arm("two", 2, "one", needs=("one",)),
        arm("three", 3, "two", needs=("two",)),
        arm("four", 1),
    ]
    a = lane("a", chain)
    assert next(a).name == "one"
    (tmp_path / "failed" / "one").touch()
    assert [one.name for one in a] == ["four"]
    assert sorted(path.name for path in (tmp_path / "failed").iterdir()) == ["one", "three", "two"]


def test_a_lane_that_was_killed_takes_its_arm_up_once_more(modules: SimpleNamespace, lane: Any, tmp_path: Path) -> None:
    wanted = [modules.arms.Arm("one", 1), modules.arms.Arm("two", 1)]
    assert next(lane("a", wanted)).name == "one"
    assert next(lane("b", wanted)).name == "two"
    (tmp_path / "done" / "two").touch()
    assert [one.name for one in lane("b", wanted)] == []  # it had ended
    assert [one.name for one in lane("a", wanted)] == ["one"]
    assert [one.name for one in lane("a", wanted)] == []
    assert (tmp_path / "failed" / "one").exists()  # killed twice: nobody is to wait for it


@pytest.mark.parametrize(("module", "page"), [("align_page", "align.md"), ("align_history", "align-history.md")])
def test_a_page_says_what_the_logs_say(modules: SimpleNamespace, module: str, page: str) -> None:
    written = (ROOT / "lab" / "results" / "pages" / page).read_text(encoding="utf-8")
    assert written == importlib.import_module(module).page()


def test_practice_on_whole_conversations_has_a_control_of_as_many_steps(modules: SimpleNamespace) -> None:
    planned = modules.arms.episodes(2, [2, 3])
    names = [arm.name for arm in planned]
    assert len(set(names)) == len(names)
    for place, arm in enumerate(planned):
        assert set(arm.needs) <= set(names[:place])
    by_name = {arm.name: arm for arm in planned}
    for seed in (2, 3):
        practised, control = by_name[f"episodes-{seed}"], by_name[f"control-{seed}"]
        assert practised.start == control.start == f"stage2-{seed}"
        assert control.matches == practised.name
        tests = [by_name[f"test-{each}-{seed}"] for each in ("stage2", "episodes", "control")]
        assert all(arm.is_tuned and arm.policy == "none" for arm in tests)


def test_rows_against_near_misses_are_tried_beside_stage_2_in_as_many_steps(modules: SimpleNamespace) -> None:
    planned = modules.arms.plan(("checked",), 2, [1, 2, 3])
    names = [arm.name for arm in planned]
    for place, arm in enumerate(planned):
        assert set(arm.needs) <= set(names[:place])
    by_name = {arm.name: arm for arm in planned}
    for seed in (1, 2, 3):
        control, checked = by_name[f"stage2-{seed}"], by_name[f"checked-{seed}"]
        assert checked.start == control.start
        assert checked.matches == control.name
        assert by_name[f"test-checked-{seed}"].shields == ("show",)
