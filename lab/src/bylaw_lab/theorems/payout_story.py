"""Payouts that need a fresh record, the user's yes, and room under a limit, and that no stop covers.

Several workers and inner agents make them.
"""

import json
from decimal import Decimal
from functools import cache
from random import Random

from bylaw import Pack
from bylaw.record import Log
from bylaw.shield import Decision
from bylaw_lab.theorems.host import HistoryHost, Host
from bylaw_lab.theorems.shop_story import AMOUNTS, ORDERS, Shop, true_name
from bylaw_lab.theorems.story import Wanted
from bylaw_lab.theorems.truth import Allowed, HandedOver, Shown, True_

FRESH_FOR = 600.0


@cache
def payout_pack() -> Pack:
    """Return a shop that pays out the rest of an order after the customer's yes, at most twice an hour unless a
    reviewer agrees.
    """
    return Pack.from_files(
        {
            "pack.yaml": (
                "{format: 1, name: payouts, document: policy.md, shield: {handover: true, "
                "approval: {timeout: 900, lifetime: 1800}}}"
            ),
            "policy.md": (
                "A payout is never more than what is left.\nAsk before money is paid out.\n"
                "At most two payouts an hour.\n"
            ),
            "policies.yaml": (
                "policies:\n"
                "  - {id: left, kind: guard, spans: [A payout is never more than what is left.]}\n"
                "  - {id: ask, kind: rule, spans: [Ask before money is paid out.]}\n"
                "  - {id: few, spans: [At most two payouts an hour.]}\n"
            ),
            "entities.yaml": (
                f"entities:\n  Order: {{key: order_id, read: get_order, fresh_for: {FRESH_FOR:g}, "
                "fields: {paid: money, refunded: money}}\ncontext:\n  signed_in_as: string\n"
            ),
            "guards/left.py": (
                "def left(call: pay_out, facts):\n"
                "    order = facts.Order(call.order_id)\n"
                '    return deny("too much") if money(call.amount) > order.paid - order.refunded else permit()\n'
            ),
            "tools.yaml": (
                "tools:\n"
                "  get_order: {effect: read, parameters: {order_id: string}}\n"
                '  pay_out: {effect: write, put_as: "pay out {amount} for {order_id}", changes: [Order], '
                "refused: ^REFUSED, parameters: {order_id: string, amount: string}}\n"
            ),
            "rules.yaml": (
                "predicates:\n  change: {effect: write}\n"
                "  agreed: {consented: told, lifetime: 7200, card: {lifetime: 900}}\n"
                "rules:\n  - {id: ask, formula: ALWAYS (change IMPLIES agreed)}\n"
                "limits:\n"
                "  - {id: few, tool: pay_out, most: 2, within: 1h, per: context.signed_in_as, over: ask}\n"
            ),
        }
    )


class Payouts(Shop):
    """A conversation in which the agent, or an inner agent, pays out."""

    pauses = 0.1
    acting = ""
    """The inner agent that acts now, or an empty string for the main agent."""

    def focus(self, wanted: Wanted) -> None:
        super().focus(wanted)
        self.host.acting = self.acting

    @property
    def facts(self) -> str:
        return self._last_seen.get(f"{self.acting} {self._wanted}", "")

    def allow(self, decision: Decision, wanted: Wanted) -> Allowed:
        stops = ("T7-stops",) if self._stops else ()
        # A reviewer may also answer for an unreadable record.
        theorems = ("T2-told", "T5-limits", "T6-approvals" if decision.approval else "T8-facts", *stops)
        fresh_for = FRESH_FOR if self.host.has_times else 0.0
        host = self.host
        return Allowed(
            *(wanted.key, self.now, theorems, host.principal, host.has_times, self.facts),
            fresh_for=fresh_for,
            agent=self.acting,
        )

    def read(self, wanted: Wanted, id: str) -> None:
        """Look up an order. If the result is lost or cut off, the agent has seen nothing."""
        order, since = true_name(wanted.arguments["order_id"]), len(self.events)
        left = {"paid": f"{self.paid[order]:.2f}", "refunded": f"{self.refunded[order]:.2f}"}
        record = json.dumps({"order_id": wanted.arguments["order_id"], **left})
        made = (wanted.tool, wanted.arguments, id)
        if self.chance(0.9):
            self.host.result(record, *made)
            self._last_seen[f"{self.acting} {wanted.arguments['order_id']}"] = f"{left['paid']} {left['refunded']}"
            shown = Shown(order, self.paid[order] - self.refunded[order], since, self.now, self.acting)
            self.events.append(shown)
        elif self.chance(0.5):
            self.host.result(record[: self.rng.randrange(len(record))], *made)
        else:
            self.host.no_result(*made)

    def agent_asks(self, wanted: Wanted, *, as_card: bool) -> None:
        """Show the card or the pack's sentence, and let the user answer."""
        text = f"Shall I pay out {wanted.arguments['amount']} for {wanted.arguments['order_id']}?"
        self.agent(wanted.card.text if as_card else text, wanted.key, as_card=as_card)
        self.user(self.rng.choices(("yes", "no", "other"), (85, 7, 8))[0])

    def race_with_a_worker(self, wanted: Wanted) -> None:
        """Let another worker make the same call in this conversation at the same moment."""
        self.focus(wanted)
        mine = self.host
        mine.session.flush()
        other = Host(self.rng, payout_pack(), mine.log, mine.tenant, mine.principal)
        other.clock, other.acting = mine.clock, mine.acting
        other.reopen()
        self.race(wanted, [mine, other])
        self.host.session.flush()
        self.host = mine
        mine.reopen()


