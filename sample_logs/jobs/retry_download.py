"""A healthy job that prints the tracebacks of attempts it then makes good."""

import logging

import torch
import torch.distributed as dist

logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
log = logging.getLogger("data.fetch")


def fetch(attempt: int) -> bytes:
    if attempt < 2:
        raise ConnectionError(f"server closed the connection after {attempt + 1} MB")
    return b"tokens"


def fetch_with_retry() -> bytes:
    for attempt in range(5):
        try:
            return fetch(attempt)
        except ConnectionError:
            log.warning("attempt %d failed, trying again", attempt + 1, exc_info=True)
    raise ConnectionError("gave up")


dist.init_process_group("gloo")
data = fetch_with_retry() if dist.get_rank() == 0 else b""
dist.barrier()
for step in range(4):
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 0:
        log.info("step %d loss %.3f", step, 2.0 / (step + 1))
log.info("rank %d done, %d bytes", dist.get_rank(), len(data))
dist.destroy_process_group()
