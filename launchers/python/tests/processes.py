"""What tests of killed processes share."""

import os
import signal
import time
from pathlib import Path


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def until(holds, within_s=20):
    """Waits until something holds, and returns after how many seconds it did."""
    start = time.monotonic()
    while not holds():
        assert time.monotonic() - start < within_s, f"it does not hold after {within_s} s"
        time.sleep(0.002)
    return time.monotonic() - start


def kill(*pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def shown(times):
    """The median and the longest of some times in seconds."""
    times = sorted(times)
    return f"{len(times)} times: after {times[len(times) // 2] * 1000:.1f} ms, at most {times[-1] * 1000:.1f} ms"
