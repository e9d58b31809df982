"""A crew of Ray workers, on a running cluster or on one that Ray starts here (extra `logdoc[ray]`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from logdoc.scanner.ranges import TASKS_AHEAD, Crew, Orders, Scanned, Task, elsewhere, scan_task
from logdoc.scanner.triggers import ready_scanner
from logdoc.types.errors import InputError

RETRIES = 2  # of a task whose worker died; after that the work is done here
SECONDS = 600  # for one task; after that the work is done here


def ray_crew(address: str | None = None) -> Crew:
    """The cluster at `address`, that of RAY_ADDRESS, or else a local one; it is left as it was found.

    Raises InputError if Ray is missing or the cluster cannot be had. Workers need logdoc, and the same view of the
    files; what one cannot read, or loses, is done here.
    """
    try:
        import ray
    except ImportError as error:
        raise InputError('scanning on Ray needs an extra: pip install "logdoc[ray]"') from error
    return lambda tasks, orders: _scanned(ray, address, tasks, orders)


def _scanned(ray: Any, address: str | None, tasks: Iterator[Task], orders: Orders) -> Iterator[Scanned]:
    joined = not ray.is_initialized()
    if joined:
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", configure_logging=False)
        except Exception as error:  # ConnectionError, ValueError, RuntimeError: whatever Ray makes of an address
            raise InputError(f"Ray: {' '.join(str(error).split())}") from error
    try:
        yield from _in_order(ray, tasks, orders)
    finally:
        if joined:
            ray.shutdown()


def _in_order(ray: Any, tasks: Iterator[Task], orders: Orders) -> Iterator[Scanned]:
    remote = ray.remote(max_retries=RETRIES, num_cpus=1)(_scan_task)
    shared = ray.put(orders)
    ahead = TASKS_AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    lost = (ray.exceptions.RayError, OSError)

    def hand_over(task: Task) -> Any:
        return remote.remote(task, shared)

    def result(promise: Any) -> list[Scanned]:
        done: list[Scanned] = ray.get(promise, timeout=SECONDS)
        return done

    yield from elsewhere(tasks, orders, ahead, hand_over, result, lost)


def _scan_task(task: Task, orders: Orders) -> list[Scanned]:
    return scan_task(task, orders, ready_scanner(orders.triggers))
