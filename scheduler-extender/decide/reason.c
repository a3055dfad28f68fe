/* The table of reasons: word, sentence, remedy, and whether time can mend it. */
#include "scheduler-extender/decide/reason.h"

#include <assert.h>

#include "base/cleanup.h"

#define ROW(word_, unresolvable_, sentence_, remedy_)                                                        \
        {                                                                                                    \
                .word = (word_), .message = word_ ": " sentence_, .unresolvable = (unresolvable_),           \
                .remedy = (remedy_), .message_bytes = sizeof(word_ ": " sentence_) - 1                       \
        }

/* clang-format off */
static const struct reason_text reasons[] = {
        [REASON_NONE] = { .word = "", .message = "", .remedy = "" },
        [REASON_NODE_UNKNOWN] = ROW("NodeUnknown", false,
                "no inventory and no Node object of this name is known",
                "start the agent on the node, or wait until the cluster has told of it"),
        [REASON_INVENTORY_STALE] = ROW("InventoryStale", false,
                "the node has not reported for longer than the limit, or not since it came back",
                "see why the agent or the kubelet of the node is silent, or raise --stale-after"),
        [REASON_NO_SUCH_RESOURCE] = ROW("NoSuchResource", true,
                "the node has no chips of the resource asked for",
                "ask for a resource that the cluster has (`remuda nodes` lists them)"),
        [REASON_WRONG_MODEL] = ROW("WrongModel", true,
                "the node has no chips of an accepted model",
                "accept more models in the annotation remuda.dev/models"),
        [REASON_SINGLE_CHIP_NODE] = ROW("SingleChipNode", true,
                "the node is for jobs of one chip",
                "add multi-chip nodes, change the node's class, or allow --overflow multi-to-single"),
        [REASON_MULTI_CHIP_NODE] = ROW("MultiChipNode", true,
                "the node is for jobs of several chips",
                "add single-chip nodes, change the node's class, or allow --overflow single-to-multi"),
        [REASON_RESERVED_POOL] = ROW("ReservedPool", true,
                "the node is reserved for emergencies",
                "give the pod an emergency priority class, or label it preemptible and allow --lend-reserve"),
        [REASON_TOO_FEW_CHIPS] = ROW("TooFewChips", true,
                "the node has fewer such chips in all than the pod asks for",
                "ask for fewer chips in a pod, or split the job into a gang of smaller pods"),
        [REASON_CHIPS_UNHEALTHY] = ROW("ChipsUnhealthy", false,
                "too few of the node's chips are usable",
                "repair the device or clear its quarantine (`remuda devices -o wide` says which)"),
        [REASON_CHIPS_BUSY] = ROW("ChipsBusy", false,
                "too few of the node's usable chips are free",
                "wait until a pod there ends, or ask for fewer chips"),
        [REASON_CHIPS_LEASED] = ROW("ChipsLeased", false,
                "the node's free chips are leased to a gang that is being placed",
                "wait: the lease ends when the gang is bound or its time is over"),
        [REASON_HELD_FOR_OLDER] = ROW("HeldForOlder", false,
                "the node's free chips are held for an older pod",
                "wait, or give the pod an activeDeadlineSeconds that ends before the older pod could start"),
        [REASON_NO_PROGRAM] = ROW("NoProgram", true,
                "there is no program for the node's runtime, or the node has another version of it",
                "add the runtime to the job's programs or to the program table"),
        [REASON_NO_SUCH_GROUP] = ROW("NoSuchGroup", true,
                "no device group of the node is as large as the pod asks for",
                "ask for fewer chips, or drop the label remuda.dev/same-group"),
        [REASON_NO_WHOLE_GROUP] = ROW("NoWholeGroup", false,
                "no device group of the node has that many chips free",
                "wait until a pod there ends, or drop the label remuda.dev/same-group"),
        [REASON_UNEQUAL_NODE] = ROW("UnequalNode", true,
                "the node's configuration differs from that of the job's other nodes",
                "add nodes of the same configuration, or drop the label remuda.dev/equal-nodes"),
        [REASON_NETWORK_TOO_SLOW] = ROW("NetworkTooSlow", true,
                "the node's fastest network is slower than the pod asks for",
                "ask for less in remuda.dev/min-network-mbps, or mend the node's link"),
        [REASON_GANG_INCOMPLETE] = ROW("GangIncomplete", false,
                "the members of its gang, or the group that it names, are not all there",
                "create the other members (label remuda.dev/job) or the group, or drop the label remuda.dev/gang-size"),
        [REASON_GANG_DOES_NOT_FIT] = ROW("GangDoesNotFit", false,
                "the members of the gang do not all fit at the same time",
                "wait, or ask for fewer or smaller members"),
        [REASON_GANG_PAUSED] = ROW("GangPaused", false,
                "its namespace has its share of leases, its last one ended unused a short while"
                " ago, or others go before so large a gang",
                "wait: it is tried again; see that members which exist can be bound (volumes, affinity, quota)"),
        [REASON_SHARE_TOO_SMALL] = ROW("ShareTooSmall", false,
                "the chip's exact share of the batch is nothing, below its minimum, or slows the job",
                "raise the batch, or leave this chip out of the job"),
        [REASON_SHARE_TOO_LARGE] = ROW("ShareTooLarge", true,
                "the chip's exact share of the batch needs more memory than the chip has",
                "lower the batch, or add workers to the job"),
        [REASON_NODE_NOT_ALLOWED] = ROW("NodeNotAllowed", true,
                "the pod's node selector, affinity or tolerations keep it off the node",
                "change them, or the labels and taints of the node"),
        [REASON_NODE_FULL] = ROW("NodeFull", false,
                "the node's CPU, memory, pods or other resources do not suffice beside its chips",
                "ask for less beside the chips, or wait until pods there end"),
        [REASON_WRONG_NEIGHBOURS] = ROW("WrongNeighbours", false,
                "pod affinity, anti-affinity or topology spread keeps the pod off the node",
                "change it, or wait until the pods that it speaks of come or go"),
};
/* clang-format on */
static_assert(ARRAY_SIZE(reasons) == REASON_COUNT, "a reason without a text");
static_assert(REASON_COUNT - 1 <= REASONS_MAX, "more reasons than people can learn");

const struct reason_text *reason_text(enum reason reason)
{
        assert(reason < REASON_COUNT);
        return &reasons[reason];
}
