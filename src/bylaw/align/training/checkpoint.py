"""A checkpoint on disk as an agent that plays tasks."""
# pyright: basic, reportMissingImports=false

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from bylaw.align.episode import Episode
from bylaw.align.training.dialect import Dialect
from bylaw.align.training.generator import Generator

LONGEST = 256
"""Tokens of one output."""


class Checkpoint:
    """Answers greedily. Conversations go on where they were: nothing is read twice."""

    def __init__(self, generator: Generator, dialect: Dialect, *, longest: int = LONGEST) -> None:
        self.generator = generator
        self.dialect = dialect
        self.longest = longest

    def answer(self, episodes: Sequence[Episode]) -> list[str]:
        """The next output in each episode."""
        prompts = [self.dialect.prompt(episode.messages) for episode in episodes]
        names = [id(episode) for episode in episodes]
        return [self.dialect.text(ids) for ids in self.generator.generate(prompts, longest=self.longest, names=names)]

    def chances(
        self, conversations: Sequence[Sequence[Mapping[str, Any]]], choices: Sequence[str]
    ) -> list[list[float]]:
        """The log-probability that the next output begins with each of `choices`, which differ in their first token."""
        tokens = [self.dialect.tokenizer(choice, add_special_tokens=False)["input_ids"][0] for choice in choices]
        prompts = [self.dialect.prompt(messages) for messages in conversations]
        return self.generator.chances(prompts, tokens).tolist()


def open_checkpoint(folder: Path, *, slots: int = 512, room: int = 4096) -> Checkpoint:
    """The model in `folder`, on a GPU where there is one. Prompts of over `room` own tokens get no answer."""
    cuda = torch.cuda.is_available()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16 if cuda else torch.float32)
    dialect = Dialect(AutoTokenizer.from_pretrained(folder))
    model = model.to("cuda") if cuda else model
    return Checkpoint(Generator(model, ends=dialect.ends, slots=slots, room=room), dialect)
