"""Which status an exception in a child means, and the one line that says why."""

import torch

_ALLOCATOR_MESSAGES = (
    "DefaultCPUAllocator: can't allocate memory",
    "DefaultCPUAllocator: not enough memory",
    "CUDA out of memory",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


class NonFiniteOutput(Exception):
    """The loss or an output of the model holds NaN or infinity."""


def classify(error: BaseException, stage: str) -> tuple[str, str]:
    """(status, reason) of an exception raised while the child was in `stage`."""
    reason = f"{type(error).__name__[:100]} during {stage}: {first_line(error)}"
    if isinstance(error, NonFiniteOutput):
        return "accuracy_fail", str(error)
    if isinstance(error, torch.OutOfMemoryError | MemoryError) or any(
        message in _text(error) for message in _ALLOCATOR_MESSAGES
    ):
        return "oom", reason
    # A model says at construction what it cannot do. Later, or from torch's dispatcher ("Could not run ..."), the same
    # exception means that an operator of the build is missing: that is a failure, and must not pass as unsupported.
    if isinstance(error, NotImplementedError) and stage == "build" and not _text(error).startswith("Could not run"):
        return "unsupported", first_line(error) or "the model does not implement this test"
    return "error", reason


def first_line(error: BaseException) -> str:
    """Of its message, whatever its own __str__ does."""
    return next(iter(_text(error).strip().splitlines()), "")[:500]


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # its own __str__ may fail
        return "(its message cannot be told)"
