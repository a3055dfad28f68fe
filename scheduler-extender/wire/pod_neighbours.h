/* Pod neighbours: what a Pod object says of the pods around it, and of itself -> the lines of
 * scheduler-extender/neighbours/neighbours.h.
 *
 * Read are the required terms of spec.affinity.podAffinity and podAntiAffinity, and of
 * spec.topologySpreadConstraints those with DoNotSchedule; matchLabelKeys and mismatchLabelKeys as the API
 * server writes them into selectors. kube-scheduler has the last word on all of it, so nothing is refused
 * here: a term is no demand if it cannot be read, or chooses namespaces by other labels than their name
 * (Namespace objects are not read). Then no term of podAffinity is one: a pod has to match all of them. In
 * memory only. */
#pragma once

#include <jansson.h>

#include "base/text.h"

#define POD_NEIGHBOURS_LABEL_BYTES  4096  /* labels beyond are not read */
#define POD_NEIGHBOURS_DEMAND_BYTES 16384 /* a pod that demands more demands nothing */

/* pod_neighbours_labels() - append the pod's namespace and labels, a line each. */
void pod_neighbours_labels(const json_t *pod, struct text *ret);

/* pod_neighbours_demands() - append the pod's demands; nothing for a pod that has none. */
void pod_neighbours_demands(const json_t *pod, struct text *ret);
