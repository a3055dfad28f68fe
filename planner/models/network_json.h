/* Network JSON: a network of operators with shapes <-> JSON, the form that `plan split --network` reads and
 * `plan model` writes:
 *
 *   {"name": "ResNet-50", "input": [3, 224, 224], "operators": [
 *     {"name": "stem.conv", "block": "stem", "type": "conv", "inputs": ["input"], "output": [64, 112, 112],
 *      "inner": 3, "kernel": [7, 7], "groups": 1, "bias": false}, ...]}
 *
 * Types and the meaning of "inner" are in planner/models/network.h. "inputs" name earlier operators, or
 * "input" what the network is given; left out, an operation reads the one before. What else is written
 * ("parameters", "multiply_adds", "totals") follows from the shapes and is not read. In memory only. */
#pragma once

#include <jansson.h>

#include "base/text.h"
#include "planner/models/network_models.h"

/* network_json_decode() - 0, and a checked network for network_free(); -EBADMSG, -EINVAL or -ENOMEM with the
 * field. */
int network_json_decode(const json_t *json, struct network *ret, struct err *err);

/* network_json() - @model: whose published totals are written beside; NULL = not a shipped one. */
void network_json(const struct network *network, const struct network_model *model, struct text *out);
