"""Waiting for a condition instead of sleeping: what tests do whose programs need a moment."""
import time


def seconds_until(condition, seconds=20, step=0.02, forgive=()):
    """How many seconds it took until the condition held; None: it never did. @forgive: exceptions that mean not yet"""
    begin = time.monotonic()
    while time.monotonic() - begin < seconds:
        try:
            if condition():
                return time.monotonic() - begin
        except forgive:
            pass
        time.sleep(step)
    return None


def wait_for(condition, seconds=20, step=0.02, forgive=()):
    """Did it hold within that time?"""
    return seconds_until(condition, seconds, step, forgive) is not None
