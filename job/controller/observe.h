/* Observe: objects of the store, as they change, become what is known of jobs (job/controller/record.h). */
#pragma once

#include <jansson.h>

struct controller;

/* @object: NULL = it is gone. @key: "namespace/name" */
void observe_job(struct controller *c, const char *key, const json_t *object);
void observe_pod(struct controller *c, const char *key, const json_t *object);
void observe_node(struct controller *c, const char *node); /* by its ledger: jobs that are there look at it */
