/* Lost claims: pods that cannot begin, for their claim, or a device of it, is not there any more
 * (claims/claims_lost.h), are evicted by the leader, so that the claim is freed and whoever made the pod
 * makes another one.
 *
 * By the Eviction API, which asks no disruption budget of a pod that is pending; with the time to end that it
 * would get anyway. */
#pragma once

struct extender;

/* lost_claims_look() - called every second. O(nodes), and the pods of those that have such a claim. */
void lost_claims_look(struct extender *x);
