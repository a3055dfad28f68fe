"""The chart packaging/helm/remuda, by the helm that tests/e2e/helm builds."""
import os, re, subprocess, tempfile

import yaml

CHART = "packaging/helm/remuda"
SHIPPED = re.search(r"newTag: (v[0-9.]+)", open("manifests/scheduler/kustomization.yaml").read()).group(1)  # kube-scheduler's version there


def binary():
    """What `tests/e2e/run prepare` builds, if it is there; a test builds it, too, where a Go is."""
    build = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../e2e/helm/build")
    made = subprocess.run([build], capture_output=True, text=True)
    return made.stdout.strip() if made.returncode == 0 else None


class Helm:
    def __init__(self, path, folder, *options):
        self.path, self.options = path, options
        self.environment = {**os.environ, **{f"HELM_{w}_HOME": os.path.join(folder, w.lower()) for w in ("CACHE", "CONFIG", "DATA")}}

    def __call__(self, *words, values=None):
        """One command; values are a file of its own."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            yaml.safe_dump(values or {}, f)
            f.flush()
            return subprocess.run([self.path, *words, *(["-f", f.name] if values is not None else []), *self.options], env=self.environment,
                                  capture_output=True, text=True, timeout=300)

    def render(self, values=None, kubernetes=SHIPPED, namespace="remuda-system"):
        """Objects by kind and name, but hooks."""
        return {k: o for k, o in self.render_all(values, kubernetes, namespace).items() if not is_hook(o)}

    def by_namespace(self, values):
        """By namespace, too; "" = none."""
        r = self("template", "remuda", CHART, "-n", "remuda-system", "--kube-version", SHIPPED, values=values)
        if r.returncode != 0:
            raise ValueError(r.stderr)
        return {k: o for k, o in by_namespace(r.stdout).items() if not is_hook(o)}

    def hooks(self, values=None, namespace="remuda-system"):
        return {k: o for k, o in self.render_all(values, SHIPPED, namespace).items() if is_hook(o)}

    def render_all(self, values, kubernetes, namespace):
        r = self("template", "remuda", CHART, "-n", namespace, "--kube-version", kubernetes, values=values or {})
        if r.returncode != 0:
            raise ValueError(r.stderr)
        return objects(r.stdout)


def is_hook(o):
    return "helm.sh/hook" in o["metadata"].get("annotations", {})


def objects(text):
    return {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(text) if o}


def by_namespace(text):
    nowhere = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")  # kustomize gives these one
    return {("" if o["kind"] in nowhere else o["metadata"].get("namespace", ""), o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(text) if o}


def without_labels(o):
    """What is left when the labels of whoever installs are taken away: helm's own, and kustomize's; and the namespace that kustomize gives
    these two kinds, which it does not know: an API server has them in none."""
    labels = {k: v for k, v in o["metadata"].get("labels", {}).items() if k not in ("app.kubernetes.io/managed-by", "app.kubernetes.io/instance")}
    metadata = {**o["metadata"], "labels": labels}
    if o["kind"] in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
        metadata.pop("namespace", None)
    return {**o, "metadata": metadata}


def pod(o):
    return o["spec"]["template"]["spec"]
