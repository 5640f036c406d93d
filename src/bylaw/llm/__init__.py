"""Language models with a common interface: an endpoint, a batch or a recording. Start at `chat`."""

from bylaw.llm.chat import Answer, Chat, ModelMessage, Pending, Request, Usage

__all__ = ["Answer", "Chat", "ModelMessage", "Pending", "Request", "Usage"]
