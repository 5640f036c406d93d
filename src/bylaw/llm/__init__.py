"""Asking a language model, whoever answers: an endpoint, a batch, a recording. Start at `chat`."""

from bylaw.llm.chat import Answer, Chat, ModelMessage, Pending, Request, Usage

__all__ = ["Answer", "Chat", "ModelMessage", "Pending", "Request", "Usage"]
