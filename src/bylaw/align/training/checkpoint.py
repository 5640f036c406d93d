"""Runs a checkpoint as an agent on tasks."""
# pyright: basic, reportMissingImports=false

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from bylaw.align.episode import Episode
from bylaw.align.training.stage import CLOSE, with_dialect

LONGEST = 256
"""The maximum length of an output in tokens."""
AT_ONCE = 64


class Checkpoint:
    """Answers with greedy decoding."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.tokenizer = tokenizer

    @torch.no_grad()
    def answer(self, episodes: Sequence[Episode]) -> list[str]:
        render = self.tokenizer.apply_chat_template
        prompts = [render(episode.messages, tokenize=False, add_generation_prompt=True) for episode in episodes]
        # Prompts of similar length share a batch, which reduces padding.
        order = sorted(range(len(prompts)), key=lambda place: len(prompts[place]))
        answers = [""] * len(prompts)
        for start in range(0, len(order), AT_ONCE):
            places = order[start : start + AT_ONCE]
            given = self.tokenizer(
                [prompts[place] for place in places],
                add_special_tokens=False,
                padding=True,
                padding_side="left",
                return_token_type_ids=False,
                return_tensors="pt",
            ).to(self.model.device)
            ids = {"eos_token_id": self.tokenizer.eos_token_id, "pad_token_id": self.tokenizer.pad_token_id}
            found = self.model.generate(**given, **ids, max_new_tokens=LONGEST, do_sample=False)
            written = self.tokenizer.batch_decode(found[:, given["input_ids"].shape[1] :])
            for place, text in zip(places, written, strict=True):
                answers[place] = text.partition(CLOSE)[0]
        return answers


def open_checkpoint(folder: Path) -> Checkpoint:
    """Open the model in `folder`, on a GPU if available."""
    cuda = torch.cuda.is_available()
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16 if cuda else torch.float32)
    tokenizer = with_dialect(AutoTokenizer.from_pretrained(folder))
    return Checkpoint(model.to("cuda") if cuda else model, tokenizer)
