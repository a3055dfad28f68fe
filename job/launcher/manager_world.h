/* One MPI world of the manager: every group is assigned its part, and mpirun runs over them. Hands of its
 * engine: their userdata is the manager. */
#pragma once

#include "job/launcher/manager.h"

/* manager_world_assign() - cut batch and epoch over the places that the world uses, lay out their ranks, tell
 * them. */
void manager_world_assign(void *userdata);

/* manager_world_adopt() - the plan's speeds become those that were seen of each chip; of groups that never
 * ran, in proportion. @anew: the batches that the ranks have do not stand. */
void manager_world_adopt(void *userdata, bool anew);

/* manager_world_share() - every group is told the new shares of a world that runs. manager_world_shared() -
 * the ranks have taken them: they are the plan's. */
void manager_world_share(void *userdata);
void manager_world_shared(void *userdata);

void manager_world_start(void *userdata);
