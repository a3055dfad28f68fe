"""For programs that use Lightning, as `lightning` or `pytorch_lightning`:

    run = remuda.init(batch=64)
    trainer = Trainer(strategy=Strategy(run), use_distributed_sampler=False, ...)
    trainer.fit(module, DataLoader(data, batch_sampler=run.batch_sampler(data)))

The ranks are those of the launcher, any number of them on a host; `devices` and `num_nodes` are left out.
"""
import importlib
import importlib.util
import os
import sys
from typing import Any

import torch

from ..errors import RemudaError
from .run import Run

__all__ = ["Strategy"]

_home = "pytorch_lightning" if "pytorch_lightning" in sys.modules or importlib.util.find_spec("lightning") is None else "lightning.pytorch"
_lightning: Any = importlib.import_module(_home)
_environments: Any = importlib.import_module(_home + ".plugins.environments")
if sys.version_info >= (3, 11) and torch.__version__.startswith("1."):  # whose ShardedTensor, for which modules ask, Python 3.11 refuses
    _lightning.LightningModule._register_sharded_tensor_state_dict_hooks_if_available = lambda _module: None
_strategies: Any = importlib.import_module(_home + ".strategies")


class _Environment(_environments.LightningEnvironment):  # type: ignore[misc]
    """Whose ranks were started by others, however many on each host."""

    def __init__(self, run: Run):
        super().__init__()
        self._run = run

    creates_processes_externally = True

    @staticmethod
    def detect() -> bool:
        return False

    def world_size(self) -> int:
        return self._run.world

    def set_world_size(self, size: int) -> None:
        pass

    def global_rank(self) -> int:
        return self._run.rank

    def set_global_rank(self, rank: int) -> None:
        pass

    def local_rank(self) -> int:
        return int(os.environ.get("LOCAL_RANK", "0"))

    def node_rank(self) -> int:
        return int(os.environ.get("GROUP_RANK", "0"))

    def validate_settings(self, num_devices: int, num_nodes: int) -> None:
        pass

    def teardown(self) -> None:
        pass


class _Progress(_lightning.Callback):  # type: ignore[misc]
    def __init__(self, run: Run):
        self._run = run

    def on_train_batch_end(self, _trainer: Any, _module: Any, outputs: Any, *_arguments: Any, **_more: Any) -> None:
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs  # of a loop by hand, whatever it returned
        self._run.progress(loss if isinstance(loss, torch.Tensor) and loss.numel() == 1 else None)


class Strategy(_strategies.DDPStrategy):  # type: ignore[misc]
    """DDPStrategy, whose model is wrapped by the run. @options: DDPStrategy's."""

    def __init__(self, run: Run, **options: Any):
        super().__init__(cluster_environment=_Environment(run), **options)
        self._run = run

    @property
    def root_device(self) -> torch.device:
        """A rank that sees one device alone has that, whichever rank of its host it is."""
        return self.parallel_devices[self.local_rank % len(self.parallel_devices)]  # type: ignore[no-any-return]

    def setup(self, trainer: Any) -> None:
        if trainer._accelerator_connector.use_distributed_sampler:
            raise RemudaError("Trainer(use_distributed_sampler=True) would deal out the samples in equal parts: say use_distributed_sampler=False, and give "
                              "the loader batch_sampler=run.batch_sampler(data)")
        trainer.callbacks.append(_Progress(self._run))
        super().setup(trainer)

    def _setup_model(self, model: torch.nn.Module) -> torch.nn.parallel.DistributedDataParallel:
        return self._run.wrap(model, device_ids=self.determine_ddp_device_ids(), **self._ddp_kwargs)

    def _register_ddp_hooks(self) -> None:
        """The run's is there."""
