"""What goes wrong, in a sentence: field, value, remedy."""

__all__ = ["RemudaError", "RemudaWarning"]


class RemudaError(RuntimeError):
    """The run cannot begin or go on. The message says which field, which value, and what to do."""


class RemudaWarning(UserWarning):
    """The run goes on, and something should be looked at."""
