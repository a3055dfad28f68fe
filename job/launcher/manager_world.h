/* One MPI world of the manager: every group is assigned its part, and mpirun runs over them. */
#pragma once

#include "job/launcher/manager.h"

/* manager_world_assign() - cut batch and epoch over the places that the world uses, lay out their ranks, tell
 * them. */
void manager_world_assign(struct manager *manager);

/* manager_world_adopt() - the plan's speeds become those that were seen; of groups that do not run, in
 * proportion. */
void manager_world_adopt(struct manager *manager);

void manager_world_start(struct manager *manager);
void manager_world_kill(struct manager *manager);
