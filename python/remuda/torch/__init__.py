"""remuda.torch: a PyTorch loop of one machine becomes ranks of a world in which every chip has work in proportion to its speed.

    import remuda.torch as remuda
    run = remuda.init()                                            # rank, weight, plan: from the environment; alone: a world of one
    loader = DataLoader(data, batch_sampler=run.batch_sampler(data))
    model = run.wrap(model)                                        # DDP with our comm hook; broadcasts parameters and buffers
    ...                                                            # the loop as it was
        run.progress(loss)
    run.close()

`remuda run`, remuda-launch, torchrun, Slurm or a shell start it. docs/how-to/pytorch.md tells all of it.
"""
from ..errors import RemudaError, RemudaWarning
from .run import Run, init
from .sampler import BatchSampler

__all__ = ["BatchSampler", "RemudaError", "RemudaWarning", "Run", "init"]
