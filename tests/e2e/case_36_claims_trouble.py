"""Claims while things go wrong: a chip breaks, the kubelet, the driver and the API server go away, slices and claims are taken by hand, the agent is
upgraded, pods of both kinds race, the node changes its API under load. Never has a chip two holders, no pod stays terminating, nothing is left.

E2E_CLAIMS=all runs those that take longer, too. E2E_RESTARTS (2) is how often the kubelet is restarted, E2E_RACERS (24) how many pods race; 20 and 200 for the long ones.
E2E_FAILPOINTS=FOLDER, a build with failpoints, has the driver die at the very places between Prepare and its answer."""
import os
import signal
import subprocess
import time

from kube import NotFound, allocatable, api, cluster, create, delete_pod, end_pod, events_of, get, get_pod, gone, phase, pod, scenario, wait, wait_running
from case_10_node import GPU, system_pod
from case_30_plugin import chips, hide, is_alone, show
from scenarios import BUILD, na_is_right
from claims import (CLAIMS, DRA, TAINTS, Driver, Racers, Rebooted, Witness, agent_is_new, agent_pids, allocated_to, chip_of, claim_of, claiming_pod, claims, container_of,
                    has_exactly, nothing_left, offered, own_claim, pod_with, prepared, slices, specs, took, with_driver)

LIMIT_SECONDS = float(os.environ.get("E2E_CLAIMS_SECONDS", "3"))  # from a change to what the cluster says of it; 1 is the goal where nothing else computes
CONFIG = "/api/v1/namespaces/remuda-system/configmaps/remuda-agent"


def told_of_claim(name):
    """(health, message) of the pod's claimed chip, as its status has it"""
    for status in get_pod(name)["status"]["containerStatuses"]:
        for resource in status.get("allocatedResourcesStatus", []):
            if resource["name"].startswith("claim:"):
                return resource["resources"][0]["health"], resource["resources"][0].get("message", "")
    return "", ""


def moments(began, seconds, **conditions):
    """name -> when each of them was first true, counted from @began"""
    seen = {}

    def look():
        for name, condition in conditions.items():
            if name not in seen and condition():
                seen[name] = took(began)
        return len(seen) == len(conditions)
    try:
        wait("all of %s" % sorted(conditions), seconds, look, 0.02)
    except AssertionError as e:
        raise AssertionError("%s; had %s" % (e, seen)) from None
    return seen


def break_once(name, pci):
    """The chip under a pod breaks and recovers. Return: when slice and status told of each, and the status's sentence."""
    own_claim("claim-" + name, 'device.attributes["resource.kubernetes.io"].pciBusID == "%s"' % pci)  # a kubelet before 1.36 tells the health of claims alone that a pod calls by their own name
    create(pod_with("claim-" + name, name))
    wait_running(name)
    has_exactly(name)
    device, chip, before = allocated_to(name)[0], chip_of(name), container_of(name)
    wait("Healthy in the pod's status", 20, lambda: told_of_claim(name)[0] == "Healthy")

    def sick():
        there = offered().get(device)
        if not TAINTS:
            return there is None
        return there is not None and any(t["key"] == "remuda.dev/health" and t["value"] for t in there.get("taints", []))
    hidden, began = hide(chip["pci"]), time.monotonic()
    try:
        seen = moments(began, 20, slice=sick, status=lambda: told_of_claim(name)[0] == "Unhealthy" and (not TAINTS or told_of_claim(name)[1]))
        sentence = told_of_claim(name)[1]
    finally:
        show(hidden)
    back = moments(time.monotonic(), 60, slice=lambda: device in offered() and not sick(), status=lambda: told_of_claim(name) == ("Healthy", ""))
    assert not TAINTS or "Gone: " in sentence, sentence
    assert container_of(name) == before and phase(name) == "Running"
    delete_pod(name)
    api("DELETE", CLAIMS + "/claim-" + name)
    return seen, back, sentence


