"""An independent answer to `remuda-train-*`: the models in double precision, written from remuda-train(1) alone.

Which samples a step used comes from the sample logs, the first parameters from a run at a vanishing rate; everything
else (pixels to floats, operators, gradients, the mean over a batch, the update) is computed here.
"""
import gzip
import math
import os
import struct
from operator import mul

KNEE = 0.5


def read_idx(directory, name):
    path = os.path.join(directory, name)
    opener = open if os.path.exists(path) else gzip.open
    with opener(path if os.path.exists(path) else path + ".gz", "rb") as f:
        data = f.read()
    rank = data[3]
    sizes = struct.unpack(f">{rank}I", data[4:4 + 4 * rank])
    return sizes, data[4 + 4 * rank:]


def read_data(directory, split="train", value=None):
    """(height, width), rows of floats, labels; floats are (v - mean) / (3 x deviation) of the training data."""
    (count, height, width), pixels = read_idx(directory, f"{split}-images-idx3-ubyte")
    labels = list(read_idx(directory, f"{split}-labels-idx1-ubyte")[1])
    if value is None:
        mean = sum(pixels) / len(pixels)
        deviation = math.sqrt(sum(v * v for v in pixels) / len(pixels) - mean * mean)
        value = [(v - mean) / (3 * deviation) for v in range(256)]
    size = height * width
    return (height, width), [[value[v] for v in pixels[i * size:(i + 1) * size]] for i in range(count)], labels, value


def ramp(x):
    low = min(max(x, 0.0), KNEE)
    return low * low / (2 * KNEE) + (max(x, 0.0) - low)


def ramp_slope(x):
    return min(max(x, 0.0), KNEE) / KNEE


class Dense:
    """y = x W + b, then the ramp or not; W row by row, a row an input."""

    def __init__(self, inputs, outputs, activate):
        self.inputs, self.outputs, self.activate = inputs, outputs, activate
        self.count = inputs * outputs + outputs

    def load(self, values):
        n = self.outputs
        self.rows = [values[i * n:(i + 1) * n] for i in range(self.inputs)]
        self.columns = list(zip(*self.rows))
        self.bias = values[self.inputs * n:]
        self.gradient = [[0.0] * n for _ in range(self.inputs)]
        self.bias_gradient = [0.0] * n

    def forward(self, x):
        self.x = x
        self.z = [sum(map(mul, x, column)) + b for column, b in zip(self.columns, self.bias)]
        return list(map(ramp, self.z)) if self.activate else self.z

    def backward(self, dy):
        if self.activate:
            dy = [d * ramp_slope(z) for d, z in zip(dy, self.z)]
        for i, v in enumerate(self.x):
            if v:
                self.gradient[i] = [g + v * d for g, d in zip(self.gradient[i], dy)]
        self.bias_gradient = [g + d for g, d in zip(self.bias_gradient, dy)]
        return [sum(map(mul, row, dy)) for row in self.rows]

    def flat_gradient(self):
        return [g for row in self.gradient for g in row] + self.bias_gradient


