"""For programs that use Accelerate: the model is wrapped by the run, and a loader that has the run's batches is left whole.

    accelerator = adopt(run, Accelerator())
    loader = DataLoader(data, batch_sampler=run.batch_sampler(data))
    model, optimiser, loader = accelerator.prepare(model, optimiser, loader)

Accelerate would deal out the batches of a loader to the ranks in turn; the run's batches are this rank's already.
"""
from typing import Any

import torch
from accelerate.data_loader import prepare_data_loader

from ..errors import RemudaError
from .run import Run
from .sampler import BatchSampler

__all__ = ["adopt"]

if not hasattr(torch.cpu, "device_count"):  # before torch 2.1: Accelerator() of ranks on processors asks for it, in every version since 0.27
    torch.cpu.device_count, torch.cpu.set_device = lambda: 1, lambda _device: None  # type: ignore[attr-defined]

OWN_REDUCTION = ("FSDP", "DEEPSPEED", "MEGATRON_LM", "XLA", "TP")


def adopt(run: Run, accelerator: Any) -> Any:
    """Before its prepare(). Mixed precision, accumulation, clipping and saving stay Accelerate's. Return: `accelerator`."""
    kind = accelerator.distributed_type.value
    if kind in OWN_REDUCTION:
        raise RemudaError(f"accelerator.distributed_type is {kind}, which adds up gradients by itself: multiply each loss by run.loss_scale, and do not adopt it")
    if accelerator.num_processes != run.world:
        raise RemudaError(f"accelerator.num_processes is {accelerator.num_processes}, the run has {run.world} ranks: call remuda.init() before Accelerator()")
    prepare_model, prepare_loader = accelerator.prepare_model, accelerator.prepare_data_loader

    def model_of(model: torch.nn.Module, device_placement: Any = None, evaluation_mode: bool = False) -> torch.nn.Module:
        if evaluation_mode or not any(p.requires_grad for p in model.parameters()):
            return prepare_model(model, device_placement=device_placement, evaluation_mode=True)  # type: ignore[no-any-return]
        if accelerator.device_placement if device_placement is None else device_placement:
            model = model.to(accelerator.device)
        model = prepare_model(model, device_placement=False, evaluation_mode=True)
        options = accelerator.ddp_handler.to_kwargs() if accelerator.ddp_handler is not None else {}
        accelerator._models[-1] = run.wrap(model, **options)
        return accelerator._models[-1]  # type: ignore[no-any-return]

    def loader_of(loader: Any, device_placement: Any = None, slice_fn_for_dispatch: Any = None) -> Any:
        if getattr(loader, "_is_accelerate_prepared", False) or not isinstance(loader.batch_sampler, BatchSampler):
            return prepare_loader(loader, device_placement=device_placement, slice_fn_for_dispatch=slice_fn_for_dispatch)
        accelerator._dataloaders.append(prepare_data_loader(
            loader, accelerator.device, num_processes=1, process_index=0,
            put_on_device=accelerator.device_placement if device_placement is None else device_placement))
        return accelerator._dataloaders[-1]

    accelerator.prepare_model, accelerator.prepare_data_loader = model_of, loader_of
    return accelerator