@with_driver()
def claim_of_a_chip_that_breaks():
    """a chip breaks under a pod with a claim: tainted or out of the slice, and Unhealthy in the pod's status, at once; it recovers: all of it goes"""
    # one that other scenarios have not broken: a chip that turns often is kept away, rightly
    seen, back, sentence = break_once("breaks", chips()[-2]["pci"])
    if max(seen.values()) > LIMIT_SECONDS:  # somebody else had the processor; one that fails twice is kept away for longer
        seen, back, sentence = break_once("breaks-too", chips()[-3]["pci"])
    nothing_left()
    assert max(seen.values()) <= LIMIT_SECONDS, seen
    return "%s after %.2f s, in the pod's status after %.2f s%s; well again after %.1f s" % (
        "tainted" if TAINTS else "out of the slice (no taints before 1.36)", seen["slice"], seen["status"], ' as "%s"' % sentence if sentence else "", max(back.values()))


def slice_ids():
    return {s["metadata"]["uid"] for s in get(DRA + "/resourceslices")["items"] if s["spec"]["driver"] == "remuda.dev"}


@with_driver()
def claims_over_kubelet_restarts():
    """the kubelet is restarted, and takes all slices away as it starts: they are there again, held chips stay held, pods with claims start and end"""
    create(claiming_pod("stays", "two"))
    wait_running("stays")
    held, before, worst, turns = has_exactly("stays"), container_of("stays"), 0, int(os.environ.get("E2E_RESTARTS", "2"))
    with Witness():
        for turn in range(turns):
            old = slice_ids()
            cluster("restart", "kubelet")
            began = time.monotonic()
            wait("the slices of turn %d" % turn, 60, lambda: slice_ids() and not slice_ids() & old and len(offered()) == 8)
            worst = max(worst, took(began))
            create(claiming_pod("turn-%d" % turn))
            wait_running("turn-%d" % turn)
            assert not has_exactly("turn-%d" % turn) & held
            end_pod("turn-%d" % turn)
    assert container_of("stays") == before, "a running pod was disturbed"
    delete_pod("stays")
    nothing_left()
    return "%d times; slices at most %.1f s after the kubelet's start, its own start included" % (turns, worst)


@with_driver()
def claims_of_a_forgotten_pod():
    """a pod is deleted by force and the kubelet restarted at once, which has forgotten it: whoever is given its chip next waits for it, and runs"""
    create(claiming_pod("forgotten"))
    wait_running("forgotten")
    chip = chip_of("forgotten")
    own_claim("same-chip", 'device.attributes["resource.kubernetes.io"].pciBusID == "%s"' % chip["pci"])
    with Witness():
        delete_pod("forgotten")
        cluster("restart", "kubelet")
        create(pod_with("same-chip", "next"))
        began = time.monotonic()
        wait_running("next", 240)  # a look at what is not a pod's any more is a minute's, one at a pod that was refused a minute and a half's
        waited = took(began)
        has_exactly("next")
    delete_pod("next")
    api("DELETE", CLAIMS + "/same-chip")
    nothing_left()
    return "after %.0f s" % waited


def kill_agents():
    for pid in agent_pids():
        os.kill(pid, signal.SIGKILL)


@with_driver()
def claims_over_a_killed_driver():
    """the driver is killed as claims are prepared and given up: each pod starts with its own chips, and nothing is left"""
    with Witness():
        before = agent_pids()
        create(claiming_pod("killed", "two"))
        wait("the claim in the driver's file", 60, prepared, 0)
        kill_agents()  # about when it answers
        agent_is_new(before)
        wait_running("killed", 150)  # a kubelet whose call broke looks at the pod again after 60 to 90 s
        has_exactly("killed")
        before = agent_pids()
        api("DELETE", "/api/v1/namespaces/default/pods/killed")
        wait("it to be given up in the driver's file", 60, lambda: not prepared(), 0)
        kill_agents()
        agent_is_new(before)  # after ten seconds: the kubelet's patience with who dies twice
        wait("pod killed gone", 60, lambda: gone("killed"))
        nothing_left()


