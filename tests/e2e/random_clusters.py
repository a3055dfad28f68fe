"""Small random clusters as objects of one API server: each has its nodes (label `cluster`) and its namespace, so that many stand beside
each other without touching. What may occur in them is what test_plans_apiserver shows; docs/reference/scheduling.md lists it."""
import random

GPU, NIC = "nvidia.com/gpu", "example.com/nic"
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def some(r, chance, make):
    return make() if r.random() < chance else None


def sizes(**more):
    return {k.replace("_", "-"): str(v) for k, v in more.items()}


class RandomCluster:
    def __init__(self, number):
        self.r = random.Random(number)
        self.name = f"c{number}"
        self.nodes = [self.node(i) for i in range(self.r.randint(2, 4))]
        self.inventories = [self.inventory(n) for n in self.nodes] if self.r.random() < 0.5 else []
        self.bound = [p for n in self.nodes for i in range(self.r.randint(0, 2)) for p in [self.neighbour(n, i)]]
        self.gang = self.members()

    def node(self, i):
        r, name = self.r, f"{self.name}-n{i}"
        size = {**sizes(cpu=r.choice((6, 12, 24)), memory=r.choice(("8Gi", "16Gi", "33000M")), ephemeral_storage=r.choice(("20Gi", "40Gi")),
                        pods=r.choice((3, 5, 110, 110))), GPU: str(r.choice((2, 4, 8)))}
        if r.random() < 0.4:
            size[NIC] = str(r.randint(1, 4))
        labels = {"cluster": self.name, HOST: name, ZONE: f"{self.name}-z{r.randint(0, 1)}", "disk": r.choice(("ssd", "slow"))}
        if r.random() < 0.1:
            del labels[ZONE]
        taints = some(r, 0.2, lambda: [{"key": "only", "value": "batch", "effect": r.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))}])
        return {"metadata": {"name": name, "labels": labels}, "spec": {"taints": taints or []},
                "status": {"capacity": size, "allocatable": size, "conditions": [{"type": "Ready", "status": "True"}]}}

    def inventory(self, node):
        """Of an agent there: then what the node offers beside its chips is none of ours to give away."""
        chips = int(node["status"]["allocatable"][GPU])
        return {"apiVersion": "remuda.dev/v1alpha1", "kind": "NodeAccelerators", "metadata": {"name": node["metadata"]["name"]}, "status": {
            "generation": 1, "bootID": "", "nodeClass": "any", "pool": "regular", "devices": [], "groups": [{
                "name": "g", "vendor": "nvidia", "runtime": "cuda", "model": "H100", "resource": GPU, "fabric": "none", "total": chips, "healthy": chips, "free": 0}]}}

    def container(self, chips, **more):
        """Requests, limits, sidecars and overheads add up as the kubelet does."""
        r = self.r
        requests = {k: v for k, v in {"cpu": r.choice(("500m", "1", "2500m", "4", "6", None)), "memory": r.choice(("512Mi", "1Gi", "3G", "6Gi", None)),
                                      "ephemeral-storage": r.choice(("1Gi", "8Gi", None, None))}.items() if v}
        limits = {GPU: str(chips)} if chips else {}
        if chips and r.random() < 0.2:
            limits[NIC] = "1"
        if requests.get("cpu") and r.random() < 0.2:
            limits["cpu"] = requests.pop("cpu")  # the API server takes it for the request
        return {"name": "c", "image": "x", "resources": {"requests": requests, "limits": limits}, **more}

    def spec(self, chips):
        r = self.r
        spec = {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0, "containers": [self.container(chips)]}
        if r.random() < 0.15:
            spec["initContainers"] = [{**self.container(0), "name": "i", **({"restartPolicy": "Always"} if r.random() < 0.5 else {})}]
        return spec

    def neighbour(self, node, i):
        r = self.r
        spec = {**self.spec(r.choice((0, 0, 1))), "nodeName": node["metadata"]["name"], "schedulerName": "bound"}
        if r.random() < 0.15:  # it wants no member of the gang near it
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [self.term({"of": "gang"})]}}
        return {"metadata": {"name": f"b-{node['metadata']['name']}-{i}", "labels": {"app": r.choice("ab")}}, "spec": spec}

    def term(self, labels):
        r = self.r
        key, value = next(iter(labels.items()))
        selector = r.choice(({"matchLabels": labels}, {"matchExpressions": [{"key": key, "operator": "In", "values": [value, "other"]}]}))
        return {"topologyKey": r.choice((HOST, ZONE)), "labelSelector": selector}

    def spread(self):
        r = self.r
        more = {"minDomains": 2} if r.random() < 0.2 else {}
        if r.random() < 0.2:
            more["nodeAffinityPolicy"] = "Ignore"
        if r.random() < 0.2:
            more["nodeTaintsPolicy"] = "Honor"
        return {"maxSkew": r.choice((1, 1, 2)), "topologyKey": r.choice((HOST, ZONE)), "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"of": "gang"}}, **more}

    def demands(self):
        """What every member of the gang says of its node, and of its neighbours."""
        r, affinity, spec = self.r, {}, {"nodeSelector": {"cluster": self.name}}
        if r.random() < 0.15:
            spec["nodeSelector"]["disk"] = "ssd"
        if r.random() < 0.15:
            affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": ZONE, "operator": r.choice(("In", "NotIn")), "values": [f"{self.name}-z0"]}]}]}}
        if r.random() < 0.5:
            spec["tolerations"] = [{"key": "only", "operator": "Exists"}]
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        for kind, chance in (("podAffinity", 0.15), ("podAntiAffinity", 0.2)):
            terms = [self.term(r.choice(({"of": "gang"}, {"app": "a"})))] if r.random() < chance else []
            if terms:
                affinity[kind] = {required: terms}
        if r.random() < 0.2:
            spec["topologySpreadConstraints"] = [self.spread()]
        if affinity:
            spec["affinity"] = affinity
        return spec

    def members(self):
        r = self.r
        size, chips, demands = r.randint(2, 4), r.choice((1, 1, 1, 2, 2, 4)), self.demands()
        like, unlike = self.spec(chips), r.random() < 0.4
        labels = {"of": "gang", "remuda.dev/job": "gang", "remuda.dev/gang-size": str(size)}
        return [{"metadata": {"name": f"m{i}", "labels": {**labels, "index": str(i)}},
                 "spec": {**(self.spec(chips) if unlike else like), **demands, "schedulerName": "remuda"}} for i in range(size)]
