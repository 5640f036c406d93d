"""Tools of a bank, a hotel, an insurer, a kitchen and others, for the conversations in trades.yaml."""

from typing import Any

from bylaw.policy.tool import Tool

_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_COUNT = {"type": "integer"}
_TEXTS = {"type": "array", "items": _TEXT}


def _one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": [*words]}


_READ: dict[str, dict[str, Any]] = {
    "get_account": {"account_id": _TEXT},
    "get_customer": {"customer_id": _TEXT},
    "get_booking": {"booking_id": _TEXT},
    "search_rooms": {"city": _TEXT, "check_in": _TEXT, "check_out": _TEXT},
    "get_subscription": {"subscription_id": _TEXT},
    "list_plans": {},
    "get_policy": {"policy_id": _TEXT},
    "get_claim": {"claim_id": _TEXT},
    "get_menu": {"restaurant_id": _TEXT},
    "get_food_order": {"order_id": _TEXT},
    "get_charge": {"charge_id": _TEXT},
    "list_payees": {"customer_id": _TEXT},
    "get_order": {"order_id": _TEXT},
    "get_product": {"product_id": _TEXT},
    "get_user": {"user_id": _TEXT},
    "get_line": {"line_id": _TEXT},
    "list_classes": {},
    "get_bill": {"account_id": _TEXT},
}
_WRITE: dict[str, dict[str, Any]] = {
    "transfer_money": {"from_account": _TEXT, "to_account": _TEXT, "amount": _NUMBER},
    "schedule_payment": {"account_id": _TEXT, "payee_id": _TEXT, "amount": _NUMBER, "date": _TEXT},
    "freeze_card": {"card_id": _TEXT},
    "close_account": {"account_id": _TEXT},
    "set_card_limit": {"card_id": _TEXT, "daily_limit": _NUMBER},
    "refund_charge": {"charge_id": _TEXT, "amount": _NUMBER},
    "dispute_charge": {"charge_id": _TEXT, "reason": _TEXT},
    "book_room": {
        "guest_id": _TEXT,
        "hotel_id": _TEXT,
        "room_type": _one_of("single", "double", "suite"),
        "check_in": _TEXT,
        "check_out": _TEXT,
        "guests": _COUNT,
        "payment_method_id": _TEXT,
    },
    "change_booking_dates": {"booking_id": _TEXT, "check_in": _TEXT, "check_out": _TEXT},
    "cancel_booking": {"booking_id": _TEXT},
    "change_room": {"booking_id": _TEXT, "room_type": _TEXT, "payment_id": _TEXT},
    "charge_card": {"customer_id": _TEXT, "amount": _NUMBER, "payment_id": _TEXT},
    "add_breakfast": {"booking_id": _TEXT, "persons": _COUNT},
    "upgrade_room": {
        "booking_id": _TEXT,
        "room_type": _one_of("single", "double", "suite"),
        "payment_method_id": _TEXT,
    },
    "change_plan": {
        "subscription_id": _TEXT,
        "plan": _one_of("basic", "plus", "premium"),
        "billing": _one_of("monthly", "yearly"),
    },
    "cancel_subscription": {"subscription_id": _TEXT, "when": _one_of("now", "end_of_period")},
    "pause_subscription": {"subscription_id": _TEXT, "months": _COUNT},
    "file_claim": {
        "policy_id": _TEXT,
        "incident_date": _TEXT,
        "claim_type": _one_of("theft", "water", "fire", "collision"),
        "amount": _NUMBER,
    },
    "withdraw_claim": {"claim_id": _TEXT},
    "approve_payout": {"claim_id": _TEXT, "amount": _NUMBER},
    "add_driver": {"policy_id": _TEXT, "driver_name": _TEXT, "birth_date": _TEXT},
    "change_beneficiary": {"policy_id": _TEXT, "beneficiary": _TEXT},
    "change_deductible": {"policy_id": _TEXT, "deductible": _NUMBER},
    "place_food_order": {
        "customer_id": _TEXT,
        "restaurant_id": _TEXT,
        "items": {"type": "array", "items": {"type": "object", "properties": {"item_id": _TEXT, "quantity": _COUNT}}},
        "address": _TEXT,
        "payment_method_id": _TEXT,
    },
    "remove_item": {"order_id": _TEXT, "item_id": _TEXT},
    "add_item": {"order_id": _TEXT, "item_id": _TEXT, "quantity": _COUNT},
    "change_delivery_address": {"order_id": _TEXT, "address": _TEXT},
    "cancel_food_order": {"order_id": _TEXT},
    "add_tip": {"order_id": _TEXT, "amount": _NUMBER},
    "update_phone": {"customer_id": _TEXT, "phone": _TEXT},
    "update_email": {"customer_id": _TEXT, "email": _TEXT},
    "reschedule_delivery": {"order_id": _TEXT, "time": _TEXT},
    "cancel_pending_order": {"order_id": _TEXT, "reason": _one_of("no longer needed", "ordered by mistake")},
    "exchange_items": {"order_id": _TEXT, "item_ids": _TEXTS, "new_item_ids": _TEXTS, "payment_method_id": _TEXT},
    "return_items": {"order_id": _TEXT, "item_ids": _TEXTS, "payment_method_id": _TEXT},
    "modify_order_address": {
        "order_id": _TEXT,
        "address1": _TEXT,
        "address2": _TEXT,
        "city": _TEXT,
        "state": _TEXT,
        "zip": _TEXT,
    },
    "modify_user_address": {
        "user_id": _TEXT,
        "address1": _TEXT,
        "address2": _TEXT,
        "city": _TEXT,
        "state": _TEXT,
        "zip": _TEXT,
    },
    "modify_order_payment": {"order_id": _TEXT, "payment_method_id": _TEXT},
    "modify_order_items": {"order_id": _TEXT, "item_ids": _TEXTS, "new_item_ids": _TEXTS, "payment_method_id": _TEXT},
    "enroll_autopay": {"account_id": _TEXT, "payment_method_id": _TEXT, "day": _COUNT},
    "reset_router": {"line_id": _TEXT},
    "change_data_plan": {"line_id": _TEXT, "plan_id": _TEXT},
    "add_line": {"customer_id": _TEXT, "plan_id": _TEXT},
    "enable_roaming": {"line_id": _TEXT},
    "book_class": {"member_id": _TEXT, "class_id": _TEXT},
    "cancel_membership": {"member_id": _TEXT, "date": _TEXT},
    "book_table": {"restaurant_id": _TEXT, "date": _TEXT, "time": _TEXT, "persons": _COUNT, "name": _TEXT},
    "renew_loan": {"loan_id": _TEXT, "days": _COUNT},
    "pay_fine": {"member_id": _TEXT, "amount": _NUMBER},
}
TRADES = {name: Tool(name, "read", parameters=parameters) for name, parameters in _READ.items()} | {
    name: Tool(name, "write", parameters=parameters) for name, parameters in _WRITE.items()
}
