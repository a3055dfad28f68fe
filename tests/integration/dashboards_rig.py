"""What is known of Grafana's dashboards without a Grafana: panels, queries, links, and what is wrong with them."""
import glob, json, os, re

FOLDER = "manifests/monitoring/dashboards"
OURS = re.compile(r"\b(remuda_[a-z0-9_]+|process_[a-z_]+)\b")
BUILT_IN = {"__rate_interval": "30s", "__range": "30s", "__interval": "1s"}


def load():
    return {os.path.basename(f): json.load(open(f)) for f in sorted(glob.glob(FOLDER + "/*.json"))}


def panels(board):
    return [p for p in board["panels"] if p["type"] != "row"]


def queries(board):
    """(panel, target) of every query."""
    return [(p, t) for p in panels(board) for t in p["targets"]]


def variables(board):
    return {v["name"]: v for v in board["templating"]["list"]}


def filled(expression, values=None):
    """With what Grafana would put in place of variables: by itself everything."""
    return re.sub(r"\$(\w+)", lambda m: (values or {}).get(m[1]) or BUILT_IN.get(m[1]) or ".*", expression)


def metrics(expression):
    return {re.sub(r"_(bucket|sum|count)$", "", m) for m in OURS.findall(re.sub(r'"[^"]*"', '""', expression))}


def links(panel):
    """(url) of every drill-down of a panel."""
    found = list(panel["fieldConfig"]["defaults"].get("links", []))
    for override in panel["fieldConfig"]["overrides"]:
        found += [l for p in override["properties"] if p["id"] == "links" for l in p["value"]]
    return [l["url"] for l in found]


def cells(board):
    return [(p["title"], {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}) for p in board["panels"] for g in [p["gridPos"]]]


def overlapping(board):
    """Titles of panels of which one lies on another, or beyond the edge."""
    taken, found = {}, []
    for title, place in cells(board):
        found += [(title, taken[c]) for c in place if c in taken][:1] + ([title] if any(x > 23 for x, _ in place) else [])
        taken.update(dict.fromkeys(place, title))
    return found


def unsaid(board):
    """Panels that lack what makes them understood, or ask another than the chosen Prometheus."""
    return [p["title"] for p in panels(board) if len(p.get("description", "")) < 10 or not p["fieldConfig"]["defaults"].get("unit") or not p["targets"] or
            p["datasource"] != {"type": "prometheus", "uid": "${datasource}"} or any(t["datasource"] != p["datasource"] or not t["expr"] for t in p["targets"])]


def lost(boards):
    """Links to what is not there: a dashboard, or a variable of it; variables that a query has and its dashboard lacks."""
    by_uid, found = {b["uid"]: b for b in boards.values()}, []
    for name, board in boards.items():
        for panel in panels(board):
            for url in links(panel):
                to = by_uid.get(re.match(r"/d/([\w-]+)", url)[1])
                found += [(name, panel["title"], url)] if to is None or set(re.findall(r"var-(\w+)=", url)) - set(variables(to)) else []
        for panel, target in queries(board):
            found += [(name, panel["title"], v) for v in re.findall(r"\$(\w+)", target["expr"]) if v not in variables(board) and v not in BUILT_IN]
    return found


def cells_of_links(panel):
    """Labels whose values a panel's links carry."""
    return {label for url in links(panel) for label in re.findall(r"\$\{__(?:data\.fields|field\.labels)\.(\w+)\}", url)}