def payout_story(rng: Random, log: Log | None, name: str) -> list[True_]:
    """Play one conversation and return its true events."""
    assert log is not None
    host = rng.choice((Host, Host, Host, HistoryHost))(rng, payout_pack(), log, name, "P1")
    story = Payouts(rng, host, (), "payouts")
    story.user("other", "I want my money back.")
    order = rng.choice(ORDERS)
    for _ in range(rng.choice((2, 3, 4))):
        story.acting = rng.choice(("", "", "", "helper")) if host.may_pause else ""
        spelled = order[0] if rng.random() < 0.85 else rng.choice(order)
        wanted = Wanted("pay_out", {"order_id": spelled, "amount": rng.choice((*AMOUNTS[:3], "10.00", "10.00"))})
        _pay_out(story, wanted)
        if rng.random() < 0.2:
            order = rng.choice(ORDERS)
    return story.events


def _pay_out(story: Payouts, wanted: Wanted) -> None:
    look_up = Wanted("get_order", {"order_id": wanted.arguments["order_id"]})
    if story.chance(0.85):
        story.attempt(look_up)
    _disturb(story, wanted)
    if story.chance(0.7):
        story.attempt(wanted)
    _disturb(story, wanted)
    if wanted.card is not None and story.host.may_press and story.chance(0.4):
        story.press(wanted.card, wanted.key, story.chance(0.9))
    else:
        story.agent_asks(wanted, as_card=wanted.card is not None and story.chance(0.5))
    _disturb(story, wanted)
    for _ in range(story.rng.choice((1, 1, 2))):
        if type(story.host) is Host and story.chance(0.15):
            story.race_with_a_worker(wanted)
        elif story.chance(0.1):
            story.attempt(Wanted("pay_out", {**wanted.arguments, "amount": story.rng.choice(AMOUNTS)}))
        else:
            story.attempt(wanted)
        _disturb(story, wanted)
        if story.approvals and story.chance(0.6):
            story.person(story.chance(0.85))


def _disturb(story: Payouts, wanted: Wanted) -> None:
    if story.chance(0.75):
        return
    way = story.rng.randrange(9)
    if way == 0:
        story.host.clock.now += story.rng.choice((1.0, 599.0, 601.0, 900.0))
    elif way == 1 and story.host.may_reopen:
        story.host.reopen()
    elif way == 2:
        story.user(story.rng.choice(("no", "other", "thanks", "yes")))
    elif way == 3:
        story.stop()
    elif way == 4:
        story.lift()
    elif way == 5:
        story.resume()
    elif way == 6:
        story.paid[true_name(wanted.arguments["order_id"])] += Decimal(10)
    elif way == 7 and story.host.principal != "P2" and story.host.vouch("P2"):
        story.events.append(HandedOver("P2"))
    else:
        story.attempt(Wanted("get_order", {"order_id": wanted.arguments["order_id"]}))
