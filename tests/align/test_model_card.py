"""What a trained model says of itself: hashes of all it was made of, and that nobody has measured it."""

import hashlib
from pathlib import Path
from typing import Any

from bylaw.align.dataset import write_manifest
from bylaw.align.prompt import pack_named
from bylaw.align.training.stage import rows_file, source_of, weights_digest, write_model_card


def folders(root: Path) -> tuple[Path, Path]:
    data, model = root / "data", root / "first"
    data.mkdir()
    model.mkdir()
    (data / "rl.jsonl").write_text('{"prompt": []}\n')
    (model / "model.safetensors").write_bytes(b"weights")
    write_manifest(data, "clinic", pack_named("clinic"), "bylaw align data --pack clinic", ["rl"])
    return data, model


def done(**more: Any) -> dict[str, Any]:
    return {"stage": 3, "steps": 8, "seed": 1, "rows": 1, "lora": None, "settings": {"beta": 0.1}, **more}


def test_the_record_holds_the_hashes_of_rows_weights_and_pack(tmp_path: Path) -> None:
    data, model = folders(tmp_path)
    found = source_of(data, rows_file(data, 3), model)
    assert found["data"]["sha256"] == hashlib.sha256((data / "rl.jsonl").read_bytes()).hexdigest()
    assert found["data"]["as_made"]
    assert found["pack"]["sha256"] == pack_named("clinic").digest
    before = found["model"]["sha256"]
    (model / "model.safetensors").write_bytes(b"others")
    assert weights_digest(model) != before


def test_the_card_tells_rows_reward_and_what_is_not_known(tmp_path: Path) -> None:
    data, model = folders(tmp_path)
    reward = {"terms": "full", "mismatch": "floor", "judge": None, "pack": "clinic", "pack_sha256": "ab" * 32}
    source = source_of(data, rows_file(data, 3), model) | {"reward": reward}
    card = write_model_card(tmp_path, done(source=source, lora=8)).read_text(encoding="utf-8")
    for said in ("GRPO", "`rl.jsonl`", "bylaw align data --pack clinic", "`full`", "abababababababab", "rank 8"):
        assert said in card
    assert "This card does not say how good the model is" in card
    assert "changed after" not in card


def test_rows_that_were_changed_by_hand_are_told_of(tmp_path: Path) -> None:
    data, model = folders(tmp_path)
    (data / "rl.jsonl").write_text('{"prompt": [1]}\n')
    source = source_of(data, rows_file(data, 3), model)
    assert not source["data"]["as_made"]
    card = write_model_card(tmp_path, done(source=source)).read_text(encoding="utf-8")
    assert "changed after they were written" in card


def test_rows_without_a_manifest_have_a_hash_all_the_same(tmp_path: Path) -> None:
    data, model = folders(tmp_path)
    (data / "data.json").unlink()
    source = source_of(data, data / "rl.jsonl", model)
    assert set(source) == {"data", "model"}
    assert "pack" not in write_model_card(tmp_path, done(source=source)).read_text(encoding="utf-8")
