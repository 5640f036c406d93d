"""Methods to find what an agent had been shown before a write call. All use the same guards."""

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace
from near_miss_draw import Place, judged

from bylaw.compile.card import Card
from bylaw.compile.desk import Desk
from bylaw.compile.lookups import Lookups, fields_read, write_lookups
from bylaw.engine.verdict import Verdict, worst
from bylaw.facts.world import World
from bylaw.guard import Vocabulary, parse_lookups, run_lookup
from bylaw.llm import Chat
from bylaw.llm.source import at_hand
from bylaw.pack import Pack
from bylaw.policy.folder import read_folder
from bylaw.trace import Trajectory
from bylaw_lab.search import ModelSearch

SHOWN = 20
"""The number of conversations for testing look-up code."""


class Domain(NamedTuple):
    """Conversations with their pack and, if known, the truth about their write calls."""

    name: str
    pack: Pack
    trajectories: Sequence[tuple[Trajectory, World | None]]
    places: set[Place] | None
    """The calls to count. None means all calls."""
    truth: dict[Place, bool]
    cards: Mapping[str, Card]
    searched: set[Place]
    """The write calls that the model search covers."""
    wider: dict[Place, bool] | None = None
    """The truth if amounts that had not been shown are also counted."""
    strata: dict[Place, str] | None = None
    sizes: dict[str, int] | None = None
    """The number of calls in each stratum, for a draw with strata."""


def flagged(pack: Pack, domain: Domain, places: set[Place] | None = None) -> dict[Place, bool]:
    """Return whether each write call, or each one in `places`, is a near-miss by the paper's criterion."""
    return {place: worst(list(said.values())) == "near_miss" for place, said in _verdicts(pack, domain, places).items()}


def executed(domain: Domain) -> set[Place]:
    """Return the write calls that were not refused by a result."""
    return {
        (trajectory.id, call.made.step)
        for trajectory, world in domain.trajectories
        for call in judged(domain.pack, trajectory, world, domain.places)
        if call.made.accepted is not False
    }


def grounds(domain: Domain) -> dict[Place, tuple[str, ...]]:
    """Return the policies that flag each write call, using observations."""
    return {
        place: tuple(sorted(name for name, verdict in said.items() if verdict == "near_miss"))
        for place, said in _verdicts(domain.pack, domain, None).items()
        if worst(list(said.values())) == "near_miss"
    }


def _verdicts(pack: Pack, domain: Domain, places: set[Place] | None) -> dict[Place, dict[str, Verdict]]:
    places = domain.places if places is None else places
    names = None if places is None else {name for name, _ in places}
    found: dict[Place, dict[str, Verdict]] = {}
    for trajectory, world in domain.trajectories:
        if names is None or trajectory.id in names:
            for call in judged(pack, trajectory, world, places):
                said: dict[str, Verdict] = {each.policy.id: each.strict for each in call.policies}
                found[trajectory.id, call.made.step] = said or {"": call.strict}
    return found


def without_observations(pack: Pack) -> Pack:
    """Return the pack without observations, except for the facts to search for."""
    return replace(pack, schema=replace(pack.schema, shows={}, searches={}))


def by_code(domain: Domain, chat: Chat) -> tuple[dict[Place, bool], Lookups]:
    """Judge the calls with look-up functions for all fields, which were written in a few questions."""
    desk = Desk(at_hand(chat))
    while True:
        desk.begin()
        made = _written(domain, desk, fields_read(domain.pack.guards.values(), domain.pack.schema))
        if made is not None:
            return flagged(_seeing(domain.pack, made), domain), made
        desk.fetch(chat)


def by_code_of_policies(domain: Domain, chat: Chat) -> tuple[dict[Place, bool], Lookups]:
    """Judge the calls with look-up functions that were each written for one policy and are used only for that
    policy.
    """
    read = {name: fields_read([guard], domain.pack.schema) for name, guard in domain.pack.guards.items()}
    desk = Desk(at_hand(chat))
    while True:
        desk.begin()
        made = {name: _written(domain, desk, fields) for name, fields in read.items() if fields}
        done = {name: each for name, each in made.items() if each is not None}
        if len(done) == len(made):
            break
        desk.fetch(chat)
    blind = without_observations(domain.pack)
    said = _verdicts(blind, domain, None)
    for name, lookups in done.items():
        for place, verdicts in _verdicts(_seeing(domain.pack, lookups), domain, None).items():
            if name in verdicts:
                said[place][name] = verdicts[name]
    codes = {f"{name}: {field}": code for name, each in done.items() for field, code in each.codes.items()}
    failed = {f"{name}: {field}": why for name, each in done.items() for field, why in each.failed.items()}
    return {place: worst(list(each.values())) == "near_miss" for place, each in said.items()}, Lookups(codes, failed)


def _vocabulary(pack: Pack) -> Vocabulary:
    schema = pack.schema
    return Vocabulary(
        schema.entities, schema.arguments(tuple(schema.tools)), frozenset(schema.tools), schema.declared()
    )


def _written(domain: Domain, desk: Desk, wanted: Mapping[str, Sequence[str]]) -> Lookups | None:
    entities = read_folder(domain.pack.root).parts["entities"].data["entities"]
    shown = [trajectory for trajectory, _ in domain.trajectories[:SHOWN]]
    return write_lookups(desk, _vocabulary(domain.pack), domain.cards, wanted, entities, shown)


def _seeing(pack: Pack, made: Lookups) -> Pack:
    """Return the pack with look-up functions in place of observations."""
    functions, faults = parse_lookups(made.text, file="lookups.py", vocabulary=_vocabulary(pack))
    assert not faults, faults
    searches: dict[tuple[str, str], Callable[..., object]] = {
        (lookup.entity.name, lookup.field.name): partial(run_lookup, lookup) for lookup in functions.values()
    }
    blind = without_observations(pack)
    return replace(blind, schema=replace(blind.schema, searches=searches))


def by_model(domain: Domain, chat: Chat) -> tuple[dict[Place, bool], ModelSearch]:
    """Judge some write calls with a model's search."""
    search = ModelSearch(chat)
    pack = search.over(without_observations(domain.pack))
    return search.repeat(lambda: flagged(pack, domain, domain.searched)), search


def some(places: Sequence[Place], count: int, seed: int) -> set[Place]:
    """Draw `count` calls at random."""
    return set(random.Random(seed).sample(sorted(places), min(count, len(places))))