class Convolution:
    """Square windows, zero outside, and bias, as `places`; then ramp and the largest of each 2 x 2 square (the first of equals)."""

    def __init__(self, height, width, channels, outputs, edge=5):
        self.height, self.width, self.channels, self.edge = height, width, channels, edge
        self.product = Dense(edge * edge * channels, outputs, False)
        self.outputs, self.count = outputs, self.product.count

    def load(self, values):
        self.product.load(values)

    def patch(self, x, row, col):
        half, out = self.edge // 2, []
        for r in range(row - half, row + half + 1):
            for c in range(col - half, col + half + 1):
                inside = 0 <= r < self.height and 0 <= c < self.width
                at = (r * self.width + c) * self.channels
                out += x[at:at + self.channels] if inside else [0.0] * self.channels
        return out

    def places(self, x):
        self.patches = [self.patch(x, r, c) for r in range(self.height) for c in range(self.width)]
        self.sums = []
        for patch in self.patches:
            self.product.forward(patch)
            self.sums.append(self.product.z)
        return [v for place in self.sums for v in place]

    def forward(self, x):
        self.places(x)
        self.chosen, out = [], []
        for r in range(self.height // 2):
            for c in range(self.width // 2):
                square = [(2 * r + i) * self.width + 2 * c + j for i in (0, 1) for j in (0, 1)]
                for k in range(self.outputs):
                    best = max(square, key=lambda at, k=k: self.sums[at][k])
                    self.chosen.append((best, k))
                    out.append(ramp(self.sums[best][k]))
        return out

    def backward(self, dy):
        places = [[0.0] * self.outputs for _ in self.patches]
        for (at, k), d in zip(self.chosen, dy):
            places[at][k] += d * ramp_slope(self.sums[at][k])
        return self.places_backward(places)

    def places_backward(self, places):
        """Of what `places` gave, before any ramp."""
        dx, half = [0.0] * (self.height * self.width * self.channels), self.edge // 2
        for at, d in enumerate(places):
            if not any(d):
                continue
            self.product.x, self.product.z = self.patches[at], self.sums[at]
            back, row, col = self.product.backward(d), at // self.width, at % self.width
            for i, v in enumerate(back):
                window, channel = divmod(i, self.channels)
                r, c = row - half + window // self.edge, col - half + window % self.edge
                if 0 <= r < self.height and 0 <= c < self.width:
                    dx[(r * self.width + c) * self.channels + channel] += v
        return dx

    def flat_gradient(self):
        return self.product.flat_gradient()


class Residual:
    """What comes in, and two convolutions of it with a ramp between them, are added; then a ramp."""

    def __init__(self, height, width, channels):
        self.channels = channels
        self.first, self.second = (Convolution(height, width, channels, channels, 3) for _ in range(2))
        self.count = self.first.count + self.second.count

    def load(self, values):
        self.first.load(values[:self.first.count])
        self.second.load(values[self.first.count:])

    def forward(self, x):
        self.between = self.first.places(x)
        self.sum = [a + b for a, b in zip(x, self.second.places([ramp(v) for v in self.between]))]
        return [ramp(v) for v in self.sum]

    def backward(self, dy):
        def rows(values):
            return [values[i:i + self.channels] for i in range(0, len(values), self.channels)]

        dsum = [d * ramp_slope(v) for d, v in zip(dy, self.sum)]
        dramp = self.second.places_backward(rows(dsum))
        dx = self.first.places_backward(rows([d * ramp_slope(v) for d, v in zip(dramp, self.between)]))
        return [a + b for a, b in zip(dsum, dx)]

    def flat_gradient(self):
        return self.first.flat_gradient() + self.second.flat_gradient()


def build(model, height, width, classes):
    if model == "mlp":
        return [Dense(height * width, 256, True), Dense(256, 128, True), Dense(128, classes, False)]
    h, w = height // 2, width // 2
    if model == "resnet":
        return [Convolution(height, width, 1, 8), Residual(h, w, 8), Convolution(h, w, 8, 24), Residual(h // 2, w // 2, 24),
                Dense(h // 2 * (w // 2) * 24, 128, True), Dense(128, classes, False)]
    return [Convolution(height, width, 1, 8), Convolution(h, w, 8, 24), Dense(h // 2 * (w // 2) * 24, 128, True),
            Dense(128, classes, False)]


def probabilities(layers, x):
    for layer in layers:
        x = layer.forward(x)
    most = max(x)
    powers = [math.exp(v - most) for v in x]
    total = sum(powers)
    return [p / total for p in powers]


def load(layers, parameters):
    at = 0
    for layer in layers:
        layer.load(parameters[at:at + layer.count])
        at += layer.count
    assert at == len(parameters), (at, len(parameters))


def step(layers, parameters, samples, labels, rate, velocity=None, momentum=0.9):
    """One update by the mean gradient of these samples. Returns the new parameters (and changes velocity)."""
    load(layers, parameters)
    for x, label in zip(samples, labels):
        d = probabilities(layers, x)
        d[label] -= 1.0
        d = [v / len(samples) for v in d]
        for layer in reversed(layers):
            d = layer.backward(d)
    gradient = [g for layer in layers for g in layer.flat_gradient()]
    if velocity is not None:
        velocity[:] = [momentum * v + g for v, g in zip(velocity, gradient)]
        gradient = velocity
    return [w - rate * g for w, g in zip(parameters, gradient)]


def train(model, directory, first, log, rate, momentum=None):
    """Parameters after the steps of `log`: lines (epoch, step, rank, sample) of all ranks."""
    (height, width), x, labels, _ = read_data(directory)
    layers = build(model, height, width, max(labels) + 1)
    parameters, steps = list(first), {}
    velocity = [0.0] * len(parameters) if momentum is not None else None
    for _, number, _, sample in log:
        steps.setdefault(number, []).append(sample)
    for number in sorted(steps):
        parameters = step(layers, parameters, [x[i] for i in steps[number]], [labels[i] for i in steps[number]], rate,
                          velocity, momentum if momentum is not None else 0.9)
    return parameters


def accuracy(model, directory, parameters):
    (height, width), _, labels, value = read_data(directory)
    layers = build(model, height, width, max(labels) + 1)
    _, x, labels, _ = read_data(directory, "t10k", value)
    load(layers, parameters)
    right = 0
    for sample, label in zip(x, labels):
        p = probabilities(layers, sample)
        right += p.index(max(p)) == label
    return right / len(labels)


def apart(a, b):
    """Euclidean norm of the difference over that of b."""
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b))) / math.sqrt(sum(y * y for y in b))
