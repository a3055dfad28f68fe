"""remuda_train: a training loop of one machine becomes a rank of a weighted, distributed one.

    import remuda_train                                                       # new
    for ids in (run := remuda_train.open(samples=60000, batch=128, epochs=3)):  # in place of the loop's own batches
        loss, gradients = ...                                                 # the mean over these samples, as before
        run.reduce(gradients)                                                 # new
        ...                                                                   # apply them, as before

Needs nothing but libremuda-train.so (REMUDA_TRAIN_LIBRARY, beside this file, or where the loader finds it). Gradients
are anything that has writable float32 memory: numpy arrays, array.array('f'), torch tensors on the CPU, or a list of
such. Started alone, nothing changes; started as ranks of one mpirun, or by `remuda run`, each rank gets its exact part.
"""
import ctypes
import os

__all__ = ["open", "Run", "Failed"]


class Failed(RuntimeError):
    """The run could not be opened, saved or loaded; the reason is on stderr."""


def _library():
    here = os.path.dirname(os.path.abspath(__file__))
    named = os.environ.get("REMUDA_TRAIN_LIBRARY")
    beside = os.path.join(here, "libremuda-train.so")
    path = named or (beside if os.path.exists(beside) else "libremuda-train.so")
    # global: Open MPI's own plugins look for its symbols
    lib = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    pointer, size, u64 = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint64
    for name, result, arguments in (
            ("open", pointer, [size, size, u64, size]), ("close", None, [pointer]), ("rank", ctypes.c_int, [pointer]),
            ("size", ctypes.c_int, [pointer]), ("step", u64, [pointer]), ("epoch", u64, [pointer]),
            ("weight", ctypes.c_double, [pointer]),
            ("next", ctypes.c_long, [pointer, ctypes.POINTER(ctypes.POINTER(ctypes.c_uint32))]),
            ("reduce", ctypes.c_int, [pointer, pointer, size]), ("progress", None, [pointer, ctypes.c_double]),
            ("save", ctypes.c_int, [pointer, ctypes.c_char_p, pointer, size]),
            ("load", ctypes.c_int, [pointer, ctypes.c_char_p, pointer, size])):
        function = getattr(lib, "remuda_train_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


def _memory(values):
    """Address and count of float32 values that can be written."""
    if hasattr(values, "data_ptr"):  # a torch tensor
        if str(values.dtype) != "torch.float32" or not values.is_contiguous() or values.device.type != "cpu":
            raise TypeError("a contiguous float32 tensor on the CPU is wanted")
        return values.data_ptr(), values.numel(), values
    view = memoryview(values)
    if view.format != "f" or not view.c_contiguous or view.readonly:
        raise TypeError("contiguous, writable float32 values are wanted")
    holder = (ctypes.c_char * view.nbytes).from_buffer(values)
    return ctypes.addressof(holder), view.nbytes // 4, holder


class Run:
    """Iterates over the sample numbers of this rank's part of each batch."""

    def __init__(self, samples, batch, epochs=1, seed=1):
        self._lib = _library()
        self._run = self._lib.remuda_train_open(samples, batch, seed, epochs)
        if not self._run:
            raise Failed("the run could not be opened")

    def __iter__(self):
        ids = ctypes.POINTER(ctypes.c_uint32)()
        while (count := self._lib.remuda_train_next(self._run, ctypes.byref(ids))) >= 0:
            yield ids[:count]

    rank = property(lambda self: self._lib.remuda_train_rank(self._run))
    size = property(lambda self: self._lib.remuda_train_size(self._run))
    step = property(lambda self: self._lib.remuda_train_step(self._run))
    epoch = property(lambda self: self._lib.remuda_train_epoch(self._run))
    weight = property(lambda self: self._lib.remuda_train_weight(self._run))

    def reduce(self, gradients):
        """Mean gradients over this rank's samples become those of the whole batch, in place."""
        for values in gradients if isinstance(gradients, (list, tuple)) else [gradients]:
            address, count, _holder = _memory(values)
            if self._lib.remuda_train_reduce(self._run, address, count) != 0:
                raise Failed("the gradients could not be added up")

    def progress(self, loss):
        self._lib.remuda_train_progress(self._run, float(loss))

    def save(self, path, parameters):
        address, count, _holder = _memory(parameters)
        if self._lib.remuda_train_save(self._run, os.fsencode(path), address, count) != 0:
            raise Failed(f"{path} could not be written")

    def load(self, path, parameters):
        """True if there was a saved state and the run goes on from it."""
        address, count, _holder = _memory(parameters)
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


def open(samples, batch, epochs=1, seed=1):  # noqa: A001 (reads well as remuda_train.open)
    return Run(samples, batch, epochs, seed)
