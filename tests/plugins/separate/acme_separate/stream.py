"""Streams of the device: queues of work, which is done when a stream is synchronized."""

from threading import RLock


class Stream:
    """Work in order. While it is captured, work is recorded and not done, and no thread may wait for it."""

    def __init__(self):
        self._work = []
        self._captured = None
        # A thread that waits must also wait for work that another thread took and is still doing.
        self._lock = RLock()

    def put(self, work):
        with self._lock:
            (self._work if self._captured is None else self._captured).append(work)

    def synchronize(self):
        """Do all work; an error of a kernel is raised here, and the work after it is dropped."""
        assert self._captured is None, "a stream that is captured cannot be waited for"
        with self._lock:
            work, self._work = self._work, []
            for item in work:
                item()

    def begin_capture(self):
        self._captured = []

    def end_capture(self):
        """Return the graph of the work that was put since the beginning."""
        captured, self._captured = self._captured, None
        return Graph(tuple(captured))


class Graph:
    """Recorded work, which can be put on a stream any number of times."""

    def __init__(self, work):
        self._work = work

    def launch(self, stream):
        for item in self._work:
            stream.put(item)


DEFAULT = Stream()
