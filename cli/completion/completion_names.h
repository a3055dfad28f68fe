/* Completion names: nodes, pods, jobs, devices and folders as candidates, from where the command line says:
 * its store, its machine, its agent, its folder of jobs. */
#pragma once

#include "cli/completion/completions.h"

/* completion_names_add() - those that are wanted. What cannot be reached has none: whoever presses a key is
 * not told. It may take as long as a store takes: the caller sets the limit. */
void completion_names_add(struct completions *completions);
