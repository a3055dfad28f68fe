"""A wall clock that jumps, for one program: tests/support/clock_step.c."""
import os, struct, subprocess, tempfile

YEAR = 365 * 86400
JUMPS = [3600, -3600, 90, -90, 10 * YEAR, -10 * YEAR, -46 * YEAR, 0] # the last but one is 1980


class Clock:
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="remuda-clock-")
        self.path, library = self.folder.name + "/step", self.folder.name + "/clock_step.so"
        self.set(0)
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, "tests/support/clock_step.c", "-ldl"], check=True)
        self.env = {"LD_PRELOAD": library, "CLOCK_STEP": self.path}

    def set(self, seconds):
        with open(self.path, "r+b" if os.path.exists(self.path) else "wb") as f:
            f.write(struct.pack("=q", seconds))
