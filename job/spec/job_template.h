/* Job template: what an entry of workers, or the servers, asks for beside chips: variables, CPU and memory,
 * devices such as RDMA adapters, room in /dev/shm. Of pods alone. Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json/json_table.h"

#define JOB_TEMPLATE_NAME_BYTES     128
#define JOB_TEMPLATE_VALUE_BYTES    1024
#define JOB_TEMPLATE_QUANTITY_BYTES 32
#define JOB_TEMPLATE_VARIABLES_MAX  64
#define JOB_TEMPLATE_RESOURCES_MAX  16

struct job_template_variable {
        char name[JOB_TEMPLATE_NAME_BYTES], value[JOB_TEMPLATE_VALUE_BYTES];
};

struct job_template_resource {
        char name[JOB_TEMPLATE_NAME_BYTES];
        char quantity[JOB_TEMPLATE_QUANTITY_BYTES]; /* as it was written: "500m", "2Gi" */
};

struct job_template {
        bool given;
        struct job_template_variable *environment;
        size_t variable_count;
        struct job_template_resource *requests, *limits;
        size_t request_count, limit_count;
        char shm_size[JOB_TEMPLATE_QUANTITY_BYTES]; /* of /dev/shm; "" = not given */
};

/* How it is read, json_table_free() releases it. */
extern const struct json_table job_template_table;

/* job_template_find() - the entry of this name, or NULL. */
const struct job_template_resource *job_template_find(const struct job_template_resource *list, size_t count,
                                                      const char *name);
