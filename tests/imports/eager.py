"""Plain PyTorch's training of a module on the batches that Tandem makes up: what an import must equal to the bit."""
import torch

from batches import batch


def _clip(parameters, clip_norm):
    """As Tandem clips: the norm in double precision, the coefficient in single."""
    norm = sum(p.grad.double().square().sum().item() for p in parameters) ** 0.5
    coefficient = torch.tensor(min(clip_norm / (norm + 1e-6), 1.0), dtype=torch.float32)
    for p in parameters:
        p.grad.mul_(coefficient)


def train(module, inputs, tensors, steps, micro_batches=1, clip_norm=0.0, weight_decay=0.0, loss_of=None):
    """Returns the losses of all steps. `tensors`: the batch of network.yaml, in whose order `inputs` are, but for
    constants.
    """
    names = [t["name"] for t in tensors if "constant" not in t]
    data = [t for t in tensors if "constant" not in t]
    args, kwargs = ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), {})
    samples = data[0]["shape"][0]
    parameters = [p for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=weight_decay, fused=True)
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        of_step = []
        for micro_batch in range(micro_batches):
            values = batch(tensors, samples, step, micro_batch)
            given = iter(names)
            new_args = [values[next(given)] for _ in args]
            new_kwargs = {key: values[key] for key in kwargs}
            loss = loss_of(module(*new_args, **new_kwargs))
            of_step.append(loss.item())
            (loss / micro_batches).backward()
        used = [p for p in parameters if p.grad is not None]
        if clip_norm > 0:
            _clip(used, clip_norm)
        optimizer.step()
        losses.append(sum(of_step) / micro_batches)
    return losses
