#include "cli/command.h"

#include <stddef.h>

#include "cli/commands.h"

const struct command commands[] = {
        { "plan", "exact plans: shards, segments, splits, launch lines", command_plan },
        { NULL, NULL, NULL },
};