@with_driver()
def claims_at_the_failpoints():
    """the driver dies between reading a claim and answering, at every place that has a name: the pod starts, once, and nothing is left"""
    folder = os.environ.get("E2E_FAILPOINTS")
    if not folder:
        return "left out: E2E_FAILPOINTS names no build with failpoints"
    path = "/apis/apps/v1/namespaces/remuda-system/daemonsets/remuda-agent"
    original = get(path)["spec"]["template"]["spec"]["containers"][0]["image"]
    image_with_failpoints(folder)
    try:
        for place in ("dra.prepare", "dra.saved", "dra.prepared", "dra.undone"):
            name, mark = place.replace(".", "-"), "/var/lib/remuda/" + place
            change_agent(path, "localhost/failpoints:1", {"name": "REMUDA_FAILPOINT", "value": "%s:%s" % (place, mark)})
            with Witness():
                create(claiming_pod(name))
                wait_running(name, 90)
                has_exactly(name)
                delete_pod(name)
                nothing_left()
            assert os.path.exists(os.path.join(os.environ["KUBE"], "machine-state", place)), "%s was not reached" % place
    finally:
        change_agent(path, original, {"name": "REMUDA_FAILPOINT", "$patch": "delete"})
    return "four places"


def image_with_failpoints(folder):
    from scenarios import build_image
    if not os.path.exists(folder + "/curl"):
        os.symlink(os.path.abspath(os.path.join(os.environ.get("B", "build"), "curl")), folder + "/curl")
    cluster("import", build_image("failpoints.tar", B=folder, IMAGE="localhost/failpoints:1"))


def change_agent(path, image, variable):
    old = system_pod("remuda-agent")["metadata"]["uid"]
    api("PATCH", path, {"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": image, "env": [variable]}]}}}},
        "application/strategic-merge-patch+json")
    wait("the changed agent alone", 90, lambda: is_alone(old))
    wait("8 chips in the slices", 60, lambda: len(offered()) == 8)


@with_driver()
def slices_taken_by_hand():
    """slices that somebody deletes are there again at once, whole"""
    best, whole = 60, sorted(offered())
    for _ in range(2):
        old = slice_ids()
        began = time.monotonic()
        api("DELETE", DRA + "/resourceslices")
        wait("the slices", 20, lambda: slice_ids() and not slice_ids() & old and sorted(offered()) == whole, 0.02)
        best = min(best, took(began))
    assert len(slices()) == slices()[0]["pool"]["resourceSliceCount"] and len({s["pool"]["generation"] for s in slices()}) == 1, slices()
    assert best <= LIMIT_SECONDS, best
    return "after %.2f s" % best


@with_driver()
def claims_without_an_api_server():
    """a pod with a claim ends while there is no API server: its chips are given up, and nothing is left when it is back"""
    create(claiming_pod("ends", "two", command=["sh", "-c", "sleep 4"]))
    wait_running("ends")
    assert len(prepared()) == 1 and len(specs()) == 1
    cluster("stop", "apiserver")
    try:
        wait("the claim to be given up without an API server", 40, lambda: not prepared() and not specs())
    finally:
        cluster("restart", "apiserver")
    wait("the pod's end to be told", 60, lambda: phase("ends") == "Succeeded")
    delete_pod("ends")
    nothing_left()
    wait("8 chips of the device plugin", 30, lambda: allocatable(GPU) == 8)


@with_driver()
def claim_deleted_by_force():
    """a claim is deleted by force under its pod: the pod runs on, who is given its chip anew is refused by name, and starts when the pod has gone"""
    create(claiming_pod("robbed"))
    wait_running("robbed")
    claim, chip = claim_of("robbed"), chip_of("robbed")
    name = claim["metadata"]["name"]
    api("PATCH", CLAIMS + "/" + name, {"metadata": {"finalizers": None}}, "application/merge-patch+json")
    try:
        api("DELETE", CLAIMS + "/" + name)
    except NotFound:
        pass
    wait("the claim to be gone", 20, lambda: name not in [c["metadata"]["name"] for c in claims()])
    own_claim("that-one", 'device.attributes["resource.kubernetes.io"].pciBusID == "%s"' % chip["pci"])
    rival = pod_with("that-one", "rival")
    rival["spec"]["schedulerName"] = "default-scheduler"
    del rival["spec"]["containers"][0]["resources"]["limits"]
    with Witness():
        create(rival)
        said = wait("the refusal in an event", 90, lambda: [e["message"] for e in events_of("rival") if "is held by claim default/" + name in e.get("message", "")])
        assert phase("robbed") == "Running" and phase("rival") == "Pending"
        delete_pod("robbed")
        began = time.monotonic()
        wait_running("rival", 150)
        waited = took(began)
    delete_pod("rival")
    api("DELETE", CLAIMS + "/that-one")
    nothing_left()
    return "\"%s\"; the other ran %.0f s after the pod had gone" % (said[0].split("claim default/that-one: ")[-1][:120], waited)


