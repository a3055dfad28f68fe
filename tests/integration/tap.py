"""TAP on standard output: what integration tests say of each thing they look at."""
import sys

number = 0
failures = 0


def ok(condition, what, detail=""):
    global number, failures
    number += 1
    print(f"{'ok' if condition else 'not ok'} {number} - {what}")
    if not condition:
        failures += 1
        print("# " + str(detail).replace("\n", "\n# "))
    sys.stdout.flush()


def skip(what, why):
    global number
    number += 1
    print(f"ok {number} - {what} # SKIP {why}")


def end():
    print(f"1..{number}")
    sys.exit(1 if failures else 0)


class Tap:
    """The same, for tests that hand it on in a variable."""

    @property
    def n(self):
        return number

    def check(self, what, good, detail=""):
        ok(good, what, detail)
        return good

    def skip(self, what, why):
        skip(what, why)

    def done(self):
        end()
