"""Claims of Dynamic Resource Allocation: the agent as a driver beside its device plugin, with a containerd that honours CDI."""
import os
import re

from kube import KUBE, NotFound, allocatable, api, create, delete_pod, get, kubectl, log, pod, scenario, wait, wait_running
from case_10_node import GPU, inventory
from scenarios import MACHINE, OVERLAY

DRA = "/apis/resource.k8s.io/v1"
SAY = ["sh", "-c", "ls /dev; env; trap 'exit 0' TERM; while true; do sleep 1; done"]


def apply(components):
    """The shipped manifests with these components, rolled out."""
    overlay = os.path.join(KUBE, "overlay-claims")
    os.makedirs(overlay, exist_ok=True)
    text = OVERLAY % {"manifests": os.path.relpath("manifests", overlay), "machine": MACHINE}
    with open(os.path.join(overlay, "kustomization.yaml"), "w") as f:
        f.write(re.sub(r"(?m)^components: \[(.*)\]$", lambda m: "components: [%s]" % ", ".join([m.group(1)] + components), text))
    kubectl("apply", "-k", overlay)
    kubectl("rollout", "status", "-n", "remuda-system", "daemonset/remuda-agent", "--timeout=90s")


def offered():
    """name -> attributes of the chips in the node's slices"""
    slices = [s["spec"] for s in get(DRA + "/resourceslices")["items"] if s["spec"]["driver"] == "remuda.dev" and s["spec"].get("nodeName") == "n1"]
    return {d["name"]: {k: next(iter(v.values())) for k, v in d["attributes"].items()} for s in slices for d in s["devices"] if d["attributes"]["vendor"]["string"] == "nvidia"}


def make_template(name, count):
    create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": {"spec": {"devices": {
        "requests": [{"name": "chips", "exactly": {"deviceClassName": "remuda-nvidia", "allocationMode": "ExactCount", "count": count}}],
        "constraints": [{"requests": ["chips"], "matchAttribute": "remuda.dev/group"}]}}}}, DRA + "/namespaces/default/resourceclaimtemplates")


def make_pod(name, template):
    create(pod(name, command=SAY, extra={"resourceClaims": [{"name": "chips", "resourceClaimTemplateName": template}]},
               container={"resources": {"claims": [{"name": "chips"}], "limits": {"remuda.dev/claim": "1"}}}))


def claims():
    return get(DRA + "/namespaces/default/resourceclaims")["items"]


def allocated_to(name):
    """The devices of the pod's claim, by name."""
    claim = next(c for c in claims() if c["metadata"]["ownerReferences"][0]["name"] == name)
    return [r["device"] for r in claim["status"]["allocation"]["devices"]["results"]]


def has_exactly(name, chips):
    """Its container's device files and variable are those of its claim's devices."""
    of_pci = {d["pci"]: d for d in inventory()["devices"] if d["pci"]}
    devices = [of_pci[chips[d]["resource.kubernetes.io/pciBusID"]] for d in allocated_to(name)]
    said = wait("the words of pod " + name, 20, lambda: log(name))
    files = set(re.findall(r"(?m)^(nvidia[0-9]+)$", said))
    ids = set(re.search(r"(?m)^NVIDIA_VISIBLE_DEVICES=(.*)$", said).group(1).split(","))
    assert files == {os.path.basename(n) for d in devices for n in d["nodes"]}, (name, files, devices)
    assert ids == {d["id"] for d in devices}, (name, ids, devices)
    return {d["id"] for d in devices}


def claimed_pods():
    """pods with claims of one and of two chips of one group run with exactly those device files and variables; the device plugin offers what is left"""
    if not os.environ.get("CONTAINERD"):
        return "left out: the packaged containerd drops what a kubelet names by CDI"
    apply(["%s/dra" % os.path.relpath("manifests", os.path.join(KUBE, "overlay-claims"))])
    try:
        chips = wait("8 chips in the slices", 60, lambda: len(offered()) == 8 and offered())
        wait("the classes", 20, lambda: get(DRA + "/deviceclasses/remuda-nvidia"))
        for template, count in (("one", 1), ("two", 2)):
            make_template(template, count)
            make_pod("claims-" + template, template)
        for name in ("claims-one", "claims-two"):
            wait_running(name)
        one, two = has_exactly("claims-one", chips), has_exactly("claims-two", chips)
        assert (len(one), len(two)) == (1, 2) and not one & two, (one, two)
        wait("the device plugin to offer the other five", 30, lambda: allocatable(GPU) == 5)
        delete_pod("claims-one")
        delete_pod("claims-two")
        wait("the claims to be gone with their pods", 60, lambda: not claims())
        wait("8 chips of the device plugin", 60, lambda: allocatable(GPU) == 8)
    finally:
        for name in ("claims-one", "claims-two"):
            delete_pod(name)
        for template in ("one", "two"):
            try:
                api("DELETE", DRA + "/namespaces/default/resourceclaimtemplates/" + template)
            except NotFound:
                pass
        apply([])


scenario(claimed_pods)
