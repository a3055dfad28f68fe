/* Gang members: who is still to be placed of a gang, the asking pod and the pods that are not created yet
 * included.
 *
 * Members that the store knows ask for what they ask for. The others are, in this order: those that the pod
 * lists (annotation remuda.dev/gang), those that the job's TrainingJob lists (workers by runtime, vendor,
 * model or group, and servers; a manager asks for no chips), or copies of the pod that asks. Pure but for the
 * heap. */
#pragma once

#include "scheduler-extender/decide/gang.h"

struct gang_members {
        struct request *requests; /* owned; what is left to place */
        size_t count;
        bool fewer; /* the TrainingJob would do with less: minChips */
};

/* gang_members_list() - @least: of a TrainingJob minChips are enough. Return: 0 or -ENOMEM. */
int gang_members_list(const struct rules_context *ctx, const struct ledger_job *job,
                      const struct gang_demand *demand, bool least, struct gang_members *ret);

/* gang_members_sort() - the largest first; of equal ones those that may go onto fewer nodes; in an order that
 * depends on nothing but what they ask for. */
void gang_members_sort(struct gang_members *members);

/* gang_members_are_lone() - is the one chip of this pod of a job (NULL = none) all that is there of the
 * several that its labels speak of? A TrainingJob's are listed by itself. */
bool gang_members_are_lone(const struct ledger_job *job, const struct ledger_pod *self,
                           const struct request *request);

/* gang_members_are_lacking() - is the pod (@self NULL = the store does not know it yet) of a gang by labels,
 * or by the list @kinds, of which no member holds chips yet, and of which fewer are there than it has? It
 * begins whole. Of a TrainingJob's its controller makes the members, and for a group kube-scheduler waits by
 * itself. gang_members_there() - those that may be placed or are on a node, the pod itself included; of a
 * list, which has no manager, those alone that ask for chips. O(1), as the one above. */
bool gang_members_are_lacking(const struct ledger_job *job, const struct ledger_pod *self,
                              const struct request *request, const struct request_member *kinds,
                              size_t kind_count);
uint32_t gang_members_there(const struct ledger_job *job, const struct ledger_pod *self, bool listed);

/* gang_members_resource() - whose chips a role gets that says only which ones it takes: the resource (symbol)
 * with the most usable chips among those; 0 = nobody has such chips. */
uint32_t gang_members_resource(const struct ledger *ledger, const struct job_role *role);
