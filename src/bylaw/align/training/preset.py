"""Settings for the three stages and for DPO: `paper` as in PA3 (tables 9 and 10), `small` for one GPU, `tiny` for a
CPU.

The paper does not use DPO, so `paper` shares the DPO settings of `small`.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from bylaw.errors import UsageError

PresetName = Literal["paper", "small", "tiny"]
Stage = Literal[1, 2, 3, "dpo"]


class Supervised(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings for stages 1 and 2."""

    learning_rate: float
    least_learning_rate: float
    epochs: float
    batch: int
    """The number of conversations per step, on all devices together."""
    at_once: int
    """The number of conversations that each device processes at once."""
    longest: int
    """The maximum length in tokens. Longer conversations are counted and left out."""
    recompute: bool = False
    """Whether to compute activations twice to save memory."""
    warmup: float = 0.05
    gradient_norm: float = 1.0


class Reinforced(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings for stage 3 (GRPO)."""

    learning_rate: float
    least_learning_rate: float
    epochs: float
    batch: int
    """The number of answers per step, on all devices together."""
    at_once: int
    """The number of answers that each device processes at once."""
    longest_answer: int
    """The maximum length of an answer, in tokens."""
    rollout: int | None = None
    """The number of answers to generate at once, on all devices together. None means the answers of one step."""
    recompute: bool = False
    beta: float = 0.1
    generations: int = 4
    iterations: int = 1
    temperature: float = 1.0
    scale: Literal["group", "batch", "none"] = "group"
    """After the mean for the prompt is subtracted, the reward of an answer is divided by this spread: the spread among
    the answers to the prompt, as in the paper, or in the whole batch. With `group`, small differences have as much
    weight as large ones.
    """
    warmup: float = 0.05
    gradient_norm: float = 1.0


class Preferred(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings for DPO."""

    learning_rate: float
    least_learning_rate: float
    epochs: float
    batch: int
    """The number of pairs per step, on all devices together."""
    at_once: int
    """The number of pairs that each device processes at once."""
    beta: float = 0.1
    imitation: float = 1.0
    """The weight of the supervised loss on the chosen answers, which keeps them likely."""
    recompute: bool = False
    warmup: float = 0.05
    gradient_norm: float = 1.0


Settings = Supervised | Reinforced | Preferred
# 5e-6 made a model much worse; smaller rates have not been tried.
DPO = Preferred(1e-6, 1e-7, epochs=2, batch=16, at_once=4)


PRESETS: dict[PresetName, tuple[Supervised, Reinforced, Preferred]] = {
    "paper": (
        Supervised(1e-5, 1e-6, epochs=15, batch=64, at_once=1, longest=32768, recompute=True),
        Reinforced(1e-6, 1e-7, epochs=20, batch=512, at_once=4, longest_answer=2048, recompute=True),
        DPO,
    ),
    "small": (
        Supervised(5e-5, 5e-6, epochs=2, batch=32, at_once=8, longest=12288),
        # Larger learning rates made the model worse.
        Reinforced(2e-6, 2e-7, epochs=3, batch=256, at_once=128, longest_answer=224),
        DPO,
    ),
    "tiny": (
        Supervised(1e-3, 1e-4, epochs=1, batch=4, at_once=4, longest=12288),
        Reinforced(1e-4, 1e-5, epochs=1, batch=8, at_once=8, longest_answer=16),
        Preferred(1e-3, 1e-4, epochs=1, batch=2, at_once=2),
    ),
}


def settings_of(preset: PresetName, stage: Stage, changes: Mapping[str, Any]) -> Settings:
    chosen = PRESETS[preset][{3: 1, "dpo": 2}.get(stage, 0)]
    try:
        return msgspec.convert({**msgspec.to_builtins(chosen), **changes}, type(chosen))
    except msgspec.ValidationError as error:
        names = ", ".join(field.name for field in msgspec.structs.fields(chosen))
        why = str(error)
        raise UsageError(f"no such setting: {why[:1].lower()}{why[1:]}", hint=f"stage {stage} has {names}") from None
