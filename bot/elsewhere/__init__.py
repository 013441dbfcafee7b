"""Confirming on another machine than that which may read the store: a question, its answers, and what they come to."""
