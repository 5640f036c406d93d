"""Stages 1 and 2: the agent's turns of whole conversations are learned (TRL's SFTTrainer)."""
# pyright: basic, reportMissingImports=false

from collections.abc import Iterable, Mapping
from typing import Any

from datasets import Dataset
from trl import SFTConfig, SFTTrainer

from bylaw.align.training.dialect import Dialect
from bylaw.align.training.preset import Supervised


def examples(rows: Iterable[Mapping[str, Any]], dialect: Dialect, longest: int) -> tuple[Dataset, int]:
    """The conversations as tokens and labels, and how many were left out for their length."""
    kept: list[dict[str, Any]] = []
    left_out = 0
    for row in rows:
        ids, labels = dialect.example(
            row["messages"], last_alone=row.get("learn") == "last", unlearned=row.get("unlearned", ())
        )
        if len(ids) > longest:
            left_out += 1
        else:
            kept.append({"input_ids": ids, "labels": labels})
    return Dataset.from_list(kept), left_out


def trainer(
    model: Any, dataset: Dataset, dialect: Dialect, settings: Supervised, arguments: dict[str, Any], **others: Any
) -> SFTTrainer:
    """The trainer of a supervised stage. `arguments` are those every stage shares."""
    config = SFTConfig(
        **arguments,
        max_length=None,
        dataset_kwargs={"skip_prepare_dataset": True},
        packing=False,
        loss_type="nll",
    )
    return SFTTrainer(model=model, args=config, train_dataset=dataset, processing_class=dialect.tokenizer, **others)
