"""Probes of one persona: how it answers when the same situation is put to it in another way."""
