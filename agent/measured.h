/* Measured: what `remuda devices --measure --save` has left for the agent, beside the agent's own state: read
 * again when the file is another one. A file that is not valid is said once and what was read before goes on.
 */
#pragma once

#include "agent/config/services.h"

struct measured;

/* measured_new() - @state_path: of the agent's state; "" = it has none, and nothing measured is read. NULL
 * without memory: nothing is reported then. */
struct measured *measured_new(const struct services *services, const char *state_path);
void measured_close(struct measured *measured); /* accepts NULL */

/* measured_tell() - read the file if it is another one, and give the groups what was measured of them. */
void measured_tell(struct measured *measured, struct inventory *inventory);
