"""Hold an LLM agent's tool calls to a written policy."""

__version__ = "0.1.0"
