"""Fashion-MNIST for tests that judge how is trained, not how well: its first images, unpacked. A rank that opens the whole of it unpacks and
counts 55 MB, a third of a second of processor time, before its first step: most of what such a test would cost."""
import gzip
import os
import struct

WHOLE = "/usr/share/datasets/fashion-mnist"


def cut(folder, train, t10k):
    """The first so many images and labels of each part, under the same names."""
    os.makedirs(folder)
    for part, count in (("train", train), ("t10k", t10k)):
        for kind, head, each in (("images-idx3-ubyte", 16, 784), ("labels-idx1-ubyte", 8, 1)):
            name = f"{part}-{kind}"
            packed = os.path.join(WHOLE, name + ".gz")
            with gzip.open(packed) if os.path.exists(packed) else open(os.path.join(WHOLE, name), "rb") as f:
                data = f.read(head + count * each)
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data[:4] + struct.pack(">I", count) + data[8:])
    return folder
