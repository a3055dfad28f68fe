"""Builds the wheel with Python's own library alone, so that `pip install ./python` needs no network (PEP 517, 660).

The same sources give the same bytes: names are sorted, times are of SOURCE_DATE_EPOCH or 1980.
"""
import base64
import hashlib
import os
import re
import tarfile
import time
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KINDS = (".py", ".typed")


def version():
    with open(os.path.join(ROOT, "remuda", "__init__.py"), encoding="utf-8") as file:
        return re.search(r'^__version__ = "([^"]+)"$', file.read(), flags=re.M).group(1)


def field(name):
    with open(os.path.join(ROOT, "pyproject.toml"), encoding="utf-8") as file:
        return re.search(rf'^{name} = "([^"]+)"$', file.read(), flags=re.M).group(1)


def info():
    return f"remuda-{version()}.dist-info"


def metadata():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        return (f"Metadata-Version: 2.1\nName: remuda\nVersion: {version()}\nSummary: {field('description')}\n"
                f"Requires-Python: {field('requires-python')}\nDescription-Content-Type: text/markdown\n\n{file.read()}").encode()


def wheel_facts():
    return b"Wheel-Version: 1.0\nGenerator: remuda\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def sources():
    for folder, folders, names in os.walk(os.path.join(ROOT, "remuda")):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            if name.endswith(KINDS):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    yield os.path.relpath(path, ROOT), file.read()


def moment():
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", 315532800))
    return max(time.gmtime(seconds)[:6], (1980, 1, 1, 0, 0, 0))


def write_wheel(folder, files):
    name, record = f"remuda-{version()}-py3-none-any.whl", []
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(path, content):
            entry = zipfile.ZipInfo(path, moment())
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{path},sha256={digest},{len(content)}\n")

        for path, content in [*files, (f"{info()}/METADATA", metadata()), (f"{info()}/WHEEL", wheel_facts())]:
            add(path, content)
        add(f"{info()}/RECORD", "".join([*record, f"{info()}/RECORD,,\n"]).encode())
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, list(sources()))


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, [("remuda.pth", (ROOT + "\n").encode())])


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    folder = os.path.join(metadata_directory, info())
    os.makedirs(folder, exist_ok=True)
    for name, content in (("METADATA", metadata()), ("WHEEL", wheel_facts())):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
    return info()


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_sdist(sdist_directory, config_settings=None):
    base = f"remuda-{version()}"
    names = ["README.md", "pyproject.toml", "build_backend/backend.py", *(path for path, _ in sources())]

    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime, entry.mode = int(os.environ.get("SOURCE_DATE_EPOCH", 315532800)), 0o644
        return entry

    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            archive.add(os.path.join(ROOT, name), f"{base}/{name}", filter=plain)
        with open(os.path.join(sdist_directory, ".PKG-INFO"), "wb") as file:
            file.write(metadata())
        archive.add(file.name, f"{base}/PKG-INFO", filter=plain)
    os.unlink(file.name)
    return base + ".tar.gz"


def get_requires_for_build_wheel(config_settings=None):
    return []


get_requires_for_build_editable = get_requires_for_build_sdist = get_requires_for_build_wheel
