/* The alternatives of a model, one after the other; the letters of a runtime. */
#include "job/spec/job_role.h"

#include <stdlib.h>
#include <string.h>

const char *const job_role_names[] = { "worker", "server", NULL };

void job_role_free_place(struct job_role_place *place)
{
        json_decref(place->node_selector);
        json_decref(place->tolerations);
        json_decref(place->labels);
        json_decref(place->annotations);
        free(place->match);
        free(place->resource);
        *place = (struct job_role_place){ 0 };
}

bool job_role_model_matches(const char *wanted, const char *model)
{
        size_t length = strlen(model);

        for (const char *word = wanted; word != NULL; word = strchr(word, '|')) {
                word += *word == '|';
                if (strncmp(word, model, length) == 0 && (word[length] == '\0' || word[length] == '|'))
                        return true;
        }
        return false;
}

bool job_role_runtime_valid(const char *runtime)
{
        size_t length = strlen(runtime);

        return length > 0 && length < JOB_RUNTIME_BYTES && runtime[0] != '-' &&
               strspn(runtime, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}
