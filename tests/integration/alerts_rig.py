"""What is known of the alerts, their promtool cases and their runbooks, and what is missing there."""
import os, re, subprocess
import yaml

RULES, CASES, PAGES = "manifests/monitoring/remuda-alerts.yaml", "manifests/monitoring/remuda-alerts.test.yaml", "docs/runbooks"
B = os.environ.get("B", "build")


def rules():
    return {rule["alert"]: rule for group in yaml.safe_load(open(RULES))["groups"] for rule in group["rules"]}


def metrics_of(rule):
    return set(re.findall(r"\b(?:remuda_[a-z_]+|up)(?=[{)\s\[]|$)", rule["expr"]))


def judged(test, names):
    """(alert, does it fire) of every question of a case that is about alerts by name."""
    for question in test.get("alert_rule_test", []):
        yield question["alertname"], bool(question.get("exp_alerts"))
    for question in test.get("promql_expr_test", []):
        asked = re.search(r'ALERTS\{[^}]*alertname=(~?)"([^"]+)"', question["expr"])
        samples = [s["labels"] for s in question.get("exp_samples") or []]
        named = re.search(r"by \([^)]*\balertname\b", question["expr"])
        if asked is None:
            continue
        for name in names:
            if re.fullmatch(asked[2], name) if asked[1] else asked[2] == name:
                yield name, any(f'alertname="{name}"' in s for s in samples) if named else bool(samples)


def untested(known, cases):
    """Alerts for which no case says that they fire, or none that they do not although it has what they are made of."""
    seen = {name: set() for name in known}
    for test in cases:
        told = {re.match(r"\w+", s["series"])[0].removesuffix("_bucket") for s in test["input_series"]}
        for name, fires in judged(test, known):
            if told & {m.removesuffix("_bucket") for m in metrics_of(known[name])}:
                seen[name].add(fires)
    return {name: sorted(has) for name, has in seen.items() if has != {True, False}}


def commands(page):
    """What stands in backquotes and is typed: `kubectl ...`, `remuda ...`; a line's end in it is a space."""
    return [re.sub(r"\s+", " ", c) for c in re.findall(r"`((?:kubectl|remuda)\s[^`]+)`", page)]


def help_of(*command):
    return subprocess.run([f"{B}/bin/remuda", *command, "--help"], capture_output=True, text=True).stdout


def kubectl_verbs():
    said = subprocess.run(["kubectl", "--help"], capture_output=True, text=True).stdout
    return set(re.findall(r"^  ([a-z-]+) ", said, re.M))


def wrong_remuda(words):
    known = re.findall(r"^  ([a-z]+) ", help_of(), re.M)
    if words[0] not in known:
        return f"there is no command remuda {words[0]}"
    options = re.findall(r"--[a-z-]+|(?<=  )-[a-zA-Z](?=,)", help_of(words[0]))
    lost = [w for w in words[1:] if w.startswith("-") and w.split("=")[0] not in options]
    return f"remuda {words[0]} has no {lost}" if lost else None


def wrong(command, verbs):
    """Why it does not exist, or None; what follows -- or | is a command of its own."""
    said = []
    for part in re.split(r" -- | \| ", command):
        words = part.split()
        if words[0] == "remuda":
            said.append(wrong_remuda(words[1:]))
        elif words[0] == "kubectl" and verbs:
            rest = words[1:]
            while rest and rest[0].startswith("-"):
                rest = rest[2:] if rest[0] in ("-n", "--namespace") else rest[1:]
            said.append(None if rest and rest[0] in verbs else f"kubectl has no {rest[:1]}")
    return next((s for s in said if s), None)