@with_driver()
def claims_over_an_upgrade():
    """the agent is upgraded with overlap while pods of both kinds come and go: two drivers, one account"""
    path = "/apis/apps/v1/namespaces/remuda-system/daemonsets/remuda-agent"
    strategy = get(path)["spec"]["updateStrategy"]
    create(claiming_pod("undisturbed"))
    wait_running("undisturbed")
    before = container_of("undisturbed")
    with Witness():
        racers = Racers("upgrade", 500, 6)
        try:
            old = system_pod("remuda-agent")["metadata"]["uid"]
            api("PATCH", path, {"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
                                         "template": {"metadata": {"annotations": {"test/version": "claims-%d" % time.time()}}}}},
                "application/strategic-merge-patch+json")
            wait("the new agent alone", 90, lambda: is_alone(old))
        finally:
            racers.stop()
    api("PATCH", path, {"spec": {"updateStrategy": strategy}}, "application/merge-patch+json")
    assert min(racers.by) > 0 and not racers.failed, (racers.by, racers.failed)
    assert container_of("undisturbed") == before, "a running pod was disturbed"
    sockets = [f for f in os.listdir("/var/lib/kubelet/plugins/remuda.dev") if f.endswith(".sock")]
    assert len(sockets) == 1, sockets
    delete_pod("undisturbed")  # which the driver of before had prepared
    nothing_left()
    return racers.say()


@with_driver()
def claims_over_a_reboot():
    """the node is rebooted (all ended, /run and its CDI specs gone, another boot id): who is started again has its chips again, who is not gives them up"""
    again = claiming_pod("again", "two")
    again["spec"]["restartPolicy"] = "Always"
    create(again)
    create(claiming_pod("once"))
    for name in ("again", "once"):
        wait_running(name)
    held, before, old = has_exactly("again"), container_of("again"), slice_ids()
    with Witness():
        with Rebooted():
            began = time.monotonic()
            wait("the slices, made anew", 120, lambda: slice_ids() and not slice_ids() & old and len(offered()) == 8)
            back = took(began)
            wait("pod again running, in another container", 240, lambda: phase("again") == "Running" and container_of("again") != before)
            ran = took(began)
            assert has_exactly("again") == held
            wait("pod once, which is not started again, failed", 60, lambda: phase("once") == "Failed")
            create(claiming_pod("after", "two"))
            wait_running("after", 150)
            assert not has_exactly("after") & held
            for name in ("again", "once", "after"):
                end_pod(name)
            nothing_left(90)
    wait("the agent that tells of the boot that the node is in", 90, lambda: system_pod("remuda-agent")["status"]["containerStatuses"][0]["ready"])
    return "slices after %.0f s, the pod again after %.0f s, the start of all else included" % (back, ran)


@with_driver()
def claims_and_plugin_race():
    """pods of both kinds race for 8 chips: no chip has two holders (pod-resources, CDI specs), every pod comes to an end"""
    count = int(os.environ.get("E2E_RACERS", "24"))
    began = time.monotonic()
    with Witness() as witness:
        racers = Racers("race", count, 12)
        racers.join()
    assert not racers.failed and sum(racers.by) + sum(racers.lost) == count and min(racers.by) > 0, (racers.by, racers.lost, racers.failed)
    nothing_left()
    return "%s, in %.0f s, up to %d chips at once, asked %d times" % (racers.say(), took(began), witness.seen["most"], witness.seen["asked"])


