/* The folder of a job below --work-dir: its lock, its files, and what the job before it left. */
#pragma once

#include "job/run/run.h"

/* run_folder_open() - the last step of a run (run.h) that can refuse it; then the job's name and its
 * checkpoints are its own until run_folder_close(), and what a job of this name left is gone.
 * run_folder_await_parents() - until the jobs that it depends on have ended. */
int run_folder_open(struct run *run, int *ret_exit_code, struct err *err);
void run_folder_await_parents(struct run *run);
void run_folder_close(struct run *run);

/* run_folder_set_aside() - checkpoints of an earlier run, which one that begins anew must not go on from. */
void run_folder_set_aside(struct run *run);

/* run_folder_path() - folder/NAME, or folder/rank-INDEX.SUFFIX */
bool run_folder_path(const struct run *run, char path[RUN_PATH_BYTES], const char *name);
bool run_folder_rank_path(const struct run *run, char path[RUN_PATH_BYTES], size_t rank, const char *suffix);

/* run_folder_last_line() - the last line of folder/NAME that is a JSON object in which @member is there, and
 * no empty list; a new reference, or NULL. */
json_t *run_folder_last_line(const struct run *run, const char *name, const char *member);
int run_folder_write_json(const char *path, const json_t *value, struct err *err); /* by rename */
