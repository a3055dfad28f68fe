"""What `remuda plan split` foretells of a cut that is given."""
import json
import subprocess


def cut_alone(problem, stages):
    """The problem of which these stages, [(first layer, last layer, type of device), ...], are the only plan: a stage is one layer, which its own
    device alone can have."""
    layers = []
    for first, last, device in stages:
        inside = problem["layers"][first:last + 1]
        layers.append({"name": f"stage{len(layers)}", "activation_bytes": inside[-1]["activation_bytes"],
                       "memory_bytes": sum(x.get("memory_bytes", 0) for x in inside),
                       "ms": {name: sum(x["ms"][name] for x in inside) if name == device else 1e9 for name in inside[0]["ms"]}})
    return {**problem, "layers": layers}


def foretold_ms(remuda, problem, stages):
    done = subprocess.run([remuda, "plan", "split", "-"], input=json.dumps(cut_alone(problem, stages)), text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    plan = json.loads(done.stdout)
    if [s["type"] for s in plan["stages"]] != [device for _, _, device in stages]:
        raise RuntimeError(f"another cut was planned: {plan['stages']}")
    return plan["foretold_ms"]
