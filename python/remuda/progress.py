"""Progress: the lines that a rank says of itself, to the path or descriptor that REMUDA_PROGRESS names."""
import json
import os
import sys
from typing import Any, Dict, Optional

from .errors import RemudaError

__all__ = ["Progress"]


class Progress:
    """One line a call of say(); where nobody asked for them, nothing. A reader that went away is no fault of the run."""

    def __init__(self, where: Optional[str]):
        self._fd, self._owned = -1, False
        if where is None:
            return
        if where.isascii() and where.isdigit() and len(where) < 8:
            self._fd = int(where)
            return
        try:
            self._fd = os.open(where, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as problem:
            raise RemudaError(f"REMUDA_PROGRESS '{where[:200]}': {problem.strerror}; name a file that can be written, or a descriptor") from None
        self._owned = True

    @property
    def wanted(self) -> bool:
        return self._fd >= 0

    def say(self, facts: Dict[str, Any]) -> None:
        if self._fd < 0:
            return
        try:
            os.write(self._fd, json.dumps(facts, separators=(",", ":")).encode() + b"\n")
        except OSError as problem:
            print(f"remuda: REMUDA_PROGRESS: {problem.strerror}; nothing more is said there", file=sys.stderr)
            self.close()

    def close(self) -> None:
        if self._owned and self._fd >= 0:
            os.close(self._fd)
        self._fd = -1
