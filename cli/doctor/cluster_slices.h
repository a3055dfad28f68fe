/* Cluster slices: of what claims are offered in a cluster, is each pool whole, and its chips one driver's
 * alone? */
#pragma once

#include "cli/doctor.h"

/* cluster_slices_check() - a check of `remuda doctor --cluster`. */
void cluster_slices_check(const struct doctor_patient *p, struct doctor_finding *f);
