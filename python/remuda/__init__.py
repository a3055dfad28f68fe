"""Remuda: every chip is given work in proportion to its speed. `remuda.torch` is the door for PyTorch programs.

This part needs Python alone: what a launcher says in the environment, how a batch is cut, what a rank says of itself.
"""
from .errors import RemudaError, RemudaWarning

__version__ = "0.1.0"
__all__ = ["RemudaError", "RemudaWarning", "__version__"]
