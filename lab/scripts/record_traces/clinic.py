"""The one conversation that every recording holds, so that every reader must give the same events."""

import json

SYSTEM = "You are the assistant of a small clinic. Look things up before you change them."
USER = ["I am Ana Ruiz, patient P1. Please cancel my appointment A7. Is there a fee?", "Yes, please."]

TURNS = [
    {"calls": [("get_patient", {"patient_id": "P1"}), ("get_appointment", {"appointment_id": "A7"})]},
    {"text": "You are a gold member, so there is no fee. Shall I cancel A7?"},
    {"text": "One moment.", "calls": [("cancel_appointment", {"appointment_id": "A7", "reason": "patient request"})]},
    {"calls": [("send_receipt", {"appointment_id": "A7"})]},
    {"text": "A7 is cancelled. I could not send a receipt: there is no e-mail address on file."},
]


def get_patient(patient_id: str) -> str:
    """Look up a patient."""
    return json.dumps({"patient_id": patient_id, "name": "Ana Ruiz", "membership": "gold"})


def get_appointment(appointment_id: str) -> str:
    """Look up an appointment."""
    return json.dumps({"appointment_id": appointment_id, "patient_id": "P1", "status": "booked", "fee": 0.0})


def cancel_appointment(appointment_id: str, reason: str) -> str:
    """Cancel an appointment."""
    return json.dumps({"appointment_id": appointment_id, "status": "cancelled", "reason": reason})


def send_receipt(appointment_id: str) -> str:
    """Send a receipt by e-mail."""
    return f"Error: no e-mail address on file for {appointment_id}"


TOOLS = {tool.__name__: tool for tool in (get_patient, get_appointment, cancel_appointment, send_receipt)}


def definitions() -> list[dict]:
    """The tools as OpenAI's chat API wants them."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": tool.__doc__,
                "parameters": {
                    "type": "object",
                    "properties": {
                        parameter: {"type": "string"} for parameter in tool.__annotations__ if parameter != "return"
                    },
                },
            },
        }
        for name, tool in TOOLS.items()
    ]


def reply(said: int) -> dict:
    """The model's next message, when it has spoken `said` times before."""
    turn = TURNS[said]
    message: dict = {"role": "assistant", "content": turn.get("text")}
    if "calls" in turn:
        message["tool_calls"] = [
            {
                "id": f"call_{said}_{index}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(args)},
            }
            for index, (name, args) in enumerate(turn["calls"])
        ]
    return message


def talk(client) -> list[dict]:
    """The conversation, driven through an OpenAI client; a generator that pauses before each of the user's messages."""
    messages: list[dict] = [{"role": "system", "content": SYSTEM}]
    for text in USER:
        yield messages
        messages.append({"role": "user", "content": text})
        while True:
            answer = client.chat.completions.create(model="scripted", messages=messages, tools=definitions())
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                break
            for call in message.tool_calls:
                result = run(call.function.name, **json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    yield messages


def run(name: str, **arguments: str) -> str:
    """Run a tool. Recorders that trace tools replace this."""
    return TOOLS[name](**arguments)
