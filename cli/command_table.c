/* The list of commands, in the order of `remuda --help`. */
#include "cli/command/command.h"

#include <stddef.h>

#include "cli/command/commands.h"

const struct command commands[] = {
        { "devices", "the accelerators and CPU groups of a machine", command_devices },
        { "doctor", "is everything on this node as it should be?", command_doctor },
        { "explain", "why a pod waits or runs where it does, and what would help", command_explain },
        { "health", "the devices that are not well, and an operator's word about them", command_health },
        { "jobs", "training jobs: list, show, logs, cancel, report", command_jobs },
        { "machine", "record a machine as one text file, or expand a record", command_machine },
        { "nodes", "the cluster's nodes: class, pool, chips, what is free", command_nodes },
        { "plan", "exact plans: shards, segments, splits, launch lines", command_plan },
        { "run", "run a TrainingJob on this machine, from plan to summary", command_run },
        { "top", "how busy the devices of this node are, live", command_top },
        { "tune", "search the tile sizes of the trainer's kernels on this machine", command_tune },
        { "simulate", "replay a trace of pods through the extender's scoring", command_simulate },
        { "uninstall", "end the jobs, and take Remuda off a cluster", command_uninstall },
        { "whatif", "where pods would go on the cluster as it is or could be", command_whatif },
        { NULL, NULL, NULL },
};
