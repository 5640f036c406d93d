"""Decisions over HTTP, durable before they are answered. Start at `app`; `request` says what goes in and out."""
