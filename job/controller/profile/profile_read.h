/* Profile read: the layers of a split (spec.profile.configMapKeyRef), which the controller reads from the
 * job's namespace before it plans, and again every ten seconds while it waits. A job that has a plan keeps
 * what it was planned with; a controller that takes over reads it when a group needs another place. */
#pragma once

#include "job/controller/record.h"

#define PROFILE_READ_MAX_BYTES ((size_t) 512 << 10) /* what an event loop decodes at one time */

/* profile_read_ready() - are the layers known, as far as the job names any? If not, they are being asked for,
 * and planning is wanted again once there is an answer.
 * @ret_why: borrowed until the loop goes on
 * Return: false and *ret_why, which cannot be read and the remedy, or "" while there is no answer. */
bool profile_read_ready(struct record *record, const char **ret_why);

/* profile_read_carry() - the object is seen again: what was read for it is handed on, if the ConfigMap is the
 * same. */
void profile_read_carry(struct job *from, struct job *to);

/* profile_read_decode() - @object: the ConfigMap, NULL = there is none. Return: 0 and *ret, released with
 * job_split_profile_free(); negative and *err, what is wrong and the remedy. */
int profile_read_decode(const struct job_split_profile *wanted, const char *namespace_, const json_t *object,
                        struct job_split_profile *ret, struct err *err);
