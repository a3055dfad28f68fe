/* Reads layer profiles ("nodeN -- ..."), and knows what an allreduce costs on named networks. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "planner/segments/plan_segments.h"

#define LINE_BYTES 4096

/* A layer of the profile that has been read so far. */
struct layer {
        uint64_t node;
        uint64_t parameter_bytes;
        double backward_ms;
};

struct layers {
        struct layer *layer;
        size_t count, room;
};

/* Measured costs of an allreduce among so many ranks, and the formula's part of it: 2 (P - 1) messages, 2 (P
 * - 1) / P of the bytes. Source: the constants of MG-WFBP's distributed_optimizer.py. */
static const struct {
        const char *name;
        unsigned ranks;
        double alpha_ms, beta_ms_per_byte;
} measured[] = {
        { "10gbe", 8, 0.523027, 8.57075e-7 },
        { "10gbe", 16, 0.908098, 7.39565e-7 },
        { "56gib", 16, 0.235837, 4.05948e-7 },
};

/* "KEY=NUMBER" somewhere in the line. */
static int find_number(const char *line, const char *key, double *ret)
{
        const char *at = strstr(line, key);
        char text[64];
        size_t size;

        if (at == NULL)
                return -EINVAL;
        at += strlen(key);
        size = strspn(at, "0123456789.eE+-");
        if (size == 0 || size >= sizeof(text))
                return -EINVAL;
        memcpy(text, at, size);
        text[size] = '\0';
        return text_parse_double(text, ret) < 0 || *ret < 0 ? -EINVAL : 0;
}

static int add_layer(struct layers *layers, const struct layer *layer)
{
        if (layers->count == layers->room) {
                size_t room = layers->room == 0 ? 256 : layers->room * 2;
                struct layer *more = realloc(layers->layer, room * sizeof(*more));

                if (more == NULL)
                        return -ENOMEM;
                layers->layer = more;
                layers->room = room;
        }
        layers->layer[layers->count++] = *layer;
        return 0;
}

/* "node12 -- ReLU(inplace) -- forward_compute_time=0.361, backward_compute_time=0.214, activation_size=1.000,
 * parameter_size=0.000"; lines that begin with a blank are the graph's edges. */
static int read_line(const char *line, size_t number, struct layers *layers, struct err *err)
{
        struct layer layer = { 0 };
        double bytes = 0;
        char digits[20];
        size_t size;

        if (isspace((unsigned char) line[0]) || line[0] == '\0')
                return 0;
        size = strspn(line + (text_starts_with(line, "node") ? 4 : 0), "0123456789");
        if (!text_starts_with(line, "node") || size == 0 || size >= sizeof(digits))
                return err_set(err, -EBADMSG, "line %zu: must begin with 'nodeN -- ' as a layer profile does",
                               number);
        memcpy(digits, line + 4, size);
        digits[size] = '\0';
        if (text_parse_uint64(digits, &layer.node) < 0 ||
            find_number(line, "backward_compute_time=", &layer.backward_ms) < 0)
                return err_set(err, -EBADMSG, "line %zu: node%s needs backward_compute_time=MS, 0 or more",
                               number, digits);
        if (find_number(line, "parameter_size=", &bytes) < 0 || bytes > (double) SEGMENTS_MAX_BYTES)
                return err_set(err, -EBADMSG, "line %zu: node%s needs parameter_size=BYTES, 0 or more",
                               number, digits);
        layer.parameter_bytes = (uint64_t) bytes;
        if (layers->count >= SEGMENTS_MAX_TENSORS)
                return err_set(err, -E2BIG, "line %zu: more than %zu layers", number, SEGMENTS_MAX_TENSORS);
        return add_layer(layers, &layer) < 0 ? err_set(err, -ENOMEM, "no memory for layers") : 0;
}

static int read_lines(const char *bytes, size_t size_bytes, struct layers *layers, struct err *err)
{
        char line[LINE_BYTES];
        size_t number = 1;

        for (size_t at = 0; at < size_bytes; number++) {
                const char *end = memchr(bytes + at, '\n', size_bytes - at);
                size_t size = end != NULL ? (size_t) (end - bytes) - at : size_bytes - at;
                int r;

                if (size >= sizeof(line))
                        return err_set(err, -EBADMSG, "line %zu: longer than %d characters", number,
                                       LINE_BYTES - 1);
                memcpy(line, bytes + at, size);
                line[size] = '\0';
                r = read_line(line, number, layers, err);
                if (r < 0)
                        return r;
                at += size + 1;
        }
        return 0;
}

static int last_node_first(const void *a, const void *b)
{
        const struct layer *left = a, *right = b;

        return (left->node < right->node) - (left->node > right->node);
}

static int make_tensors(const struct layers *layers, double speedup, struct segments_request *request,
                        struct err *err)
{
        double backward_ms = 0;

