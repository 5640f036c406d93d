"""Scenarios in which one policy is replaced by its contrary, so that something else is right."""

from collections import Counter
from collections.abc import Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from bylaw_lab.clinic.simulator.needs import refused
from bylaw_lab.clinic.simulator.truth import POLICIES, Policy, policies_of
from bylaw_lab.clinic.simulator.verdict import run
from bylaw_lab.clinic.simulator.wants import Clinic, Want
from bylaw_lab.clinic.tasks.contraries import OPPOSED, Contrary, always, contraries
from bylaw_lab.clinic.tasks.scenario import Scenario
from bylaw_lab.clinic.tasks.sets import scenarios
from bylaw_lab.clinic.tasks.twins import AMOUNTS

PRICES = {
    "copay": ("0.00", "15.00", "20.00", "25.00", "30.00", "40.00", "60.00"),
    "late_fee": ("0.00", "25.00", "40.00"),
}


MOST_LIFTED = 2


class Override(Struct, frozen=True):
    """A scenario under a changed policy."""

    task: Scenario
    """With what is right now."""
    policy: str
    words: str
    """What holds in its place."""


@cache
def overrides() -> tuple[Override, ...]:
    """Scenarios for which the contrary of the policy they turn on changes what is right.

    Few of those in which a refusal is lifted are kept for each policy: complying with everything must not pay.
    """
    found: list[Override] = []
    lifted: Counter[str] = Counter()
    for scenario in scenarios("override"):
        policy = scenario.focus[0]
        assert policy in OPPOSED
        for contrary, changed in changes(scenario, policy):
            if changed.task.errands[0].right == scenario.errands[0].right:
                continue
            lifted[policy] += contrary.permits is always
            if contrary.permits is not always or lifted[policy] <= MOST_LIFTED:
                found.append(changed)
    return tuple(found)


def changes(scenario: Scenario, policy: str) -> Iterator[tuple[Contrary, Override]]:
    """A scenario of one errand under each contrary of a policy, where it is clear what is right then."""
    errand = scenario.errands[0]
    for number, contrary in enumerate(contraries(policy)):
        clinic = Clinic(scenario.open().connection)
        right, is_clear = right_under(clinic, errand.want, policy, contrary)
        clinic.connection.close()
        if is_clear:
            changed = replace(errand, right=right, against="")
            task = replace(scenario, id=f"{scenario.id}-{number}", errands=(changed,))
            yield contrary, Override(task, policy, contrary.words)


def right_under(clinic: Clinic, want: Want, policy: str, contrary: Contrary) -> tuple[Want | None, bool]:
    """The call to make now, None where it is refused; and whether that is clear."""
    changed = POLICIES[policy]._replace(permits=contrary.permits)
    bound = [changed if each.id == policy else each for each in policies_of(want.tool)]
    against = denying(clinic, want, bound)
    if against and set(against) <= set(AMOUNTS):
        name = "late_fee" if want.tool == "cancel_appointment" else "copay"
        priced = [Want(want.tool, {**want.arguments, name: price}, want.in_state) for price in PRICES[name]]
        fitting = [each for each in priced if not denying(clinic, each, bound)]
        want, against = (fitting[0], []) if len(fitting) == 1 else (want, against)
    if against:
        return None, against == [policy]
    return want, not refused(clinic.desk.call(want.tool, want.arguments))


def denying(clinic: Clinic, want: Want, bound: list[Policy]) -> list[str]:
    """The policies that deny a want."""
    told = want.told()
    return [each.id for each in bound if not run(each, want.arguments, told, clinic.read).permitted]
