"""Writes a trained model's card: its data, its reward, and what has not been measured."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from bylaw.align.dataset import digest_of, find_manifest

STAGES = {
    1: "supervised fine-tuning with the policy in the prompt (stage 1)",
    2: "supervised fine-tuning with thoughts and without the policy (stage 2)",
    3: "GRPO over single turns (stage 3)",
}


def source_of(data: Path, file: Path, model: Path) -> dict[str, Any]:
    """Return the source of a run's rows and initial weights, with hashes."""
    found: dict[str, Any] = {
        "data": {"file": file.name, "sha256": digest_of(file)},
        "model": {"name": model.name, "sha256": weights_digest(model)},
    }
    if (made := find_manifest(data)) is not None:
        listed = made.sets.get(file.name.split(".")[0])
        found["data"] |= {"command": made.command, "as_made": listed is not None and listed.sha256 == digest_of(file)}
        found["pack"] = {"name": made.pack, "version": made.pack_version, "sha256": made.pack_digest}
    return found


def weights_digest(folder: Path) -> str:
    """Return the hash of a model's weights, file by file in order of name."""
    whole = hashlib.sha256()
    for file in sorted(folder.glob("*.safetensors")):
        with file.open("rb") as stream:
            whole.update(hashlib.file_digest(stream, "sha256").digest())
    return whole.hexdigest()


def write_model_card(out: Path, done: Mapping[str, Any]) -> Path:
    """Write `README.md` next to the model from its run's record."""
    source: Mapping[str, Any] = done.get("source") or {}
    lines = [f"Trained by `bylaw align train`: {STAGES[done['stage']]}, {done['steps']} steps, seed {done['seed']}."]
    if model := source.get("model"):
        lines.append(f"It began as `{model['name']}` (weights `{model['sha256'][:16]}`).")
    if data := source.get("data"):
        told = f"It learned from {done['rows']} rows of `{data['file']}` (`{data['sha256'][:16]}`)"
        lines.append(f"{told}, made by `{data['command']}`." if data.get("command") else f"{told}.")
        if data.get("as_made") is False:
            lines.append("The rows were changed after they had been made.")
    if pack := source.get("pack"):
        lines.append(f"The policies are those of pack `{pack['name']}` {pack['version']} (`{pack['sha256'][:16]}`).")
    if reward := source.get("reward"):
        judge = f", texts marked by `{reward['judge']}`" if reward.get("judge") else ""
        terms = f"`{reward['terms']}`, wrong kind of turn by `{reward['mismatch']}`{judge}"
        lines.append(f"The reward: {terms}, graded by pack `{reward['pack']}` (`{reward['pack_sha256'][:16]}`).")
    if done.get("lora"):
        lines.append(
            f"Adapters of rank {done['lora']} were trained. They lie in `adapter/`; the weights here hold them already."
        )
    settings = msgspec.json.format(msgspec.json.encode(done["settings"]), indent=1).decode()
    text = "\n\n".join(
        [
            "# A model that learned policies",
            "\n".join(f"- {line}" for line in lines),
            "It writes a thought in `<think>` and then a text or one call as JSON; `chat_template.jinja` says how it is"
            " to be prompted. **Nothing here says how good it is**: measure it with `bylaw align eval --agent FOLDER`,"
            " and put a shield around it, since a model that has learned a policy still breaks it at times.",
            f"Settings:\n\n```json\n{settings}\n```",
        ]
    )
    path = out / "README.md"
    path.write_text(text + "\n", encoding="utf-8")
    return path
