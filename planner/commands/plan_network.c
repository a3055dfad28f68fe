/* Reads a network, ONNX or JSON. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "planner/commands/plan.h"
#include "planner/models/network_bytes.h"
#include "planner/models/network_json.h"
#include "planner/models/network_onnx.h"

int plan_network_read(const char *file, uint64_t tokens, struct network *ret, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        size_t size_bytes = 0;
        json_t *json;
        int r = plan_read_bytes(file, &bytes, &size_bytes, err);

        if (r < 0)
                return r;
        if (network_bytes_are_onnx(bytes, size_bytes))
                return network_onnx_decode(bytes, size_bytes, tokens, ret, err);
        r = plan_parse_json(bytes, size_bytes, &json, err);
        if (r < 0)
                return r;
        r = network_json_decode(json, ret, err);
        json_decref(json);
        return r;
}
