/* The alternatives of a model, one after the other. */
#include "job/spec/job_role.h"

#include <string.h>

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
