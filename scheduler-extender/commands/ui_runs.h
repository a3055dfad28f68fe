/* UI runs: jobs of `remuda run` whose folders lie in a directory store, or in a work folder that is opened as
 * one: told to the page as the TrainingJobs default/NAME, while they run and when they have ended. Of a name
 * that the store itself has a TrainingJob of, the store's goes before. Looked at once a second; files are
 * read where one of them is another than before. */
#pragma once

#include <jansson.h>
#include <systemd/sd-event.h>

struct ui_runs;

/* ui_runs_new() - @directory is borrowed.
 * @tell: a job is new or changed; @object: borrowed; NULL = its folder is gone. From the loop.
 * Return: 0 or a negative errno. */
int ui_runs_new(sd_event *loop, const char *directory,
                void (*tell)(void *userdata, const char *key, const json_t *object), void *userdata,
                struct ui_runs **ret);
void ui_runs_free(struct ui_runs *runs); /* accepts NULL */

/* ui_runs_observed() - the store has a TrainingJob of this key, or has it no more (@object NULL). */
void ui_runs_observed(struct ui_runs *runs, const char *key, const json_t *object); /* accepts NULL */
