"""For programs that use the Trainer of Hugging Face's transformers: the same, with `run=`.

    run = remuda.init(batch=64)
    Trainer(run=run, model=model, args=TrainingArguments(..., per_device_train_batch_size=64 // run.world), train_dataset=data).train()

`run.batch` samples make a step, whatever `per_device_train_batch_size` says, by which the Trainer's own figures count.
"""
from typing import Any

import torch
import transformers
from torch.utils.data import DataLoader

from .accelerate import adopt
from .run import Run

__all__ = ["Trainer"]


class _Progress(transformers.TrainerCallback):  # type: ignore[misc]
    def __init__(self, run: Run):
        self._run = run

    def on_step_end(self, *_arguments: Any, **_more: Any) -> None:
        self._run.progress()


class Trainer(transformers.Trainer):  # type: ignore[misc]
    """transformers.Trainer, whose ranks take the run's shares of each step."""

    def __init__(self, *arguments: Any, run: Run, **more: Any):
        self.run = run
        super().__init__(*arguments, **more)
        # A loss by tokens: those of all ranks are counted here, as the Trainer would count the stand-in of a rank without a sample
        # and make up for a division by the number of ranks.
        self._by_tokens = bool(getattr(self.args, "average_tokens_across_devices", False))
        self.args.average_tokens_across_devices = False
        self.add_callback(_Progress(run))

    def create_accelerator_and_postprocess(self) -> None:
        super().create_accelerator_and_postprocess()
        adopt(self.run, self.accelerator)

    def get_train_dataloader(self) -> DataLoader:
        theirs = super().get_train_dataloader()
        self.accelerator._dataloaders.remove(theirs)
        data: Any = theirs.dataset
        self._batches = self.run.batch_sampler(data, seed=self.args.seed)
        return self.accelerator.prepare(DataLoader(  # type: ignore[no-any-return]
            data, batch_sampler=self._batches, collate_fn=theirs.collate_fn, num_workers=theirs.num_workers, pin_memory=theirs.pin_memory,
            worker_init_fn=theirs.worker_init_fn, prefetch_factor=theirs.prefetch_factor, persistent_workers=theirs.persistent_workers))

    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, *more: Any) -> Any:
        """The batches of an optimiser step, and how many tokens of them count."""
        first = self._batches.trained
        batches, tokens = super().get_batch_samples(epoch_iterator, num_batches, *more)
        if not self._by_tokens or tokens is None:
            return batches, tokens
        for step, batch in enumerate(batches, first):
            if self._batches.own(step) == 0:
                tokens = tokens - batch["labels"].ne(-100).sum()
        own = torch.as_tensor(tokens, device=self.args.device).reshape(1)
        return batches, self.accelerator.gather(own).sum().item()

    def training_step(self, *arguments: Any, **more: Any) -> torch.Tensor:
        self._batches.hand()
        return super().training_step(*arguments, **more)  # type: ignore[no-any-return]

    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None) -> Any:
        """A loss that was divided by the tokens of all ranks counts as it is, not by this rank's samples."""
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True, num_items_in_batch=num_items_in_batch)
        takes_tokens = self.model_accepts_loss_kwargs or getattr(self, "compute_loss_func", None) is not None
        if model.training and self._by_tokens and takes_tokens and num_items_in_batch is not None and self.run.weight > 0:
            loss = loss / self.run.weight
        return (loss, outputs) if return_outputs else loss
