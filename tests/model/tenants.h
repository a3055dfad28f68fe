/* Tenants: what those do who own pods, the honest ones and the others: pods come, are labelled, end, are
 * deleted and forced away, and come back under their name. */
#pragma once

void tenants_make(int index); /* a new pod in that place, of any size */
/* tenants_make_urgent() - a member of a gang of two, an emergency that asks for half of the reserve each. */
void tenants_make_urgent(int index);
void tenants_remove(int index);

/* Steps of a model: one pod, by chance. */
void tenants_step_make(void);
void tenants_step_scribble(void);
void tenants_step_life(void);
