#include "cli/command.h"

#include <stddef.h>

#include "cli/commands.h"

const struct command commands[] = {
        { "devices", "the accelerators and CPU groups of a machine", command_devices },
        { "machine", "record a machine as one text file, or expand a record", command_machine },
        { "plan", "exact plans: shards, segments, splits, launch lines", command_plan },
        { "run", "run a TrainingJob on this machine, from plan to summary", command_run },
        { NULL, NULL, NULL },
};
