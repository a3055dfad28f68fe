/* Preview: where the ranks of a job would go and what each would have of every batch, by what is known before
 * anything is measured or started (`remuda run --dry-run`). Nothing is written. */
#pragma once

#include "base/json/json_writer.h"
#include "job/run/run.h"

/* run_preview() - prints each of the jobs of a file. @documents: as many as jobs. Return: an exit code. */
int run_preview(const struct run_options *options, const char *job_path, const json_t *documents);

/* run_preview_share() - the members of a rank that say what it has of a batch, and by which speeds: "share"
 * (samples of each global batch) and "batch" (the same, under the name that programs know),
 * "speed_source" and "precision", which are null where none is: of a server, of a measurement. */
void run_preview_share(struct json_writer *json, const struct run_rank *rank);
