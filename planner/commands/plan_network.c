/* Knows ONNX from JSON by the first byte and reads either. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/commands/plan.h"
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
        /* an ONNX file begins with the key of a field, 0x08 as a rule; never with a blank or a brace */
        if (strchr(" \t\r\n{[", bytes[0]) == NULL)
                return network_onnx_decode(bytes, size_bytes, tokens, ret, err);
        r = plan_parse_json(bytes, size_bytes, &json, err);
        if (r < 0)
                return r;
        r = network_json_decode(json, ret, err);
        json_decref(json);
        return r;
}
