/* Any bytes as a layer profile and, before the first line end, as the name of a network. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "planner/segments/plan_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct plan_segments_request request;
        struct segments_plan plan;
        struct err err = { 0 };
        char network[64] = "10gbe:8";
        const uint8_t *line = size > 0 ? memchr(data, '\n', size) : NULL;

        if (line != NULL && (size_t) (line - data) < sizeof(network) && data[0] != 'n') {
                memcpy(network, data, (size_t) (line - data));
                network[line - data] = '\0';
                size -= (size_t) (line + 1 - data);
                data = line + 1;
        }
        if (plan_profile_read((const char *) data, size, 2.5, &request, &err) < 0)
                return 0;
        if (plan_segments_request_set_network(&request, network, &err) == 0 &&
            plan_segments_request_answer(&request, &plan, &err) == 0)
                segments_plan_free(&plan);
        plan_segments_request_free(&request);
        return 0;
}
