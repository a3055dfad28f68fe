/* Job keys: what the annotation JOB_ANNOTATION_KEYS of a job's pods says: the Secret's name, and the
 * authority by which the controller, also one that is started anew, knows the manager that it asks how the
 * job is. No key is in it. Pure but for the heap. */
#pragma once

#include "job/plan/job_group.h"

struct job_keys {
        char secret[JOB_POD_NAME_BYTES]; /* "" = they are none of ours */
        char *ca;                        /* PEM; owned, NULL = missing */
};

char *job_keys_write(const struct job_keys *keys); /* NULL = out of memory */
struct job_keys job_keys_read(const char *text);
void job_keys_free(struct job_keys *keys);
void job_keys_secret(const char *text, char name[JOB_POD_NAME_BYTES]); /* of the Secret alone */
