"""The run: the chunked loop, what it keeps, what it survives. It never adapts."""

from .result import kernel_of, open_run
from .sample import resume, sample
from .saving import save
from .verify import status, verify

__all__ = ["kernel_of", "open_run", "resume", "sample", "save", "status", "verify"]
