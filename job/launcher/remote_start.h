/* Remote start: mpirun's agent, as ssh would be: "HOST orted ARGS..." goes to the manager, and from there to
 * the group's launcher. */
#pragma once

#include "job/launcher/rendezvous.h"

/* remote_start() - until the daemon has ended. Return: its exit code, or one of base/exit_code.h. */
int remote_start(const struct rendezvous_options *options, char *const *words, size_t count);
