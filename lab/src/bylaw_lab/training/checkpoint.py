"""A checkpoint on disk as an agent that plays tasks."""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from bylaw.align.episode import Episode
from bylaw.align.training.dialect import Dialect
from bylaw_lab.training.generator import Generator

LONGEST = 256
"""Tokens of one output."""


class Checkpoint:
    """Answers greedily, unless given a temperature. Conversations go on where they were: nothing is read twice."""

    def __init__(self, generator: Generator, dialect: Dialect, *, longest: int = LONGEST) -> None:
        self.generator = generator
        self.dialect = dialect
        self.longest = longest
        self.temperature = 0.0
        self.seed = 0

    def answer(self, episodes: Sequence[Episode]) -> list[str]:
        prompts = [self.dialect.prompt(episode.messages) for episode in episodes]
        names = [id(episode) for episode in episodes]
        return [self.dialect.text(ids) for ids in self.generator.generate(prompts, longest=self.longest, names=names)]

    def converse(self, episodes: Sequence[Episode], watch: Callable[[int, int], None] | None = None) -> None:
        """Play episodes to their ends, each at its own pace."""
        looks = count()

        def reply(place: int, ids: list[int]) -> list[int] | None:
            episode = episodes[place]
            episode.step(self.dialect.text(ids))
            return None if episode.done else self.dialect.prompt(episode.messages)

        def look(live: int) -> None:
            if watch is not None:
                watch(next(looks), live)

        prompts = [self.dialect.prompt(episode.messages) for episode in episodes]
        self.generator.converse(
            prompts, reply, longest=self.longest, temperature=self.temperature, seed=self.seed, watch=look
        )

    def chances(
        self,
        conversations: Sequence[Sequence[Mapping[str, Any]]],
        choices: Sequence[str],
        after: Sequence[str] | None = None,
    ) -> list[list[float]]:
        """The log-probability that the next output begins with each of `choices`, which differ in their first token.

        `after`: what of the output stands already, for each conversation.
        """
        tokens = [self.dialect.tokenizer(choice, add_special_tokens=False)["input_ids"][0] for choice in choices]
        prompts = [self.dialect.prompt(messages) for messages in conversations]
        if after is not None:
            written = (self.dialect.tokenizer(text, add_special_tokens=False)["input_ids"] for text in after)
            prompts = [prompt + more for prompt, more in zip(prompts, written, strict=True)]
        return self.generator.chances(prompts, tokens).tolist()


def open_checkpoint(folder: Path, *, slots: int = 512, room: int = 4096) -> Checkpoint:
    """The model in `folder`, on a GPU where there is one. Prompts of over `room` own tokens get no answer."""
    cuda = torch.cuda.is_available()
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16 if cuda else torch.float32)
    dialect = Dialect(AutoTokenizer.from_pretrained(folder))
    model = model.to("cuda") if cuda else model
    return Checkpoint(Generator(model, ends=dialect.ends, slots=slots, room=room), dialect)
