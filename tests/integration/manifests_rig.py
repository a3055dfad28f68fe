"""The shipped manifests on a kube-apiserver (apiserver_rig.Cluster), by the lines of docs/how-to/install.md."""
import os, re, subprocess, textwrap, time

from extender_rig import GPU, inventory


def kubectl(c, *command, **more):
    tool = os.path.join(c.folder, "kubectl")
    if not os.path.exists(tool):
        os.symlink(c.kubernetes, tool)
    return subprocess.run([tool, *command], capture_output=True, text=True, timeout=120, **more)


def overlays():
    """Every kustomization.yaml that the page shows."""
    return [textwrap.dedent(o) for o in re.findall(r"(?m)^    resources: \[\.\./manifests\]\n(?:    .*\n)+", open("docs/how-to/install.md").read())]


def overlay_of_queues(manifests):
    """The documented overlay of a controller held to namespaces, with the components that the same page has for the queues of Kueue."""
    page = open("docs/how-to/install.md").read()
    text = next(o for o in overlays() if "components: [../manifests/controller-namespaces]" in o)
    queues = re.search(r"(?m)^    (components: \[.*controller-namespaces/kueue\])$", page).group(1)
    return text.replace("components: [../manifests/controller-namespaces]", queues).replace("../manifests", manifests)


def shipped(key):
    """A file of the shipped ConfigMap."""
    text = open("manifests/scheduler/configmap.yaml").read()
    return textwrap.dedent(re.search(r"(?m)^  %s: \|\n((?:    .*\n)+)" % re.escape(key), text).group(1))


def install(c, namespace, *components):
    """`kubectl apply -k` of the manifests, or of the documented overlay for another namespace; with these components of them."""
    overlay = os.path.join(c.folder, "overlay-" + namespace)
    os.mkdir(overlay)
    text = next(o for o in overlays() if "transformers:" in o)
    text = text.replace("../manifests", os.path.relpath("manifests", os.path.realpath(overlay))).replace("chips", namespace)
    with open(os.path.join(overlay, "kustomization.yaml"), "w") as f:
        f.write(text if namespace != "remuda-system" else text.split("transformers")[0])
        if components:
            f.write("components: [%s]\n" % ", ".join(os.path.join(os.path.relpath("manifests", os.path.realpath(overlay)), name) for name in components))
    made = kubectl(c, "kustomize", "--load-restrictor=LoadRestrictionsNone", overlay)
    config = c.config("admin-config", {"token": "good-token"})
    for _ in range(2):  # objects of a kind that was just made are not known yet
        applied = kubectl(c, "--kubeconfig", config, "apply", "--server-side", "--force-conflicts", "-f", "-", input=made.stdout)
        time.sleep(1)
    return applied


def documented(c, begin, namespace, installed="remuda-system"):
    """The documented line that begins so, word for word."""
    line = next(l for l in open("docs/how-to/install.md") if l.startswith("    kubectl " + begin))
    return kubectl(c, "--kubeconfig", c.config("admin-config", {"token": "good-token"}),
                   *line.strip().replace("NAMESPACE", namespace).replace("remuda-system:", installed + ":").split()[1:])


def admit(c, namespace, installed="remuda-system"):
    return documented(c, "create rolebinding remuda-controller", namespace, installed)


def token(c, namespace, account, **spec):
    answer = c.api("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", {"spec": {"expirationSeconds": 3600, **spec}})
    return answer["status"]["token"]


def tell_inventory(c, said):
    """As its agent does: the object, then its status."""
    path = "/apis/remuda.dev/v1alpha1/nodeaccelerators"
    c.api("POST", path, {k: said[k] for k in ("apiVersion", "kind", "metadata")})
    c.api("PATCH", f"{path}/{said['metadata']['name']}/status", {"status": said["status"]}, content_type="application/merge-patch+json")


def machine(c, name, pool):
    """A node of eight chips, with its inventory."""
    sizes = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: "8"}
    c.api("POST", "/api/v1/nodes", {"metadata": {"name": name}, "status": {"capacity": sizes, "allocatable": sizes, "conditions": [{"type": "Ready", "status": "True"}]}})
    tell_inventory(c, inventory(name, 8, pool=pool))
