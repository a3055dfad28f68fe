"""The folder of the DRA driver, read by another program than its own."""
import json


def read(folder):
    """What the driver's folder says of claims: the state that was written whole, and the journal that goes on from it."""
    try:
        state = json.load(open(folder + "/claims.json"))
    except FileNotFoundError:
        return {"claims": []}
    try:
        lines = open(folder + "/claims.journal").read().split("\n")[:-1]
    except FileNotFoundError:
        lines = []
    if lines and json.loads(lines[0]) == {"follows": state["sequence"]}:
        claims = {c["uid"]: c for c in state["claims"]}
        for change in map(json.loads, lines[1:]):
            for uid in change.get("drop", []):
                claims.pop(uid, None)
            claims.update({c["uid"]: c for c in change.get("add", [])})
            state["grants"] = change.get("grants", state.get("grants", []))
        state["claims"] = list(claims.values())
    return state
