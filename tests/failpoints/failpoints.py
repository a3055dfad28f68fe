"""What the tests of failpoints share: the names that a program knows, and a walk over them. REMUDA_FAILPOINT=NAME:FILE kills the process
that reaches NAME, once. FAILPOINTS=REGEX walks some of them, FAILPOINTS_EVERY=K every K-th."""
import os, re, signal, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
sys.dont_write_bytecode = True
B = os.environ.get("B", "build/failpoints")
number = failures = 0


def ok(good, what, detail=""):
    global number, failures
    number += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {number} - {what}", flush=True)
    if not good:
        print("# " + str(detail)[:3000].replace("\n", "\n# "), flush=True)
    return good


def done():
    print(f"1..{number}")
    sys.exit(1 if failures else 0)


def names(program, *prefixes, files=()):
    """The failpoints of the program, read from the file itself, whose names begin with one of the prefixes; file.* once for each of @files."""
    with tempfile.NamedTemporaryFile() as f:
        subprocess.run(["objcopy", "-O", "binary", "--only-section=failpoints", "--set-section-flags", "failpoints=alloc", f"{B}/bin/{program}", f.name], check=True)
        found = sorted({n.decode() for n in f.read().split(b"\0") if n})
    if not found:
        sys.exit(f"{B}/bin/{program} knows no failpoints: make failpoints")
    mine = [n for n in found if n.split(".")[0] in prefixes]
    mine = [m for n in mine for m in ([f"{n}/{what}" for what in files] if n.startswith("file.") else [n])]
    some = [n for n in mine if re.search(os.environ.get("FAILPOINTS", ""), n)]
    return found, some[::int(os.environ.get("FAILPOINTS_EVERY", "1"))]


class Mark:
    """The file that says that the place was reached."""
    def __init__(self, name):
        self.path = os.path.join(tempfile.mkdtemp(prefix="remuda-failpoint-"), "reached")
        self.environment = {"REMUDA_FAILPOINT": f"{name}:{self.path}"}

    def reached(self):
        return os.path.exists(self.path)

    def remove(self):
        if self.reached():
            os.unlink(self.path)
        os.rmdir(os.path.dirname(self.path))
