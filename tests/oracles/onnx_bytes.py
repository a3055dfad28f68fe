"""Just enough of protobuf's wire format to write ONNX models (field numbers from onnx.proto), and two of them."""
import struct


def varint(number):
    number &= (1 << 64) - 1
    out = b""
    while True:
        if number < 128:
            return out + bytes([number])
        out += bytes([number & 127 | 128])
        number >>= 7


def whole(field, number):
    return varint(field << 3) + varint(number)


def block(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def attribute(name, value):
    if isinstance(value, int):
        return block(1, name) + whole(3, value) + whole(20, 2)
    if isinstance(value, str):
        return block(1, name) + block(4, value) + whole(20, 3)
    if isinstance(value, bytes):
        return block(1, name) + block(5, value) + whole(20, 4)
    return block(1, name) + b"".join(whole(8, v) for v in value) + whole(20, 7)


def node(kind, inputs, outputs, name="", **attributes):
    return block(1, b"".join(block(1, i) for i in inputs) + b"".join(block(2, o) for o in outputs) + block(3, name) +
                 block(4, kind) + b"".join(block(5, attribute(n, v)) for n, v in attributes.items()))


def tensor(name, dims, numbers=None):
    """Floats without content, or whole numbers with it."""
    out = b"".join(whole(1, d) for d in dims) + whole(2, 1 if numbers is None else 7) + block(8, name)
    return out if numbers is None else out + block(9, b"".join(struct.pack("<q", n) for n in numbers))


def weights(name, *dims):
    return block(5, tensor(name, dims))


def value(field, name, dims):
    shape = b"".join(block(1, block(2, d) if isinstance(d, str) else whole(1, d)) for d in dims)
    return block(field, block(1, name) + block(2, block(1, whole(1, 1) + block(2, shape))))


def model(graph):
    return whole(1, 8) + block(2, "by hand") + block(7, graph + block(2, "made"))


def resnet18():
    parts, inputs = [], [value(11, "x", ["batch", 3, 224, 224])]

    def conv(x, name, out, cin, k, stride, pad):
        inputs.append(weights(name + ".w", out, cin, k, k))
        parts.append(node("Conv", [x, name + ".w"], [name], name, kernel_shape=[k, k], strides=[stride, stride],
                          pads=[pad, pad, pad, pad]))
        for p in "sbmv":
            inputs.append(weights(name + ".bn." + p, out))
        parts.append(node("BatchNormalization", [name] + [name + ".bn." + p for p in "sbmv"], [name + ".n"], name + ".n"))
        return name + ".n"

    def relu(x):
        parts.append(node("Relu", [x], [x + ".r"], x + ".r"))
        return x + ".r"

    x = relu(conv("x", "stem", 64, 3, 7, 2, 3))
    parts.append(node("MaxPool", [x], ["pool"], "pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]))
    x, width = "pool", 64
    for stage in range(4):
        for unit in range(2):
            name, out, stride = "s%du%d" % (stage, unit), 64 << stage, 2 if stage and not unit else 1
            y = conv(relu(conv(x, name + "a", out, width, 3, stride, 1)), name + "b", out, out, 3, 1, 1)
            skip = conv(x, name + "d", out, width, 1, stride, 0) if stride != 1 else x
            parts.append(node("Add", [y, skip], [name], name))
            x, width = relu(name), out
    parts.append(node("GlobalAveragePool", [x], ["gap"], "gap"))
    parts.append(node("Flatten", ["gap"], ["flat"], "flat"))
    inputs += [weights("fc.w", 1000, 512), weights("fc.b", 1000)]
    parts.append(node("Gemm", ["flat", "fc.w", "fc.b"], ["y"], "fc", transB=1))
    return model(b"".join(parts) + b"".join(inputs) + value(12, "y", ["batch", 1000]))


def attention_layer(width=64, heads=4, vocabulary=100):
    """Embedding, one attention layer as PyTorch exports it (shapes computed in the graph), a tied head."""
    c = lambda name, *numbers: block(5, tensor(name, [len(numbers)] if len(numbers) != 1 or name[0] == "v" else [], numbers))
    parts = [node("Gather", ["table", "ids"], ["h"], "embed"),
             node("Shape", ["h"], ["shape"]), node("Gather", ["shape", "one"], ["tokens"]),
             node("Unsqueeze", ["tokens"], ["vtokens"], axes=[0]),
             node("Concat", ["vminus", "vtokens", "vheads", "vhead"], ["split"], axis=0),
             node("Concat", ["vminus", "vtokens", "vwidth"], ["joined"], axis=0)]
    own = [weights("table", vocabulary, width), c("one", 1), c("vminus", -1), c("vheads", heads), c("vhead", width // heads),
           c("vwidth", width)]
    for p in "qkv":
        own += [weights(p + ".w", width, width), weights(p + ".b", width)]
        parts += [node("MatMul", ["h", p + ".w"], [p + "0"], p), node("Add", [p + ".b", p + "0"], [p + "1"], p + ".add"),
                  node("Reshape", [p + "1", "split"], [p + "2"], p + ".split"),
                  node("Transpose", [p + "2"], [p], p + ".turn", perm=[0, 2, 3, 1] if p == "k" else [0, 2, 1, 3])]
    own += [weights("scale"), weights("o.w", width, width), weights("ln.s", width), weights("ln.b", width), weights("head.t", width, vocabulary)]
    parts += [node("MatMul", ["q", "k"], ["s0"], "scores"), node("Div", ["s0", "scale"], ["s1"], "scaled"),
              node("Softmax", ["s1"], ["s2"], "softmax", axis=-1), node("MatMul", ["s2", "v"], ["m"], "mix"),
              node("Transpose", ["m"], ["m1"], "back", perm=[0, 2, 1, 3]), node("Reshape", ["m1", "joined"], ["m2"], "join"),
              node("MatMul", ["m2", "o.w"], ["m3"], "out"), node("Add", ["m3", "h"], ["m4"], "residual"),
              node("LayerNormalization", ["m4", "ln.s", "ln.b"], ["m5"], "norm", axis=-1),
              node("MatMul", ["m5", "head.t"], ["y"], "head")]
    return model(b"".join(parts) + b"".join(own) + value(11, "ids", ["batch", "sequence"]) + value(12, "y", ["batch", "sequence", 100]))
