/* Any bytes as a network of operators: never a crash, and what is written is read back as the same. */
#include <stddef.h>
#include <stdint.h>

#include "planner/models/network_forms.h"
#include "planner/models/network_json.h"

static void check(const struct network *network)
{
        struct network_totals before = network_totals(network), after;
        struct text out = { 0 };
        struct network again;
        struct err err = { 0 };
        json_t *json;

        network_json(network, NULL, &out);
        json = out.data == NULL ? NULL : json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
        if (json == NULL || network_json_decode(json, &again, &err) < 0)
                __builtin_trap();
        after = network_totals(&again);
        if (before.parameters != after.parameters || before.multiply_adds != after.multiply_adds)
                __builtin_trap();
        network_free(&again);
        json_decref(json);
        text_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        json_t *json = json_loadb((const char *) data, size, JSON_REJECT_DUPLICATES, NULL);
        struct network_estimate_device device = { .name = "chip", .tflops = 100, .count = 2 };
        struct network network;
        struct err err = { 0 };

        if (json != NULL && network_json_decode(json, &network, &err) == 0) {
                struct network_forms_request request = { .network = &network,
                                                         .devices = &device,
                                                         .device_count = 1,
                                                         .assumptions = network_estimate_default(),
                                                         .batch = 8,
                                                         .microbatches = 4,
                                                         .link_gb_per_s = 25 };
                struct text out = { 0 };

                check(&network);
                (void) network_forms_split(&request, &out, &err);
                text_free(&out);
                network_free(&network);
        }
        json_decref(json);
        return 0;
}