def offer(word):
    """The node's configuration says so, and the kubelet brings it to the agent, which goes on."""
    text = get(CONFIG)["data"]["agent.yaml"]
    lines = [("offer: " + word) if line.startswith("offer:") else line for line in text.splitlines()]
    api("PATCH", CONFIG, {"data": {"agent.yaml": "\n".join(lines) + "\n"}}, "application/merge-patch+json")
    agent = system_pod("remuda-agent")["metadata"]["name"]
    api("PATCH", "/api/v1/namespaces/remuda-system/pods/" + agent, {"metadata": {"annotations": {"test/offer": "%s-%f" % (word, time.time())}}},
        "application/merge-patch+json")  # a kubelet looks at a pod that changes at once, at others within a minute or so


@with_driver("file")
def node_that_changes_its_api():
    """under load a node goes from the device plugin to claims and back, without a drain: never two holders, and what is not offered is not there"""
    process = agent_pids()
    began, phases = time.monotonic(), []
    with Witness():
        racers = Racers("move", 500, 8)
        try:
            for word, kind in (("plugin", 0), ("dra", 1), ("plugin", 0)):
                offer(word)
                wait("`offer: %s`: slices" % word, 60, lambda k=kind: bool(offered()) == (k == 1))
                wait("`offer: %s`: the device plugin" % word, 60, lambda k=kind: (allocatable(GPU) > 0) == (k == 0))
                had = racers.by[kind]
                wait("pods by what is offered now", 60, lambda k=kind, h=had: racers.by[k] > h + 1)
                phases.append("%s %.0f s" % (word, took(began)))
                began = time.monotonic()
            offer("both")  # whoever is left waits for one of the two
        finally:
            racers.stop()
    assert not racers.failed, racers.failed
    assert agent_pids() == process, "the agent was started anew"
    nothing_left()
    return "%s: %s" % (", ".join(phases), racers.say())


@with_driver("file", later="makes no claims for extended resources")
def same_pod_by_claim():
    """one pod that asks for nvidia.com/gpu runs by the device plugin, and by a claim once the node offers claims alone (1.36)"""
    same = pod("same", GPU, 2, command=["sh", "-c", "ls /dev; env; trap 'exit 0' TERM; while true; do sleep 1; done"])
    for word in ("plugin", "dra"):
        offer(word)
        wait("`offer: %s`: slices" % word, 60, lambda w=word: bool(offered()) == (w == "dra"))
        wait("`offer: %s`: the device plugin" % word, 60, lambda w=word: (allocatable(GPU) > 0) == (w == "plugin"))
        create(same)
        try:
            wait_running("same", 60)
        except AssertionError as e:
            said = subprocess.run([os.path.join(BUILD, "bin", "remuda"), "explain", "pod/same"], capture_output=True, text=True)
            raise AssertionError("%s by %s: %s; %s; %s; %d chips offered by the plugin, slices %s" % (
                e, word, [x.get("message") for x in events_of("same")][-3:], said.stdout, said.stderr, allocatable(GPU), [(s["pool"], len(s.get("devices", []))) for s in slices()])) from None
        assert len(claims()) == (word == "dra") and len(prepared()) == (word == "dra"), (claims(), prepared())
        if word == "dra":
            assert len(next(iter(specs().values()))) >= 2, specs()
        wait("the pod's two chips, counted once", 30, lambda: na_is_right(8, 6))
        delete_pod("same")
        nothing_left()
        wait("8 free chips", 60, lambda: na_is_right(8, 8))
    offer("both")
    return None


USUAL = [slices_taken_by_hand, claims_without_an_api_server, claim_of_a_chip_that_breaks]
LONG = [claim_deleted_by_force, claims_over_kubelet_restarts, claims_of_a_forgotten_pod, claims_over_a_killed_driver, claims_at_the_failpoints, claims_over_an_upgrade, claims_over_a_reboot,
        claims_and_plugin_race, node_that_changes_its_api, same_pod_by_claim]
for case in USUAL + (LONG if os.environ.get("E2E_CLAIMS") == "all" else []):
    scenario(case)
Driver.take_away()
