#!/usr/bin/python3
"""sort_by_class.py FROM TO: the four IDX files of FROM, training samples sorted by class, into the directory TO."""
import gzip
import os
import sys


def read(name):
    path = os.path.join(sys.argv[1], name)
    with open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz") as f:
        return f.read()


os.makedirs(sys.argv[2], exist_ok=True)
for part in ("train", "t10k"):
    images, labels = read(f"{part}-images-idx3-ubyte"), read(f"{part}-labels-idx1-ubyte")
    count, each = len(labels) - 8, (len(images) - 16) // (len(labels) - 8)
    order = sorted(range(count), key=lambda i: labels[8 + i]) if part == "train" else range(count)
    with open(f"{sys.argv[2]}/{part}-images-idx3-ubyte", "wb") as f:
        f.write(images[:16] + b"".join(images[16 + i * each:16 + (i + 1) * each] for i in order))
    with open(f"{sys.argv[2]}/{part}-labels-idx1-ubyte", "wb") as f:
        f.write(labels[:8] + bytes(labels[8 + i] for i in order))
