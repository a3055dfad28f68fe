"""The kubelet's part of a training job's pods, on a store in a directory: a pod's command runs here; its
Secret, its annotations and its folders are folders of ours."""
import base64, json, os, subprocess

RUNS = {"phase": "Running", "containerStatuses": [{"name": "main", "ready": True, "state": {"running": {}}}]}


class Pods:
    def __init__(self, store, room, address, launcher):
        """@address: of every pod, of 127.0.0.0/8; @launcher: remuda-launch"""
        self.store, self.room, self.address, self.launcher, self.processes = store, room, address, launcher, {}

    def objects(self, kind):
        for name in os.listdir(self.store):
            if name.endswith(f".{kind}.json"):
                with open(os.path.join(self.store, name)) as f:
                    yield name, json.load(f)

    def of(self, job):
        return {o["metadata"]["name"]: o for _, o in self.objects("pod") if o["metadata"].get("labels", {}).get("remuda.dev/job") == job}

    def annotations(self, pod):
        """As they are by now: what was patched stands beside the object."""
        told = dict(pod["metadata"].get("annotations", {}))
        try:
            with open(f"{self.store}/pod.{pod['metadata']['namespace']}.{pod['metadata']['name']}.patch") as f:
                told.update(json.load(f)["patch"]["metadata"]["annotations"])
        except (OSError, KeyError, ValueError):
            pass
        return told

    def folder(self, pod, name):
        path = os.path.join(self.room, pod["metadata"]["name"], name)
        os.makedirs(path, exist_ok=True)
        return path

    def secret(self, pod, source):
        """The files of a Secret, once it is there."""
        found = next((o for _, o in self.objects("secret") if o["metadata"]["name"] == source["secretName"]), None)
        if found is None:
            return None
        values = {**{k: base64.b64decode(v).decode() for k, v in found.get("data", {}).items()}, **found.get("stringData", {})}
        return {item["path"]: values[item["key"]] for item in source["items"]}

    def mount(self, pod):
        """Every volume as it is by now. Return: {its path in the container: our folder}, or None: a Secret is not there yet."""
        places = {}
        for volume in pod["spec"]["volumes"]:
            folder, files = self.folder(pod, volume["name"]), {}
            if "secret" in volume:
                files = self.secret(pod, volume["secret"])
            elif "downwardAPI" in volume:
                for item in volume["downwardAPI"]["items"]:
                    files[item["path"]] = self.annotations(pod).get(item["fieldRef"]["fieldPath"].split("'")[1], "")
            if files is None:
                return None
            for name, text in files.items():
                with open(os.path.join(folder, name + "~"), "w") as f:
                    f.write(text)
                os.rename(os.path.join(folder, name + "~"), os.path.join(folder, name))
            for mount in pod["spec"]["containers"][0]["volumeMounts"]:
                if mount["name"] == volume["name"]:
                    places[mount["mountPath"]] = folder
        return places

    def here(self, word, places):
        """A word of the container's command as it is here."""
        for path in sorted(places, key=len, reverse=True):
            if word == path or word.startswith(path + "/"):
                return places[path] + word[len(path):]
        return word.replace("$(POD_IP)", self.address).replace("/dev/termination-log", self.room + "/ended")

    def begin(self, file, pod, node):
        places = self.mount(pod)
        if places is None:
            return
        name = pod["metadata"]["name"]
        os.symlink(os.path.abspath(self.launcher), os.path.join(places["/remuda"], "remuda-launch"))
        command = [self.here(word, places) for word in pod["spec"]["containers"][0]["command"]]
        variables = {e["name"]: e["value"] for e in pod["spec"]["containers"][0].get("env", []) if "value" in e}
        self.log(name, "w")
        self.processes[name] = subprocess.Popen(command, stdout=self.log(name, "a"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                                env={**os.environ, **variables, "TMPDIR": places["/tmp"], "POD_IP": self.address})
        pod["spec"]["nodeName"], pod["status"] = node, {**RUNS, "podIP": self.address}
        with open(os.path.join(self.store, file + ".new~"), "w") as f:
            json.dump(pod, f)
        os.rename(os.path.join(self.store, file + ".new~"), os.path.join(self.store, file))

    def log(self, name, mode="r"):
        return open(os.path.join(self.room, name + ".log"), mode)

    def look(self, node):
        """What is new begins on the node, and volumes have what the objects say by now."""
        for file, pod in list(self.objects("pod")):
            if "remuda.dev/job" not in pod["metadata"].get("labels", {}):
                continue
            if pod["metadata"]["name"] in self.processes:
                self.mount(pod)
            else:
                self.begin(file, pod, node)

    def logs(self):
        return {name: self.log(name).read()[-1500:] for name in self.processes}

    def end(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
