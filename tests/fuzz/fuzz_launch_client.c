/* Any bytes as the agent's answer at its launch API: never a crash, names without '='. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "job/launcher/launch_client.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct launch_client_answer answer;
        struct err err = { 0 };

        if (launch_client_parse((const char *) data, size, &answer, &err) < 0)
                return 0;
        for (size_t i = 0; i < answer.variable_count; i++)
                if (strchr(answer.names[i], '=') != NULL || answer.values[i] == NULL)
                        __builtin_trap();
        launch_client_answer_free(&answer);
        return 0;
}
