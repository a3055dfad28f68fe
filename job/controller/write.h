/* Write: what a job's controller tells the store: its status, its finalizer, its Secret, its pods, its
 * events. Each is written once at a time and by a leader alone; what fails is tried again. */
#pragma once

#include <jansson.h>

#include "job/controller/job_pods.h"
#include "job/controller/record.h"

void write_status(struct record *record); /* if it is dirty and none is under way */
void write_finalizer(struct record *record, bool present);
bool write_secret(struct record *record); /* Return: is it there? */
void write_pod(struct record *record, const char *name, const char *subtask, json_t *object); /* takes it */
/* write_not_made() - a pod, or what it needs, was not: it is asked for again, and said where it is refused.
 */
void write_not_made(struct record *record, int result, const char *sentence);
/* write_annotation() - of a pod; one at a time. Return: was it begun? */
bool write_annotation(struct record *record, struct job_pod *pod, const char *annotation, const char *value);
void write_delete(struct record *record, struct job_pod *pod, unsigned grace_sec);
/* Its Workload (kueue.h): made, or of this name patched; takes the object, kueue_written() hears of it. */
void write_workload(struct record *record, const char *name, json_t *object);
void write_removal(struct record *record); /* the object itself, if it is still this one */
void write_event(struct record *record, bool warning, const char *reason, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
struct job_pods_owner write_owner(const struct record *record);
bool write_token(char token[49]); /* 48 random hexadecimal digits */
