/* Any bytes as an ONNX file: never a crash, and a network that comes out keeps the rules of one and is
 * written as JSON. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "planner/models/network_estimate.h"
#include "planner/models/network_json.h"
#include "planner/models/network_onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct network_estimate_block *blocks = NULL;
        struct text written = { 0 };
        struct network network;
        struct err err = { 0 };
        size_t count = 0;
        json_t *json;

        if (network_onnx_decode((const char *) data, size, 128, &network, &err) < 0) {
                if (err.msg[0] == '\0')
                        __builtin_trap();
                return 0;
        }
        if (network_check(&network, &err) < 0 || network_estimate_blocks(&network, &blocks, &count, &err) < 0)
                __builtin_trap();
        network_json(&network, NULL, &written);
        json = json_loadb(written.data, written.size_bytes, JSON_REJECT_DUPLICATES, NULL);
        if (json == NULL)
                __builtin_trap();
        json_decref(json);
        text_free(&written);
        free(blocks);
        network_free(&network);
        return 0;
}
