"""Claims of Dynamic Resource Allocation: the agent as a driver beside its device plugin, with a containerd that honours CDI."""
from kube import allocatable, create, delete_pod, get, scenario, wait, wait_running
from case_10_node import GPU
from claims import DRA, claiming_pod, has_exactly, nothing_left, with_driver


@with_driver()
def claimed_pods():
    """pods with claims of one and of two chips of one group run with exactly those device files and variables; the device plugin offers what is left"""
    wait("the classes", 20, lambda: get(DRA + "/deviceclasses/remuda-nvidia"))
    for template in ("one", "two"):
        create(claiming_pod("claims-" + template, template))
    for name in ("claims-one", "claims-two"):
        wait_running(name)
    one, two = has_exactly("claims-one"), has_exactly("claims-two")
    assert (len(one), len(two)) == (1, 2) and not one & two, (one, two)
    wait("the device plugin to offer the other five", 30, lambda: allocatable(GPU) == 5)
    delete_pod("claims-one")
    delete_pod("claims-two")
    nothing_left()
    wait("8 chips of the device plugin", 60, lambda: allocatable(GPU) == 8)


scenario(claimed_pods)
