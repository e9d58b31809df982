"""A crew of Ray workers, on a running cluster or on one that Ray starts here (extra `logdoc[ray]`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from logdoc.scanner.ranges import TASKS_AHEAD, Crew, Orders, Scanned, Task, scan_here, scan_task
from logdoc.scanner.triggers import TriggerScanner, trigger_scanner
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
    waiting: deque[tuple[Task, Any]] = deque()
    for task in tasks:
        waiting.append((task, remote.remote(task, shared)))
        if len(waiting) > ahead:
            yield from _result(ray, *waiting.popleft(), orders)
    while waiting:
        yield from _result(ray, *waiting.popleft(), orders)


def _result(ray: Any, task: Task, promised: Any, orders: Orders) -> Iterable[Scanned]:
    try:
        done: list[Scanned] = ray.get(promised, timeout=SECONDS)
    except (ray.exceptions.RayError, OSError):
        return scan_here(task, orders, trigger_scanner(orders.triggers))
    return done


_ready: dict[int, TriggerScanner] = {}  # of a worker process, which does many tasks of one job


def _scan_task(task: Task, orders: Orders) -> list[Scanned]:
    key = hash(tuple(orders.triggers))
    if key not in _ready:
        _ready.clear()
        _ready[key] = trigger_scanner(orders.triggers)
    return scan_task(task, orders, _ready[key])
