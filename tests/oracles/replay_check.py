"""Independent check of `remuda simulate --placements`: every arrival and every placement is played again with nothing but
the rules of the trace. check() returns what is wrong (a list of sentences) and the allocation that the placements make."""
import csv


class Node:
    def __init__(self, row):
        self.name, self.cpu, self.memory, self.model = row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]), row["model"]
        self.chips = [1000] * int(row["gpu"])  # thousandths that are free

    def takes(self, pod):
        if pod["cpu"] > self.cpu or pod["memory"] > self.memory:
            return False
        if pod["chips"] == 0:
            return True
        if pod["models"] and self.model not in pod["models"]:
            return False
        if pod["chips"] == 1 and pod["milli"] < 1000:
            return max(self.chips, default=0) >= pod["milli"]
        return sum(free == 1000 for free in self.chips) >= pod["chips"]

    def give(self, pod, indices):
        """What is wrong with this placement, or None."""
        if len(set(indices)) != len(indices) or len(indices) != pod["chips"] or any(i >= len(self.chips) for i in indices):
            return f"has chips {indices}, asks for {pod['chips']}"
        if pod["chips"] and pod["models"] and self.model not in pod["models"]:
            return f"stands on a {self.model}"
        self.cpu -= pod["cpu"]
        self.memory -= pod["memory"]
        need = pod["milli"] if pod["chips"] == 1 else 1000
        for i in indices:
            self.chips[i] -= need
        if self.cpu < 0 or self.memory < 0 or any(self.chips[i] < 0 for i in indices):
            return f"does not fit: CPU {self.cpu}, memory {self.memory}, chips {[self.chips[i] for i in indices]} left"
        return None


def read_pods(path):
    pods = {}
    for row in csv.DictReader(open(path)):
        chips = int(row["num_gpu"])
        pods[row["name"]] = {"cpu": int(row["cpu_milli"]), "memory": int(row["memory_mib"]), "chips": chips,
                             "milli": int(row["gpu_milli"] or 0) if chips == 1 else 1000 * (chips > 0),
                             "models": set(filter(None, (row.get("gpu_spec") or "").split("|")))}
    return pods


def check(nodes_path, pods_path, placements_path, load):
    nodes = {row["sn"]: Node(row) for row in csv.DictReader(open(nodes_path))}
    pods, wrong, asked, given, block = read_pods(pods_path), [], 0, 0, set()
    capacity = sum(len(n.chips) for n in nodes.values())
    refused = set()  # asks that no node took; nobody leaves, so none ever will
    for line, row in enumerate(csv.DictReader(open(placements_path)), 2):
        pod = pods.get(row["pod"])
        where = f"line {line}, {row['pod']}"
        if pod is None:
            wrong.append(where + ": is not in the list")
            continue
        if row["pod"] in block:
            wrong.append(where + ": arrives twice in one pass")
        block.add(row["pod"])
        if len(block) == len(pods):
            block = set()
        if asked >= load * capacity * 1000:
            wrong.append(where + ": arrives after the load was reached")
        asked += pod["chips"] * pod["milli"]
        kind = (pod["cpu"], pod["memory"], pod["chips"], pod["milli"], frozenset(pod["models"]))
        if row["node"] == "":
            if kind not in refused and any(n.takes(pod) for n in nodes.values()):
                wrong.append(where + ": was dropped, and a node takes it")
            refused.add(kind)
            continue
        if not nodes[row["node"]].takes(pod):
            wrong.append(where + f": {row['node']} does not take it")
        fault = nodes[row["node"]].give(pod, [int(i) for i in row["chip_indices"].split(";") if i])
        if fault:
            wrong.append(f"{where}: {fault}")
        given += pod["chips"] * pod["milli"]
    if asked < load * capacity * 1000:
        wrong.append("the list ends before the load is reached")
    return wrong, 100 * given / (capacity * 1000)
