"""Stage 3: turns the model has never seen are tried four times each and rewarded (TRL's GRPOTrainer)."""
# pyright: basic, reportMissingImports=false

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM
from trl import GRPOTrainer
from trl.trainer.utils import split_tensor_dict

from bylaw.align.training.dialect import Dialect
from bylaw.align.training.run import Score, grpo_config, rewarded, written
from bylaw_lab.training.generator import Generator, shared_length

SAME = 1e-4
"""Answers to one prompt whose advantages are no further than this from 0 have the same reward."""
SLOTS = 512
"""Answers that are written at the same time."""
MOST = 3.0
"""How many times an advantage may grow or shrink for balance."""


class Rollout:
    """Writes the answers GRPO learns from, with a generator that takes over the model's weights before each batch."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], dialect: Dialect, settings: Any, seed: int) -> None:
        self.dialect = dialect
        self.settings = settings
        self.seed = seed
        self.generator: Generator | None = None
        self.ids = {written(row): dialect.prompt(row["prompt"]) for row in rows}

    def __call__(self, prompts: list[str], trainer: GRPOTrainer) -> dict[str, Any]:
        """Answers for the prompts, as TRL asks a `rollout_func` for them."""
        model = trainer.accelerator.unwrap_model(trainer.model)
        if self.generator is None:
            slots = min(SLOTS, len(prompts))
            self.generator = Generator(bare(model), ends=self.dialect.ends, slots=slots, room=self.room())
        self.generator.load(weights(model))
        ids = [self.ids[prompt] for prompt in prompts]
        place = trainer.state.global_step * trainer.accelerator.num_processes + trainer.accelerator.process_index
        answers, chances = self.generator.sample(
            ids,
            longest=self.settings.longest_answer,
            temperature=self.settings.temperature,
            seed=self.seed * 1_000_003 + place,
        )
        # A prompt that leaves no room for an answer is answered with the end alone: TRL cannot do with nothing.
        answers = [answer or [self.dialect.end] for answer in answers]
        chances = [logs or [0.0] for logs in chances]
        return {"prompt_ids": ids, "completion_ids": answers, "logprobs": chances}

    def room(self) -> int:
        """Tokens the longest prompt needs beyond what all begin with, and its answer."""
        prompts = list(self.ids.values())
        shared = shared_length(prompts)
        return max(map(len, prompts)) - shared + self.settings.longest_answer + 1


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
    """Learns from the prompts that tell something, in one or several steps from the answers of one rollout.

    TRL learns from all, in random order, and computes what the model and the reference say of answers that nothing is
    learned from. Here the prompts are dealt to the steps at random, and within a step answers of like length are
    computed together, which changes nothing but the time it takes.
    """

    def learn_from(self, rows: Sequence[Mapping[str, Any]], how: Literal["all", "differing", "balanced"]) -> None:
        self.how = how
        self.is_refusal = [row.get("purpose") == "refuse" for row in rows]
        self.is_trying = False

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        if not self.model.training:
            return super()._prepare_inputs(generation_batch)
        steps = self.args.steps_per_generation
        if self._step % (steps * self.num_iterations) == 0 or self._buffered_inputs is None:
            self._buffered_inputs = split_tensor_dict(self._try(generation_batch), steps)
        return self._buffered_inputs[self._step % steps]

    def _try(self, rows: Any) -> dict[str, Any]:
        """Answers to the prompts of `rows` with all that a step needs of them, in the order they are learned in."""
        self.is_trying = self.ref_model is not None or not self.beta
        try:
            batch = self._generate_and_score_completions(rows)
        finally:
            later, self.is_trying = self.is_trying, False
        pieces = self.args.steps_per_generation
        advantages = batch["advantages"].cpu()
        if self.how == "all":
            kept = torch.arange(len(advantages))
        else:
            kept = telling(advantages, self.num_generations, pieces)
            self._metrics["train"]["learned_from"].append(len(kept) / len(rows))
            if self.how == "balanced":
                refusals = torch.tensor([self.is_refusal[one["row"]] for one in rows])
                batch["advantages"] = balanced(advantages, refusals).to(batch["advantages"])
        updates = max(1, pieces // self.args.gradient_accumulation_steps)
        lengths = batch["prompt_mask"].sum(1).cpu()
        order = dealt(kept, lengths, self.num_generations, updates, self.args.seed + self.state.global_step)
        order = order.to(batch["advantages"].device)
        batch = {
            name: value[order] if isinstance(value, torch.Tensor) and value.ndim else value
            for name, value in batch.items()
        }
        if later:
            for name, model in (("old_per_token_logps", self.model), ("ref_per_token_logps", self.ref_model)):
                if name in batch:
                    batch[name] = self._chances(model, batch)
        drawn = batch.pop("sampling_per_token_logps", None)
        if drawn is not None and "old_per_token_logps" in batch:
            gap = (drawn - batch["old_per_token_logps"]).abs()[batch["completion_mask"].bool()]
            self._metrics["train"]["sampling_gap"].append(float(gap.mean()))
        return batch

    @torch.no_grad()
    def _chances(self, model: Any, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The log-probabilities that a model gives the tokens of answers."""
        ids = torch.cat([batch["prompt_ids"], batch["completion_ids"]], dim=1)
        mask = torch.cat([batch["prompt_mask"], batch["completion_mask"]], dim=1)
        size = self.args.per_device_train_batch_size
        return self._get_per_token_logps_and_entropies(model, ids, mask, batch["completion_ids"].size(1), size)[0]

    def _get_per_token_logps_and_entropies(
        self, model: Any, input_ids: Any, attention_mask: Any, logits_to_keep: int, *others: Any, **more: Any
    ) -> Any:
        # While answers are tried it is not yet known which of them are learned from.
        if self.is_trying:
            return torch.zeros((len(input_ids), logits_to_keep), device=input_ids.device), None, None
        return super()._get_per_token_logps_and_entropies(
            model, input_ids, attention_mask, logits_to_keep, *others, **more
        )


def dealt(kept: torch.Tensor, lengths: torch.Tensor, generations: int, steps: int, seed: int) -> torch.Tensor:
    """The places of answers, dealt to equal steps at random, prompt by prompt, and ordered by length within a step."""
    prompts = kept.view(-1, generations)
    prompts = prompts[torch.randperm(len(prompts), generator=torch.Generator().manual_seed(seed))]
    parts = torch.arange(len(prompts)) * steps // len(prompts)
    # By length first, then stably by step.
    order = torch.argsort(lengths[prompts[:, 0]], stable=True)
    order = order[torch.argsort(parts[order], stable=True)]
    return prompts[order].flatten()


def trainer(
    model: Any,
    rows: Sequence[Mapping[str, Any]],
    dialect: Dialect,
    settings: Any,
    arguments: dict[str, Any],
    score: Score,
    **others: Any,
) -> GRPOTrainer:
    """The trainer of stage 3. `arguments` are those every stage shares."""
    config = grpo_config(arguments, settings)
    found = Trainer(
        model=model,
        args=config,
        train_dataset=dataset(rows),
        processing_class=dialect.tokenizer,
        reward_funcs=rewarded(rows, score),
        rollout_func=Rollout(rows, dialect, settings, arguments["seed"]),
        **others,
    )
    found.learn_from(rows, settings.learn_from)
    return found
