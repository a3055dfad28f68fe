/* Levels trial: where a launcher proposes two levels (REMUDA_LEVELS) by its model of the links, the world
 * sums its gradients both ways before the first step, and keeps what is the faster: the model knows neither
 * which algorithm the library takes in one level, nor who else is on the link. */
#pragma once

#include "trainer/strategies/levels.h"
#include "trainer/training.h"

/* levels_trial() - collective. Return: are two levels the faster? The same on every rank; rank 0 says on its
 * standard error what each took. The gradients are zeros afterwards. */
bool levels_trial(struct levels *l, struct training *t);