        request->tensors = calloc(layers->count, sizeof(*request->tensors));
        request->names = calloc(layers->count, sizeof(*request->names));
        if (request->tensors == NULL || request->names == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu layers", layers->count);
        for (size_t i = 0; i < layers->count; i++) {
                const struct layer *layer = &layers->layer[i];
                char name[32];

                if (i > 0 && layer->node == layer[-1].node)
                        return err_set(err, -EBADMSG, "node%" PRIu64 " stands twice", layer->node);
                backward_ms += layer->backward_ms;
                if (layer->parameter_bytes == 0)
                        continue;
                (void) snprintf(name, sizeof(name), "node%" PRIu64, layer->node);
                request->names[request->tensor_count] = strdup(name);
                if (request->names[request->tensor_count] == NULL)
                        return err_set(err, -ENOMEM, "no memory for %zu layers", layers->count);
                request->tensors[request->tensor_count++] =
                        (struct segment_tensor){ .bytes = layer->parameter_bytes,
                                                 .ready_ms = backward_ms / speedup };
        }
        if (request->tensor_count == 0)
                return err_set(err, -EBADMSG,
                               "has no layer with parameters; give a profile with parameter_size above 0");
        return 0;
}

int segments_request_read_profile(const char *bytes, size_t size_bytes, double speedup,
                                  struct segments_request *ret, struct err *err)
{
        struct segments_request request = { .max_segments = SEGMENTS_DEFAULT_MAX };
        struct layers layers = { 0 };
        int r = read_lines(bytes, size_bytes, &layers, err);

        if (r == 0 && layers.count == 0)
                r = err_set(err, -EBADMSG,
                            "has no layers; give lines 'nodeN -- NAME -- backward_compute_time=MS, ...'");
        if (r == 0) {
                qsort(layers.layer, layers.count, sizeof(*layers.layer), last_node_first);
                r = make_tensors(&layers, speedup, &request, err);
        }
        free(layers.layer);
        if (r < 0) {
                segments_request_free(&request);
                return r;
        }
        *ret = request;
        return 0;
}

/* The two constants of the ring formula that fit the measured ones best (least squares through zero). */
static void fit_ring(const char *name, double ranks, struct segment_level *level)
{
        double messages_of = 0, messages_squared = 0, bytes_of = 0, bytes_squared = 0;

        for (size_t i = 0; i < ARRAY_SIZE(measured); i++) {
                double p = measured[i].ranks;

                if (strcmp(measured[i].name, name) != 0)
                        continue;
                messages_of += measured[i].alpha_ms * 2 * (p - 1);
                messages_squared += 2 * (p - 1) * 2 * (p - 1);
                bytes_of += measured[i].beta_ms_per_byte * 2 * (p - 1) / p;
                bytes_squared += 2 * (p - 1) / p * 2 * (p - 1) / p;
        }
        level->alpha_ms = 2 * (ranks - 1) * messages_of / messages_squared;
        level->beta_ms_per_byte = 2 * (ranks - 1) / ranks * bytes_of / bytes_squared;
}

static int find_known(const char *network, const char *colon, struct segment_level *ret, bool *ret_estimate,
                      struct err *err)
{
        size_t size = (size_t) (colon - network);
        const char *name = size == 5 && memcmp(network, "10gbe", 5) == 0   ? "10gbe"
                           : size == 5 && memcmp(network, "56gib", 5) == 0 ? "56gib"
                                                                           : NULL;
        uint64_t ranks;

        if (name == NULL || text_parse_uint64(colon + 1, &ranks) < 0 || ranks < 2 || ranks > 1000000)
                return err_set(err, -EINVAL,
                               "--network %.60s: give 10gbe:RANKS, 56gib:RANKS (2 or more) or "
                               "ALPHA_MS,BETA_MS_PER_BYTE",
                               network);
        *ret_estimate = false;
        for (size_t i = 0; i < ARRAY_SIZE(measured); i++)
                if (strcmp(measured[i].name, name) == 0 && measured[i].ranks == ranks) {
                        *ret = (struct segment_level){ measured[i].alpha_ms, measured[i].beta_ms_per_byte };
                        return 0;
                }
        fit_ring(name, (double) ranks, ret);
        *ret_estimate = true;
        return 0;
}

int segment_network_find(const char *network, struct segment_level *ret, bool *ret_estimate, struct err *err)
{
        const char *colon = strchr(network, ':'), *comma = strchr(network, ',');
        struct segment_level level = { 0 };
        char alpha[64];

        if (colon != NULL)
                return find_known(network, colon, ret, ret_estimate, err);
        if (comma == NULL || !text_format(alpha, sizeof(alpha), "%.*s", (int) (comma - network), network) ||
            text_parse_double(alpha, &level.alpha_ms) < 0 || level.alpha_ms < 0 ||
            text_parse_double(comma + 1, &level.beta_ms_per_byte) < 0 || level.beta_ms_per_byte < 0)
                return err_set(
                        err, -EINVAL,
                        "--network %.60s: give 10gbe:RANKS, 56gib:RANKS or ALPHA_MS,BETA_MS_PER_BYTE, e.g. "
                        "0.5,8.5e-7",
                        network);
        *ret = level;
        *ret_estimate = false;
        return 0;
}

int segments_request_set_network(struct segments_request *request, const char *network, struct err *err)
{
        free(request->levels);
        request->levels = calloc(1, sizeof(*request->levels));
        if (request->levels == NULL)
                return err_set(err, -ENOMEM, "no memory for a network");
        request->level_count = 1;
        request->has_network = true;
        return segment_network_find(network, request->levels, &request->estimate, err);
}
