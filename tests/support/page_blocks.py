"""The command blocks of the Markdown pages: what is indented by four blanks, or fenced as ```sh or ```console, and is no data (YAML or JSON).
What stands before a block says what a test does with it:

<!-- run -->, <!-- run: REGEX -->      run in the page's shell (tests/integration/test_docs); what it prints has to match
<!-- run on a cluster: REGEX -->       the same beside a real API server (tests/e2e/test_docs_apiserver)
<!-- not run: REASON -->               not run; its lines are still held to the options that there are (tools/check-reference)
<!-- no commands: WHAT -->             it is something else
<!-- file: NAME -->                    what is fenced below is a file of that name, which later commands of the page read
"""
import re, subprocess

import yaml

MARK = re.compile(r"<!-- (run on a cluster|run|not run|no commands)(?:: (.*))? -->")


class Block:
    """Where it stands, what is to be done with it ("" = nobody has said), and its lines."""
    def __init__(self, page, line, heading, kind, words, code):
        self.page, self.line, self.heading, self.kind, self.words, self.code = page, line, heading, kind, words, code

    def __str__(self):
        return f"{self.page}:{self.line}"


def is_data(code):
    """A list of YAML, which JSON is, too, or a map of words: the colons of a command stand elsewhere."""
    try:
        first = next(iter(yaml.safe_load_all(code)), None)
    except yaml.YAMLError:
        return False
    return isinstance(first, list) or isinstance(first, dict) and all(re.fullmatch(r"[\w./-]+", str(key)) for key in first)


def commands_of(lines):
    """The commands of a session: what follows `$ ` where there is such a line."""
    said = [line[2:] for line in lines if line.startswith("$ ")]
    return "\n".join(said or lines).strip("\n")


def blocks(page, text=None):
    """Every command block of a page, in its order."""
    lines = (open(page, encoding="utf-8").read() if text is None else text).split("\n")
    heading, kind, words, i = "", "", "", 0
    while i < len(lines):
        line, mark = lines[i], MARK.fullmatch(lines[i])
        fence = re.fullmatch(r"( *)(`{3,})(\w*).*", line)
        if mark:
            kind, words = mark.group(1), mark.group(2) or ""
        elif re.match(r"#+ ", line):
            heading = line.lstrip("# ")
        start = i + 1
        code = None
        if fence:
            i += 1
            while i < len(lines) and lines[i].strip() != fence.group(2):
                i += 1
            code = lines[start:i] if fence.group(3) in ("sh", "console", "bash") else None
            kind, words = (kind, words) if code is not None else ("", "")
        elif line.startswith("    ") and line.strip() and (i == 0 or not lines[i - 1].strip()):
            start = i
            while i < len(lines) and (lines[i].startswith("    ") or (not lines[i].strip() and i + 1 < len(lines) and lines[i + 1].startswith("    "))):
                i += 1
            code = [c[4:] for c in lines[start:i]]
            i -= 1
            if is_data("\n".join(code)) and not kind:
                code = None
        if code is not None:
            yield Block(page, start + 1, heading, kind, words, commands_of(code))
            kind, words = "", ""
        elif line.strip() and not mark and not fence and not line.startswith("<!--"):
            kind = words = ""
        i += 1


def files(page):
    """{name: text} of the files that a page has."""
    return dict(re.findall(r"^<!-- file: (\S+) -->\n+`{3}\w*\n(.*?)^`{3}$", open(page, encoding="utf-8").read(), re.M | re.S))


def pages():
    """Every page with commands; decisions are history."""
    listed = subprocess.run(["git", "ls-files", "README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md"], capture_output=True, text=True, check=True).stdout.split()
    return [page for page in listed if not page.startswith("docs/adr/")]
