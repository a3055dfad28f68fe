"""remuda_train: a training loop of one machine becomes a rank of a weighted, distributed one.

    import remuda_train                                                       # new
    run = remuda_train.open(samples=60000, batch=128, epochs=3, parameters=parameters)  # new: all begin alike
    for ids in run:                                                           # in place of the loop's own batches
        loss, gradients = ...                                                 # the mean over these samples, as before
        run.reduce(gradients)                                                 # new
        ...                                                                   # apply them, as before

Needs nothing but libremuda-train.so (REMUDA_TRAIN_LIBRARY, beside this file, or where the loader finds it). Values are
anything that has writable float32 memory: numpy arrays, array.array('f'), torch tensors (also bfloat16, and on a device
where MPI reads it), or a list of such. Of torch, `run.reduce(model.parameters())` takes the gradients of the parameters,
those that a rank has none of as zeros. Started alone, nothing changes; started as ranks of one mpirun, or by `remuda
run`, each rank gets its exact part. For MPI; PyTorch without MPI has a door of its own, `remuda.torch`.
"""
import array
import ctypes
import os

__all__ = ["open", "Run", "Failed"]


class Failed(RuntimeError):
    """The run could not be opened, saved or loaded; the reason is on stderr."""


def _library():
    here = os.path.dirname(os.path.abspath(__file__))
    named = os.environ.get("REMUDA_TRAIN_LIBRARY")
    beside = os.path.join(here, "libremuda-train.so")
    path = named or (beside if os.path.exists(beside) else "libremuda-train.so.0")
    # global: Open MPI's own plugins look for its symbols
    lib = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    pointer, size, u64 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64
    for name, result, arguments in (
            ("open", pointer, [size, size, u64, size]), ("close", None, [pointer]), ("rank", ctypes.c_int, [pointer]),
            ("size", ctypes.c_int, [pointer]), ("step", u64, [pointer]), ("epoch", u64, [pointer]),
            ("weight", ctypes.c_double, [pointer]),
            ("next", ctypes.c_long, [pointer, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint32))]),
            ("broadcast", ctypes.c_int, [pointer, pointer, size]), ("progress", None, [pointer, ctypes.c_double]),
            ("reduce_begin", ctypes.c_int, [pointer, pointer, size, ctypes.c_int]), ("reduce_wait", ctypes.c_int, [pointer]),
            ("save", ctypes.c_int, [pointer, ctypes.c_char_p, pointer, size]),
            ("load", ctypes.c_int, [pointer, ctypes.c_char_p, pointer, size])):
        function = getattr(lib, "remuda_train_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


_FLOAT32, _BFLOAT16 = 0, 1  # enum remuda_train_type
_TORCH_TYPES = {"torch.float32": (_FLOAT32, 4), "torch.bfloat16": (_BFLOAT16, 2)}


def _memory(values):
    """Address, count, type and bytes each of values that can be written, and what keeps them where they are."""
    if hasattr(values, "data_ptr"):  # a torch tensor
        if str(values.dtype) not in _TORCH_TYPES or not values.is_contiguous():
            raise TypeError(f"a contiguous float32 or bfloat16 tensor is wanted, this one is {values.dtype}"
                            f"{'' if values.is_contiguous() else ', not contiguous'}: convert it before")
        if values.device.type != "cpu":  # what the device has only been told to do is not done
            import torch
            getattr(torch, values.device.type).synchronize(values.device)
        kind, each = _TORCH_TYPES[str(values.dtype)]
        return values.data_ptr(), values.numel(), kind, each, values
    view = memoryview(values)
    if view.format != "f" or not view.c_contiguous or view.readonly:
        raise TypeError("contiguous, writable float32 values are wanted")
    holder = (ctypes.c_char * view.nbytes).from_buffer(values)
    return ctypes.addressof(holder), view.nbytes // 4, _FLOAT32, 4, holder


def _listed(values):
    """One, or an iterable of several."""
    return [values] if hasattr(values, "data_ptr") or hasattr(values, "__array__") or hasattr(values, "itemsize") else list(values)


def _gradients(values):
    """[(parameter of torch or None, its gradient or None)]; frozen parameters have none and are left out."""
    pairs = []
    for i, value in enumerate(values):
        if value is None:
            raise TypeError(f"gradient {i} is None, and its size cannot be known: give the parameters in place of the gradients, "
                            "run.reduce(model.parameters())")
        if not hasattr(value, "requires_grad"):
            pairs.append((None, value))
        elif value.requires_grad:
            pairs.append((value, value.grad))
        elif type(value).__name__ != "Parameter":
            pairs.append((None, value))
    return pairs


class Run:
    """Iterates over the sample numbers of this rank's part of each batch."""

    def __init__(self, samples, batch, epochs=1, seed=1, parameters=None):
        self._lib, self._under_way = _library(), []
        self._run = self._lib.remuda_train_open(samples, batch, seed, epochs)
        if not self._run:
            raise Failed("the run could not be opened")
        if parameters is not None:
            self.broadcast(parameters)

    def __iter__(self):
        ids = ctypes.POINTER(ctypes.c_uint32)()
        while (count := self._lib.remuda_train_next(self._run, ctypes.byref(ids))) >= 0:
            yield ids[:count]

    rank = property(lambda self: self._lib.remuda_train_rank(self._run))
    size = property(lambda self: self._lib.remuda_train_size(self._run))
    step = property(lambda self: self._lib.remuda_train_step(self._run))
    epoch = property(lambda self: self._lib.remuda_train_epoch(self._run))
    weight = property(lambda self: self._lib.remuda_train_weight(self._run))

    def broadcast(self, values):
        """Rank 0's values to all ranks, in place: parameters and buffers, before the first step."""
        for tensor in _listed(values):
            address, count, _kind, each, _holder = _memory(tensor)
            if self._lib.remuda_train_broadcast(self._run, address, count * each) != 0:
                raise Failed("the values could not be broadcast")

    def reduce(self, gradients):
        """Mean gradients over this rank's samples become those of the whole batch, in place. Parameters of torch stand for
        their gradients: one that a rank has none of counts as zeros there, and stays None where no rank has one."""
        pairs = _gradients(_listed(gradients))
        present = array.array("f", [float(gradient is not None) for _parameter, gradient in pairs])
        for parameter, gradient in reversed(pairs):  # as backward finishes them
            if gradient is None:
                gradient = parameter.grad = parameter.detach().new_zeros(parameter.shape)
            self.reduce_begin(gradient)
        if any(parameter is not None for parameter, _gradient in pairs):
            self.reduce_begin(present)
        self.reduce_wait()
        for (parameter, _gradient), share in zip(pairs, present):
            if parameter is not None and share == 0:
                parameter.grad = None

    def reduce_begin(self, gradient):
        """The same of one tensor, while others are computed: in the same order on all ranks; then reduce_wait()."""
        address, count, kind, _each, holder = _memory(gradient)
        self._under_way.append(holder)
        if self._lib.remuda_train_reduce_begin(self._run, address, count, kind) != 0:
            raise Failed("the gradient could not be added up")

    def reduce_wait(self):
        if self._lib.remuda_train_reduce_wait(self._run) != 0:
            raise Failed("the gradients could not be added up")
        self._under_way.clear()

    def progress(self, loss):
        self._lib.remuda_train_progress(self._run, float(loss))

    def save(self, path, parameters):
        address, count, kind, _each, _holder = _memory(parameters)
        if kind != _FLOAT32:
            raise TypeError("float32 parameters are wanted in a saved state")
        if self._lib.remuda_train_save(self._run, os.fsencode(path), address, count) != 0:
            raise Failed(f"{path} could not be written")

    def load(self, path, parameters):
        """True if there was a saved state and the run goes on from it."""
        address, count, kind, _each, _holder = _memory(parameters)
        if kind != _FLOAT32:
            raise TypeError("float32 parameters are wanted in a saved state")
        result = self._lib.remuda_train_load(self._run, os.fsencode(path), address, count)
        if result < 0:
            raise Failed(f"{path} could not be read")
        return result == 0

    def close(self):
        if self._run:
            self._lib.remuda_train_close(self._run)
        self._run = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def open(samples, batch, epochs=1, seed=1, parameters=None):  # noqa: A001 (reads well as remuda_train.open)
    """Join the world, or be alone. @parameters: become rank 0's, in place, on all ranks."""
    return Run(samples, batch, epochs, seed, parameters)
