#include "cli/command.h"

#include <stddef.h>

const struct command commands[] = {
        { NULL, NULL, NULL },
};
