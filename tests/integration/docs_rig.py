"""Runs the commands of a page (tests/support/page_blocks.py) in one shell, in a folder that looks like a fresh clone after `make`."""
import os, re, shutil, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
import page_blocks
from tap import ok

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
B = os.path.abspath(os.environ.get("B", "build"))
BLOCK_SECONDS = 100


def room():
    """A fresh clone after `make`, as the page sees it: what a page may write into is a copy."""
    folder = tempfile.mkdtemp(prefix="remuda-docs-")
    os.symlink(B, os.path.join(folder, "build"))
    for name in ("docs", "tests", "trainer", "manifests", "packaging"):
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    os.mkdir(os.path.join(folder, "first"))
    os.symlink("/usr/bin/python3", os.path.join(folder, "first/python3"))  # the distribution's, which has its torch
    shutil.copytree(os.path.join(ROOT, "python"), os.path.join(folder, "python"))
    return folder


class Shell:
    """One bash, block after block. @more: variables beside those that are there."""
    def __init__(self, folder, more=None):
        self.folder = folder
        path = os.path.join(folder, "first") + ":" + os.path.join(B, "bin") + ":" + os.environ["PATH"]
        environment = dict(os.environ, PATH=path, TMPDIR=folder, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **(more or {}))
        self.process = subprocess.Popen(["bash"], cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True)

    def run(self, code):
        """What a block prints, and whether the shell lives: a command that fails ends it."""
        with open(os.path.join(self.folder, "block"), "w") as f:
            f.write(code + "\n")
        # from a file: what is started may read standard input, which would be the rest of the page
        self.process.stdin.write("set -e -o pipefail\n. ./block </dev/null\nset +e\necho \"::end $?\"\n")
        self.process.stdin.flush()
        killer = subprocess.Popen(["sh", "-c", f"sleep {BLOCK_SECONDS}; kill -9 -{self.process.pid}"], start_new_session=True)
        out = []
        for line in self.process.stdout:
            if line.startswith("::end "):
                break
            out.append(line)
        else:
            out.append("the shell ended\n")
        os.killpg(killer.pid, 9)
        killer.wait()
        return "".join(out), out[-1:] != ["the shell ended\n"]

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()


def run_page(page, kind, folder, replaced=(), more=None, prepare=None):
    """Every block of @kind, in order; one fails that does not print what its mark says. @replaced: (pattern, text) of a page's placeholders."""
    def given(text):
        for pattern, with_ in replaced:
            text = re.sub(pattern, with_, text)
        return text
    for name, text in page_blocks.files(page).items():
        with open(os.path.join(folder, name), "w") as f:
            f.write(given(text))
    shell = Shell(folder, more)
    try:
        for block in page_blocks.blocks(page):
            if block.kind != kind:
                continue
            begin = time.monotonic()
            code = given(block.code)
            text, lives = shell.run(prepare(code) if prepare else code)
            ok(lives and re.search(block.words, text, re.S), f"{block.page}: {block.heading} ({time.monotonic() - begin:.1f} s)", f"{block}\n{code}\n--- printed\n{text[-3000:]}")
            if not lives:
                shell.end()
                shell = Shell(folder, more)
    finally:
        shell.end()
