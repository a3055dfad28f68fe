/* Manager members: the groups of a job as the manager meets them: who may join, what they are told, what they
 * answer and say of their ranks, and mpirun's agents that start daemons on them. */
#pragma once

#include "job/launcher/manager.h"

extern const struct grpc_method manager_members_methods[];

/* manager_members_takes_order() - is the group there, with room for one more? */
bool manager_members_takes_order(const struct manager_member *member);

/* manager_members_order() - Return: its id, 0 = not given. */
uint64_t manager_members_order(struct manager_member *member, Rendezvous__Order order);
void manager_members_order_all(struct manager *manager, Rendezvous__Order__Kind kind, int exit_code);

/* manager_members_stop() - every group ends what it runs; those that cannot be told have. @userdata: manager
 */
void manager_members_stop(void *userdata);
void manager_members_free(struct manager *manager);
