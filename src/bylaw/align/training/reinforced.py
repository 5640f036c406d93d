"""Stage 3: turns the model has never seen are tried four times each and rewarded (TRL's GRPOTrainer)."""
# pyright: basic, reportMissingImports=false

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.trainer.utils import split_tensor_dict

from bylaw.align.training.dialect import Dialect, turns
from bylaw.align.training.generator import Generator, shared_length
from bylaw.align.training.preset import Reinforced

Score = Callable[[Sequence[str], Sequence[Mapping[str, Any]]], list[Mapping[str, float]]]
"""The terms of the reward for each completion of a row's turn, and their `total`."""
SAME = 1e-4
"""Answers to one prompt whose advantages are no further than this from 0 have the same reward."""
MOST = 3.0
"""How many times an advantage may grow or shrink for balance."""


class Rollout:
    """Writes the answers GRPO learns from, with a generator that takes over the model's weights before each batch."""

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        dialect: Dialect,
        settings: Reinforced,
        seed: int,
        generator: Generator | None = None,
    ) -> None:
        self.dialect = dialect
        self.settings = settings
        self.seed = seed
        self.generator = generator
        self.ids = {written(row): dialect.prompt(row["prompt"]) for row in rows}

    def __call__(self, prompts: list[str], trainer: GRPOTrainer) -> dict[str, Any]:
        """Answers for the prompts, as TRL asks a `rollout_func` for them."""
        model = trainer.accelerator.unwrap_model(trainer.model)
        if self.generator is None:
            self.generator = Generator(bare(model), ends=self.dialect.ends, slots=len(prompts), room=self.room())
        self.generator.load(weights(model))
        ids = [self.ids[prompt] for prompt in prompts]
        place = trainer.state.global_step * trainer.accelerator.num_processes + trainer.accelerator.process_index
        answers = self.generator.generate(
            ids,
            longest=self.settings.longest_answer,
            temperature=self.settings.temperature,
            seed=self.seed * 1_000_003 + place,
        )
        return {"prompt_ids": ids, "completion_ids": answers, "logprobs": None}

    def room(self) -> int:
        """Tokens the longest prompt needs beyond what all begin with, and its answer."""
        prompts = list(self.ids.values())
        shared = shared_length(prompts)
        return max(map(len, prompts)) - shared + self.settings.longest_answer + 1


def written(row: Mapping[str, Any]) -> str:
    """A row's prompt as text."""
    return "".join("".join(parts) for parts in turns(row["prompt"]))


def bare(model: Any) -> Any:
    """A model like `model`, without adapters."""
    if not hasattr(model, "get_base_model"):
        return model
    config = model.get_base_model().config
    return AutoModelForCausalLM.from_config(config).to(device=model.device, dtype=model.dtype)


def weights(model: Any) -> dict[str, Any]:
    """The weights of a model by name, adapters added to them."""
    if not hasattr(model, "merge_adapter"):
        return dict(model.named_parameters())
    model.merge_adapter()
    try:
        found = model.get_base_model().named_parameters()
        return {
            name.replace(".base_layer", ""): weight.detach().clone() for name, weight in found if "lora_" not in name
        }
    finally:
        model.unmerge_adapter()


def dataset(rows: Sequence[Mapping[str, Any]]) -> Dataset:
    """The turns to try, each known by its place among the rows."""
    return Dataset.from_list([{"prompt": written(row), "row": place} for place, row in enumerate(rows)])


def rewarded(rows: Sequence[Mapping[str, Any]], score: Score) -> Callable[..., list[float]]:
    """`score` as TRL calls a reward; the mean of each term is logged under its name."""

    def reward(completions: list[str], row: list[int], log_metric: Any = None, **_: Any) -> list[float]:
        terms = score(completions, [rows[place] for place in row])
        if log_metric is not None:
            for name in terms[0]:
                log_metric(f"reward/{name}", sum(one[name] for one in terms) / len(terms))
        return [one["total"] for one in terms]

    return reward


