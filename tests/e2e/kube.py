"""A small client of the API server for the scenarios, and TAP."""
import json
import os
import re
import ssl
import subprocess
import time
import urllib.error
import urllib.request

KUBE = os.environ["KUBE"]
CLUSTER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cluster")
_context = ssl.create_default_context(cafile=os.path.join(KUBE, "pki", "ca.crt"))


class NotFound(Exception):
    pass


def api(method, path, body=None, content_type="application/json"):
    request = urllib.request.Request("https://127.0.0.1:443" + path, method=method,
                                     data=body if body is None or isinstance(body, bytes) else json.dumps(body).encode(),
                                     headers={"Authorization": "Bearer admin-token", "Content-Type": content_type})
    try:
        with urllib.request.urlopen(request, context=_context, timeout=20) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as e:
        text = e.read().decode(errors="replace")
        if e.code == 404:
            raise NotFound(path) from None
        raise RuntimeError("%s %s: %d %s" % (method, path, e.code, text[:1500])) from None


def get(path):
    return api("GET", path)


def kubectl(*args, text=None, check=True):
    done = subprocess.run(["kubectl", *args], input=text, text=True, capture_output=True)
    if check and done.returncode != 0:
        raise RuntimeError("kubectl %s: %s" % (" ".join(args), done.stderr.strip()[-800:]))
    return done.stdout


def cluster(*args):
    subprocess.run([CLUSTER, *args], check=True, stdout=subprocess.DEVNULL)


def wait(what, seconds, condition, interval=0.05):
    """The first true value of condition(), or an AssertionError that names what was waited for and what was last seen."""
    deadline, last = time.monotonic() + seconds, None
    while time.monotonic() < deadline:
        try:
            value = condition()
            if value:
                return value
            last = value
        except (NotFound, RuntimeError, OSError, KeyError, IndexError) as e:
            last = e
        time.sleep(interval)
    raise AssertionError("%s: not within %s s (last: %r)" % (what, seconds, last))


def pod(name, resource=None, count=0, command=None, labels=None, annotations=None, image="localhost/busybox:1", extra=None, container=None):
    resources = {"limits": {resource: str(count)}} if resource else {}
    main = {"name": "main", "image": image, "imagePullPolicy": "Never", "resources": resources,
            "command": command or ["sh", "-c", "env; trap 'exit 0' TERM; while true; do sleep 1; done"]}
    main.update(container or {})
    spec = {"schedulerName": "remuda", "restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [main],
            "automountServiceAccountToken": False}
    spec.update(extra or {})
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec,
            "metadata": {"name": name, "namespace": "default", "labels": labels or {}, "annotations": annotations or {}}}


def create(value, collection="/api/v1/namespaces/default/pods"):
    return api("POST", collection, value)


def get_pod(name, namespace="default"):
    return get("/api/v1/namespaces/%s/pods/%s" % (namespace, name))


def phase(name):
    return get_pod(name)["status"].get("phase")


def delete_pod(name):
    try:
        api("DELETE", "/api/v1/namespaces/default/pods/" + name, {"gracePeriodSeconds": 0})
    except NotFound:
        return
    wait("pod %s gone" % name, 30, lambda: gone(name))


def end_pod(name):
    """as it is done by hand: the kubelet ends it, then it goes"""
    api("DELETE", "/api/v1/namespaces/default/pods/" + name)
    wait("pod %s gone" % name, 60, lambda: gone(name))


def gone(name):
    try:
        get_pod(name)
        return False
    except NotFound:
        return True


def wait_running(name, seconds=60):
    return wait("pod %s running" % name, seconds, lambda: phase(name) == "Running")


def log(name, namespace="default", container=None):
    return kubectl("logs", "-n", namespace, name, *(["-c", container] if container else []))


def pending_reason(name):
    """Message of the pod's PodScheduled condition."""
    for condition in get_pod(name)["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return condition.get("message", "")
    return ""


def allocatable(resource, node="n1"):
    return int(get("/api/v1/nodes/" + node)["status"]["allocatable"].get(resource, "-1"))


def events_of(name):
    items = get("/api/v1/namespaces/default/events")["items"]
    return [e for e in items if e["involvedObject"].get("name") == name]


_number, _failed, _again, _passed_then = 0, 0, [], []


def scenario(function):
    """Runs one scenario: its docstring is the sentence of its TAP line. AGAIN_ALONE=N (.ci/run): the first N that fail are run once more,
    and named at the end when they pass then. Return: did it pass?"""
    global _number, _failed
    only = os.environ.get("E2E_ONLY")
    if only and not re.search(only, function.__name__) and function.__name__ != "installs":
        return False
    _number += 1
    for last in (len(_again) >= int(os.environ.get("AGAIN_ALONE", 0)), True):
        began = time.monotonic()
        try:
            note = function()
            if function.__name__ in _again:
                _passed_then.append(function.__name__)
            print("ok %d - %s (%.1f s)%s" % (_number, function.__doc__.strip(), time.monotonic() - began, "; " + note if note else ""), flush=True)
            return True
        except Exception as e:  # one scenario's failure must not hide the others'
            print("%s%d - %s (%.1f s)" % ("not ok " if last else "# once more: ", _number, function.__doc__.strip(), time.monotonic() - began))
            print("#", type(e).__name__, str(e)[:2000].replace("\n", "\n# "), flush=True)
        if last:
            break
        _again.append(function.__name__)
    _failed += 1
    return False


def finish():
    if _passed_then:
        print("failed, and passed when they were run once more (above):", ", ".join(_passed_then))
    print("%d passed, %d failed" % (_number - _failed, _failed))
    return 1 if _failed or not _number else 0
