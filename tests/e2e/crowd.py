"""Pods that come and go, a few at a time: what scenarios of the device plugin and of claims share."""
import threading

from kube import NotFound, create, delete_pod, events_of, get_pod, wait


def ended(name):
    """(its status,) when it has ended; None instead of one that is gone."""
    try:
        status = get_pod(name)["status"]
    except NotFound:
        return (None,)
    return (status,) if status["phase"] in ("Succeeded", "Failed") else None


def state_of(name):
    """Where a pod stands, and what was said of it."""
    try:
        pod = get_pod(name)
        return pod["spec"].get("nodeName"), pod["status"]["phase"], [c.get("message") for c in pod["status"].get("conditions", []) if c["status"] != "True"], \
            [(e["reason"], e.get("count"), e.get("lastTimestamp"), e.get("message", "")[:200]) for e in events_of(name)[-6:]]
    except (NotFound, RuntimeError, OSError) as e:
        return str(e)


class Crowd:
    """@count pods NAME-N, @width at a time, until all have been or stop(). Whoever inherits says what they ask for and how each may end."""

    def __init__(self, name, count, width):
        self.name, self.left, self.lock = name, list(range(count)), threading.Lock()
        self.ended, self.failed = 0, []  # who did what it should; (name, why, sentence) of who did not
        self.threads = [threading.Thread(target=self.work) for _ in range(width)]
        for t in self.threads:
            t.start()

    def asks(self, name, number):
        """The pod of this number."""
        raise NotImplementedError

    def end(self, name, number, status):
        """It has come to this end; None = it is gone, and nobody here has deleted it."""
        if status is None:
            self.failed.append((name, "gone", ""))
        elif status["phase"] == "Succeeded":
            with self.lock:
                self.ended += 1
        else:
            self.failed.append((name, status.get("reason"), status.get("message")))

    def work(self):
        while True:
            with self.lock:
                if not self.left:
                    return
                number = self.left.pop()
            name = "%s-%d" % (self.name, number)
            try:
                create(self.asks(name, number))
                self.end(name, number, wait(name, 150, lambda n=name: ended(n), interval=0.2)[0])
                delete_pod(name)
            except Exception as e:
                self.failed.append((name, type(e).__name__, str(e)[:300], state_of(name)))

    def stop(self):
        """no pod comes after those that are there"""
        with self.lock:
            self.left.clear()
        self.join()

    def join(self):
        for t in self.threads:
            t.join()