def telling(advantages: torch.Tensor, generations: int, pieces: int) -> torch.Tensor:
    """The places of the answers to learn from: those to prompts whose answers differ in their rewards.

    Some that tell nothing may be among them, so that the answers can be dealt to `pieces` equal parts.
    """
    spread = advantages.view(-1, generations).abs().amax(1).tolist()
    order = sorted(range(len(spread)), key=lambda place: -spread[place])
    kept = [place for place in order if spread[place] > SAME]
    rest = order[len(kept) :]
    while rest and (not kept or len(kept) * generations % pieces):
        kept.append(rest.pop(0))
    return torch.tensor([place * generations + answer for place in kept for answer in range(generations)])


def balanced(advantages: torch.Tensor, is_refusal: torch.Tensor) -> torch.Tensor:
    """The advantages, made to push as much where it is right to refuse as where it is right to go on.

    There are more turns of going on, and a model that goes wrong at some of them learns from its rewards to go on,
    whether that is right or not.
    """
    sides = [advantages.abs()[is_refusal].sum(), advantages.abs()[~is_refusal].sum()]
    if min(sides) < SAME:
        return advantages
    refusing, going = ((sum(sides) / 2 / side).clamp(1 / MOST, MOST) for side in sides)
    return torch.where(is_refusal, advantages * refusing, advantages * going)


class Trainer(GRPOTrainer):
    """Learns from the prompts that tell something, and computes answers of like length together.

    TRL learns from all, in random order. All answers of a batch make one step, so their order changes nothing but the
    time it takes.
    """

    def learn_from(self, rows: Sequence[Mapping[str, Any]], how: Literal["all", "differing", "balanced"]) -> None:
        """Say which prompts to learn from."""
        self.how = how
        self.is_refusal = [row.get("purpose") == "refuse" for row in rows]

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        steps = self.args.steps_per_generation
        if not self.model.training or self.num_iterations != 1 or steps != self.args.gradient_accumulation_steps:
            return super()._prepare_inputs(generation_batch)
        if self._step % steps == 0 or self._buffered_inputs is None:
            batch = self._generate_and_score_completions(generation_batch)
            order = torch.argsort(batch["prompt_mask"].sum(1), stable=True)
            if self.how != "all":
                kept = telling(batch["advantages"].cpu(), self.num_generations, steps)
                self._metrics["train"]["learned_from"].append(len(kept) / len(generation_batch))
                if self.how == "balanced":
                    refusals = torch.tensor([self.is_refusal[one["row"]] for one in generation_batch])
                    batch["advantages"] = balanced(batch["advantages"], refusals.to(order.device))
                order = order[torch.isin(order, kept.to(order.device))]
            batch = {
                name: value[order] if isinstance(value, torch.Tensor) and value.ndim else value
                for name, value in batch.items()
            }
            self._buffered_inputs = split_tensor_dict(batch, steps)
        return self._buffered_inputs[self._step % steps]


def trainer(
    model: Any,
    rows: Sequence[Mapping[str, Any]],
    dialect: Dialect,
    settings: Reinforced,
    arguments: dict[str, Any],
    score: Score,
    generator: Generator | None = None,
    **others: Any,
) -> GRPOTrainer:
    """The trainer of stage 3. `arguments` are those every stage shares."""
    config = GRPOConfig(
        **arguments,
        beta=settings.beta,
        num_generations=settings.generations,
        num_iterations=settings.iterations,
        temperature=settings.temperature,
        max_completion_length=settings.longest_answer,
        loss_type="grpo",
        scale_rewards=settings.scale,
        remove_unused_columns=False,
    )
    found = Trainer(
        model=model,
        args=config,
        train_dataset=dataset(rows),
        processing_class=dialect.tokenizer,
        reward_funcs=rewarded(rows, score),
        rollout_func=Rollout(rows, dialect, settings, arguments["seed"], generator),
        **others,
    )
    found.learn_from(rows, settings.learn_from)
    return found
