"""Signals that ask a run to stop: it ends its step, writes a checkpoint and leaves."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class StopSignals:
    """Notes SIGTERM and Ctrl-C while the block lasts, instead of dying of them.

    SIGTERM may come several times, from a scheduler and from a launcher. A second Ctrl-C
    acts as usual, for those who do not want to wait.
    """

    def __init__(self) -> None:
        self.received = ""
        self._before: dict[signal.Signals, Any] = {}

    def came(self) -> bool:
        """Whether there was one."""
        return bool(self.received)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            # None: set by something other than Python, and not to be restored from it.
            if before is not None:
                signal.signal(number, before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.received = signal.Signals(number).name
        if number == signal.SIGINT:
            signal.signal(number, self._before[signal.SIGINT] or signal.default_int_handler)
