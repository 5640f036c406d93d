"""Measures the CPU time and memory of a process and its descendants while they run."""

import contextlib
import os
import subprocess
import time
from pathlib import Path


class Family:
    """The CPU time and memory of a driver and its descendants at the last measurement, including those that
    have ended.
    """

    def __init__(self, driver: "subprocess.Popen[str]") -> None:
        self._driver = driver
        self._start = time.monotonic()
        self.wall = 0.0
        self._seconds: dict[int, float] = {}
        self._memory: dict[int, float] = {}
        """The peak memory of each process, in MB."""
        self._workers: set[int] = set()

    def look(self) -> bool:
        """Measure again. Return whether the driver is still running."""
        if self._driver.poll() is not None:
            self.wall = self.wall or time.monotonic() - self._start
            return False
        for pid in family_of(self._driver.pid):
            with contextlib.suppress(OSError, ValueError, IndexError):
                spent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
                self._seconds[pid] = sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")
                status = Path(f"/proc/{pid}/status").read_text()
                self._memory[pid] = int(status.partition("VmHWM:")[2].split()[0]) / 1024
                if is_worker(pid):
                    self._workers.add(pid)
        return True

    @property
    def total(self) -> float:
        """Return the CPU seconds of all processes."""
        return sum(self._seconds.values())

    @property
    def status(self) -> int:
        return self._driver.wait()

    def told(self) -> str:
        """Return the CPU seconds and the peak memory, by kind of process."""
        driver = self._seconds.get(self._driver.pid, 0.0)
        workers = sum(seconds for pid, seconds in self._seconds.items() if pid in self._workers)
        rest = self.total - driver - workers
        memory = max((self._memory[pid] for pid in self._workers), default=0.0)
        peaks = (
            f"peak memory of the driver {self._memory.get(self._driver.pid, 0.0):.0f} MB, of a worker {memory:.0f} MB"
        )
        return f"driver {driver:.1f}, workers {workers:.1f}, other processes {rest:.1f} CPU s; {peaks}"


def children(pid: int) -> list[int]:
    """Return the workers of a driver, for either engine. Helper processes are not workers."""
    return [each for each in family_of(pid) if is_worker(each)]


def family_of(pid: int) -> list[int]:
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
    below = [pid]
    for each in below:
        below += parents.get(each, [])
    return below


def is_worker(pid: int) -> bool:
    try:
        told = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"spawn_main" in told or told.startswith(b"ray::RayWorker")
